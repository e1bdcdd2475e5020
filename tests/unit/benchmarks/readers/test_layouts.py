"""Benchmarks of released files: counts, right pairs, pictures; files that do not fit; choices and quads."""

import json
from dataclasses import replace

import numpy as np
import pytest

from benchmark_layouts import LAYOUTS, Released
from counterfoil.benchmarks.answers import Outcomes, Scores
from counterfoil.benchmarks.benchmark import BENCHMARKS, card
from counterfoil.benchmarks.readers.specs import read
from counterfoil.catalog import benchmark
from counterfoil.errors import DataError, InputError
from counterfoil.evaluation.evaluate import chance, evaluate, per_item
from counterfoil.metrics.ties import Ties
from counterfoil.registry import resolve
from refusals import refuses


def _small(name, released, **changes):
    """The benchmark as its reader reads it, with the counts of the small release."""
    known = card(name)
    counts = released.counts if known.counts else {}
    small = known.model_copy(update={"size": len(released.ids), "counts": counts, "also": {}, **changes})
    return resolve(known.reader)(small, released.folder, None)


@pytest.fixture(scope="module", params=LAYOUTS)
def name(request):
    return str(request.param)


@pytest.fixture(scope="module")
def released(name, tmp_path_factory):
    made = Released(tmp_path_factory.mktemp("release"))
    LAYOUTS[name](made)
    return made


@pytest.fixture(scope="module")
def found(name, released):
    return _small(name, released)


def test_right_pairs_are_right_and_pictures_those_of_the_rows(released, found):
    assert list(found.questions.ids) == released.ids
    # 1 for right pairs, 0 for the others.
    captions, images = (part.reshape(-1).tolist() for part in found.listed.pairs())
    pairs = [(found.captions[c].text, found.images[i].id) for c, i in zip(captions, images, strict=True)]
    scores = Scores(found.listed.collect(np.array([float(pair in released.right) for pair in pairs])))
    result = evaluate(found, scores, model="truth", draws=100, interval="wilson")
    assert {item.value for item in result.measures.values()} == {1.0}
    assert set(found.card.measures) <= set(result.measures)
    assert set(found.card.macro_groupings) <= set(found.questions.groupings)
    groups = {group: int(mask.sum()) for group, mask in found.questions.groups().items()}
    assert released.counts.items() <= groups.items()
    assert found.images_at_hand
    pictures = [image.decode() for image in found.images]
    assert {picture.mode for picture in pictures} == {"RGB"}
    assert len({picture.tobytes() for picture in pictures}) == len(pictures)


def test_a_release_of_another_size_is_refused(name, released):
    refuses(r"not the number of questions .* has", _small, name, released, size=99, counts={})
    if BENCHMARKS[name].size:
        refuses(r"not the number of questions .* has", benchmark, name, data=released.folder)
    assert list(benchmark(name, data=released.folder, counts=False).questions.ids) == released.ids


def test_what_is_missing_is_named(name, released, tmp_path, read_free):
    empty = tmp_path / "empty"
    empty.mkdir()
    assert str(empty) in refuses("", _small, name, replace(released, folder=empty))
    pictures = tmp_path / "pictures"
    pictures.mkdir()
    (pictures / "other.jpg").write_bytes(b"")
    refuses("images is in this folder", read_free, name, released.folder, pictures)


_MMVP = "Question ID,Type,Statement\n"
_VOTES = {"a": {"image_file": "x", "caption": "c", "foil": "f", "mturk": 3}}
_NEG = "image_path,caption_0,caption_1,caption_2,caption_3,correct_answer,correct_answer_template\n"
_SVO = "sentence,pos_image_id,neg_image_id,subj_neg,verb_neg,obj_neg\n"
_HEADER = "raw,sentids,split,filename\n"


def _behind(options):
    return [{"image_path": "mug_behind_table.jpeg", "caption_options": list(options)}]


#: Files of Flickr30k: a name, the text, the message.
FLICKR30K = [
    ("x.token", "1.jpg#0\ta\n1.jpg#0\tb", "caption id occurs twice; given: 1.jpg#0"),
    ("x.token", "1.jpg#0\ta\n1.jpg a", "line 2: not a caption; given: 1.jpg a"),
    ("x.token", "\n", "no captions"),
    ("x.json", "[]", "not a data set after Karpathy"),
    ("x.csv", "raw,sentids,filename\n1,2,3", "no column 'split'"),
    ("x.csv", _HEADER + '"[""a""]",[1,test,x.jpg', r"'sentids', line 1, column 3: not valid"),
    ("x.csv", _HEADER + "3,[1],test,x.jpg", "column 'raw': not a list of rows; given: 3"),
    ("x.csv", _HEADER + '"[""a"", ""b""]",[1],test,x.jpg', "not an id per caption; given: 1 ids, 2 captions"),
    ("readme.md", "", "no captions"),
]
FLICKR8K = [
    ([], "not judgements"),
    ({"a": {"ground_truth": ["x"]}}, "image 'a': no list 'human_judgement'"),
    ({"a": {"ground_truth": [3], "human_judgement": []}}, "reference 1: a reference is no text"),
    ({"a": {"ground_truth": ["x"], "human_judgement": [{"caption": "y"}]}}, "judgement 1: not a judgement"),
    ({"a": {"ground_truth": ["x"], "human_judgement": []}}, "no judgements"),
    ({"a": {"ground_truth": [], "human_judgement": [{"caption": "y", "rating": 1}]}}, "no row is left"),
]
GENAI = [
    ({"0": {"prompt": "a cat"}}, "no column 'models'; given: id, prompt"),
    ({"0": {"prompt": "a cat", "models": {"M": []}}}, "item '0', column 'models': no ratings"),
    ([1], "row 1: not an object; given: 1"),
    ({}, "the table has no rows"),
]
IMAGECODE = [{"10": "a cat"}, {"3": ""}, {"3": 7}, ["a cat"]]
_LABELS = ["square white plate", "round red ball", "small brown dog", "tall green tree"]
COLA = [
    ({"labels": _LABELS}, "data: not a list of rows"),
    ([_LABELS], "not classes and images"),
    ([["a", "a"], [["x", {}, [0, 1], [1, 1]]]], "classes are not distinct words"),
    ([_LABELS, [["x.jpg", {}, [0, 1], [1, 1, 1, 1]]]], "data, row 1: label is no 0 or 1 for each class"),
    ([_LABELS, [["x.jpg", {}, [0, 1, 0, 2], [1, 1, 1, 1]]]], "given: [0, 1, 0, 2]; allowed: 4 of 0 and 1"),
    ([_LABELS, [["x.jpg", {}, [0] * 4, [1] * 4]]], "no class has a hard image that shows it"),
    ([_LABELS, [["x.jpg", [0] * 4]]], "data, row 1: not a row of this layout"),
]


def _captions(*annotations, images=({"id": 1, "file_name": "1.jpg"},)):
    """A captions file of COCO whose annotations are a good one with these changes."""
    good = {"id": 5, "image_id": 1, "caption": "a cat"}
    return {"images": list(images), "annotations": [{**good, **changes} for changes in annotations]}


COCO = [
    ("[", "not valid JSON"),
    ([], "not a file of this layout; given: []"),
    ({"images": []}, "given: images; allowed: an object with the lists images and annotations"),
    (_captions(), "annotations: the table has no rows"),
    (_captions({}, images=[{"id": 1, "file_name": "1.jpg"}] * 2), "image id occurs twice; given: 1"),
    (_captions({}, {}), "caption id occurs twice; given: 5"),
    (_captions({}, {"id": 6, "image_id": 9}), "image of 1 captions is not in the file; given: image_id 9"),
    (_captions({"caption": None}), "entry 1, column 'caption': not a text"),
    ({**_captions(), "annotations": [{"id": 5}]}, "annotations: no column 'image_id'"),
    (_captions(images=[3]), "images, entry 1: not an object; given: 3"),
    (_captions({"id": "x"}), "column 'id': not a whole number; given: x"),
]
_IDS = "image,image_id,caption,caption_id,relevance,written_for\n"
GALLERY = [
    ("caption\na", "no column 'image'"),
    ("image,caption\n,a", "row 1, column 'image': an image without a name"),
    ("image,caption\na.jpg,a\na.jpg,a", "row 2: a pair occurs twice; given: the pair of "),
    ("image,caption,relevance\na.jpg,a,0", "no row says what is right"),
    ("image,caption,relevance\na.jpg,a,2", "relevance out of range; given: 2.0; allowed: 0 (wrong)"),
    (_IDS + "a.jpg,1,a,,1,", "row 1, column 'caption_id': empty id"),
    (_IDS + "a.jpg,1,a,1,1,\na.jpg,1,b,1,1,", "row 2, column 'caption': two captions of one id"),
    (_IDS + "a.jpg,1,a,1,1,\nb.jpg,1,b,2,1,", "row 2, column 'image': two images of one id"),
    (_IDS + "a.jpg,1,a,1,1,9", "written for an image that is not in the table; given: 9"),
    (_IDS + "a.jpg,1,a,1,1,1\nb.jpg,2,a,1,1,2", "a caption is written for one image; given: 2"),
]
_VOTED = "image,caption_a,caption_b"
#: One's own tables.
OWN = [
    ("pairs", "picture,caption,negative_caption,negative_image\n0.jpg,a,b,1.jpg", "no column 'image'"),
    (
        "pairs",
        "image,caption,negative\n0.jpg,a,b",
        "no column 'negative_caption'; given: image, caption, negative; allowed: negative_caption, "
        "false_caption, foil, caption_negative, neg_caption",
    ),
    ("pairs", "image,caption,negative_caption\n0.jpg,a,b\n,c,d", "row 2, column 'image': no image"),
    ("pairs", "caption,negative_caption,id\na,b,1\na,b,1", "row 2, column 'id': id occurs"),
    ("ratings", "image,caption\na.jpg,x", "no column of ratings"),
    ("ratings", "image,caption,rating\na.jpg,x,", "no row is left"),
    ("preferences", f"{_VOTED}\na.jpg,x,y", "no votes"),
    ("preferences", f"{_VOTED},votes_a,votes_b\na.jpg,x,y,0,0", "row 1: not votes"),
    ("preferences", f"{_VOTED},preferred\na.jpg,x,y,first", "not a choice; given: first"),
    ("statements", "image,text,wrong\na.jpg,a cat,1\n", "no column 'label'"),
    ("seetrue", "image,text,label,split\na.jpg,a cat,1,dev\n", "all rows are of the split"),
]


@pytest.mark.parametrize(
    ("name", "file", "value", "message"),
    [
        ("cola", "a.json", {"0": []}, "a.json: not a list of rows"),
        ("cola", "a.json", [["u", "c", "u"]], "row 1: not a row of this layout"),
        ("eqben", "a.json", [3], "row 1: not a row of EqBen; given: 3"),
        ("eqben-mini", "a.json", [], "the table has no rows"),
        ("mmvp-vlm", "a.csv", _MMVP + "2,Texts,a\n3,Texts,b\n", "row 1: two rows that are no pair"),
        ("mmvp-vlm", "a.csv", _MMVP + "1,Texts,a\n", "row without its second"),
        ("countercurate", "a.csv", "captions\timages\na\tb\n", "no column 'neg_captions'"),
        ("vismin", "object.csv", "image_path\na\n", "files missing: attribute.csv, counting.csv,"),
        ("valse", "existence.json", [{"a": 1}], "not an object keyed by item id"),
        ("valse", "existence.json", _VOTES, "item 'a', column 'mturk': no 'caption' in the cell; given: 3"),
        ("valse", "other.json", {}, "not the file of a subset"),
        ("negbench-mcq", "a_mcq_b.csv", _NEG + "x,a,b,c,d,4,positive\n", "'correct_answer': no such option"),
        ("whatsup-a", "a.json", _behind("abcd"), "a name without objects and relation; given: mug_behind"),
        ("whatsup-b", "a.json", _behind("abc"), "column 'caption_options': not a list of 4 texts"),
        ("whatsup-vg-one", "a.json", [[1, "a"]], "row 1: not a row of this layout"),
        ("svo-probes", "a.csv", _SVO + "a,1,2,True,True,False\n", "row 1: not of one type"),
        (
            "vl-checklist",
            "Attribute/a.json",
            [["x.jpg", {"POS": [], "NEG": ["a"]}]],
            "a.json, row 1, column 'texts': no 'POS.0' in the cell; given: {'NEG': ['a'], 'POS': []}",
        ),
        *(("flickr30k", *row) for row in FLICKR30K),
        *(("flickr8k-expert", "flickr8k.json", *row) for row in FLICKR8K),
        *(("genai-bench-527", "genai_image.json", *row) for row in GENAI),
        *(("imagecode", "valid_data.json", {"a": value}, "item 'a', column '") for value in IMAGECODE),
        *(("cola-single-gqa", "a.json", *row) for row in COLA),
        *(("coco-captions", "captions_mine.json", *row) for row in COCO),
        *(("gallery", "mine.csv", *row) for row in GALLERY),
        *((name, "mine.csv", *row) for name, *row in OWN),
    ],
)
def test_odd_files_are_named(name, file, value, message, tmp_path):
    path = tmp_path / file
    path.parent.mkdir(exist_ok=True)
    path.write_text(value if isinstance(value, str) else json.dumps(value))
    data = tmp_path if name in ("vismin", "vl-checklist") else path
    words = refuses("", resolve(card(name).reader), card(name), data, None, error=InputError)
    assert message in words
    assert str(path if data == path else "") in words


#: Items of the five files at hand that two of three people found right, and all three.
VALID = {
    "existence": (505, 410),
    "relations": (535, 321),
    "action-replacement": (648, 428),
    "actant-swap": (949, 756),
    "coreference-hard": (104, 69),
}


def test_valse_as_released(shared_data):
    for k, name in enumerate(("valse", "valse-unanimous")):
        # Five of eleven files are there: each is held against its count where it is read by itself.
        alone = [benchmark(name, data=shared_data / "valse" / f"{file}.json") for file in VALID]
        assert [len(item) for item in alone] == [counts[k] for counts in VALID.values()]
        ids = [item for result in alone for item in result.questions.ids]
        assert len(set(ids)) == len(ids) == sum(counts[k] for counts in VALID.values())
    keys = [name.partition("/")[2] for name in ids]
    assert len(set(keys)) < len(keys)
    with pytest.raises(DataError, match=r"files missing: plurals\.json, counting-small-quant\.json"):
        benchmark("valse", data=shared_data / "valse")


def _official(found, scores, opposites):
    """Pairs and sets as the released code of What'sUp counts them: a table of objects, filled row by row."""
    right = {}
    for name, row in zip(found.questions.ids, scores, strict=True):
        parts = name.split("_")
        right.setdefault((parts[0], parts[-1]), {})[parts[1]] = int(np.argmax(row)) == 0
    pairs = sum(all(item.get(side) for side in pair) for item in right.values() for pair in opposites)
    sets = sum(sum(item.values()) == 4 for item in right.values())
    return pairs / (len(scores) / 2), sets / (len(scores) / 4)


@pytest.mark.parametrize(("name", "left_out"), [("whatsup-a", 0), ("whatsup-a", 2), ("whatsup-b", 1)])
def test_pairs_and_sets(name, left_out, tmp_path):
    """Also where opposites are missing: those that are left cannot be right together."""
    LAYOUTS[name](Released(tmp_path))
    path = next(tmp_path.glob("*.json"))
    path.write_text(json.dumps(json.loads(path.read_text())[left_out:]))
    actual = benchmark(name, data=tmp_path, counts=False)
    opposites = (("left", "right"), ("on", "under") if name == "whatsup-a" else ("in-front", "behind"))
    rng = np.random.default_rng(5)
    for _ in range(5):
        scores = rng.normal(size=actual.paired.shape) + np.array([1.5, 0, 0, 0])
        values = per_item(actual, Scores(scores))
        official = _official(actual, scores, opposites)
        assert (values["pairs"].mean(), values["sets"].mean()) == pytest.approx(official)
        right = Outcomes({"accuracy": values["accuracy"] == 1})
        for item in ("pairs", "sets"):
            np.testing.assert_array_equal(per_item(actual, right)[item], values[item])
    complete = 1 if left_out else 2
    assert chance(actual)["sets"] == pytest.approx(complete * 4 / len(actual) / 4**4)
    result = evaluate(actual, Scores(scores), model="random", draws=200)
    assert result.measures["pairs"].low <= result.measures["pairs"].value <= result.measures["pairs"].high
    # The official code takes the first of equal scores, the right one.
    equal = per_item(actual, Scores(np.zeros(actual.paired.shape)), ties=Ties.OPTIMISTIC)
    assert equal["accuracy"].mean() == 1.0


def test_vl_checklist_takes_the_first_rows(tmp_path):
    rows = [[f"{n}.jpg", {"POS": [f"right {n}"], "NEG": [f"wrong {n}"]}] for n in range(1001)]
    (tmp_path / "Relation" / "vg").mkdir(parents=True)
    (tmp_path / "Relation" / "vg" / "spatial.json").write_text(json.dumps(rows))
    first, every = (benchmark(name, data=tmp_path) for name in ("vl-checklist", "vl-checklist-all"))
    assert (len(first), first.questions.ids[-1]) == (1000, "Relation/vg/spatial/999")
    assert len(every) == 1001


def test_svo_probes_of_images_at_hand(tmp_path):
    LAYOUTS["svo-probes"](Released(tmp_path))
    (tmp_path / "11.jpg").unlink()
    result = benchmark("svo-probes", data=tmp_path)
    assert result.questions.ids == ("0", "1", "2", "3")
    assert (result.available().questions.ids, result.choices.asks) == (("0", "2", "3"), "caption")


def _of_official_code(found, scores):
    """SPEC's average: how often the label is the first of the largest scores, of each folder; their mean."""
    right = {}
    for name, row in zip(found.questions.ids, scores, strict=True):
        subset, at = name.split("/")
        own = row[: 4 if subset == "relative_size" else 3].tolist()
        # In the file the label of row 2 stands third, with the others in their order.
        in_file = own[1 : int(at) + 1] + own[:1] + own[int(at) + 1 :]
        right.setdefault(subset, []).append(int(np.argmax(in_file)) == int(at))
    return float(np.mean([np.mean(item) for item in right.values()]))


@pytest.mark.parametrize("name", ["spec-i2t", "spec-t2i"])
def test_spec_is_one_number(name, tmp_path):
    LAYOUTS[name](Released(tmp_path))
    actual = benchmark(name, data=tmp_path)
    assert actual.choices.counts.tolist() == [4, 4, 4, 3, 3, 3]
    assert actual.images_at_hand
    rng = np.random.default_rng(3)
    for _ in range(5):
        scores = actual.choices.collect(rng.normal(size=21))
        result = evaluate(actual, Scores(scores), model="random", draws=20)
        assert result["accuracy_macro"].value == pytest.approx(_of_official_code(actual, scores))
        assert {name: item["accuracy"].chance for name, item in result.groups.items()} == pytest.approx(
            {"relative_size": 1 / 4, "existence": 1 / 3}
        )
    assert result["accuracy_macro"].chance == pytest.approx((1 / 4 + 1 / 3) / 2)


def test_vl_checklist_averages_within_larger_groups(tmp_path):
    """Files within sources within kinds within aspects, against the released code's loops."""
    LAYOUTS["vl-checklist"](Released(tmp_path))
    actual = benchmark("vl-checklist", data=tmp_path)
    values = np.random.default_rng(1).integers(0, 2, len(actual)).astype(float)
    tree = {}
    of = actual.questions.groupings
    for i, value in enumerate(values.tolist()):
        kinds = tree.setdefault(of["aspect"][i], {})
        sources = kinds.setdefault(of["kind"][i], {})
        source = of["subset"][i].split("/")[2 if of["aspect"][i] == "Object" else 1].split("_")[0]
        sources.setdefault(source, {}).setdefault(of["subset"][i], []).append(value)

    def mean(tree):
        return float(np.mean([mean(item) for item in tree.values()] if isinstance(tree, dict) else tree))

    assert len(tree["Object"]["Object/Location/mid"]["swig"]) == 2
    scores = Scores(np.stack([values, np.full(len(values), 0.5)], axis=1))
    result = evaluate(actual, scores, model="model", draws=200)
    assert result["accuracy_macro"].value == pytest.approx(mean(tree))
    assert result["accuracy_macro"].value != pytest.approx(values.mean())
    for aspect, kinds in tree.items():
        assert result.groups[aspect]["accuracy_macro"].value == pytest.approx(mean(kinds))
        for kind, sources in kinds.items():
            assert result.groups[kind]["accuracy_macro"].value == pytest.approx(mean(sources))
    estimate = result["accuracy_macro"]
    assert estimate.low < estimate.value < estimate.high
    assert estimate.n == len(actual)


def test_systematicity_has_a_question_for_each_type_of_negative(tmp_path):
    LAYOUTS["crepe-systematicity-yfcc"](Released(tmp_path))
    result = benchmark("crepe-systematicity-yfcc", data=tmp_path)
    assert "seen_compounds_comp/0" not in result.questions.ids
    counts = dict(zip(result.questions.ids, result.choices.counts.tolist(), strict=True))
    assert (counts["seen_compounds_atom/0"], counts["unseen_compounds_atom/2"]) == (2, 7)
    assert set(result.questions.groupings["compounds"]) == {"seen compounds", "unseen compounds"}
    last = result.choices.candidates[-1]
    texts = ["right 12", *(f"wrong comp 12 {k}" for k in range(5))]
    assert [result.captions[i].text for i in last[last >= 0]] == texts
    # One image for both questions of a caption.
    assert len(result.images) == 6
    own = benchmark("crepe-systematicity-yfcc", data=next(tmp_path.rglob("*_unseen_*_in_yfcc.csv")))
    assert set(own.questions.groupings["compounds"]) == {"unseen compounds"}
    assert chance(result)["accuracy"] == pytest.approx(np.mean([1 / item for item in counts.values()]))
    with pytest.raises(DataError, match=r"no file of 'CREPE, systematicity \(CC12M\)' here"):
        benchmark("crepe-systematicity-cc12m", data=next(tmp_path.rglob("*_unseen_*_in_yfcc.csv")))


def test_spec_from_one_folder(tmp_path):
    LAYOUTS["spec-i2t"](Released(tmp_path))
    alone = benchmark("spec-i2t", data=tmp_path / "existence")
    assert alone.questions.ids == ("existence/0", "existence/1", "existence/2")
    assert alone.images_at_hand
    texts = [alone.captions[i].text for i in alone.choices.candidates[1]]
    assert texts == [f"existence 1 {k}" for k in (1, 0, 2)]
    path = tmp_path / "existence" / "image2text.json"
    rows = json.loads(path.read_text())
    path.write_text(json.dumps([{**row, "keys": row["keys"][:2], "label": 0} for row in rows]))
    assert benchmark("spec-i2t", data=tmp_path / "existence").choices.shape == (3, 2)
    path.write_text(json.dumps([{**row, "keys": row["keys"][:1], "label": 0} for row in rows]))
    refuses("row 1, column 'keys': not a list of 2 texts or more", benchmark, "spec-i2t", data=tmp_path)
    path.write_text(json.dumps([{**row, "label": 3} for row in rows]))
    with pytest.raises(DataError, match="row 1, column 'label': no such option; given: 3; allowed: 0 to 2"):
        benchmark("spec-i2t", data=tmp_path / "existence")
    refuses("no text2image", benchmark, "spec-t2i", data=tmp_path)


@pytest.mark.parametrize("negatives", ["['a']", "['a', 'b'", "[open('x')]", "(" * 500, "[]"])
def test_negatives_of_productivity_may_be_fewer_and_are_a_list_of_texts(negatives, tmp_path):
    LAYOUTS["crepe-productivity"](Released(tmp_path))
    (path,) = (tmp_path / "atom").glob("*.csv")
    lines = path.read_text().splitlines()
    lines[1] = f'0,right,4,2,20,10,"{negatives}"'
    path.write_text("\n".join(lines))
    if negatives == "['a']":
        assert benchmark("crepe-productivity", data=tmp_path).choices.counts.tolist() == [2, 6, 6, 6, 6, 6]
        return
    refuses("row 1, column 'hard_negs': not a list of texts", benchmark, "crepe-productivity", data=tmp_path)


@pytest.mark.parametrize(
    ("name", "captions", "images"),
    [
        ("colorswap", ("caption_1", "caption_2"), ("image_1", "image_2")),
        ("vismin", ("text_0", "text_1"), ("image_0", "image_1")),
    ],
)
def test_hub_layout(name, captions, images, tmp_path, jpeg, hub_parquet):
    columns = {"id": [7, 8], "category": ["object", "relation"]}
    columns |= {text: [f"{text} of {row}" for row in (0, 1)] for text in captions}
    # Both questions are about one photograph, which the rows do not say.
    columns |= {images[0]: [jpeg(1), jpeg(1)], images[1]: [jpeg(2), jpeg(3)]}
    hub_parquet(tmp_path / "data" / "test-00000-of-00001.parquet", columns)
    result = benchmark(name, data=tmp_path, counts=False)
    assert result.questions.ids == ("7", "8")
    assert [result.images[i].read() for i in result.paired.slots()[1][1]] == [jpeg(1), jpeg(3)]
    assert len(np.unique(result.clusters)) == 1


def test_cola_as_released(shared_data):
    result = benchmark("cola", data=shared_data / "cola")
    assert (len(result), result.images[0].id) == (210, "2390970.jpg")
    assert result.captions[0].text == "standing tall long giraffe to the right of brown giraffe"
    assert not result.images_at_hand


def test_files_are_found_by_the_end_of_their_paths(tmp_path):
    made = Released(tmp_path / "release")
    LAYOUTS["mmvp-vlm"](made)
    (tmp_path / "release" / "MLLM_VLM Images").rename(tmp_path / "pictures")
    result = benchmark("mmvp-vlm", data=made.folder, images=tmp_path / "pictures", counts=False)
    assert result.images_at_hand
    # In a folder without those of types they have their numbers alone.
    flat = tmp_path / "flat"
    flat.mkdir()
    (flat / "3.jpg").write_bytes((tmp_path / "pictures" / "Texts" / "3.jpg").read_bytes())
    result = benchmark("mmvp-vlm", data=made.folder, images=flat, counts=False)
    assert [image.id for image in result.images if image.source] == ["MLLM_VLM Images/Texts/3.jpg"]


class TestEqBen:
    @pytest.fixture
    def free(self):
        return card("eqben").model_copy(update={"size": None, "counts": {}})

    def test_annotation_of_one_source(self, tmp_path, free):
        def row(at):
            both = {f"image{k}": f"eqbenag/v/{at}_{k}.png" for k in (0, 1)}
            return both | {f"caption{k}": [f"first {at} {k}", f"second {at} {k}"] for k in (0, 1)}

        path = tmp_path / "ann_ag.json"
        path.write_text(json.dumps({"v": {"person": [row(0)], "door": [row(1), row(2)]}}))
        result = read(free, path, None)
        assert [caption.text for caption in result.captions[:3]] == ["first 0 0", "first 0 1", "first 1 0"]
        assert set(result.questions.groups()) == {"eqbenag", "Action Genome"}
        # A source by itself is held against its own count.
        refuses(r"in group 'eqbenag'; given: 3; allowed: 195,872", read, card("eqben"), path, None)

    def test_frames_are_turned_to_rgb_and_light_images_found(self, tmp_path, free):
        made = Released(tmp_path / "release")
        LAYOUTS["eqben"](made)
        folder = made.folder / "eqbenag" / "a"
        light = folder / "f1.jpg"
        (folder / "f1.png").rename(light)
        result = read(free, made.folder, None)
        frame = next(image for image in result.images if image.id == "eqbenyoucook2/b/1.npy")
        stored = np.load(made.folder / frame.id)
        np.testing.assert_array_equal(np.asarray(frame.decode()), stored[:, :, [2, 1, 0]])
        assert str(result.images[0].source) == str(light)
        np.save(made.folder / frame.id, stored.astype(float))
        refuses(r"1\.npy: not a frame; given: float64 \(16, 24, 3\); allowed", frame.decode)
