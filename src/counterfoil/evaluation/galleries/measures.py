"""The measures of a gallery by name: those that it has, and the full names of one without a direction.

A measure `i2t_X` is of image queries, `t2i_X` of caption queries, `mean_X` the mean of both.
"""

from collections.abc import Sequence

from counterfoil.data.benchmark import Benchmark
from counterfoil.errors import InputError, UnknownNameError
from counterfoil.inputs.amounts import check_amount
from counterfoil.metrics.class_rules import Plausible
from counterfoil.metrics.measure import DIRECTIONS, MeasureAtK, split_direction
from counterfoil.metrics.measures import at_k, of_form
from counterfoil.metrics.ranks import Positives


def base_names(benchmark: Benchmark) -> tuple[str, ...]:
    """The measures without a direction, those that the card names first."""
    has = _has(benchmark)
    every = [measure.name for measure in of_form("gallery") if measure.needs in has]
    first = [name for name in benchmark.card.measures if name in every or _at_k(name, has) is not None]
    return tuple(dict.fromkeys([*first, *every]))


def _has(benchmark: Benchmark) -> tuple[str, ...]:
    """What measures may need (`Measure.needs`) of a gallery's right answers."""
    sides = [search.positives for search in (benchmark.gallery.i2t, benchmark.gallery.t2i)]
    if any(isinstance(positives, Plausible) for positives in sides):
        return ("classes",)
    graded = any(bool((each.gains != 1).any()) for each in sides if isinstance(each, Positives))
    return ("", "gains") if graded else ("",)


def _at_k(name: str, has: Sequence[str]) -> tuple[MeasureAtK, int] | None:
    """The measure at K places that a name without a direction is of, and the K, which may be 0."""
    for family in at_k("gallery"):
        k = family.k_of(name)
        if k is not None and family.general.needs in has:
            return family, k
    return None


def sides(benchmark: Benchmark) -> tuple[str, ...]:
    """The directions that have queries with right answers, and "mean" where both have.

    Raises `InputError` where neither has.
    """
    gallery = benchmark.gallery
    asked = [
        name
        for name, search in zip(DIRECTIONS, (gallery.i2t, gallery.t2i), strict=False)
        if bool(search.defined.any())
    ]
    if not asked:
        raise InputError("no query has a right answer", where=benchmark.name, given=f"{len(gallery)} queries")
    return tuple(DIRECTIONS) if len(asked) == 2 else tuple(asked)


def measure_names(benchmark: Benchmark) -> tuple[str, ...]:
    """Every measure that is reported unless some are chosen, main first, each in all directions."""
    present = sides(benchmark)
    return tuple(f"{side}_{base}" for base in base_names(benchmark) for side in present)


def expand(names: Sequence[str], benchmark: Benchmark) -> tuple[str, ...]:
    """Full names for names with or without a direction: "recall_at_20" asks for all directions.

    Raises `UnknownNameError` for a measure that this benchmark does not have, `InputError` for a recall at no
    place.
    """
    present, bases, has = sides(benchmark), base_names(benchmark), _has(benchmark)
    found: list[str] = []
    for name in names:
        side, rest = split_direction(name)
        chosen = (side,) if side else present
        if (asked := _at_k(rest, has)) is not None:
            family, k = asked
            check_amount("k", k, what=f"places that {name} looks at")
            # "recall_at_05" is another way to write "recall_at_5".
            rest = family.at(k).name
        elif rest not in bases:
            known = (*bases, *(each.name for each in at_k("gallery") if each.general.needs in has))
            if side:
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
