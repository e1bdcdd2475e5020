"""Released answers on released questions: the numbers of the papers, and of the tables' own counts."""

import json

import numpy as np
import pytest

from counterfoil.benchmarks.benchmark import card
from counterfoil.benchmarks.readers import specs
from counterfoil.benchmarks.tables import read_table
from counterfoil.engine.join_scores import answered, join_scores, matched
from counterfoil.errors import ScoreError
from counterfoil.metrics import contrast
from counterfoil.models import precomputed, precomputed_galleries
from counterfoil.models.base import Options
from refusals import refuses

EMBEDDINGS = "winoground/clip_vit_b32_laion2b_embeddings.npz"


def never(message):
    raise AssertionError(message)


@pytest.fixture(scope="module")
def winoground_tags(shared_data):
    return specs.read(card("winoground"), shared_data / "winoground", None)


@pytest.fixture(scope="module")
def sugarcrepe_items(shared_data):
    return specs.read(card("sugarcrepe"), shared_data / "sugarcrepe", None)


def means(answers):
    return tuple(
        round(100 * float(contrast.QUAD[name](answers.values).mean()), 2) for name in ("i2t", "t2i", "group")
    )


def test_winoground_embeddings(shared_data, winoground_tags):
    loaded = precomputed_galleries.load_embeddings(str(shared_data / EMBEDDINGS))
    answers = join_scores(loaded, winoground_tags, note=never)
    # The README of the data names the first three; 270 of 400 right matchings is the fourth.
    assert means(answers) == (34.75, 11.0, 7.5)
    assert contrast.group_match(answers.values).sum() == 270


SUBSETS = ("add_att", "add_obj", "replace_att", "replace_obj", "replace_rel", "swap_att", "swap_obj")


@pytest.mark.parametrize(
    ("model", "correct", "by_subset"),
    [
        # Of the 7,511 items there are today, by subset; the last has one item fewer than the table.
        ("ViT-B-32", 5750, (476, 1592, 631, 1502, 973, 426, 150)),
        ("CLIP_COCO", 6360, (566, 1853, 682, 1564, 1067, 473, 155)),
        ("CLIP_TROHN-Text", 7015, (671, 2000, 744, 1568, 1295, 542, 195)),
    ],
)
def test_sugarcrepe_outcomes_of_7512_rows_on_7511_questions(
    shared_data, sugarcrepe_items, model, correct, by_subset
):
    notes = []
    loaded = precomputed.load(str(shared_data / f"bivlc/SUGARCREPE_{model}.csv"))
    right = join_scores(loaded, sugarcrepe_items, note=notes.append).right["accuracy"]
    assert (len(right), right.sum()) == (7511, correct)
    groups = sugarcrepe_items.questions.groups()
    assert tuple(int(right[groups[name]].sum()) for name in SUBSETS) == by_subset
    assert len(notes) == 1
    assert "row 6709: 1 of 7512 rows belong to no question" in notes[0]
    assert "a west 32nd sign" in notes[0]


def test_outputs_of_detectors(shared_data):
    """FORMATS of the released tables: 66.6894, 19.6386 and 19.6386 on BiVLC, 74.5873 on SugarCrepe."""
    folder, released = shared_data / "detectors", shared_data / "bivlc"
    benchmark = specs.read(card("bivlc"), released / "ViT-B-32.csv", None)
    loaded = precomputed.load(str(folder / "bivlc_CLIP_baseline.csv"))
    values = contrast.from_directions(join_scores(loaded, benchmark, note=[].append).right)
    shares = [round(100 * values[name].mean(), 4) for name in ("i2t", "t2i", "group")]
    assert shares == [66.6894, 19.6386, 19.6386]
    benchmark = specs.read(card("sugarcrepe"), released / "SUGARCREPE_ViT-B-32.csv", None)
    loaded = precomputed.load(str(folder / "sugarcrepe_CLIP_baseline.csv"))
    answers = join_scores(loaded, benchmark, note=[].append)
    assert round(100 * answers.right["accuracy"].mean(), 4) == 74.5873


def test_gpt_4v_answers_of_sugarcrepe_with_gaps(shared_data, sugarcrepe_items, tmp_path):
    """The layout that SugarCrepe's authors released: a file per subset, objects with a field `correct`."""
    rng = np.random.default_rng(0)
    right = empty = 0
    for name in SUBSETS:
        rows = json.loads((shared_data / f"sugarcrepe/{name}.json").read_text())
        for row in rows.values():
            row["correct"] = (True, False, float("nan"), None)[rng.choice(4, p=(0.9, 0.08, 0.01, 0.01))]
            right += row["correct"] is True
            empty += not isinstance(row["correct"], bool)
        (tmp_path / f"gpt4v-{name}.json").write_text(json.dumps(rows))
    with pytest.raises(ScoreError, match=rf"a question without an answer; given: {empty} of 7,511 without"):
        precomputed.load(str(tmp_path))
    loaded = matched(
        precomputed.load(str(tmp_path), Options(unanswered="wrong")), sugarcrepe_items, note=never
    )
    assert (int(loaded.right["accuracy"].sum()), int(loaded.unanswered.sum())) == (right, empty)
    loaded, benchmark = answered(loaded, sugarcrepe_items)
    assert (len(benchmark), int(loaded.right["accuracy"].sum())) == (7511 - empty, right)


def test_an_accuracy_among_released_answers_is_passed_over(shared_data, sugarcrepe_items, tmp_path):
    """As in GPT-4V's `positive-first/swap_obj.json`: beside its objects a key with a number."""
    for name in SUBSETS:
        rows = json.loads((shared_data / f"sugarcrepe/{name}.json").read_text())
        answers = {key: {"correct": int(key) % 3 > 0} for key in rows}
        if name == "swap_obj":
            answers["accuracy"] = 0.6667
        (tmp_path / f"{name}.json").write_text(json.dumps(answers))
    table = precomputed.load(str(tmp_path))
    assert len(table) == 7511
    assert "'accuracy' of swap_obj.json is passed over" in table.described
    loaded = matched(table, sugarcrepe_items, note=never)
    assert len(loaded.right["accuracy"]) == 7511
    # A benchmark's own file holds no such number: there an item would be lost.
    (tmp_path / "pairs.json").write_text(json.dumps({"0": {"caption": "a"}, "1": 3}))
    refuses("items are of different kinds", read_table, tmp_path / "pairs.json")
