"""Each model by itself, and the data of the page: decided by the measures, safe in a script element."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, strategies as st

from counterfoil.benchmarks.answers import Scores
from counterfoil.metrics.ties import Ties
from counterfoil.report.forms import FORMS, WORST, report_of
from counterfoil.report.html import shareable, shared
from counterfoil.report.page import model_sections, page
from counterfoil.report.thumbnails import Thumbnails, richest, spread, to_json
from report_fixtures import NASTY, quad_benchmark, run_of


def test_groups_are_those_of_the_result(quads):
    for run, model in zip(quads.runs, model_sections(quads, "b-x", captions=True), strict=True):
        by_name = {row.name: row for row in model["groups"].rows}
        assert {"all questions", "swap", "add", "replace"} <= set(by_name)
        groups = {"all questions": run.result.measures, **run.result.groups}
        for name in ("all questions", "swap", "add"):
            for column, cell in zip(model["groups"].columns[1:], by_name[name].cells[1:], strict=True):
                e = groups[name][column.measure]
                assert (cell.value, cell.low, cell.high) == (e.value, e.low, e.high)


def test_worst_questions_are_the_most_wrong_ones(quads, galleries):
    s = quads.runs[0].answers.values
    # The smaller true score of each question less the larger false one, row by row and column by column.
    gaps = np.min([s[:, i, i] - s[:, j, k] for i in (0, 1) for j, k in ((0, 1), (1, 0))], axis=0)
    worst = model_sections(quads, "b-x", captions=True)[0]["worst"]
    expected = [f"q{q}" for q in np.argsort(gaps, kind="stable")[:WORST] if gaps[q] <= 0]
    assert [id for id, *_ in worst] == expected
    assert f"{-gaps.min():.4g}" in worst[0][1]
    assert all(len(captions) == 2 for _, _, captions, _ in worst)
    assert not any(texts for *_, texts, _ in model_sections(quads, "b-x", captions=False)[0]["worst"])
    outcomes = model_sections(quads, "b-x", captions=True)[2]["worst"]
    items = quads.runs[2].items
    choices = ("ipos2t", "ineg2t", "tpos2i", "tneg2i")
    wrong = [sum(items[name][int(id[1:])] < 1 for name in choices) for id, *_ in outcomes]
    assert wrong == sorted(wrong, reverse=True)
    assert [how for _, how, *_ in outcomes] == [f"wrong in {n} of 4 choices" for n in wrong]
    late = model_sections(galleries, "b-y", captions=True)[0]["worst"]
    numbers = [int(how.rsplit(" ", 1)[1].replace(",", "")) for _, how, *_ in late]
    assert numbers == sorted(numbers, reverse=True)
    assert numbers[-1] > 1


def renamed(comparison, names, **more):
    """The comparison with other names, and other facts of its runs."""
    runs = tuple(replace(run, name=names[run.name], **more) for run in comparison.runs)
    differences = tuple(replace(d, a=names[d.a], b=names[d.b]) for d in comparison.differences)
    return replace(comparison, runs=runs, baseline=None, differences=differences)


@pytest.mark.usefixtures("undrawn")
def test_nothing_private_is_anywhere_on_the_page(quads):
    manifest = {
        "command": ["counterfoil", "evaluate", "given:/home/jane/my data/clip.csv", "--out=/home/jane/runs"],
        "benchmark": {"path": "/Users/jane/data", "source": "C:\\Users\\jane\\x.csv"},
        "note": "written by jane in ~/somewhere/deep/a.json; see https://example.org/a/b",
    }
    names = {run.name: f"given:/home/jane/{run.name}" for run in quads.runs}
    comparison = renamed(quads, names, manifest=manifest)
    text = page([comparison])
    for private in ("jane", "/home", "Users", "my data", "somewhere"):
        assert private not in text, private
    assert "given:…/good" in text
    assert "https://example.org/a/b" in text
    assert "/home/jane/my data/clip.csv" in page([comparison], private=True)


def test_models_that_only_differ_in_what_is_left_out_are_numbered(quads):
    places = ("/a/b/clip", "/a/c/clip", "other")
    result = shared(renamed(quads, dict(zip((run.name for run in quads.runs), places, strict=True))))
    assert [run.name for run in result.runs] == ["…/clip", "…/clip (2)", "other"]
    assert {name for d in result.differences for name in (d.a, d.b)} == {run.name for run in result.runs}


@pytest.mark.parametrize(
    "text", ["runs/clip", "MIT / Apache", "open-clip:ViT-B-32/openai", "a: 3/4", "/", "and/or"]
)
def test_what_is_no_path_of_a_machine_stays(text):
    assert shareable(text) == text


QUADS = FORMS["quad"]


@given(
    st.recursive(
        st.text(), lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3)
    )
)
def test_json_in_a_script_element_is_the_same_value_and_ends_nothing(value):
    text = to_json(value)
    assert json.loads(text) == value
    assert not set(text) & set("<>&\u2028\u2029")


def test_kinds_follow_from_the_scores_and_half_a_point_for_a_tie_is_a_failure_still(quads):
    benchmark = quad_benchmark(6)
    tied = run_of(benchmark, "constant", Scores(np.zeros((6, 2, 2))), ties=Ties.HALF)
    assert QUADS.kinds(tied).tolist() == [3] * 6
    generous = run_of(benchmark, "constant", Scores(np.zeros((6, 2, 2))), ties=Ties.OPTIMISTIC)
    assert QUADS.kinds(generous).tolist() == [0] * 6
    s = quads.runs[0].answers.values
    i2t = (s[:, 0, 0] > s[:, 1, 0]) & (s[:, 1, 1] > s[:, 0, 1])
    t2i = (s[:, 0, 0] > s[:, 0, 1]) & (s[:, 1, 1] > s[:, 1, 0])
    np.testing.assert_array_equal(QUADS.kinds(quads.runs[0]), 2 * ~t2i + ~i2t)


def test_every_beginning_of_the_spread_holds_every_kind_and_group(quads):
    order = spread(quads, QUADS.kinds)
    assert sorted(order) == list(range(40))
    labels = quads.runs[0].benchmark.questions.groupings["type"]
    patterns = list(zip(*(QUADS.kinds(run).tolist() for run in quads.runs), strict=True))
    strata = {(label, *pattern) for label, pattern in zip(labels, patterns, strict=True)}
    assert {(labels[i], *patterns[i]) for i in order[: len(strata)]} == strata


def test_the_data_hold_questions_answers_and_pictures(quads):
    thumbnails = Thumbnails()
    data = json.loads(to_json(QUADS.data(quads, thumbnails, pictures=True, captions=True)))
    assert (data["ids"], data["captions"][4]) == ([f"q{i}" for i in range(40)], [NASTY, "caption-4"])
    assert data["pictured"] == 40
    # 60 images of different colours, one of them broken, each once.
    assert len(thumbnails.uris) == 60
    assert data["groupings"][1]["codes"][:2] == [-1, 0]
    good = data["models"][0]
    np.testing.assert_allclose(good["scores"], quads.runs[0].answers.values.reshape(40, 4), rtol=1e-5)
    right = quads.runs[2].answers.right
    bits = [int(digit, 16) for digit in data["models"][2]["directions"]]
    for i, name in enumerate(("ipos2t", "ineg2t", "tpos2i", "tneg2i")):
        assert [bool(value >> i & 1) for value in bits] == right[name].tolist()
    assert data["models"][2]["scores"] is None
    best = max(quads.runs, key=lambda run: run.items["group"].mean())
    assert data["models"][data["best"]]["name"] == best.name


@pytest.mark.parametrize(
    ("form", "text"), [("quads", "of a box"), ("galleries", "about photo"), ("rated", "sentence number")]
)
def test_left_out_pictures_and_captions_are_not_in_the_data(form, text, request):
    comparison, thumbnails = request.getfixturevalue(form), Thumbnails()
    report = report_of(comparison.runs[0].benchmark)
    data = report.data(comparison, thumbnails, pictures=False, captions=False)
    assert thumbnails.uris == []
    assert (data["pictured"], {number for _, number in data["images"]}) == (0, {-1})
    assert text not in to_json(data)
    assert "window.hacked" not in to_json(data)


def test_the_benchmark_with_pictures_is_shown_whichever_run_has_it(quads):
    full = quads.runs[0].benchmark
    images, captions = (tuple(type(one)(one.id) for one in some) for some in (full.images, full.captions))
    bare = replace(quads.runs[1], benchmark=replace(full, images=images, captions=captions))
    assert richest(replace(quads, runs=(bare, quads.runs[0]))) is full
