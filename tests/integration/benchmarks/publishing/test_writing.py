"""Published folders: equal bytes, true checksums, splits, licences, and nothing half-written."""

import hashlib
import json
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from counterfoil.benchmarks.benchmark import BENCHMARKS, Benchmark, card
from counterfoil.benchmarks.forms import Choice
from counterfoil.benchmarks.forms.base import Form
from counterfoil.benchmarks.publishing.facts import Provenance, Publication, conflicts, find, stated
from counterfoil.benchmarks.publishing.writing import CHECKSUMS, publish_folder
from counterfoil.benchmarks.records import BytesSource, Caption, Image
from counterfoil.benchmarks.videos import Video
from counterfoil.errors import DataError, InputError, StorageError
from refusals import refuses

CC_BY = Publication(licence=find("CC-BY-4.0"))


def contents(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def sharing(jpeg):
    """Sixty choices among captions; three in a row share an image."""
    n = 60
    images = tuple(Image(f"p{i}", BytesSource(jpeg(i, size=(8, 8)))) for i in range(n // 3))
    captions = tuple(Caption(str(i), f"caption {i}") for i in range(2 * n))
    names, candidates = tuple(f"q{i}" for i in range(n)), np.arange(2 * n).reshape(n, 2)
    questions = Choice(names, query=np.arange(n) // 3, candidates=candidates)
    mine = card("pairs").model_copy(update={"form": "choice", "title": "Mine"})
    return Benchmark(mine, images, captions, questions)


def test_the_same_benchmark_gives_the_same_bytes(published, tmp_path):
    for name in ("choices", "gallery"):
        which = published[name]
        publish_folder(which.benchmark, tmp_path / name, CC_BY)
        assert contents(tmp_path / name) == contents(which.folder)
        publish_folder(which.benchmark, tmp_path / name, CC_BY)
        assert contents(tmp_path / name) == contents(which.folder)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["choices", "gallery"]


def test_checksums_are_of_all_files(published):
    for which in published.values():
        result = contents(which.folder)
        lines = result.pop(CHECKSUMS).decode().splitlines()
        assert lines == [f"{hashlib.sha256(result[path]).hexdigest()}  {path}" for path in sorted(result)]


def test_a_split_of_its_own_says_which_file(sharing, tmp_path):
    labels = {"split": ("train",) * 30 + ("test",) * 30}
    apart = replace(sharing, questions=replace(sharing.questions, groupings=labels))
    written = publish_folder(apart, tmp_path / "new", CC_BY)
    assert [(item.split, item.rows) for item in written.tables] == [("train", 30), ("test", 30)]


def test_videos_are_not_published(sharing, tmp_path):
    moving = replace(sharing, images=(Video("clip"), *sharing.images[1:]))
    refuses("videos cannot be published", publish_folder, moving, tmp_path / "out", CC_BY)


def test_a_failure_leaves_what_was_there(sharing, tmp_path, monkeypatch):
    publish_folder(sharing, tmp_path / "out", CC_BY)
    before = contents(tmp_path / "out")
    broken = replace(sharing.images[5], source=BytesSource(b"GIF89a no more"), crop=(0, 0, 4, 4))
    damaged = replace(sharing, images=(*sharing.images[:5], broken, *sharing.images[6:]))
    refuses("image 'p5': not an image file", publish_folder, damaged, tmp_path / "out", CC_BY)
    with monkeypatch.context() as patch:
        patch.setattr("os.fsync", _no_room)
        refuses("the disk is full", publish_folder, sharing, tmp_path / "out", CC_BY, error=StorageError)
    assert contents(tmp_path / "out") == before
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def _no_room(handle):
    raise OSError(28, "No space left on device")


def test_files_of_others_are_never_replaced(sharing, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "README.md").write_text("my project")
    with pytest.raises(InputError, match=r"the folder holds files; given: README\.md"):
        publish_folder(sharing, tmp_path / "mine", CC_BY)
    publish_folder(sharing, tmp_path / "out", CC_BY)
    (tmp_path / "out" / "data" / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match=r"folder holds files; given: data/notes\.txt"):
        publish_folder(sharing, tmp_path / "out", CC_BY)
    (tmp_path / "file").write_text("")
    refuses("not a folder", publish_folder, sharing, tmp_path / "file", CC_BY, error=InputError)


def test_the_card_says_what_is_known(sharing, tmp_path):
    rows = {"rows_in": 90, "rows_out": 60}
    made = {
        "method": "Made by hand | and <script>",
        "steps": [{"name": "refine", "settings": {"bins": 50}, **rows, "dropped": {"equal": 30}}],
        "people": ["two authors", "five students, paid"],
        "sources": [{"name": "COCO", "licence": "CC-BY-4.0", "url": "https://cocodataset.org"}, "VG"],
        "limits": "English only",
        "uses": "measuring",
    }
    about = Publication(
        licence=find("MIT"),
        url="https://huggingface.co/datasets/ann/mine",
        creators=("Ann", "Bob"),
        date="2024-02-29",
        language="en",
        overridden=("the licence of X does not let it be passed on",),
        provenance=Provenance.of(made),
    )
    publish_folder(sharing, tmp_path / "out", about)
    readme = (tmp_path / "out" / "README.md").read_text()
    for line in (
        'license: "mit"', '  - "n<1K"', "## Composition", "## Process", "## People", "## Licences",
        "## Known limits", "## Intended use", "* five students, paid", "* English only",
        "| refine |  | bins = 50 | 90 | 60 | equal: 30 |", "Made by hand | and &lt;script>",
        "| COCO | CC-BY-4.0 | https://cocodataset.org |", "| VG | not recorded |  |",
        "**Published although the licence of X does not let it be passed on.**",
        'rows = datasets.load_dataset("FOLDER")',
    ):  # fmt: skip
        assert line in readme, line
    described = json.loads((tmp_path / "out" / "croissant.json").read_text())
    assert described["license"] == "https://spdx.org/licenses/MIT"
    assert described["datePublished"] == "2024-02-29"
    assert [item["name"] for item in described["creator"]] == ["Ann", "Bob"]
    assert described["url"] == "https://huggingface.co/datasets/ann/mine"
    (file,) = described["distribution"]
    assert file["contentUrl"] == "data/test-00000-of-00001.parquet"
    assert [item["prov:label"] for item in described["prov:wasDerivedFrom"]] == ["COCO", "VG"]
    assert described["rai:annotatorDemographics"] == ["two authors", "five students, paid"]
    assert json.loads((tmp_path / "out" / "card.json").read_text())["licence"] == "MIT"


def test_rows_of_other_questions_are_refused(sharing, tmp_path):
    about = replace(CC_BY, provenance=Provenance.of({"rows": pa.table({"id": ["z"], "caption_by": ["ann"]})}))
    with pytest.raises(DataError, match="the rows are of other questions; given: z; allowed: q0, q1, q2"):
        publish_folder(sharing, tmp_path / "out", about)
    refuses("missing or there twice", Provenance.of, {"rows": pa.table({"id": ["a", "a"]})})
    refuses("column 'caption_seed'", Provenance.of, {"rows": pa.table({"id": ["a"], "caption_seed": ["x"]})})


def test_a_form_without_tables_says_so(sharing):
    with pytest.raises(DataError, match=r"cannot be published; given: form 'choice'.*its method `release`"):
        Form.release(sharing.questions)


@pytest.mark.parametrize(
    ("words", "spdx"),
    [
        ("MIT; the images are COCO's", "MIT"),
        ("CC BY-NC 4.0 (captions); MIT (code)", "CC-BY-NC-4.0"),
        ("cc-by-sa-3.0", "CC-BY-SA-3.0"),
        ("SUBMIT or PERMITTED, not CC BY 4.01", None),
        ("Apache-2.0 (code)", "Apache-2.0"),
        ("not verified here", None),
    ],
)
def test_a_licence_is_found_in_the_words_of_a_card(words, spdx):
    result = stated(words)
    assert (result and result.spdx) == spdx


def test_what_licences_forbid():
    def of(words, licence, **more):
        return conflicts(find(licence), card("pairs").model_copy(update={"licence": words, **more}))

    assert of("CC BY 4.0", "MIT") == []
    assert "forbids commercial use, which MIT allows" in of("CC BY-NC 4.0", "MIT")[0]
    assert of("CC BY-NC 4.0", "CC-BY-NC-4.0") == []
    assert "asks for the same licence" in of("CC BY-SA 4.0", "CC-BY-4.0")[0]
    assert "forbids changed versions" in of("CC BY-ND 4.0", "CC-BY-4.0")[0]
    assert "does not let it be passed on" in of("CC BY 4.0", "CC-BY-4.0", redistributable=False)[0]
    refused = {name for name, item in BENCHMARKS.items() if conflicts(find("CC-BY-4.0"), item)}
    assert {"winoground", "aro-flickr-order"} < refused
    assert not {"sugarcrepe", "bivlc", "eccv"} & refused


@pytest.mark.parametrize(
    ("citation", "date"),
    [("Someone et al. 2023, NeurIPS 2024", "2024-01-01"), ("1234567", "1970-01-01"), ("", "1970-01-01")],
)
def test_the_date_is_that_of_the_citation(citation, date):
    assert CC_BY.date_of(card("pairs").model_copy(update={"citation": citation})) == date
