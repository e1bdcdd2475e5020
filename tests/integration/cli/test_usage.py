"""How commands are called: groups, several processes, and arguments in a file."""

import json

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


def test_arguments_stand_in_a_file_too(counterfoil, tmp_path):
    study = tmp_path / "study.toml"
    study.write_text(
        '[evaluate]\nscorer = "blind:random"\nbenchmarks = ["world-quads"]\nlimit = 20\ndraws = 100\n'
        'measure = ["group"]\nseed = 3\nno_cache = true\n'
        '[compare]\ndrawz = 1\n[audit]\nbenchmarks = "world-quads"\ndraws = 5\n'
    )
    plain = "evaluate blind:random world-quads --limit 20 --draws 100 --json -"
    typed = counterfoil.succeeds(f"{plain} --measure group --seed 4")
    read = counterfoil.succeeds(f"evaluate --config {study} --seed 4 --json -")
    assert json.loads(read.out)["measures"] == json.loads(typed.out)["measures"]
    for command, line in (
        ("compare", "[compare]: unknown argument; given: drawz"),
        ("audit", "study.toml, audit.draws: out of range; given: 5; allowed: 100 to 1,000,000"),
        ("explain", "study.toml: no table of this command; allowed: [explain]"),
    ):
        counterfoil.refused(command, "--config", study, says=line)


def test_outputs_and_switches_in_a_file_count_as_those_that_are_typed(counterfoil, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "p.csv").write_text("image,caption,negative_caption\na.png,a cat,a dog\n")
    rows = {"0": {"filename": "a.jpg", "caption": "a cat", "negative_caption": "a cat and a dog"}}
    (tmp_path / "add_obj.json").write_text(json.dumps(rows))

    def table(text):
        (tmp_path / "study.toml").write_text(f'[evaluate]\nscorer = "blind:length"\ndraws = 100\n{text}\n')
        return "evaluate --no-cache --config study.toml"

    pairs = 'benchmarks = ["pairs"]\ndata = "p.csv"\n'
    counterfoil.succeeds(table(f'{pairs}json = "r.json"'))
    counterfoil.refused(table(f'{pairs}json = "r.json"'), says="r.json: the file exists")
    counterfoil.succeeds(table(f'{pairs}json = "r.json"\noverwrite = true'))
    for read in ("p.csv", "study.toml"):
        line = f"{read}: would replace what this command reads"
        counterfoil.refused(table(f'{pairs}json = "{read}"\noverwrite = true'), says=line)
    released = 'benchmarks = ["sugarcrepe"]\ndata = "add_obj.json"\n'
    counterfoil.refused(table(released), says="not the number of questions")
    counterfoil.succeeds(table(f"{released}counts = false"))
