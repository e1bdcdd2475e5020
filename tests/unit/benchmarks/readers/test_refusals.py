"""Files that do not fit the layout of their benchmark: one line says what is wrong, and where."""

import json

import pytest

from counterfoil.benchmarks.benchmark import card
from counterfoil.benchmarks.readers.specs import read
from counterfoil.errors import InputError

_NEG = "image_path,caption_0,caption_1,caption_2,caption_3,correct_answer,correct_answer_template\n"
_SVO = "sentence,pos_image_id,neg_image_id,subj_neg,verb_neg,obj_neg\n"


@pytest.mark.parametrize(
    ("name", "file", "value", "message"),
    [
        ("cola", "a.json", {"0": []}, "a.json: not a list of rows"),
        ("cola", "a.json", [["u", "c", "u"]], "row 1: not a row of this layout"),
        ("eqben", "a.json", [3], "row 1: not a row of EqBen; given: 3"),
        ("eqben-mini", "a.json", [], "the table has no rows"),
        (
            "mmvp-vlm",
            "a.csv",
            "Question ID,Type,Statement\n2,Texts,a\n3,Texts,b\n",
            "row 1: two rows that are no pair",
        ),
        ("mmvp-vlm", "a.csv", "Question ID,Type,Statement\n1,Texts,a\n", "row without its second"),
        ("countercurate", "a.csv", "captions\timages\na\tb\n", "no column 'neg_captions'"),
        ("vismin", "object.csv", "image_path\na\n", "files missing: attribute.csv, counting.csv,"),
        ("valse", "existence.json", [{"a": 1}], "not an object keyed by item id"),
        (
            "valse",
            "existence.json",
            {"a": {"image_file": "x", "caption": "c", "foil": "f", "mturk": 3}},
            "item 'a', column 'mturk': no 'caption' in the cell; given: 3",
        ),
        ("valse", "other.json", {}, "not the file of a subset"),
        ("negbench-mcq", "a_mcq_b.csv", _NEG + "x,a,b,c,d,4,positive\n", "'correct_answer': no such option"),
        (
            "whatsup-a",
            "a.json",
            [{"image_path": "mug_behind_table.jpeg", "caption_options": ["a", "b", "c", "d"]}],
            "a name without objects and relation; given: mug_behind_table",
        ),
        (
            "whatsup-b",
            "a.json",
            [{"image_path": "mug_behind_table.jpeg", "caption_options": ["a", "b", "c"]}],
            "column 'caption_options': not a list of 4 texts",
        ),
        ("whatsup-vg-one", "a.json", [[1, "a"]], "row 1: not a row of this layout"),
        (
            "svo-probes",
            "a.csv",
            _SVO + "a,1,2,True,True,False\n",
            "row 1: not of one type",
        ),
        (
            "vl-checklist",
            "Attribute/a.json",
            [["x.jpg", {"POS": [], "NEG": ["a"]}]],
            "a.json, row 1, column 'texts': no 'POS.0' in the cell; given: {'NEG': ['a'], 'POS': []}",
        ),
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
