"""`counterfoil benchmarks save`: a benchmark and its pictures in one folder."""

import json


def test_what_is_saved_is_measured_like_the_benchmark(counterfoil, shared_data, tmp_path):
    photographs = shared_data / "coco_mini" / "images" / "val2017"
    asked = ("sugarcrepe", "--data", shared_data / "sugarcrepe", "--images", photographs, "--available")
    said = counterfoil.succeeds("benchmarks save", *asked, "--limit", 20, "--out", tmp_path / "saved")
    assert "20 questions" in said.out
    assert "211 of 7,511 questions are at hand" in said.err
    found = [
        counterfoil("evaluate", "pixels:colours", *these, "--draws", 100, "--json", "-", "-q")
        for these in ((tmp_path / "saved",), (*asked, "--limit", 20))
    ]
    assert all(each.code == 0 for each in found), [each.err for each in found]
    one, other = (json.loads(each.out)["measures"]["accuracy"] for each in found)
    assert one == other
