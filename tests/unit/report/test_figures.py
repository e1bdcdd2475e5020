"""Figures: what they draw, and that the same comparison gives the same bytes."""

import re
from xml.etree import ElementTree

import numpy as np
import pytest

from counterfoil.errors import InputError
from counterfoil.report import figure_style, figures
from counterfoil.report.comparison_tables import ranking
from counterfoil.report.figure_style import RIGHT, WRONG
from counterfoil.report.tables import short


def every(comparison):
    """One figure of each kind."""
    return {
        "measures": figures.measures(comparison),
        "heat": figures.group_heatmap(comparison, "tag", "group"),
        "directions": figures.directions(comparison),
        "significance": figures.significance(comparison, "group"),
    }


def test_each_is_well_formed_names_the_models_and_gives_the_same_bytes_again(quads):
    again = every(quads)
    for name, figure in every(quads).items():
        svg = figure_style.svg(figure, name=name, title="A & <title>")
        assert ElementTree.fromstring(svg).find("{http://www.w3.org/2000/svg}title").text == "A & <title>"
        assert svg == figure_style.svg(again[name], name=name, title="A & <title>")
        texts = ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")
        said = [node.text or "" for node in texts]
        for run in quads.runs:
            assert short(run.name) in said, (name, said)
        # Nothing is fetched, no rule reaches beyond the drawing, and ids are the drawing's own.
        assert "<style" not in svg
        assert "<metadata" not in svg
        spaces = {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}
        assert set(re.findall(r"https?://[^\"' ]+", svg)) <= spaces
        ids = re.findall(r' id="([^"]+)"', svg)
        assert len(set(ids)) == len(ids)
        assert all(one.startswith(f"{name}-") for one in ids)
        assert all(f"#{one}" in svg for one in ids)


def test_a_figure_that_was_written_as_svg_is_what_it_was_and_its_colours_are_variables(quads):
    figure = figures.measures(quads)

    def state():
        return figure.dpi, figure.canvas, figure.patch.get_facecolor(), figure.axes[0].patch.get_facecolor()

    before = state()
    svg = figure_style.svg(figure, name="m", title="m")
    assert svg == figure_style.svg(figure, name="m", title="m")
    assert state() == before
    assert before[2][3] == 1
    # So that dark pages can turn them.
    assert f"var(--right, {RIGHT})" in svg
    assert f"var(--wrong, {WRONG})" in svg
    assert not re.findall(r"#[0-9a-fA-F]{6}\b", re.sub(r"var\([^)]*\)", "", svg).replace("#000000", ""))


def test_dots_stand_at_the_values_and_bars_at_the_intervals(quads):
    (axes,) = figures.measures(quads, ["t2i"]).axes
    order = ranking(quads)
    measures = {run.name: run.result.measures["t2i"] for run in quads.runs}
    dots = next(line for line in axes.lines if line.get_marker() == "o")
    np.testing.assert_allclose(dots.get_xdata(), [100 * measures[name].value for name in order])
    (bars,) = axes.collections
    ends = [[100 * measures[name].low, 100 * measures[name].high] for name in order]
    np.testing.assert_allclose([segment[:, 0] for segment in bars.get_segments()], ends)
    chance = next(line for line in axes.lines if line.get_marker() != "o")
    np.testing.assert_allclose(chance.get_xdata(), [25, 25])


def test_significance_is_coloured_only_where_it_is_significant(quads):
    (axes,) = figures.significance(quads, "group").axes
    order = ranking(quads, "group")
    corners = {patch: (round(patch.get_y() - 0.03), round(patch.get_x() - 0.02)) for patch in axes.patches}
    painted = {corner: patch.get_alpha() for patch, corner in corners.items()}
    assert len(painted) == 6
    for d in quads.differences:
        if d.measure == "group":
            i, j = order.index(d.a), order.index(d.b)
            assert (painted[i, j] > 0) == (painted[j, i] > 0) == (d.p_holm < 0.05)


@pytest.mark.parametrize("suffix", ["svg", "pdf", "png"])
def test_figures_are_saved_whole_and_alike(quads, tmp_path, suffix):
    for name in ("a", "b"):
        figure_style.save(figures.measures(quads), tmp_path / f"{name}.{suffix}", title="measures")
    first, second = (tmp_path / f"{name}.{suffix}" for name in ("a", "b"))
    assert first.read_bytes() == second.read_bytes()
    assert first.read_bytes()[:4] == {"svg": b"<svg", "pdf": b"%PDF", "png": b"\x89PNG"}[suffix]


def test_an_unknown_kind_of_file_is_refused(quads, tmp_path):
    with pytest.raises(InputError, match=r"unknown kind of figure; given: \.gif; allowed: svg, pdf, png"):
        figure_style.save(figures.measures(quads), tmp_path / "a.gif")
    assert list(tmp_path.iterdir()) == []


def test_long_names_lose_their_middle():
    assert short("open-clip:ViT-B-32/laion2b", 11) == "open-…ion2b"
    assert short("clip", 11) == "clip"
