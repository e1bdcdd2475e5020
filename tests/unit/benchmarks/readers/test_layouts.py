"""Benchmarks of released files, one contract: counts, right pairs, pictures, ties; files that do not fit."""

import json
from dataclasses import replace

import numpy as np
import pytest

from benchmark_layouts import LAYOUTS, Released
from counterfoil.benchmarks.answers import Scores
from counterfoil.benchmarks.benchmark import BENCHMARKS, card
from counterfoil.catalog import benchmark as read_benchmark
from counterfoil.errors import DataError, InputError
from counterfoil.evaluation.evaluate import evaluate
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


def _scores(found, right):
    """1 for right pairs, 0 for the others, in the shape of the answers."""
    captions, images = found.listed.pairs()
    values = [
        float((found.captions[c].text, found.images[i].id) in right)
        for c, i in zip(captions.reshape(-1).tolist(), images.reshape(-1).tolist(), strict=True)
    ]
    return found.listed.collect(np.array(values))


def test_right_pairs_are_right(released, found):
    assert list(found.questions.ids) == released.ids
    scores = Scores(_scores(found, released.right))
    result = evaluate(found, scores, scorer="truth", draws=100, interval="wilson")
    assert {each.value for each in result.measures.values()} == {1.0}
    assert set(found.card.measures) <= set(result.measures)
    assert set(found.card.macro_groupings) <= set(found.questions.groupings)
    groups = {group: int(mask.sum()) for group, mask in found.questions.groups().items()}
    assert released.counts.items() <= groups.items()


def test_pictures_are_those_of_the_rows(found):
    assert found.images_at_hand
    pictures = [image.decode() for image in found.images]
    assert {picture.mode for picture in pictures} == {"RGB"}
    assert len({picture.tobytes() for picture in pictures}) == len(pictures)


def test_a_release_of_another_size_is_refused(name, released):
    refuses(r"not the number of questions .* has", _small, name, released, size=99, counts={})
    if BENCHMARKS[name].size:
        refuses(r"not the number of questions .* has", read_benchmark, name, data=released.folder)
    free = read_benchmark(name, data=released.folder, counts=False)
    assert list(free.questions.ids) == released.ids


def test_what_is_missing_is_named(name, released, tmp_path):
    empty = tmp_path / "empty"
    empty.mkdir()
    words = refuses("", _small, name, replace(released, folder=empty))
    assert str(empty) in words
    pictures = tmp_path / "pictures"
    pictures.mkdir()
    (pictures / "other.jpg").write_bytes(b"")
    with pytest.raises(DataError, match="images is in this folder"):
        resolve(card(name).reader)(
            card(name).model_copy(update={"size": None, "counts": {}}), released.folder, pictures
        )


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
        *(("imagecode", "valid_data.json", {"video-1": value}, "'video-1': not") for value in IMAGECODE),
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
