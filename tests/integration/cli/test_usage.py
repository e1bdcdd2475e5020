"""Commands that are mistyped: one line that says what and where to look, and exit code 2."""

import json

import pytest


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("trian", "no such command 'trian'; did you mean 'train'?; see 'counterfoil --help'"),
        ("list recipe", "no such command 'recipe'; did you mean 'recipes'?; see 'counterfoil list --help'"),
        ("--speed", "no such option: --speed; see 'counterfoil --help'"),
        ("train", "missing argument 'recipe'; see 'counterfoil train --help'"),
        (
            "evaluate blind:random world-quads --draws many",
            "--draws: not a whole number; given: many; allowed: 100 to 1,000,000",
        ),
        ("world build quads --n x", "see 'counterfoil world build --help'"),
        ("world build quads more --out x", "unexpected extra argument"),
        ("work job --rank 0", "the command was removed; given: work; run the command itself with"),
        ("estimate evaluate blind:length bivlc", "given: estimate; run 'counterfoil evaluate' with"),
        ("merge --help", "the command was removed; given: merge; run the command once more without"),
        (
            "pool rounds x --out y --retrain=coco",
            "the option was removed; given: --retrain; train on positives.csv with",
        ),
        (
            "annotate simulate x --http",
            "given: --http; leave it out: simulated people call the functions",
        ),
        ("demo --full --dials", "given: --dials; run 'counterfoil train vse0' with --set mining="),
        # What follows an option of a list is of it.
        ("captions systems --predictions a.json b.json", "missing option '--references'"),
    ],
)
def test_what_is_mistyped_is_one_line(counterfoil, typed, said):
    found = counterfoil(typed)
    assert (found.code, found.out) == (2, "")
    (line,) = found.err.splitlines()
    assert line.startswith("counterfoil: ")
    assert said in line


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
