"""What was published is read by `datasets` and `mlcroissant`, and holds what the benchmark holds."""

import hashlib
import io
import json

import datasets
import numpy as np
import PIL.Image
import pytest

from counterfoil.benchmarks.benchmark import card
from counterfoil.benchmarks.folder import load
from counterfoil.benchmarks.readers.own import read_pairs
from processes import python


def pixels(image):
    """The digest of a picture, None for one that is not at hand."""
    if image is None or image.source is None:
        return None
    return hashlib.sha256(np.asarray(image.decode()).tobytes()).hexdigest()


def seen(value):
    """A picture as the digest of its pixels."""
    if isinstance(value, PIL.Image.Image):
        return hashlib.sha256(np.asarray(value.convert("RGB")).tobytes()).hexdigest()
    return value


def expected(benchmark):
    """The tables of a release, question by question from the forms' own fields: the slow twin."""
    questions = benchmark.questions
    images, captions = benchmark.images, benchmark.captions

    def text(at):
        return captions[at].text

    result = []
    for row, name in enumerate(questions.ids):
        match questions.form:
            case "quad":
                own = {
                    "image": pixels(images[questions.images[row, 0]]),
                    "negative_image": pixels(images[questions.images[row, 1]]),
                    "caption": text(questions.captions[row, 0]),
                    "negative_caption": text(questions.captions[row, 1]),
                }
            case "choice" if questions.asks == "image":
                own = {"image": pixels(images[questions.query[row]])}
                own |= {"caption": text(questions.candidates[row, 0])}
                own |= {"negative_caption": text(questions.candidates[row, 1])}
            case "choice":
                own = {"caption": text(questions.query[row])}
                own |= {f"image_{k}": pixels(images[questions.candidates[row, k]]) for k in range(3)}
            case "statement" | "rated":
                own = {"image": pixels(images[questions.images[row]])}
                own |= {"caption": text(questions.captions[row])}
                if questions.form == "statement":
                    own |= {"truth": bool(questions.truth[row])}
                else:
                    own |= {"rating": questions.ratings[row, 0]}
                    own |= {"references": [text(i) for i in questions.references.row(row)]}
            case "preference":
                own = {"image": pixels(images[questions.images[2 * row]])}
                own |= {f"caption_{s}": text(questions.captions[2 * row + k]) for k, s in enumerate("ab")}
                own |= {f"votes_{s}": questions.votes[row, k] for k, s in enumerate("ab")}
                own |= {"references": [text(i) for i in questions.references.row(2 * row)]}
            case _:
                break
        result.append({"id": name, **own})
    if result:
        return {"default": result}
    right = []
    for side, search, offset in ((images, questions.i2t, captions), (captions, questions.t2i, images)):
        for i, query in enumerate(search.queries):
            name = f"{'i2t' if side is images else 't2i'}/{side[query].id}"
            items = search.positives.items[search.positives.starts[i] : search.positives.starts[i + 1]]
            right += [{"query": name, "item_id": offset[item].id, "gain": 1.0} for item in items]
    return {
        "images": [{"id": image.id, "image": pixels(image)} for image in images],
        "captions": [
            {"id": item.id, "caption": item.text, "image_id": images[owner].id}
            for item, owner in zip(captions, questions.owners, strict=True)
        ],
        "positives": right,
    }


def same_rows(found, wanted, what):
    """Every wanted value is there; rows may be in another order, and have more columns."""
    key = "id" if "id" in wanted[0] else None
    if key:
        by_id = {row[key]: row for row in found}
        assert len(by_id) == len(found) == len(wanted), what
        found = [by_id[row[key]] for row in wanted]
    assert len(found) == len(wanted), what
    for mine, theirs in zip(found, wanted, strict=True):
        assert {name: mine[name] for name in theirs} == theirs, what


FORMS = ("quads", "choices", "of-images", "gallery", "statements", "ratings", "preferences")


@pytest.mark.parametrize("name", FORMS)
def test_datasets_reads_all_rows_with_their_images(published, name, tmp_path):
    which = published[name]
    for table, wanted in expected(which.benchmark).items():
        read = datasets.load_dataset(str(which.folder), table, cache_dir=str(tmp_path))
        rows = [{n: seen(cell) for n, cell in row.items()} for split in read.values() for row in split]
        same_rows(rows, wanted, f"{name}, {table}")
        assert set(read) == ({"train", "test"} if name == "quads" else {"test"})
        for part in read.values():
            for column in part.features:
                is_image = "image" in column and not column.endswith(("_id", "_seed", "_by"))
                assert isinstance(part.features[column], datasets.Image) == is_image, column


def test_the_main_table_needs_no_name(published, tmp_path):
    read = datasets.load_dataset(str(published["gallery"].folder), cache_dir=str(tmp_path), split="test")
    assert read.column_names == ["id", "image"]


@pytest.mark.parametrize("name", FORMS)
def test_our_own_format_holds_the_same_questions(published, name):
    which = published[name]
    again = load(which.folder)
    assert again.digest == which.benchmark.digest
    assert [pixels(image) for image in again.images] == [pixels(image) for image in which.benchmark.images]


@pytest.mark.parametrize("name", ["quads", "choices"])
def test_tables_are_tables_of_ones_own(published, name):
    """The Parquet alone is what the benchmark `pairs` reads."""
    which = published[name]
    result = read_pairs(card("pairs"), which.folder / "data", None)
    assert len(result) == len({row["id"] for row in expected(which.benchmark)["default"]})
    assert result.questions.form == which.benchmark.questions.form
    assert {caption.text for caption in result.captions} == {c.text for c in which.benchmark.captions}


_GENERATE = """
import hashlib, io, json, logging, sys, warnings
warnings.simplefilter("ignore")
import numpy as np, PIL.Image
import mlcroissant
from mlcroissant._src.core.context import Context, CroissantVersion
from mlcroissant._src.core.rdf import make_context

def plain(value):
    if isinstance(value, PIL.Image.Image):
        return hashlib.sha256(np.asarray(value.convert("RGB")).tobytes()).hexdigest()
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, (list, np.ndarray)):
        return [plain(each) for each in value]
    return value.item() if isinstance(value, np.generic) else value

found = {"context": make_context(Context(conforms_to=CroissantVersion.V_1_1))}
for name in sys.argv[2:]:
    folder = f"{sys.argv[1]}/{name}"
    read = mlcroissant.Dataset(f"{folder}/croissant.json")
    issues = read.metadata.ctx.issues
    found[name] = {"issues": [*issues.errors, *issues.warnings]}
    found[name]["version"] = read.metadata.ctx.conforms_to.name
    found[name]["records"] = {
        each.uuid: [
            {key.partition("/")[2]: plain(value) for key, value in record.items()}
            for record in read.records(each.uuid)
        ]
        for each in read.metadata.record_sets
    }
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def generated(published):
    """All records by mlcroissant, of all folders, in a process of its own with a time limit."""
    pytest.importorskip("mlcroissant")
    done = python("-c", _GENERATE, published["quads"].folder.parent, *FORMS, timeout=120)
    assert not done.returncode, done.stderr[-2000:]
    assert "not standard" not in done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("name", FORMS)
def test_mlcroissant_validates_and_generates_all_records(published, generated, name):
    which, result = published[name], generated[name]
    assert (result["issues"], result["version"]) == ([], "V_1_1")
    for table, wanted in expected(which.benchmark).items():
        same_rows(result["records"][table], wanted, f"{name}, {table}")
    splits = {row["name"] for row in result["records"]["splits"]}
    rows = result["records"]["queries" if name == "gallery" else "default"]
    assert {row["split"] for row in rows} == splits


def test_the_context_is_that_of_the_format(published, generated):
    described = json.loads((published["quads"].folder / "croissant.json").read_text())
    for term, meaning in generated["context"].items():
        assert described["@context"][term] == meaning, term


def test_makers_are_in_rows_and_annotations(published, generated):
    which = published["quads"]
    rows = {row["id"]: row for row in generated["quads"]["records"]["default"]}
    for i, name in enumerate(which.benchmark.questions.ids):
        assert rows[name]["negative_caption_by"] == f"person {i}"
        assert rows[name]["negative_image_seed"] == i
    described = json.loads((which.folder / "croissant.json").read_text())
    fields = {item["name"]: item for item in described["recordSet"][1]["field"]}
    (annotation,) = fields["negative_caption"]["annotation"]
    assert annotation["equivalentProperty"] == "prov:wasAttributedTo"
    assert annotation["subField"][0]["source"]["extract"] == {"column": "negative_caption_by"}
    assert "annotation" not in fields["caption"]
    assert described["prov:wasGeneratedBy"][0]["prov:label"] == "negate"
    files = [item for item in described["distribution"] if item["@type"] == "cr:FileObject"]
    assert len(files) > 2
    for item in files:
        assert hashlib.sha256((which.folder / item["contentUrl"]).read_bytes()).hexdigest() == item["sha256"]


def test_an_image_keeps_its_bytes_and_its_name(published, tmp_path):
    which = published["of-images"]
    read = datasets.load_dataset(str(which.folder), cache_dir=str(tmp_path), split="test")
    read = read.cast_column("image_0", datasets.Image(decode=False))
    assert read[0]["image_0"] == {"bytes": which.benchmark.images[0].read(), "path": "p0.jpg"}
    assert read.column_names[-2:] == ["group_kind of it", "group_id"]
    assert PIL.Image.open(io.BytesIO(read[1]["image_0"]["bytes"])).size == (24, 16)
