"""`counterfoil demo` and `counterfoil reproduce`, as a newcomer runs them."""

import sys


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
