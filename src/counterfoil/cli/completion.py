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

_SHELLS = ("bash", "zsh", "fish")
#: Those with a `catalog.toml` of benchmarks.
_PACKAGES = ("counterfoil.benchmarks", "counterfoil.world")


def shell_script(command: click.Command, variable: str) -> str:
    """The script by which the user's shell completes, for the shell to read when it starts."""
    shell = Path(os.environ.get("SHELL", "")).name
    if shell not in _SHELLS:
        raise InputError("no completion for this shell", where="SHELL", given=shell, allowed=_SHELLS)
    kind: Any = get_completion_class(shell)
    script: str = kind(command, {}, "counterfoil", variable).source()
    return script


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
        from counterfoil.catalog import scorers

        return [f"{prefix}:" for prefix in scorers()]
    if kind == "metrics":
        from counterfoil.models.captions.registry import METRICS, SEVERAL

        return [*SEVERAL, *METRICS]
    if kind == "measures":
        from counterfoil.metrics.measures import every

        return [measure.name for measure in every()]
    if kind == "recipes":
        from counterfoil.train.recipes.reading import RECIPES

        return RECIPES
    folder = files("counterfoil.report").joinpath("papers")
    return sorted(file.name.removesuffix(".toml").replace("_", "-") for file in folder.iterdir())
