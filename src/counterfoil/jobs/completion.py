"""The names that a shell completes: of benchmarks, scorers, metrics, recipes and papers."""

import tomllib
from collections.abc import Iterable
from importlib.resources import files

#: Those with a `catalog.toml` of benchmarks.
_PACKAGES = ("counterfoil.benchmarks", "counterfoil.world")


# A shell waits for completions at every press of the tab key, so only lists of names are read, and no library
# that computes. A name with a slash in it is a file's, which the shell completes itself.
def complete_benchmarks(incomplete: str) -> list[str]:
    """Benchmarks of the catalog.

    >>> complete_benchmarks("winog")
    ['winoground']
    """
    texts = (files(package).joinpath("catalog.toml").read_text("utf-8") for package in _PACKAGES)
    return _beginning([name for text in texts for name in tomllib.loads(text)], incomplete)


def complete_scorers(incomplete: str) -> list[str]:
    """Kinds of scorer with their colon; behind "metric:" the caption metrics.

    >>> complete_scorers("op"), complete_scorers("metric:rou")
    (['open-clip:'], ['metric:rouge-l'])
    """
    from counterfoil.catalog import scorers

    kind, colon, _ = incomplete.partition(":")
    if colon and kind == "metric":
        return [f"metric:{name}" for name in complete_metrics(incomplete.removeprefix("metric:"))]
    return _beginning((f"{prefix}:" for prefix in scorers()), incomplete)


def complete_metrics(incomplete: str) -> list[str]:
    """Caption metrics, each after the commas of those that were typed before it.

    >>> complete_metrics("cider,rou")
    ['cider,rouge-l']
    """
    from counterfoil.models.captions.registry import METRICS, SEVERAL

    before, comma, last = incomplete.rpartition(",")
    return [f"{before}{comma}{name}" for name in _beginning([*SEVERAL, *METRICS], last)]


def complete_recipes(incomplete: str) -> list[str]:
    """Recipes of training.

    >>> complete_recipes("trohn")
    ['trohn-text', 'trohn-img']
    """
    from counterfoil.train.recipes.reading import RECIPES

    return _beginning(RECIPES, incomplete)


def complete_papers(incomplete: str) -> list[str]:
    """Papers of the ledger.

    >>> complete_papers("e")
    ['eccv-caption']
    """
    folder = files("counterfoil.report").joinpath("papers")
    names = (file.name.removesuffix(".toml").replace("_", "-") for file in folder.iterdir())
    return _beginning(sorted(names), incomplete)


def _beginning(names: Iterable[str], incomplete: str) -> list[str]:
    return [name for name in names if name.startswith(incomplete)]
