"""`counterfoil explain --grade`: colours are pointed at by what sees them alone."""

import json

import pytest

import counterfoil as cf


@pytest.fixture(scope="module")
def colours():
    return cf.grade_heatmaps("pixels:colours", limit=24, cache=None, workers=0, quiet=True)


def graded(found, words):
    return next(grade for grade in found.grades if grade.words == words)


def test_colours_are_pointed_at_far_above_chance(colours):
    colour = graded(colours, "colour")
    for measure in (colour.pointing, colour.iou):
        assert measure.low > 5 * measure.chance
        assert measure.low > 3 * measure.elsewhere
        assert measure.lift_low > 0.2
    # It sees no shapes: heatmaps of their words are constant, which is chance to the last digit.
    shape = graded(colours, "shape")
    assert shape.pointing.value == pytest.approx(shape.pointing.chance)
    assert shape.iou.value == pytest.approx(shape.iou.chance)


def test_blind_scorers_are_at_chance():
    for scorer, limit in (("blind:length", 8), ("blind:random", 60)):
        found = cf.grade_heatmaps(scorer, limit=limit, grid=4, cache=None, workers=0, quiet=True)
        for measure in (graded(found, "all").pointing, graded(found, "all").iou):
            assert measure.lift_low < 0 < measure.lift_high
            assert measure.value == pytest.approx(measure.elsewhere, abs=0.02)
            if scorer == "blind:length":
                assert measure.value == pytest.approx(measure.chance)


def test_rows_and_tables_say_the_same(colours):
    rows = [row for row in colours.to_arrow(by="word").to_pylist() if row["kind"] == "colour"]
    colour = graded(colours, "colour")
    assert len(rows) == colour.n
    assert sum(row["pointing"] for row in rows) / len(rows) == pytest.approx(colour.pointing.value)
    assert colours.to_arrow().num_rows == 2 * len(colours.grades)
    assert f"{100 * colour.pointing.value:.2f}" in str(colours)


def test_the_command_prints_them_and_refuses_what_has_no_places(counterfoil, tmp_path):
    said = counterfoil.succeeds(
        "explain pixels:colours world-choices --grade --limit 3 --grid 4 --workers 0 "
        f"--json {tmp_path}/grades.json"
    )
    assert "Occlusion of pixels:colours on World, choices" in said.out
    found = json.loads((tmp_path / "grades.json").read_text())
    assert found["grades"][0]["words"] == "all"
    assert counterfoil("world", "build", "quads", "--n", 7, "--size", 48, "--out", tmp_path / "w").code == 0
    grade = ("explain", "blind:length", tmp_path / "w", "--grade")
    counterfoil.refused(*grade, says="where things lie is not known")
