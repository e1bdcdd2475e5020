"""The study: every stage said once, stopped anywhere and gone on with, verdicts that follow the numbers."""

import shutil
from dataclasses import replace

import pytest

from counterfoil.evaluation.findings import verdict
from counterfoil.evaluation.run import find_runs
from counterfoil.studies import plan
from counterfoil.studies.demo import study
from counterfoil.studies.runs import TUNED
from refusals import refuses
from tiny_study import TINY, facts


def _numbers(made):
    return made.findings, made.order


class _Stopped(BaseException):
    """As if the process had been killed there."""


def _stop(words, step=0):
    """A note, or a progress, that stops where it comes to these words, at that step."""

    def tell(text, done=0, total=0):
        if words in text and done == step:
            raise _Stopped

    return tell


def test_four_findings_and_an_order(made):
    # The control leads; what could be style is asked where there are two, and held to what the control says.
    three = ["direction", "texts", "images"]
    keys = [*three, *(f"{each}-styles" for each in three), "detectors"]
    assert [each.key for each in made.findings] == keys
    assert all(each.verdict == verdict(each.evidence) for each in made.findings)
    for control, styles in zip(made.findings[:3], made.findings[3:6], strict=True):
        decided = {each.value for each in styles.evidence if each.decides}
        assert {each.value for each in control.evidence if each.decides} <= decided
        assert not (styles.verdict == "holds" and control.verdict == "does not hold")
    assert made.order is not None
    assert len(made.order.levels) == 3
    worlds = {"world-quads", "world-quads-alike", "world-choices", "world-gallery"}
    assert {each.benchmark for each in made.comparisons} == worlds
    assert made.comparisons[0].benchmark == "world-quads"


def test_the_control_asks_the_same_in_one_style(made):
    asked = {each.name: each for each in made.benchmarks}
    quads, control = asked["world-quads"], asked["world-quads-alike"]
    assert quads.questions.ids == control.questions.ids
    assert [each.text for each in quads.captions] == [each.text for each in control.captions]
    shown = (each.paired.pairs()[1].reshape(-1, 4)[:, [0, -1]] for each in (quads, control))
    for one, other in zip(*shown, strict=True):
        same = [quads.images[i].read() == control.images[j].read() for i, j in zip(one, other, strict=True)]
        # First pictures are natural in both; second ones are synthetic in one of them.
        assert same == [True, False]


@pytest.mark.parametrize(
    ("key", "benchmark"), [("detectors", "world-quads"), ("images", "world-quads-alike")]
)
def test_the_numbers_are_those_of_the_runs_on_disk(made, place, key, benchmark):
    kept = {(run.result.scorer, run.benchmark.name): run for run in find_runs([place / plan.RUNS])}
    for level in next(each for each in made.findings if each.key == key).levels:
        of = kept[level.label, benchmark].result.measures[level.measure]
        assert (level.value, level.low, level.high) == (of.value, of.low, of.high)


@pytest.mark.slow
def test_a_study_that_was_stopped_ends_with_the_same_numbers(made, tmp_path):
    refuses("", study, TINY, tmp_path, error=_Stopped, facts=facts, note=_stop("trained coco"))
    # Once more, in the middle of a training.
    with pytest.raises(_Stopped):
        study(TINY, tmp_path, facts=facts, note=lambda text: None, progress=_stop("trohn-text", 3))
    again: list[str] = []
    assert _numbers(study(TINY, tmp_path, facts=facts, note=again.append)) == _numbers(made)
    assert again[0].startswith("going on")


def test_a_finished_study_is_not_trained_again(made, place, tmp_path):
    shutil.copytree(place, tmp_path / "copy")
    written = (tmp_path / "copy/networks/coco-0/resume.pt").stat().st_mtime_ns
    again = study(TINY, tmp_path / "copy", facts=facts, note=lambda text: None)
    assert _numbers(again) == _numbers(made)
    assert (tmp_path / "copy/networks/coco-0/resume.pt").stat().st_mtime_ns == written
    assert again.trained[1].history == made.trained[1].history


@pytest.mark.slow
def test_another_seed_has_other_numbers_and_every_stage_is_named_once(made, tmp_path):
    said: list[str] = []
    again = study(replace(TINY, seed=3), tmp_path, facts=facts, note=said.append)
    assert [text.partition(" (")[0] for text in said] == [
        "trained on loose captions",
        *(
            f"trained {name}"
            for name in (*TUNED, "pac on generated positives", "detectors of what is synthetic")
        ),
        "measured 6 models",
        "asked caption metrics",
    ]
    for folder in ("networks", "runs"):
        assert {path.name.rpartition("-")[2] for path in (tmp_path / folder).iterdir()} == {"3"}
    assert again.findings != made.findings
