"""How commands are called: groups, and several processes."""

import pytest


@pytest.mark.parametrize("group", [(), ("world",), ("list",)])
def test_groups_without_a_command_show_their_help(counterfoil, group):
    found = counterfoil(*group)
    assert "Commands" in found.out
    assert found.err == ""


def test_of_several_processes_the_first_one_speaks_first(counterfoil, monkeypatch):
    slept: list[float] = []
    monkeypatch.setattr("time.sleep", slept.append)
    assert counterfoil("train", "nothing").code == 2
    assert slept == []
    monkeypatch.setenv("RANK", "1")
    assert "unknown recipe" in counterfoil("train", "nothing").err
    assert len(slept) == 1
