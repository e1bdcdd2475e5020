"""Help answers at once, with examples; lists tell the truth."""

import json
from pathlib import Path

import pytest

from counterfoil.catalog import benchmarks
from processes import python

#: What a process does, and the libraries that it does not load. Import time is what help costs; the modules
#: say more reliably than a clock what it is made of.
LIGHT = {
    "help": (
        "sys.argv = ['counterfoil', '--help']\n"
        "try: runpy.run_module('counterfoil', run_name='__main__')\n"
        "except SystemExit as stop: assert not stop.code\n",
        "torch scipy pyarrow matplotlib transformers datasets PIL pydantic",
    ),
    "what commands share": (
        "import counterfoil.catalog, counterfoil.engine, counterfoil.evaluation\n",
        "torch av pandas matplotlib pycocoevalcap scipy.stats scipy.sparse",
    ),
    "completion": (
        "from counterfoil.cli import completion\n"
        "for kind in ('benchmarks', 'scorers', 'metrics', 'measures', 'recipes', 'papers'):\n"
        "    assert completion.complete(kind, ''), kind\n",
        "torch scipy matplotlib transformers",
    ),
}


@pytest.mark.parametrize("case", LIGHT)
def test_libraries_are_left_to_who_needs_them(case):
    script, heavy = LIGHT[case]
    script = f"import runpy, sys\n{script}print(sorted(set({heavy.split()}) & set(sys.modules)))"
    done = python("-c", script)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "[]"), done.stderr


def test_version(counterfoil):
    from counterfoil import __version__

    assert counterfoil("--version").out == f"counterfoil {__version__}\n"


def test_lists(counterfoil):
    names = [card["name"] for card in json.loads(counterfoil("list", "benchmarks", "--json", "-").out)]
    assert names == list(benchmarks())
    assert "winoground" in counterfoil("list", "benchmarks").out
    assert "group_match" in counterfoil("list", "measures").out
    assert "open-clip:ARCH/PRETRAINED" in counterfoil("list", "scorers").out
    assert "pitfalls" in counterfoil("list", "benchmarks", "winoground").out
    assert "clip-s" in counterfoil("list", "metrics").out
    assert "--guidance" in counterfoil("build", "imagine", "--help").out
    assert {"bivlc", "imagine"} <= set(counterfoil("build", "--help").out.split())
    recipes = json.loads(counterfoil("list", "recipes", "--json", "-").out)
    assert [recipe["name"] for recipe in recipes][:4] == ["coco", "negclip", "trohn-text", "trohn-img"]
    assert "generated_image" in counterfoil("list", "recipes").out
    assert "left open there" in counterfoil("list", "recipes", "pac").out
    assert json.loads(counterfoil("list", "recipes", "pac", "--json", "-").out)["lambda_t"] == 0.1


# One that prints by itself, one beside another, a list, a step and the whole program.
@pytest.mark.parametrize(
    "command", ["benchmarks fetch", "compare rankings", "list recipes", "build refine", ""]
)
def test_every_kind_of_command_has_help(counterfoil, command):
    said = counterfoil.succeeds(*command.split(), "--help").out
    assert said.startswith(f"Usage: counterfoil {command}".rstrip())
    assert f"  counterfoil {command}" in said or "Example: counterfoil" in said or not command


@pytest.mark.parametrize("width", [80, 200])
def test_help_has_sections_with_ranges_and_defaults(counterfoil, monkeypatch, width):
    monkeypatch.setenv("COLUMNS", str(width))
    said = counterfoil.succeeds("evaluate", "--help").out
    assert max(map(len, said.splitlines())) <= width
    for heading in ("Arguments", "Options", "Model", "Work", "Statistics", "Examples"):
        assert f"\n{heading}:\n" in said
    assert "--draws INTEGER Bootstrap samples. [100 to 1,000,000; default: 10000]" in " ".join(said.split())


def test_completion_is_installed_once(counterfoil, monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    for shell in ("bash", "zsh", "fish") * 2:
        monkeypatch.setenv("SHELL", f"/usr/bin/{shell}")
        file = counterfoil.succeeds("--install-completion").out.split()[-1]
        assert counterfoil.succeeds("--show-completion").out.strip() == Path(file).read_text().strip()
    assert [(tmp_path / name).read_text().count("\n") for name in (".bashrc", ".zshrc")] == [2, 2]


@pytest.mark.parametrize(
    ("typed", "completed"),
    [
        (("evaluate", "op"), {"open-clip:"}),
        (("evaluate", "metric:cid"), {"metric:cider", "metric:cider-d"}),
        (("evaluate", "given:x", "winog"), {"winoground"}),
        (("list", "benchmarks", "bivl"), {"bivlc"}),
        (("list", "recipes", "trohn"), {"trohn-text", "trohn-img"}),
        (("train", "pvs"), {"pvse"}),
        (("reproduce", "--paper", "pac"), {"pac-s"}),
        (("captions", "score", "--metrics", "cider,rou"), {"cider,rouge-l"}),
        (("evaluate", "--measure", "group_mat"), {"group_match"}),
        (("evaluate", "--ties", "st"), {"strict"}),
        (("li",), {"list"}),
    ],
)
def test_a_shell_completes_names(counterfoil, monkeypatch, typed, completed):
    monkeypatch.setenv("_COUNTERFOIL_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", " ".join(("counterfoil", *typed)))
    monkeypatch.setenv("COMP_CWORD", str(len(typed)))
    said = counterfoil()
    assert {line.partition(",")[2] for line in said.out.splitlines()} == completed, said.err
