"""The names that a shell completes, and the script by which it asks for them."""

import os
import tomllib
from collections.abc import Iterable
from importlib.resources import files
from pathlib import Path
from typing import Any

import click
from click.shell_completion import get_completion_class

from counterfoil.errors import InputError

#: By shell the file of its script, and the line that makes it read that file, with where the line stands.
_SHELLS = {
    "bash": ("~/.bash_completions/counterfoil.sh", "source ~/.bash_completions/counterfoil.sh", "~/.bashrc"),
    "zsh": ("~/.zfunc/_counterfoil", "fpath+=~/.zfunc; autoload -Uz compinit; compinit", "~/.zshrc"),
    "fish": ("~/.config/fish/completions/counterfoil.fish", "", ""),
}
#: Those with a `catalog.toml` of benchmarks.
_PACKAGES = ("counterfoil.benchmarks", "counterfoil.world")


def shell_script(command: click.Command, variable: str, *, install: bool) -> str:
    """The script of the user's shell; where `install`, a line about where it was written for that shell."""
    shell = Path(os.environ.get("SHELL", "")).name
    if shell not in _SHELLS:
        raise InputError("no completion for this shell", where="SHELL", given=shell, allowed=_SHELLS)
    kind: Any = get_completion_class(shell)
    script: str = kind(command, {}, "counterfoil", variable).source()
    if not install:
        return script
    file, line, start = _SHELLS[shell]
    path, start_path = Path(file).expanduser(), Path(start).expanduser()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(script, "utf-8")
    if start and (not start_path.exists() or line not in start_path.read_text("utf-8")):
        with start_path.open("a", encoding="utf-8") as stream:
            stream.write(f"\n{line}\n")
    return f"{shell} completes from its next start; the script is {path}"


def complete(kind: str, incomplete: str) -> list[str]:
    """Names of a kind that begin as what was typed; a metric follows the commas of those before it.

    >>> complete("benchmarks", "winog"), complete("scorers", "op"), complete("scorers", "metric:rou")
    (['winoground'], ['open-clip:'], ['metric:rouge-l'])
    """
    if kind == "scorers" and incomplete.startswith("metric:"):
        return [f"metric:{name}" for name in complete("metrics", incomplete.removeprefix("metric:"))]
    before, comma, last = incomplete.rpartition(",") if kind == "metrics" else ("", "", incomplete)
    return [f"{before}{comma}{name}" for name in _names(kind) if name.startswith(last)]


# A shell waits for completions at every press of the tab key, so only lists of names are read, and no library
# that computes. A name with a slash in it is a file's, which the shell completes itself.
def _names(kind: str) -> Iterable[str]:
    if kind == "benchmarks":
        texts = (files(package).joinpath("catalog.toml").read_text("utf-8") for package in _PACKAGES)
        return [name for text in texts for name in tomllib.loads(text)]
    if kind == "scorers":
        from counterfoil.catalog import SCORERS

        return [f"{prefix}:" for prefix in SCORERS]
    if kind == "metrics":
        from counterfoil.models.captions.registry import METRICS, SEVERAL

        return [*SEVERAL, *METRICS]
    if kind == "measures":
        from counterfoil.metrics.measures import every

        return [measure.name for measure in every()]
    if kind == "recipes":
        from counterfoil.train.recipes import RECIPES

        return RECIPES
    folder = files("counterfoil.report").joinpath("papers")
    return sorted(file.name.removesuffix(".toml").replace("_", "-") for file in folder.iterdir())
