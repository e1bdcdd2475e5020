"""Names that a shell completes: benchmarks, recipes, caption metrics, kinds of scorer, papers.

Each function takes what was typed so far. A shell waits for the answer at every press of the tab key, so only
lists of names are read, and no library that computes. Files and folders, where those may stand too, are the
shell's own business: a name with a slash in it completes to nothing here.
"""

import tomllib
from collections.abc import Iterable
from importlib.resources import files

#: Those with a `catalog.toml` of benchmarks.
_PACKAGES = ("counterfoil.data", "counterfoil.world")


def benchmarks(incomplete: str) -> list[str]:
    """Benchmarks of the catalog.

    >>> benchmarks("winog")
    ['winoground']
    """
    texts = (files(each).joinpath("catalog.toml").read_text("utf-8") for each in _PACKAGES)
    return _beginning([name for text in texts for name in tomllib.loads(text)], incomplete)


def scorers(incomplete: str) -> list[str]:
    """Kinds of scorer with their colon; behind "metric:" the caption metrics.

    >>> scorers("op"), scorers("metric:rou")
    (['open-clip:'], ['metric:rouge-l'])
    """
    from counterfoil.catalog import scorers as kinds

    kind, colon, _ = incomplete.partition(":")
    if colon and kind == "metric":
        return [f"metric:{name}" for name in metrics(incomplete.removeprefix("metric:"))]
    return _beginning((f"{prefix}:" for prefix in kinds()), incomplete)


def metrics(incomplete: str) -> list[str]:
    """Caption metrics, each after the commas of those that were typed before it.

    >>> metrics("cider,rou")
    ['cider,rouge-l']
    """
    from counterfoil.scorers.captions.registry import METRICS, SEVERAL

    before, comma, last = incomplete.rpartition(",")
    return [f"{before}{comma}{name}" for name in _beginning([*SEVERAL, *METRICS], last)]


def recipes(incomplete: str) -> list[str]:
    """Recipes of training.

    >>> recipes("trohn")
    ['trohn-text', 'trohn-img']
    """
    from counterfoil.train.recipes.reading import RECIPES

    return _beginning(RECIPES, incomplete)


def papers(incomplete: str) -> list[str]:
    """Papers of the ledger.

    >>> papers("e")
    ['eccv-caption']
    """
    folder = files("counterfoil.report").joinpath("papers")
    names = (file.name.removesuffix(".toml").replace("_", "-") for file in folder.iterdir())
    return _beginning(sorted(names), incomplete)


def _beginning(names: Iterable[str], incomplete: str) -> list[str]:
    return [name for name in names if name.startswith(incomplete)]
