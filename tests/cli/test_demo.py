"""`counterfoil demo` and `counterfoil reproduce`, as a newcomer runs them."""

import json
from pathlib import Path

import pytest

from counterfoil.data.folder import load
from counterfoil.evaluation.run import find_runs


@pytest.mark.models
def test_the_demo_ends_with_the_path_of_its_report(counterfoil, tmp_path: Path) -> None:
    pytest.importorskip("open_clip")
    said = counterfoil("demo", "--out", tmp_path / "demo", "--questions", 28)
    assert said.code == 0, said.err
    report = tmp_path / "demo" / "report.html"
    assert said.out.splitlines()[-1].endswith(str(report))
    assert "data:image/" in report.read_text()
    runs = find_runs([tmp_path / "demo" / "runs"])
    assert [run.name for run in runs] == [
        "blind-length",
        "blind-random",
        "colour-reader",
        "untrained-encoder",
    ]
    # The saved benchmark asks what the runs answered.
    assert {run.benchmark.digest for run in runs} == {load(tmp_path / "demo" / "benchmark").digest}


def test_the_ledger_without_data(counterfoil, tmp_path: Path) -> None:
    said = counterfoil("reproduce", "--json", tmp_path / "ledger.json")
    assert said.code == 0, said.err
    cells = json.loads((tmp_path / "ledger.json").read_text())
    # Of P002 alone numbers follow from others that the paper prints, not always those that it prints.
    assert {cell["paper"] for cell in cells if cell["verdict"] == "differs"} == {"P002"}
    assert all(cell["reason"] for cell in cells if cell["verdict"] != "same")
    # What follows from the paper alone is recomputed all the same: chance, and the mean of the kappas.
    kappa = next(cell for cell in cells if cell["table"] == "Table 7" and cell["column"] == "Mean")
    assert kappa["recomputed"] == pytest.approx((0.66 + 0.43 + 0.56 + 0.43 + 0.38) / 5)


def test_the_ledger_with_data(counterfoil, shared_data: Path) -> None:
    said = counterfoil(
        "reproduce", "--data", shared_data, "--paper", "P000", "--only", "differs", "--json", "-"
    )
    assert said.code == 0, said.err
    differing = {(cell["table"], cell["row"], cell["column"]) for cell in json.loads(said.out)}
    assert ("Table 5", "CLIP Det", "Text detection acc") in differing
    assert all(cell["reason"] for cell in json.loads(said.out))


def test_a_reason_that_many_cells_share_is_said_once(counterfoil) -> None:
    said = counterfoil("reproduce", "--paper", "eccv_caption", "--only", "differs")
    assert said.code == 0, said.err
    words = " ".join(said.out.split())
    # 24 of 25 models; the first and the last with their numbers: (48.50 + 39.95) / 2 and (67.18 + 54.02) / 2.
    assert words.count("Printed is the mean of image to text on COCO 1K and text to image on COCO 5K.") == 1
    assert "P002 Table 4, VSE0, COCO 1K R@1: 34.14 ≠ 44.23; VSE++, " in words
    assert "Hardest NM, COCO 1K R@1: 49.12 ≠ 60.60. Printed is the mean" in words


def test_an_unknown_paper_is_one_line(counterfoil, tmp_path: Path) -> None:
    said = counterfoil("reproduce", "--paper", "winogrund")
    assert (said.code, said.err.count("\n")) == (2, 1)
    assert "did you mean 'winoground'" in said.err
    assert counterfoil("reproduce", "--data", tmp_path / "nowhere").code == 2
