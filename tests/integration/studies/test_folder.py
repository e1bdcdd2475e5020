"""Whose a folder is: one study's, and nothing of anybody else's is ever removed."""

from dataclasses import replace
from pathlib import Path

import pytest

from counterfoil.errors import InputError
from counterfoil.inputs.files import read_json
from counterfoil.store import write_json
from counterfoil.studies import plan
from tiny_study import TINY

OTHER = replace(TINY, seeds=(5,))


def _begun(out: Path) -> None:
    """What a study leaves behind."""
    plan.claim(out, TINY)
    for place, names in (
        ("networks/coco-0", ("card.json", "model.safetensors", "resume.pt", "journal.csv", ".x.part")),
        ("runs/coco-0/world-quads", ("manifest.json", "result.json", "items.parquet")),
    ):
        (out / place).mkdir(parents=True)
        for name in names:
            (out / place / name).write_text("of a study")
    for name in (plan.REPORT, plan.QUESTIONS, plan.NUMBERS):
        (out / name).write_text("of a study")


def _files(out: Path) -> set[str]:
    return {str(path.relative_to(out)) for path in out.rglob("*")}


def test_a_study_of_the_same_plan_goes_on(tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert not plan.claim(out, TINY)
    assert not plan.claim(out, TINY)
    _begun(out)
    before = _files(out)
    assert plan.claim(out, TINY)
    assert _files(out) == before


FOREIGN = {"notes.txt", "networks", "networks/mine.txt", "runs", "runs/coco-0", "runs/coco-0/mine.csv"}


@pytest.mark.parametrize("foreign", [FOREIGN, set()])
@pytest.mark.parametrize("version", [False, True])
def test_another_plan_or_version_begins_anew_and_leaves_what_is_not_a_study_s(
    tmp_path: Path, foreign: set[str], version: bool
) -> None:
    _begun(tmp_path)
    for name in foreign:
        if "." in name:
            (tmp_path / name).write_text("somebody's")
    if version:
        write_json(tmp_path / plan.PLAN, {**read_json(tmp_path / plan.PLAN), "study": "0.0"})
    for _ in range(2):
        assert not plan.claim(tmp_path, TINY if version else OTHER)
        # No empty folder is left.
        assert _files(tmp_path) == {*foreign, plan.PLAN}


def test_a_stop_while_beginning_anew_leaves_no_mixture(tmp_path: Path, monkeypatch) -> None:
    _begun(tmp_path)

    def stopped(out: Path) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(plan, "_clear", stopped)
        with pytest.raises(KeyboardInterrupt):
            plan.claim(tmp_path, OTHER)
    # Neither plan takes the networks that are still there for its own.
    assert (tmp_path / "networks/coco-0/resume.pt").exists()
    assert not plan.claim(tmp_path, TINY)
    assert _files(tmp_path) == {plan.PLAN}


@pytest.mark.parametrize("name", [plan.PLAN, plan.NETWORKS, plan.RUNS, plan.REPORT])
def test_somebody_else_s_folder_is_refused_and_stays_as_it_is(tmp_path: Path, name: str) -> None:
    if "." in name:
        (tmp_path / name).write_text('{"plan": "mine"}')
    else:
        (tmp_path / name).mkdir()
    before = _files(tmp_path)
    with pytest.raises(InputError, match=f"not of a demo.*{name}"):
        plan.claim(tmp_path, TINY)
    assert _files(tmp_path) == before
