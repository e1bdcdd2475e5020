"""A part of what strangers hand in; `python -m faults.strangers` is all of it."""

from faults.strangers import KINDS, prepared, shortcomings

#: Every so many cases of a kind.
_EVERY = 31


def test_hostile_inputs_are_many():
    count = {kind: sum(1 for _ in of()) for kind, of in KINDS.items()}
    assert sum(count.values()) >= 500
    assert min(count.values()) >= 100


def test_hostile_inputs_do_nothing_that_they_must_not(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    base = prepared(tmp_path)
    short = {}
    for of in KINDS.values():
        for number, case in enumerate(list(of())[::_EVERY]):
            if wrong := shortcomings(case, base, tmp_path / f"case-{case.kind}-{number}"):
                short[case.kind, case.name] = wrong
    assert short == {}
