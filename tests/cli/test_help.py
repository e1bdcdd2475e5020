"""Help answers at once, with examples; lists tell the truth."""

import json
import subprocess
import sys

import pytest

from counterfoil.data.cards import cards


@pytest.mark.parametrize("command", ["evaluate", "compare", "reproduce", "demo"])
def test_every_command_shows_examples(counterfoil, command: str) -> None:
    said = counterfoil(command, "--help")
    assert said.code == 0
    assert f"counterfoil {command}" in said.out
    assert "Examples:" in said.out


def test_help_loads_nothing_heavy() -> None:
    # Import time is what --help costs; the modules say more reliably than a clock what it is made of.
    script = (
        "import sys, runpy\n"
        "sys.argv = ['counterfoil', '--help']\n"
        "try: runpy.run_module('counterfoil', run_name='__main__')\n"
        "except SystemExit as stop: assert not stop.code\n"
        "heavy = {'torch', 'scipy', 'pyarrow', 'matplotlib', 'transformers', 'datasets', 'PIL', 'pydantic'}\n"
        "loaded = sorted(heavy & set(sys.modules))\n"
        "assert not loaded, loaded\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_importing_the_package_loads_nothing_heavier_than_numpy() -> None:
    heavy = "{'torch', 'scipy', 'pyarrow', 'PIL', 'rich'}"
    script = f"import sys, counterfoil; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.strip() == "[]"


def test_what_commands_share_leaves_libraries_to_who_needs_them() -> None:
    heavy = "{'torch', 'av', 'pandas', 'matplotlib', 'pycocoevalcap', 'scipy.stats', 'scipy.sparse'}"
    script = (
        "import sys, counterfoil.catalog, counterfoil.engine, counterfoil.evaluation\n"
        f"print(sorted({heavy} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.strip() == "[]"


def test_version(counterfoil) -> None:
    from counterfoil import __version__

    assert counterfoil("--version").out == f"counterfoil {__version__}\n"


def test_lists(counterfoil) -> None:
    names = [card["name"] for card in json.loads(counterfoil("list", "benchmarks", "--json").out)]
    assert names == list(cards())
    assert "winoground" in counterfoil("list", "benchmarks").out
    assert "group_match" in counterfoil("list", "measures").out
    assert "open-clip:ARCH/PRETRAINED" in counterfoil("list", "scorers").out
    assert "pitfalls" in counterfoil("list", "benchmarks", "winoground").out
    said = counterfoil("list", "benchmarks", "winogrand")
    assert (said.code, "did you mean 'winoground'" in said.err) == (2, True)


def test_unknown_commands_and_options_exit_with_2(counterfoil) -> None:
    assert counterfoil("evalute").code == 2
    assert counterfoil("evaluate", "--nonsense").code == 2
