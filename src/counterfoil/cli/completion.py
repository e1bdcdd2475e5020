"""The names that a shell completes."""

import tomllib
from collections.abc import Iterable
from importlib.resources import files

#: Those with a `catalog.toml` of benchmarks.
_PACKAGES = ("counterfoil.benchmarks", "counterfoil.world")


def complete(kind: str, incomplete: str) -> list[str]:
    """Names of a kind that begin as what was typed; a metric follows the commas of those before it.

    >>> complete("benchmarks", "winog"), complete("models", "op"), complete("models", "metric:rou")
    (['winoground'], ['open-clip:'], ['metric:rouge-l'])
    """
    if kind == "models" and incomplete.startswith("metric:"):
        return [f"metric:{name}" for name in complete("metrics", incomplete.removeprefix("metric:"))]
    before, comma, last = incomplete.rpartition(",") if kind == "metrics" else ("", "", incomplete)
    return [f"{before}{comma}{name}" for name in _names(kind) if name.startswith(last)]


# A shell waits for completions at every press of the tab key, so only lists of names are read, and no library
# that computes. A name with a slash in it is a file's, which the shell completes itself.
def _names(kind: str) -> Iterable[str]:
    if kind == "benchmarks":
        texts = (files(package).joinpath("catalog.toml").read_text("utf-8") for package in _PACKAGES)
        return [name for text in texts for name in tomllib.loads(text)]
    if kind == "models":
        from counterfoil.catalog import MODELS

        return [f"{prefix}:" for prefix in MODELS]
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
