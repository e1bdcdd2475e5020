"""Findings: verdicts that follow the numbers, and numbers that follow the answers."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from counterfoil.benchmarks import Benchmark, Scores
from counterfoil.errors import InputError
from counterfoil.evaluation.compare import compare
from counterfoil.evaluation.evidence import Evidence, deciding, differences, independent_difference
from counterfoil.evaluation.findings import confirmed, findings, ordering
from counterfoil.evaluation.result import Run
from evaluation.made_runs import evaluated
from refusals import refuses

Make = Callable[..., Benchmark]


def _quad_run(benchmark, name, seed, *, right, offset=0.0):
    """Noise, `right` more where caption and image belong together, and a random offset of every image.

    An offset of an image says nothing to that image, which compares captions, and misleads the captions.
    """
    rng = np.random.default_rng(seed)
    n = len(benchmark)
    scores = rng.normal(size=(n, 2, 2)) + right * np.eye(2) + offset * rng.normal(size=(n, 1, 2))
    return evaluated(name, benchmark, Scores(scores), draws=200)


def _choice_run(benchmark, name, seed, *, right):
    scores = np.random.default_rng(seed).normal(size=(len(benchmark), 2))
    scores[:, 0] += right
    return evaluated(name, benchmark, Scores(scores), draws=200)


def _runs(quads, choices, skills, *, offset=1.0):
    """Of each model (skill in quads, skill in choices)."""
    made: list[Run] = []
    for at, (name, (of_quads, of_choices)) in enumerate(skills.items()):
        made.append(_quad_run(quads, name, 100 * at, right=of_quads, offset=offset))
        if choices is not None:
            made.append(_choice_run(choices, name, 100 * at, right=of_choices))
    return made


PAPER = {
    "pretrained": (1.0, 0.8),
    "coco": (1.6, 1.0),
    "trohn-text": (1.6, 3.0),
    "trohn-img": (3.0, 2.0),
    "detectors": (0.0, 0.0),
}


def _named(found):
    return {each.key: each for each in found}


def test_all_four_hold_where_they_were_made_to(quads, choices):
    found = findings(_runs(quads(300), choices({"add": 300}), PAPER))
    assert [each.key for each in found] == ["direction", "texts", "images", "detectors"]
    for each in found:
        assert each.verdict == "holds"
        assert any(evidence.decides for evidence in each.evidence)
        for evidence in each.evidence:
            assert evidence.low <= evidence.value <= evidence.high
            bounds = (0, 1) if evidence.kind == "level" else (-1, 1)
            assert bounds[0] <= evidence.low <= evidence.high <= bounds[1] or evidence.p is None


def test_what_was_made_the_other_way_round_does_not_hold(quads, choices):
    q, c = quads(300), choices({"add": 300})
    # Offsets of captions mislead the images instead, texts teach group and spoil choices, hard-negative
    # images teach nothing, and detectors solve everything.
    skills = {"coco": (1.0, 3.0), "trohn-text": (3.0, 1.0), "trohn-img": (0.5, 1.0), "detectors": (3.0, 1.0)}
    runs = _runs(q, c, skills, offset=0.0)
    rng = np.random.default_rng(9)
    for at in range(0, len(runs), 2):
        scores = runs[at].answers
        assert isinstance(scores, Scores)
        turned = Scores(scores.values + rng.normal(size=(len(q), 2, 1)))
        runs[at] = evaluated(runs[at].name, q, turned, draws=200)
    assert {each.verdict for each in findings(runs)} == {"does not hold"}


def test_what_chance_decides_is_undecided(quads, choices):
    same = dict.fromkeys(PAPER, (1.0, 1.0))
    found = _named(findings(_runs(quads(60), choices({"add": 60}), same, offset=0.0)))
    assert {found[key].verdict for key in ("direction", "texts", "images")} == {"undecided"}


def test_no_finding_holds_that_the_control_denies(quads, choices):
    """Skill in one benchmark that is not there in the control: an artefact, as far as anyone can tell."""
    q, c = quads(300), choices({"add": 300})
    alone = findings(_runs(q, c, PAPER))
    idle = {name: (1.0, of_choices) for name, (_, of_choices) in PAPER.items()}
    control = findings(_runs(q, c, idle, offset=0.0))
    assert {each.verdict for each in alone} == {"holds"}
    held = confirmed(alone, control, where="In two styles", suffix="styles")
    assert [each.key for each in held] == [f"{each.key}-styles" for each in alone]
    for each, own, theirs in zip(held, alone, control, strict=True):
        assert each.claim == f"In two styles, {own.claim[0].lower()}{own.claim[1:]}"
        # Decided by all of both, after one correction.
        deciders = [e for e in each.differences if e.decides]
        both = [e.value for f in (own, theirs) for e in f.differences if e.decides]
        assert set(both) == {e.value for e in deciders}
        assert [e.p_holm for e in deciders] == [e.p_holm for e in deciding(deciders)]
        assert each.verdict == theirs.verdict
        assert each.sentence.endswith("the control does not bear it out.") == (theirs.verdict != "holds")
    assert "holds" not in {each.verdict for each in held if each.key != "texts-styles"}
    # A control that says the same, and one that could not be asked.
    assert {each.verdict for each in confirmed(alone, alone, where="So", suffix="so")} == {"holds"}
    assert confirmed(alone, (), where="So", suffix="so") == alone


def test_far_is_the_margin_in_the_claim(quads):
    runs = _runs(quads(400), None, {"trohn-img": (1.5, 0), "detectors": (0.5, 0)})
    value = next(iter(_named(findings(runs))["detectors"].differences)).value
    for far, said in ((value - 0.2, "holds"), (value, "undecided"), (value + 0.2, "does not hold")):
        found = _named(findings(runs, far=far))["detectors"]
        assert found.verdict == said
        assert found.differences[0].threshold == far


def test_the_numbers_are_those_of_the_answers(quads, choices):
    q, c = quads(120), choices({"add": 80})
    runs = _runs(q, c, PAPER)
    found = _named(findings(runs))

    def rate(name, measure):
        """By loops, from the scores: the mean over questions."""
        values = []
        for s in (s for each in runs if each.name == name for s in each.answers.values):
            if s.ndim == 1:
                values.append({"accuracy": float(s[0] > s[1])})
            else:
                i2t = s[0, 0] > s[1, 0] and s[1, 1] > s[0, 1]
                t2i = s[0, 0] > s[0, 1] and s[1, 1] > s[1, 0]
                values.append({"i2t": float(i2t), "t2i": float(t2i), "group": float(i2t and t2i)})
        return float(np.mean([value[measure] for value in values if measure in value]))

    trained = ("pretrained", "coco", "trohn-text", "trohn-img")
    overall = next(each for each in found["direction"].differences if each.decides)
    expected = sum(rate(name, "i2t") - rate(name, "t2i") for name in trained) / 4
    assert overall.value == pytest.approx(expected)
    for level in (level for each in found.values() for level in each.levels):
        assert level.value == pytest.approx(rate(level.label, level.measure))
    choice, group, more = found["texts"].differences
    assert choice.value == pytest.approx(rate("trohn-text", "accuracy") - rate("coco", "accuracy"))
    assert group.value == pytest.approx(rate("trohn-text", "group") - rate("coco", "group"))
    assert more.value == pytest.approx(choice.value - group.value)
    assert not group.decides
    of_images = {each.label: each.value for each in found["images"].differences}
    assert of_images["T2I: trohn-img − coco"] == pytest.approx(rate("trohn-img", "t2i") - rate("coco", "t2i"))
    assert len(of_images) == 6
    # What is said is what was computed.
    assert f"{100 * overall.value:+.1f} points" in found["direction"].sentence.replace("−", "-")


def test_numbers_are_what_compare_and_evaluate_say(quads):
    one, other = _runs(quads(90, share=3), None, {"coco": (1.0, 0), "trohn-img": (2.0, 0)})
    (found,) = differences([("b − a", ([other], "group"), ([one], "group"))])
    (comparison,) = compare([one, other], baseline="coco")
    theirs = next(each for each in comparison.differences if each.measure == "group")
    assert (found.value, found.low, found.high) == pytest.approx((theirs.value, theirs.low, theirs.high))
    assert found.p == theirs.p
    order = ordering([one, other])
    assert order is not None
    assert {level.label: level.value for level in order.levels} == {
        each.name: each["group"].value for each in (one, other)
    }


def test_gains_on_two_benchmarks_are_compared_as_independent():
    # Where both intervals are those of a normal mean, so is that of their difference.
    rng = np.random.default_rng(0)
    for a, b, sa, sb in rng.uniform(0.01, 0.2, size=(20, 4)):
        one, other = (
            Evidence("", "m", "difference", v, v - 1.96 * s, v + 1.96 * s, 10) for v, s in ((a, sa), (b, sb))
        )
        found = independent_difference("", one, other)
        half = 1.96 * np.hypot(sa, sb)
        assert (found.value, found.low, found.high) == pytest.approx((a - b, a - b - half, a - b + half))
    # Against itself the other way round it is mirrored, whatever the shapes.
    one = Evidence("", "m", "difference", 0.1, 0.02, 0.3, 10)
    other = Evidence("", "m", "difference", 0.05, 0.04, 0.2, 10)
    there, back = independent_difference("", one, other), independent_difference("", other, one)
    assert (there.low, there.high) == pytest.approx((-back.high, -back.low))


def test_holm_runs_over_what_decides():
    family = deciding(
        [Evidence("", "m", "difference", 0.1, 0.01, 0.2, 9, p=p) for p in (0.04, 0.01, None, 0.03)]
    )
    # Three tests: the smallest times three, the next times two, the last not below the one before.
    assert [each.p_holm for each in family] == pytest.approx([0.06, 0.03, None, 0.06])
    assert [each.above for each in family] == [False, True, True, False]
    assert all(each.decides for each in family)


@pytest.mark.parametrize(
    ("skills", "of_choices", "keys"),
    [
        ({}, False, []),
        ({"coco": (1, 0)}, False, ["direction"]),
        ({"detectors": (1, 0)}, False, []),
        ({"coco": (1, 1), "trohn-text": (1, 1)}, True, ["direction", "texts"]),
        ({"trohn-img": (1, 0), "trohn-img-detectors": (1, 0)}, False, ["direction", "detectors"]),
    ],
)
def test_findings_without_their_runs_are_left_out(quads, choices, skills, of_choices, keys):
    runs = _runs(quads(40), choices({"add": 40}) if of_choices else None, skills)
    assert [each.key for each in findings(runs)] == keys


def test_models_with_other_questions_are_refused(quads):
    runs = [_quad_run(quads(40), "coco", 0, right=1), _quad_run(quads(41), "trohn-img", 0, right=1)]
    refuses(r"ask different questions.*'toy' \(40\) and 'toy' \(41\)", findings, runs, error=InputError)


def test_the_order_of_the_trainings(quads):
    runs = _runs(quads(400), None, {"coco": (1.6, 0), "trohn-text": (0.8, 0), "trohn-img": (3.0, 0)})
    found = ordering(runs)
    assert found is not None
    assert [each.label for each in found.levels] == ["trohn-img", "coco", "trohn-text"]
    assert found.apart
    assert "do not overlap" in found.sentence
    close = ordering([runs[0], replace(runs[0], name="trohn-text"), runs[2]])
    assert close is not None
    assert [each.label for each in close.levels] == ["trohn-img", "coco", "trohn-text"]  # equal: as given
    assert not close.apart
    assert ordering(runs[:1]) is None
