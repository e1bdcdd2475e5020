"""Shards and images behind a URL: the weights and the numbers of a disk."""

import json

import fsspec
import numpy as np
import PIL.Image
import pytest

from bucket_servers import copied, new_bucket, s3_at, s3_server
from tar_shards import pair, write_tar

pytest.importorskip("torch")


@pytest.fixture
def shards(tmp_path):
    """Three shards of eight rows."""
    for shard in range(3):
        members = [member for row in range(8) for member in pair(f"k{row}", 8 * shard + row)]
        write_tar(tmp_path / "shards" / f"{shard:05d}.tar", members)
    return tmp_path / "shards"


@pytest.fixture
def bucket(shards):
    with s3_server() as server, s3_at(server):
        yield copied(shards, f"s3://{new_bucket()}/shards")


def _weights(folder):
    """Every array of a checkpoint, to the last bit; the file's header also names the data."""
    from safetensors.numpy import load_file

    return {name: values.tobytes() for name, values in load_file(folder / "model.safetensors").items()}


def _asked(data, out, *more):
    common = ("--model", "small", "--data", data, "--out", out, "--batch-size", 4, "--device", "cpu")
    return list(map(str, ("train", "coco", *common, *more)))


def test_weights_are_those_of_a_disk(counterfoil, shards, bucket, tmp_path):
    asked = ("--steps", 4, "--workers", 0, "--quiet")
    assert counterfoil(*_asked(shards / "{00000..00002}.tar", tmp_path / "near", *asked)).code == 0
    said = counterfoil(*_asked(f"{bucket}/{{00000..00002}}.tar", tmp_path / "far", *asked))
    assert (said.code, said.err) == (0, "")
    assert _weights(tmp_path / "far") == _weights(tmp_path / "near")
    # Rows to validate on from one shard, and to train on from the others.
    held = f"{bucket}/00002.tar"
    said = counterfoil.succeeds(
        *_asked(f"{bucket}/{{00000..00001}}.tar", tmp_path / "held", *asked, "--validation", held)
    )
    assert "s3:/tests" not in said.out
    dry = counterfoil(*_asked(bucket, tmp_path / "dry", "--dry-run", "--validation", held))
    assert (dry.code, held in dry.err) == (0, True), dry.err


@pytest.fixture
def pairs(tmp_path):
    """A table of captions, right and wrong, of pictures in the folder `photos` beside it."""
    rng = np.random.default_rng(0)
    (tmp_path / "photos").mkdir()
    rows = ["image,caption,negative_caption"]
    for number in range(6):
        pixels = rng.integers(0, 255, (12, 12, 3), dtype=np.uint8)
        PIL.Image.fromarray(pixels).save(tmp_path / "photos" / f"{number}.png")
        rows.append(f"{number}.png,a red {number},a blue {number}")
    (tmp_path / "pairs.csv").write_text("\n".join(rows))
    return tmp_path / "pairs.csv"


def test_numbers_are_those_of_a_disk(counterfoil, pairs, tmp_path):
    far = f"memory://{tmp_path.name}-cli/far"
    for photo in (tmp_path / "photos").iterdir():
        with fsspec.open(f"{far}/{photo.name}", "wb", auto_mkdir=True) as file:
            file.write(photo.read_bytes())

    def values(images, out):
        asked = ("--data", pairs, "--images", images, "--out", tmp_path / out, "--draws", 100)
        said = counterfoil.succeeds("evaluate", "pixels:colours", "pairs", *asked)
        assert "memory:/" not in (said.out + said.err).replace("memory://", "")
        result = json.loads((tmp_path / out / "pairs" / "result.json").read_text())
        return {name: facts["value"] for name, facts in result["measures"].items()}

    assert values(far, "far-run") == values(tmp_path / "photos", "near-run")
    for file in (tmp_path / "far-run").rglob("*.json"):
        assert "memory:/" not in file.read_text().replace("memory://", "")
