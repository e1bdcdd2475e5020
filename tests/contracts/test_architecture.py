"""Contracts of the architecture and figures of the source, held to tables that may only fall."""

import ast
import importlib
import json
from pathlib import Path

import pytest

from contracts import capabilities, metrics

COMMAND = "'python -m contracts.metrics --keep' in tests writes the table again"


@pytest.mark.parametrize("contract", sorted(metrics.allowed()))
def test_the_source_has_what_the_table_allows_and_no_more(contract: str) -> None:
    now, allowed = metrics.counted()[contract], metrics.allowed()[contract]
    more = {name: (n, allowed.get(name, 0)) for name, n in now.items() if n > allowed.get(name, 0)}
    fewer = {name: (now.get(name, 0), n) for name, n in allowed.items() if n > now.get(name, 0)}
    assert not more, f"{contract}: more than allowed, as (now, allowed): {more}; after a renaming {COMMAND}"
    assert not fewer, f"{contract}: the table allows too much, as (now, allowed): {fewer}; {COMMAND}"


def test_the_table_has_no_other_contracts() -> None:
    assert set(metrics.allowed()) == set(metrics.counted())


@pytest.mark.parametrize("figure", sorted(metrics.limits()))
def test_no_figure_is_above_its_limit(figure: str) -> None:
    now, limit = {**metrics.counts(), **metrics.reached()}[figure], metrics.limits()[figure]
    assert now <= limit, f"{figure}: {now:,}, and at most {limit:,} are allowed (make metrics)"
    # A commit that lowers a figure by more than a part in a hundred lowers its limit.
    assert now >= 0.99 * limit, f"{figure}: {now:,}, far below its limit of {limit:,}; {COMMAND}"


def test_the_page_of_capabilities_is_what_the_code_offers() -> None:
    written = capabilities.PAGE.read_text(encoding="utf-8")
    assert written == capabilities.page(), "'python -m contracts.capabilities' in tests writes it again"


def test_the_former_name_of_a_package_gives_the_present_one() -> None:
    with pytest.raises(ModuleNotFoundError, match=r"'counterfoil\.scorers' is now 'counterfoil\.models'"):
        importlib.import_module("counterfoil.scorers.base")


def test_registry_strings_name_what_is_there() -> None:
    assert len(list(metrics.targets())) > 40
    assert metrics.unresolved_targets() == []


def test_the_table_is_not_written_where_a_total_rises(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    name, now = "import circles", {"data.one": 1, "data.two": 1}
    monkeypatch.setattr(metrics, "ALLOWED", tmp_path / "allowed.json")
    monkeypatch.setattr(metrics, "LIMITS", tmp_path / "limits.json")
    monkeypatch.setattr(metrics, "counted", lambda: {name: now})
    monkeypatch.setattr(metrics, "reached", dict)
    monkeypatch.setattr(metrics, "counts", lambda: {"lines of src": 7})
    metrics.ALLOWED.write_text(json.dumps({name: {"data.one": 1}}))
    assert metrics.keep().startswith(f"not written: {name} rose")
    # What is renamed keeps the total.
    metrics.ALLOWED.write_text(json.dumps({name: {"data.one": 1, "data.three": 1}}))
    assert metrics.keep().startswith("written")
    assert metrics.allowed() == {name: now}
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
def test_type_tests_are_found_however_they_are_written(source: str, count: int) -> None:
    types = metrics.FORMS | metrics.ANSWERS | {"Answers"}
    assert sum(1 for _ in metrics._type_tests(ast.walk(ast.parse(source)), types)) == count


def test_circles_are_found_through_functions_and_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    sources = {
        "a": "def f():\n    from counterfoil.b import c",
        "b": "",
        "b.c": "import counterfoil.d",
        "d": "from counterfoil.a import f",
        "e": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from counterfoil import g",
        "g": "from counterfoil import e",
    }
    made = tuple(metrics.Module(name, text, ast.parse(text)) for name, text in sources.items())
    monkeypatch.setattr(metrics, "modules", lambda: made)
    assert metrics.circles() == ["a <-> b.c <-> d", "e <-> g"]
