"""Verified rows: truth of drawn rows, people's answers, and label noise that covers what they let through."""

import json

import numpy as np
import pyarrow as pa
import pytest

from counterfoil.build.verification import (
    RULES,
    Answers,
    fits,
    label_noise,
    read_answers,
    read_verified,
    sound,
)
from counterfoil.errors import CounterfoilError
from counterfoil.world.captions import text
from counterfoil.world.generator import imagine, shows
from counterfoil.world.people import Annotator, annotate
from counterfoil.world.sample import contrasts, stream
from refusals import refuses

#: People who err at known rates.
CROWD = (
    Annotator("careful", accuracy=0.95),
    Annotator("eager", accuracy=0.85, bias=0.1),
    Annotator("stern", accuracy=0.85, bias=-0.05),
)


def drawn(n, failure):
    """Rows of the world with negative images, of which a share is wrong, and which are right."""
    made = contrasts(n, seed=3, of="contrasts")
    scenes = [
        imagine(each, stream("contrasts", 3, 2, 1 + at), failure=failure)[0] for at, each in enumerate(made)
    ]
    rows = pa.table(
        {
            "id": [f"row-{at}" for at in range(n)],
            "image": ["a.png"] * n,
            "caption": [text(each.captions[0]) for each in made],
            "negative_caption": [text(each.captions[1]) for each in made],
            "negative_image": ["b.png"] * n,
            "scene": [each.scenes[0].to_json() for each in made],
            "negative_scene": [scene.to_json() for scene in scenes],
        }
    )
    return rows, [shows(each, scene) for each, scene in zip(made, scenes, strict=True)]


def test_the_world_knows_which_rows_are_sound():
    rows, right = drawn(80, 0.61)
    found = sound(rows)
    assert found.tolist() == right
    assert 0.2 < found.mean() < 0.6
    own = fits(rows, "negative_image", "negative_caption")
    # A picture that both captions fit is one of its caption and not a sound one.
    assert (own & ~found).any()
    assert sound(rows.drop_columns(["negative_image"])).all()
    assert sound(rows.drop_columns(["scene"])) is None
    assert fits(rows, "photo", "caption") is None


def covered(crowd, rule, repetitions):
    """How often the interval of label noise holds the share of unsound rows among those kept."""
    inside = 0
    for seed in range(repetitions):
        rng = np.random.default_rng(seed)
        right = rng.random(500) < 0.5
        said = annotate(right, crowd, rng).votes
        answers = Answers(tuple(a.name for a in crowd), said, ~said)
        found = label_noise(answers, rule, np.random.default_rng(seed), draws=600)
        wrong = (~right)[answers.accepted(rule)].mean()
        _, low, high = found["label_noise"]
        inside += low <= wrong <= high
    return inside / repetitions


def test_label_noise_covers_the_truth():
    # 20 repetitions know 95 % to 4.9 points.
    assert covered(CROWD, "majority", 20) > 0.8


@pytest.mark.slow
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize(("people", "accuracy"), [(3, None), (5, 0.8), (3, 0.95), (7, 0.7)])
def test_label_noise_covers_the_truth_of_many_crowds(people, accuracy, rule):
    same = tuple(Annotator(f"p{k}", accuracy=accuracy or 1.0) for k in range(people))
    # 200 repetitions know 95 % to 1.5 points.
    assert covered(CROWD if accuracy is None else same, rule, 200) > 0.91


def test_rows_that_are_hard_for_all_make_the_estimate_too_low():
    """The bias that the assumption brings, where it does not hold."""
    rng = np.random.default_rng(0)
    right, hard = rng.random(4000) < 0.5, rng.random(4000) < 0.15
    easy = annotate(right, [Annotator(f"p{k}", accuracy=0.95) for k in range(3)], rng).votes
    # On hard rows people follow a wrong impression together.
    said = np.where(hard, ~right, easy)
    answers = Answers(("a", "b", "c"), said, ~said)
    found = label_noise(answers, "majority", rng)
    assert found["label_noise"][2] < (~right)[answers.accepted()].mean() - 0.05


def test_people_who_were_not_all_asked():
    rng = np.random.default_rng(1)
    right = rng.random(2000) < 0.6
    crowd = [Annotator(f"p{k}", accuracy=0.9 - 0.02 * k) for k in range(6)]
    said, there = annotate(right, crowd, rng).votes, np.zeros((6, 2000), dtype=bool)
    for row in range(2000):
        there[rng.permutation(6)[:3], row] = True
    answers = Answers(tuple(a.name for a in crowd), said & there, ~said & there)
    found = label_noise(answers, "majority", rng)
    wrong = (~right)[answers.accepted()].mean()
    for name, so in (("label_noise", wrong), ("sound_before", right.mean())):
        assert found[name][1] <= so <= found[name][2]
    assert found["hits"]["p0"] == pytest.approx(0.9, abs=0.04)
    assert json.dumps(found)


def test_what_people_do_not_tell():
    said = np.ones((2, 9), dtype=bool)
    assert label_noise(Answers(("a", "b"), said, ~said), "majority", np.random.default_rng(0)) is None
    nothing = Answers(("a", "b", "c"), np.zeros((3, 9), bool), np.ones((3, 9), bool))
    found = label_noise(nothing, "majority", np.random.default_rng(0))
    assert (found["rows_kept"], found["label_noise"]) == (0, [None, 0.0, 1.0])


def test_answers_are_read(tmp_path):
    path = tmp_path / "said.csv"
    path.write_text("id,annotator,answer\na,x,100% YES\na,y,no\nb,x,Partially YES\nz,x,yes\nb,y,\n")
    found, stray = read_answers(path, ["a", "b", "c"])
    assert (found.people, stray) == (("x", "y"), 1)
    assert found.yes.tolist() == [[True, True, False], [False, False, False]]
    assert found.no.tolist() == [[False, False, False], [True, False, False]]
    assert found.accepted("majority").tolist() == [False, True, False]
    assert found.accepted("any").tolist() == [True, True, False]
    unnamed = tmp_path / "unnamed.csv"
    unnamed.write_text("id,gain\na,1\nb,0\na,0\na,0.5\n")
    found, _ = read_answers(unnamed, ["a", "b"])
    assert found.people == ("answer 1", "answer 2", "answer 3")
    assert found.accepted().tolist() == [True, False]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("id,answer\na,perhaps\n", "an answer that cannot be read"),
        ("id,answer\nq,yes\n", "no row has an answer"),
        ("id,annotator,answer\na,x,yes\na,x,no\n", "answered twice"),
        ("id,verdict\na,yes\n", "no column 'answer'"),
        ("id,gain\na,much\n", "gain"),
    ],
)
def test_answers_that_cannot_be_used(content, message, tmp_path):
    path = tmp_path / "said.csv"
    path.write_text(content)
    refuses(message, read_answers, path, ["a", "b"], error=CounterfoilError)


def test_verified_rows_are_read(tmp_path):
    path = tmp_path / "verified.csv"
    path.write_text("id,right,weight\nb,true,2\nz,false,1\na,no,0.5\n")
    at, right, weights = read_verified(path, ["a", "b"])
    assert (at.tolist(), right.tolist(), weights.tolist()) == ([1, 0], [True, False], [2.0, 0.5])
    refuses("none of the verified rows is here", read_verified, path, ["q"])
