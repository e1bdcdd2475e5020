"""Training data from WebDataset shards, and what a broken one says."""

import json
import pickle

import pytest

from counterfoil.benchmarks.records import TarSource
from counterfoil.benchmarks.training_files import read
from counterfoil.benchmarks.training_shards import expand
from refusals import refuses
from role_values import pictures, texts
from tar_shards import pair, png, write_tar


def test_shards_that_webdataset_wrote(tmp_path):
    wds = pytest.importorskip("webdataset")
    with wds.TarWriter(str(tmp_path / "train-000.tar")) as sink:
        for i in range(3):
            sink.write(
                {
                    "__key__": f"sample{i:03d}",
                    "jpg": png(i),
                    "txt": f"caption {i}",
                    "negative.jpg": png(10 + i),
                    "negative.txt": f"negative {i}",
                    "json": {"subset": "swap_att", "faithful": i != 1, "url": "anything"},
                }
            )
    data = read(tmp_path / "train-000.tar")
    assert texts(data, "caption") == ["caption 0", "caption 1", "caption 2"]
    assert texts(data, "negative_caption") == ["negative 0", "negative 1", "negative 2"]
    assert pictures(data, "image") == [png(i) for i in range(3)]
    assert pictures(data, "negative_image") == [png(10 + i) for i in range(3)]
    assert data.groupings == {"subset": ("swap_att",) * 3, "faithful": ("yes", "no", "yes")}
    # The same samples as that library's own reader finds.
    with open(tmp_path / "train-000.tar", "rb") as file:
        stream = ({**each, "__url__": ""} for each in wds.tariterators.tar_file_iterator(file))
        theirs = list(wds.tariterators.group_by_keys(stream))
    assert [each["jpg"] for each in theirs] == pictures(data, "image")
    source = pickle.loads(pickle.dumps(data.images[0].source))
    assert isinstance(source, TarSource)
    assert source.read() == png(0)


def test_captions_in_the_json(tmp_path):
    facts = {"captions": ["one", " two "], "negative_caption": "three"}
    data = read(
        write_tar(tmp_path / "a.tar", [("x/a.png", png(0)), ("x/a.json", json.dumps(facts).encode())])
    )
    assert texts(data, "caption") == ["one", "two"]
    assert texts(data, "negative_caption") == ["three", "three"]
    assert data.rows["image"].tolist() == [0, 0]


def test_patterns_and_folders_of_shards(tmp_path):
    for i in range(3):
        write_tar(tmp_path / "s" / f"train-{i:02d}.tar", pair(f"k{i}", i))
    write_tar(tmp_path / "s" / "val-00.tar", pair("k", 9))
    assert texts(read(tmp_path / "s" / "train-{01..02}.tar"), "caption") == ["caption 1", "caption 2"]
    assert texts(read(tmp_path / "s" / "{val,train}-00.tar"), "caption") == ["caption 9", "caption 0"]
    assert len(read(tmp_path / "s")) == 3  # the training split, where there are several
    assert texts(read(tmp_path / "s", split="validation"), "caption") == ["caption 9"]
    refuses(r"train-03.tar: no such shard", read, tmp_path / "s" / "train-{02..03}.tar")


def test_patterns_mean_what_they_mean_to_webdataset():
    braceexpand = pytest.importorskip("braceexpand")
    for pattern in ("a.tar", "a-{000..011}.tar", "{a,b}-{0..2}.tar", "{x,y}/{08..10}-{p,q}.tar"):
        assert expand(pattern) == list(braceexpand.braceexpand(pattern))


def test_members_that_are_no_samples_are_left_alone(tmp_path):
    others = [("__meta__.json", b"{}"), ("README", b"x")]
    members = [*others, *pair("a", 0), ("a.cls", b"3"), (".hidden.jpg", b"")]
    data = read(write_tar(tmp_path / "a.tar", members))
    assert texts(data, "caption") == ["caption 0"]


@pytest.mark.parametrize(
    ("members", "says"),
    [
        ([*pair("a", 0), ("b.jpg", png(1))], "a.tar, sample 'b': no caption"),
        ([*pair("a", 0), ("b.txt", b"b")], "a.tar, sample 'b': no image"),
        ([*pair("a", 0), *pair("b", 0), ("b.negative.txt", b"c")], "sample 'b': a negative_caption that the"),
        ([*pair("a", 0), ("a.negative.txt", b"c"), *pair("b", 0)], "sample 'b': no negative_caption"),
        ([*pair("a", 0), ("a.png", png(0))], "sample 'a': two images for 'image'"),
        ([*pair("a", 0), ("a.jpg", png(0))], "a.tar, a.jpg: two members of one name"),
        ([("a.jpg", png(0)), ("a.json", b"{")], "a.tar, a.json, line 1, column 2: not valid JSON"),
        ([("a.jpg", png(0)), ("a.json", b"[]")], "a.tar, a.json: not a JSON object"),
        ([("a.jpg", png(0)), ("a.json", b'{"caption": 3}')], "sample 'a', 'caption': not a text; given: 3"),
        ([("a.jpg", png(0)), ("a.txt", b"\xff")], "a.tar, a.txt: not UTF-8"),
        ([("a.jpg", png(0)), ("a.txt", b" \n")], "sample 'a', 'caption': empty text"),
        ([("a.cls", b"1")], "sample 'a': no image"),
    ],
)
def test_a_broken_sample_is_named(tmp_path, members, says):
    refuses(says, read, write_tar(tmp_path / "a.tar", members))


def test_a_shard_that_was_cut_off_is_named_wherever_it_was_cut(tmp_path):
    whole = write_tar(tmp_path / "whole.tar", [*pair("a", 0), *pair("b", 1)]).read_bytes()
    end = max(at for at, byte in enumerate(whole) if byte) // 512 * 512 + 512
    cut = tmp_path / "cut.tar"
    for length in range(512, end + 1, 128):
        cut.write_bytes(whole[:length])
        refuses(r"cut.tar", read, cut)
    cut.write_bytes(whole[: end + 512])
    assert len(read(cut)) == 2


def test_a_shard_of_something_else(tmp_path):
    (tmp_path / "a.tar").write_bytes(b"no tar file at all" * 100)
    refuses(r"a.tar: not a readable tar file", read, tmp_path / "a.tar")
    (tmp_path / "a.tar").rename(tmp_path / "a.tar.gz")
    refuses(r"a.tar.gz: a compressed shard", read, tmp_path / "a.tar.gz")


def test_a_shard_that_changed_since_says_so(tmp_path):
    path = write_tar(tmp_path / "a.tar", pair("a", 0))
    image = read(path).images[0]
    path.write_bytes(path.read_bytes()[:520])
    refuses(r"a.tar, a.jpg: the shard is cut off", image.read)
    path.unlink()
    refuses(r"a.tar, a.jpg: image cannot be read: No such file", image.read)
