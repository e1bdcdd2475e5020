"""Files that do not fit the layout of their benchmark: one line says what is wrong, and where."""

import json

import pytest

from counterfoil.benchmarks.benchmark import card
from counterfoil.benchmarks.readers.specs import read
from counterfoil.errors import InputError

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
    ("x.csv", _HEADER + "3,[1],test,x.jpg", "column 'raw': not a list; given: 3"),
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
    ],
)
def test_odd_files_are_named(name, file, value, message, tmp_path):
    path = tmp_path / file
    path.parent.mkdir(exist_ok=True)
    path.write_text(value if isinstance(value, str) else json.dumps(value))
    data = tmp_path if name in ("vismin", "vl-checklist") else path
    with pytest.raises(InputError) as caught:
        read(card(name), data, None)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
