"""`counterfoil demo` and `counterfoil reproduce`, as a newcomer runs them."""

import json
import sys

import pytest

from counterfoil.errors import StorageError
from counterfoil.evaluation.run import find_runs
from counterfoil.studies import plan
from counterfoil.studies.captions import LOOKING, MATCHING, READING
from tiny_study import TINY


@pytest.fixture
def quick(monkeypatch):
    """The demo in seconds."""
    pytest.importorskip("lightning_fabric")
    monkeypatch.setattr(plan, "SHORT", TINY)


def test_a_demo_on_a_full_disk_goes_on_and_ends_with_what_held_and_its_report(
    counterfoil, quick, tmp_path, monkeypatch
):
    from counterfoil.train import state as training_state

    # The pages themselves are drawn in tests/integration/studies/test_writing.py.
    for each in ("page", "questions_page"):
        monkeypatch.setattr(f"counterfoil.studies.demo.{each}", lambda *_, **__: "a page")
    save, out = training_state.save, tmp_path / "demo"

    def full(folder, state):
        if folder.name == "trohn-text-0":
            raise StorageError("the disk is full", where=folder, hint="free some space")
        save(folder, state)

    with monkeypatch.context() as patched:
        patched.setattr(training_state, "save", full)
        said = counterfoil("demo", "--full", "--out", out)
    assert said.code == 2
    assert said.err.splitlines()[-1].endswith("the disk is full; free some space")
    said = counterfoil.succeeds("demo", "--full", "--out", out)
    assert said.err.startswith("going on with the study in")
    assert said.err.count("trained coco") == 1
    assert said.out.splitlines()[-1] == f"The report is in {out / 'report.html'}"
    assert (out / "report.html").read_text() == "a page"
    numbers = json.loads((out / "findings.json").read_text())
    words = " ".join(said.out.split())
    for each in [*numbers["findings"], *numbers["captions"]["claims"]]:
        assert f"{each['claim']} {each['verdict'].capitalize()} in this run. {each['sentence']}" in words
    assert f"The trainings in order. {numbers['order']['sentence']}" in words
    names = {"pretrained", "coco", "trohn-text", "trohn-img", "detectors", "trohn-img-detectors"}
    metrics = {"oracle", *READING, *LOOKING, *MATCHING, "clip-s, coco", "em-score, coco"}
    assert {run.result.scorer for run in find_runs([out / "runs"])} == names | metrics
    assert [each["key"] for each in numbers["captions"]["claims"]]


def test_without_torch_it_is_one_line(counterfoil, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    counterfoil.refused("demo", "--out", tmp_path / "demo", says="counterfoil[demo]")
    assert not (tmp_path / "demo").exists()


def test_a_reason_that_many_cells_share_is_said_once(counterfoil):
    said = counterfoil.succeeds("reproduce", "--paper", "eccv-caption", "--only", "differs")
    words = " ".join(said.out.split())
    # 24 of 25 models; the first and the last with their numbers: (48.50 + 39.95) / 2 and (67.18 + 54.02) / 2.
    assert words.count("Printed is the mean of image to text on COCO 1K and text to image on COCO 5K.") == 1
    assert "ECCV Caption Table 4, VSE0, COCO 1K R@1: 34.14 ≠ 44.23; VSE++, " in words
    assert "Hardest NM, COCO 1K R@1: 49.12 ≠ 60.60. Printed is the mean" in words
