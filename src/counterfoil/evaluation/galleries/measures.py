"""The names of a gallery's measures: which there are, and what is meant by one without a direction.

A measure `i2t_X` is of image queries, `t2i_X` of caption queries, `mean_X` the mean of both.
"""

import re
from collections.abc import Sequence

from counterfoil.data.benchmark import Benchmark
from counterfoil.errors import InputError, UnknownNameError
from counterfoil.inputs.amounts import check_amount
from counterfoil.metrics.class_rules import Plausible
from counterfoil.metrics.ranks import Positives

#: The directions, and their mean, in the order of reports.
SIDES = ("i2t", "t2i", "mean")
_PLAIN = ("recall_at_1", "recall_at_5", "recall_at_10", "r_precision", "map_at_r", "mrr", "ndcg")
_GRADED = ("graded_recall_at_1", "graded_r_precision")
_RULED = ("pmrp",)
_RECALL = re.compile(r"recall_at_([0-9]{1,18})")


def base_names(benchmark: Benchmark) -> tuple[str, ...]:
    """The measures without a direction, those that the card names first."""
    gallery = benchmark.gallery
    if any(isinstance(search.positives, Plausible) for search in (gallery.i2t, gallery.t2i)):
        return _RULED
    listed = [s.positives for s in (gallery.i2t, gallery.t2i) if isinstance(s.positives, Positives)]
    graded = any(bool((positives.gains != 1).any()) for positives in listed)
    every = _PLAIN + (_GRADED if graded else ())
    first = [name for name in benchmark.card.measures if name in every or recall_k(name)]
    return tuple(dict.fromkeys([*first, *every]))


def sides(benchmark: Benchmark) -> tuple[str, ...]:
    """The directions that have queries with right answers, and "mean" where both have.

    Raises `InputError` where neither has.
    """
    gallery = benchmark.gallery
    asked = [
        name
        for name, search in zip(SIDES, (gallery.i2t, gallery.t2i), strict=False)
        if bool(search.defined.any())
    ]
    if not asked:
        raise InputError("no query has a right answer", where=benchmark.name, given=f"{len(gallery)} queries")
    return SIDES if len(asked) == 2 else tuple(asked)


def measure_names(benchmark: Benchmark) -> tuple[str, ...]:
    """Every measure that is reported unless some are chosen, main first, each in all directions."""
    present = sides(benchmark)
    return tuple(f"{side}_{base}" for base in base_names(benchmark) for side in present)


def expand(names: Sequence[str], benchmark: Benchmark) -> tuple[str, ...]:
    """Full names for names with or without a direction: "recall_at_20" asks for all directions.

    Raises `UnknownNameError` for a measure that this benchmark does not have, `InputError` for a recall at no
    place.
    """
    present, bases = sides(benchmark), base_names(benchmark)
    found: list[str] = []
    for name in names:
        side, _, base = name.partition("_")
        chosen, rest = ((side,), base) if side in SIDES else (present, name)
        recall = _RECALL.fullmatch(rest)
        if recall and bases != _RULED:
            check_amount("k", int(recall[1]), what=f"places that {name} looks at")
            # "recall_at_05" is another way to write "recall_at_5".
            rest = f"recall_at_{int(recall[1])}"
        elif rest not in bases:
            known = bases if bases == _RULED else (*bases, "recall_at_K")
            if side in SIDES:
                known = tuple(f"{side}_{base}" for base in known)
            raise UnknownNameError("measure", name, known, where=benchmark.name)
        for direction in chosen:
            if direction not in present:
                raise InputError(
                    "no query of that direction has a right answer",
                    where=benchmark.name,
                    given=name,
                    allowed=present,
                )
            found.append(f"{direction}_{rest}")
    return tuple(dict.fromkeys(found))


def recall_k(base: str) -> int:
    """The K of a recall's name, 0 where it is the name of something else."""
    found = _RECALL.fullmatch(base)
    return int(found[1]) if found else 0
