"""Choices of released rows: real files, What'sUp's pairs and sets, and cells that do not fit."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import pytest

from benchmark_layouts import LAYOUTS, Released
from counterfoil.catalog import benchmark
from counterfoil.data.answers import Outcomes, Scores
from counterfoil.data.benchmark import card
from counterfoil.data.readers import caption_choices, spatial, svo_probes
from counterfoil.errors import DataError, InputError
from counterfoil.evaluation.evaluate import chance, evaluate, per_item
from counterfoil.metrics.ties import Ties

#: Items of the five files at hand that two of three people found right, and all three.
VALID = {
    "existence": (505, 410),
    "relations": (535, 321),
    "action-replacement": (648, 428),
    "actant-swap": (949, 756),
    "coreference-hard": (104, 69),
}


def test_valse_as_released(shared_data: Path) -> None:
    for k, name in enumerate(("valse", "valse-unanimous")):
        # Five of eleven files are there: each is held against its count where it is read by itself.
        alone = [benchmark(name, data=shared_data / "valse" / f"{file}.json") for file in VALID]
        assert [len(each) for each in alone] == [counts[k] for counts in VALID.values()]
        ids = [each for found in alone for each in found.questions.ids]
        assert len(set(ids)) == len(ids) == sum(counts[k] for counts in VALID.values())
        together = benchmark(name, data=shared_data / "valse", counts=False)
        assert set(together.questions.ids) == set(ids)
    keys = [name.partition("/")[2] for name in together.questions.ids]
    assert len(set(keys)) < len(keys)
    with pytest.raises(DataError, match=r"files missing: plurals\.json, counting-small-quant\.json"):
        benchmark("valse", data=shared_data / "valse")


def _official(found: Any, scores: np.ndarray, opposites: tuple[tuple[str, str], ...]) -> tuple[float, float]:
    """Pairs and sets as the released code of What'sUp counts them: a table of objects, filled row by row."""
    right = {}
    for name, row in zip(found.questions.ids, scores, strict=True):
        parts = name.split("_")
        right.setdefault((parts[0], parts[-1]), {})[parts[1]] = int(np.argmax(row)) == 0
    pairs = sum(all(each.get(side) for side in pair) for each in right.values() for pair in opposites)
    sets = sum(sum(each.values()) == 4 for each in right.values())
    return pairs / (len(scores) / 2), sets / (len(scores) / 4)


@pytest.mark.parametrize(("name", "left_out"), [("whatsup-a", 0), ("whatsup-a", 2), ("whatsup-b", 1)])
def test_pairs_and_sets(name: str, left_out: int, tmp_path: Path) -> None:
    """Also where opposites are missing: those that are left cannot be right together."""
    made = Released(tmp_path)
    LAYOUTS[name](made)
    path = next(tmp_path.glob("*.json"))
    path.write_text(json.dumps(json.loads(path.read_text())[left_out:]))
    found = benchmark(name, data=tmp_path, counts=False)
    opposites = (("left", "right"), ("on", "under") if name == "whatsup-a" else ("in-front", "behind"))
    rng = np.random.default_rng(5)
    for _ in range(30):
        scores = rng.normal(size=found.paired.shape) + np.array([1.5, 0, 0, 0])
        values = per_item(found, Scores(scores))
        assert (values["pairs"].mean(), values["sets"].mean()) == pytest.approx(
            _official(found, scores, opposites)
        )
        right = Outcomes({"accuracy": values["accuracy"] == 1})
        for each in ("pairs", "sets"):
            np.testing.assert_array_equal(per_item(found, right)[each], values[each])
    complete = 1 if left_out else 2
    by_chance = chance(found)
    assert by_chance["sets"] == pytest.approx(complete * 4 / len(found) / 4**4)
    result = evaluate(found, Scores(scores), scorer="random", draws=200)
    assert result.measures["pairs"].low <= result.measures["pairs"].value <= result.measures["pairs"].high
    # The official code takes the first of equal scores, the right one.
    equal = per_item(found, Scores(np.zeros(found.paired.shape)), ties=Ties.OPTIMISTIC)
    assert equal["accuracy"].mean() == 1.0


def test_only_sets_have_pairs(tmp_path: Path) -> None:
    made = Released(tmp_path)
    LAYOUTS["negbench-mcq"](made)
    found = benchmark("negbench-mcq", data=tmp_path)
    assert "pairs" not in chance(found)
    assert "pairs" not in per_item(found, Scores(np.zeros(found.paired.shape)))


def test_vl_checklist_takes_the_first_rows(tmp_path: Path) -> None:
    rows = [[f"{n}.jpg", {"POS": [f"right {n}"], "NEG": [f"wrong {n}"]}] for n in range(1001)]
    (tmp_path / "Relation" / "vg").mkdir(parents=True)
    (tmp_path / "Relation" / "vg" / "spatial.json").write_text(json.dumps(rows))
    first, every = (benchmark(name, data=tmp_path) for name in ("vl-checklist", "vl-checklist-all"))
    assert len(first) == 1000
    assert first.questions.ids[-1] == "Relation/vg/spatial/999"
    assert len(every) == 1001


def test_svo_probes_of_images_at_hand(tmp_path: Path) -> None:
    made = Released(tmp_path)
    LAYOUTS["svo-probes"](made)
    (tmp_path / "11.jpg").unlink()
    found = benchmark("svo-probes", data=tmp_path)
    assert found.questions.ids == ("0", "1", "2", "3")
    assert found.available().questions.ids == ("0", "2", "3")
    assert found.choices.asks == "caption"


def test_spec_has_one_number_of_options(tmp_path: Path) -> None:
    made = Released(tmp_path)
    LAYOUTS["spec-i2t"](made)
    alone = benchmark("spec-i2t", data=tmp_path / "existence")
    assert alone.questions.ids == ("existence/0", "existence/1", "existence/2")
    assert alone.images_at_hand
    assert [alone.captions[i].text for i in alone.choices.candidates[1]] == [
        f"existence 1 {k}" for k in (1, 0, 2)
    ]
    path = tmp_path / "existence" / "image2text.json"
    rows = json.loads(path.read_text())
    path.write_text(json.dumps([{**row, "keys": row["keys"][:2], "label": 0} for row in rows]))
    assert benchmark("spec-i2t", data=tmp_path / "existence").choices.shape == (3, 2)
    with pytest.raises(DataError, match="questions of different numbers of options; given: 2, and 3 in rel"):
        benchmark("spec-i2t", data=tmp_path)
    path.write_text(json.dumps([{**row, "label": 3} for row in rows]))
    with pytest.raises(DataError, match="row 1, column 'label': no such option; given: 3; allowed: 0 to 2"):
        benchmark("spec-i2t", data=tmp_path / "existence")
    with pytest.raises(DataError, match="no text2image"):
        benchmark("spec-t2i", data=tmp_path)


@pytest.mark.parametrize(
    ("negatives", "message"),
    [
        ("['a', 'b'", "row 1, column 'hard_negs': not a list of texts"),
        ("[open('x')]", "row 1, column 'hard_negs': not a list of texts"),
        ("(" * 500, "row 1, column 'hard_negs': not a list of texts"),
        ("['a']", "questions of different numbers of negatives; given: 5, and 1"),
    ],
)
def test_odd_negatives(negatives: str, message: str, tmp_path: Path) -> None:
    made = Released(tmp_path)
    LAYOUTS["crepe-productivity"](made)
    (path,) = (tmp_path / "atom").glob("*.csv")
    lines = path.read_text().splitlines()
    lines[1] = f'0,right,4,2,20,10,"{negatives}"'
    path.write_text("\n".join(lines))
    with pytest.raises(DataError) as caught:
        benchmark("crepe-productivity", data=tmp_path)
    assert message in str(caught.value)


def test_crepe_crops(tmp_path: Path) -> None:
    made = Released(tmp_path)
    LAYOUTS["crepe-productivity"](made)
    found = benchmark("crepe-productivity", data=tmp_path)
    whole = np.asarray(PIL.Image.open(tmp_path / "VG_100K_2" / "1.jpg"))
    np.testing.assert_array_equal(np.asarray(found.images[1].decode()), whole[2:13, 4:24])


_NEG = "image_path,caption_0,caption_1,caption_2,caption_3,correct_answer,correct_answer_template\n"
_SVO = "sentence,pos_image_id,neg_image_id,subj_neg,verb_neg,obj_neg\n"


@pytest.mark.parametrize(
    ("name", "read", "file", "value", "message"),
    [
        ("valse", caption_choices.read_valse, "existence.json", [{"a": 1}], "not an object keyed by item id"),
        (
            "valse",
            caption_choices.read_valse,
            "existence.json",
            {"a": {"image_file": "x", "caption": "c", "foil": "f", "mturk": 3}},
            "item 'a', column 'mturk': no votes; given: 3",
        ),
        ("valse", caption_choices.read_valse, "other.json", {}, "not the file of a subset"),
        (
            "negbench-mcq",
            caption_choices.read_negbench,
            "a_mcq_b.csv",
            _NEG + "x,a,b,c,d,4,positive\n",
            "row 1, column 'correct_answer': no such option; given: 4; allowed: 0 to 3",
        ),
        (
            "negbench-mcq",
            caption_choices.read_negbench,
            "a_mcq_b.csv",
            _NEG + "x,a,b,c,d,3,both\n",
            "unknown label; given: both",
        ),
        ("negbench-mcq", caption_choices.read_negbench, "a.csv", "image_path\nx\n", "no column 'caption_0'"),
        (
            "whatsup-a",
            spatial.read_controlled,
            "a.json",
            [{"image_path": "mug_behind_table.jpeg", "caption_options": ["a", "b", "c", "d"]}],
            "a name without objects and relation; given: mug_behind_table",
        ),
        (
            "whatsup-b",
            spatial.read_controlled,
            "a.json",
            [{"image_path": "mug_behind_table.jpeg", "caption_options": ["a", "b", "c"]}],
            "column 'caption_options': not four captions",
        ),
        (
            "whatsup-vg-one",
            spatial.read_questions,
            "a.json",
            [["x", "a", "b"]],
            "not a whole number; given: x",
        ),
        ("whatsup-vg-one", spatial.read_questions, "a.json", [[1, "a"]], "row 1: not a row of this layout"),
        ("svo-probes", svo_probes.read, "a.csv", _SVO + "a,1,2,True,True,False\n", "row 1: not of one type"),
        ("svo-probes", svo_probes.read, "a.csv", _SVO + "a,1,2,True,?,False\n", "neither true nor false"),
    ],
)
def test_odd_files_are_named(
    name: str, read: Callable[..., Any], file: str, value: Any, message: str, tmp_path: Path
) -> None:
    (tmp_path / file).write_text(value if isinstance(value, str) else json.dumps(value))
    with pytest.raises(InputError) as caught:
        read(card(name), tmp_path / file, None)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_row_of_vl_checklist_without_texts(tmp_path: Path) -> None:
    (tmp_path / "Attribute").mkdir()
    (tmp_path / "Attribute" / "a.json").write_text(json.dumps([["x.jpg", {"POS": [], "NEG": ["a"]}]]))
    with pytest.raises(DataError, match=r"a\.json, row 1: no texts; given: .*; allowed"):
        caption_choices.read_vl_checklist(card("vl-checklist"), tmp_path, None)
