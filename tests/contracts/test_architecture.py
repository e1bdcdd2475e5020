"""Contracts of the architecture and figures of the source, held to tables that may only fall."""

import ast
import importlib
import json

import grimp
import pytest

from contracts import capabilities, metrics

COMMAND = "'python -m contracts.metrics --keep' in tests writes the table again"


@pytest.mark.parametrize("contract", metrics.BROKEN)
def test_the_source_keeps_the_contracts_of_its_architecture(contract):
    assert not metrics.BROKEN[contract]()


@pytest.mark.parametrize("figure", sorted(metrics.limits()))
def test_no_figure_is_above_its_limit(figure):
    now, limit = {**metrics.counts(), **metrics.reached()}[figure], metrics.limits()[figure]
    assert now <= limit, f"{figure}: {now:,}, and at most {limit:,} are allowed (make metrics)"
    # A commit that lowers a figure by more than a part in a hundred lowers its limit.
    assert now >= 0.99 * limit, f"{figure}: {now:,}, far below its limit of {limit:,}; {COMMAND}"


def test_the_page_of_capabilities_is_what_the_code_offers():
    written = capabilities.PAGE.read_text(encoding="utf-8")
    assert written == capabilities.page(), "'python -m contracts.capabilities' in tests writes it again"


def test_the_former_name_of_a_package_gives_the_present_one():
    with pytest.raises(ModuleNotFoundError, match=r"'counterfoil\.scorers' is now 'counterfoil\.models'"):
        importlib.import_module("counterfoil.scorers.base")


def test_the_limits_are_not_written_where_one_rises(monkeypatch, tmp_path):
    monkeypatch.setattr(metrics, "LIMITS", tmp_path / "limits.json")
    monkeypatch.setattr(metrics, "reached", dict)
    monkeypatch.setattr(metrics, "counts", lambda: {"lines of src": 7})
    metrics.LIMITS.write_text(json.dumps({"lines of src": 8}))
    assert metrics.keep().startswith("written")
    assert metrics.limits() == {"lines of src": 7}
    metrics.LIMITS.write_text(json.dumps({"lines of src": 6}))
    assert metrics.keep() == "not written: lines of src rose from 6 to 7"


@pytest.mark.parametrize(
    ("source", "count"),
    [
        ("isinstance(x, Quad)", 1),
        ("isinstance(x, data.Quad | Choice) and isinstance(x, (Scores, int))", 2),
        ("isinstance(x, Answers)", 1),
        ("isinstance(x, int | str)", 0),
        ("match x:\n    case Rankings(): ...\n    case int(): ...", 1),
        ("x.form == Gallery.form", 1),
        ("form in ('rated', 'preference')", 1),
        ("form == 'png' or form is None", 0),
        ("Gallery(x) and FORMS[x.form]", 0),
    ],
)
def test_type_tests_are_found_however_they_are_written(source, count):
    types = metrics.FORMS | metrics.ANSWERS | {"Answers"}
    assert sum(1 for _ in metrics._type_tests(ast.walk(ast.parse(source)), types)) == count


def test_circles_are_found_and_each_is_counted_once():
    graph = grimp.ImportGraph()
    for importer, imported in ("ab", "bc", "ca", "ad", "ef", "fe"):
        graph.add_import(importer=importer, imported=imported)
    assert metrics.circles(graph) == ["a <-> b <-> c", "e <-> f"]
