"""Whose a folder is: one study's, and nothing of anybody else's is ever removed."""

from dataclasses import replace

import pytest

from counterfoil.errors import InputError
from counterfoil.inputs.files import read_json
from counterfoil.store import write_json
from counterfoil.studies import plan
from refusals import refuses
from tiny_study import TINY

OTHER = replace(TINY, seed=5)


def _begun(out):
    """What a study leaves behind, and a file of somebody else."""
    plan.claim(out, TINY)
    for name in ("networks/coco-0/resume.pt", "runs/coco-0/world-quads/result.json", plan.REPORT, "mine.txt"):
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        (out / name).write_text("of a study")


def _files(out):
    return {str(path.relative_to(out)) for path in out.rglob("*")}


def test_a_study_of_the_same_plan_goes_on(tmp_path):
    assert not plan.claim(tmp_path, TINY)
    assert not plan.claim(tmp_path, TINY)
    _begun(tmp_path)
    before = _files(tmp_path)
    assert plan.claim(tmp_path, TINY)
    assert _files(tmp_path) == before


@pytest.mark.parametrize("version", [False, True])
def test_another_plan_or_version_is_refused_and_begins_anew_where_that_is_asked_for(
    tmp_path, version, monkeypatch
):
    _begun(tmp_path)
    if version:
        write_json(tmp_path / plan.PLAN, {**read_json(tmp_path / plan.PLAN), "study": "0.0"})
    before, other = _files(tmp_path), TINY if version else OTHER
    refuses(r"a demo of another plan.*--overwrite", plan.claim, tmp_path, other, error=InputError)
    assert _files(tmp_path) == before
    with monkeypatch.context() as patched:
        patched.setattr(plan, "overwriting", lambda: True)
        assert not plan.claim(tmp_path, other)
    assert _files(tmp_path) == {plan.PLAN, plan.REPORT, "mine.txt"}
    assert not plan.claim(tmp_path, other)


@pytest.mark.parametrize("name", [plan.PLAN, plan.NETWORKS, plan.RUNS, plan.REPORT])
def test_somebody_else_s_folder_is_refused_and_stays_as_it_is(tmp_path, name):
    if "." in name:
        (tmp_path / name).write_text('{"plan": "mine"}')
    else:
        (tmp_path / name).mkdir()
    before = _files(tmp_path)
    refuses(f"not of a demo.*{name}", plan.claim, tmp_path, TINY, error=InputError)
    assert _files(tmp_path) == before
