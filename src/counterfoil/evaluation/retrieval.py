"""A gallery's measures: from the places of right answers to a value per query, and what chance gives.

Queries of both directions are rows of one table, images first, as in the benchmark's questions. A measure
`i2t_X` has values in the rows of images, `t2i_X` in those of captions, `mean_X` in both; NaN elsewhere, and
where a query has no right answer.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int
from numpy import ndarray

from counterfoil.data.benchmark import Benchmark
from counterfoil.data.questions import Gallery, Search
from counterfoil.data.scores import Answers, Placed, Rankings
from counterfoil.errors import InputError, ScoreError, UnknownNameError
from counterfoil.metrics import ranking
from counterfoil.metrics.plausible import Plausible
from counterfoil.metrics.ranks import Positives, Ranks, from_places
from counterfoil.metrics.ties import Ties
from counterfoil.stats.estimates import macro_weights

#: The directions, and their mean, in the order of reports.
SIDES = ("i2t", "t2i", "mean")

_PLAIN = ("recall_at_1", "recall_at_5", "recall_at_10", "r_precision", "map_at_r", "mrr", "ndcg")
_GRADED = ("graded_recall_at_1", "graded_r_precision")
_RULED = ("pmrp",)
_RECALL = re.compile(r"recall_at_(\d+)")
# The rows of `Placed.shares`.
_POLICIES = (Ties.STRICT, Ties.HALF, Ties.OPTIMISTIC)
_MEASURES: Mapping[str, Callable[..., Float[ndarray, "queries"]]] = {
    "r_precision": ranking.r_precision,
    "map_at_r": ranking.map_at_r,
    "mrr": ranking.reciprocal_rank,
    "ndcg": ranking.ndcg,
    "graded_recall_at_1": ranking.graded_recall_at_1,
    "graded_r_precision": ranking.graded_r_precision,
}


@dataclass(frozen=True, eq=False)
class Measured:
    """Each measure's value per query, and why the others that exist have none: the rankings were cut."""

    values: Mapping[str, Float[ndarray, "n"]]
    unsupported: Mapping[str, str]


def ranks(benchmark: Benchmark, rankings: Rankings) -> tuple[Ranks, Ranks]:
    """Where the right answers stand, images' and captions'.

    Raises `ScoreError` where the rankings are not those of the benchmark, and `InputError` where right is
    what a rule says: such answers are not kept one by one.
    """
    check(benchmark, rankings, where=benchmark.name)
    gallery = benchmark.gallery
    found = [
        _side_ranks(search, placed, sizes)
        for search, placed, sizes in zip(
            (gallery.i2t, gallery.t2i), (rankings.i2t, rankings.t2i), gallery_sizes(gallery), strict=True
        )
    ]
    return found[0], found[1]


def gallery_sizes(gallery: Gallery) -> tuple[Int[ndarray, "images"], Int[ndarray, "captions"]]:
    """How many items each query of either direction looks through: those of its own part."""
    if gallery.image_parts is None or gallery.caption_parts is None:
        return (
            np.full(len(gallery.i2t), gallery.n_captions, dtype=np.int64),
            np.full(len(gallery.t2i), gallery.n_images, dtype=np.int64),
        )
    n_parts = 1 + int(max(gallery.image_parts.max(initial=0), gallery.caption_parts.max(initial=0)))
    images = np.bincount(gallery.image_parts, minlength=n_parts)
    captions = np.bincount(gallery.caption_parts, minlength=n_parts)
    return (
        captions[gallery.image_parts[gallery.i2t.queries]],
        images[gallery.caption_parts[gallery.t2i.queries]],
    )


def base_names(benchmark: Benchmark) -> tuple[str, ...]:
    """The measures without a direction, those that the card names first."""
    gallery = benchmark.gallery
    if any(isinstance(search.positives, Plausible) for search in (gallery.i2t, gallery.t2i)):
        return _RULED
    graded = any(bool((_listed(search).gains != 1).any()) for search in (gallery.i2t, gallery.t2i))
    every = _PLAIN + (_GRADED if graded else ())
    first = [name for name in benchmark.card.measures if name in every or _recall(name)]
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
            if int(recall[1]) < 1:
                raise InputError("recall needs places to look at", given=name, allowed="recall_at_1 and up")
            # "recall_at_05" is another way to write "recall_at_5".
            rest = f"recall_at_{int(recall[1])}"
        elif rest not in bases:
            known = [f"{side}_{base}" for base in bases] if side in SIDES else bases
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


def per_item(
    benchmark: Benchmark,
    rankings: Rankings,
    *,
    ties: Ties = Ties.STRICT,
    measures: Sequence[str] | None = None,
) -> dict[str, Float[ndarray, "n"]]:
    """Each measure's value per query, in [0, 1]; NaN where it has none. Errors as `measured`."""
    return dict(measured(benchmark, rankings, ties=ties, measures=measures).values)


def measured(
    benchmark: Benchmark,
    rankings: Rankings,
    *,
    ties: Ties = Ties.STRICT,
    measures: Sequence[str] | None = None,
) -> Measured:
    """Each measure's value per query; with `measures` None all that the rankings can support.

    Raises `InputError` where the rankings were cut before what a measure needs that was asked for by name, or
    before what every measure needs.
    """
    check(benchmark, rankings, where=benchmark.name)
    gallery = benchmark.gallery
    names = measure_names(benchmark) if measures is None else expand(measures, benchmark)
    values: dict[str, Float[ndarray, "n"]] = {}
    unsupported: dict[str, str] = {}
    found: dict[str, Float[ndarray, "n"] | str] = {}
    of_side = {
        side: _values_of(search, placed, sizes, ties)
        for side, search, placed, sizes in zip(
            SIDES,
            (gallery.i2t, gallery.t2i),
            (rankings.i2t, rankings.t2i),
            gallery_sizes(gallery),
            strict=False,
        )
    }
    split = len(gallery.i2t)
    rows = {"i2t": slice(0, split), "t2i": slice(split, None)}
    for name in names:
        side, _, base = name.partition("_")
        table = np.full(len(gallery), np.nan)
        reason = ""
        for one in ("i2t", "t2i") if side == "mean" else (side,):
            key = f"{one}_{base}"
            if key not in found:
                try:
                    found[key] = of_side[one](base)
                except InputError as error:
                    found[key] = str(error)
            value = found[key]
            if isinstance(value, str):
                reason = reason or f"{_ASKED[one]}, {value}"
            else:
                table[rows[one]] = value
        if reason:
            unsupported[name] = reason
        else:
            values[name] = table
    if unsupported and (measures is not None or not values):
        name, reason = next(iter(unsupported.items()))
        raise InputError(f"{name} cannot be measured: {reason}", where=benchmark.name)
    return Measured(values, unsupported)


def check(benchmark: Benchmark, answers: Answers, *, where: str) -> None:
    """Raise `ScoreError` unless `answers` are rankings of every query of the gallery."""
    if not isinstance(answers, Rankings):
        raise ScoreError(
            "a gallery is answered by rankings",
            where=where,
            given=type(answers).__name__.lower(),
            allowed="rankings, a similarity of all pairs, or embeddings",
        )
    gallery = benchmark.gallery
    for name, search, placed in (("i2t", gallery.i2t, answers.i2t), ("t2i", gallery.t2i, answers.t2i)):
        lengths = {"depth": (len(placed.depth), len(search)), "top": (len(placed.top), len(search))}
        if isinstance(search.positives, Plausible):
            thresholds = (len(search.positives.thresholds), len(_POLICIES), len(search))
            if placed.shares is None or placed.shares.shape != thresholds:
                raise ScoreError(
                    f"rankings of {name} lack the shares of right answers",
                    where=where,
                    given=None if placed.shares is None else placed.shares.shape,
                    allowed=str(thresholds),
                )
        else:
            pairs = len(search.positives.items)
            lengths |= {"above": (len(placed.above), pairs), "level": (len(placed.level), pairs)}
        for part, (given, allowed) in lengths.items():
            if given != allowed:
                raise ScoreError(
                    f"rankings of {name} do not fit the gallery: wrong number of rows in '{part}'",
                    where=where,
                    given=given,
                    allowed=str(allowed),
                )


def mean(benchmark: Benchmark, values: Float[ndarray, "n"]) -> float:
    """A measure from its values per query: the mean over directions of the mean over parts of their means.

    NaN where no query has a value. Directions and parts without one do not count.
    """
    gallery = benchmark.gallery
    known = ~np.isnan(values)
    of_sides = []
    for direction in (0, 1):
        chosen = known & (gallery.directions == direction)
        if chosen.any():
            parts, inside = gallery.query_parts[chosen], values[chosen]
            of_sides.append(float(np.mean([inside[parts == part].mean() for part in np.unique(parts)])))
    return float(np.mean(of_sides)) if of_sides else float("nan")


def weights_of(benchmark: Benchmark, rows: Bool[ndarray, "n"]) -> Float[ndarray, "n"]:
    """What each query counts in a measure that has values in `rows`; 0 in the others, 1 altogether.

    Both directions count the same, and in a direction all parts that have rows.
    """
    gallery = benchmark.gallery
    weights = np.zeros(len(gallery))
    for direction in (0, 1):
        chosen = rows & (gallery.directions == direction)
        if chosen.any():
            weights += macro_weights(np.where(chosen, gallery.query_parts, -1))
    total = weights.sum()
    return weights / round(total) if total else weights


def columns(
    benchmark: Benchmark, values: Mapping[str, Float[ndarray, "n"]], names: Sequence[str]
) -> tuple[Float[ndarray, "n m"], Float[ndarray, "m k"]]:
    """The columns that measures are made of, one per direction and measure, and which each averages.

    A direction's measure is its own column, and `mean_X` half of one and half of the other, so that no column
    is worked out twice. Returns the columns and the weights of each, a column of weights per name.
    """
    directions = benchmark.gallery.directions
    found: dict[str, Float[ndarray, "n"]] = {}
    made_of: list[list[int]] = []
    for name in names:
        side, _, base = name.partition("_")
        made_of.append([])
        for direction, one in enumerate(("i2t", "t2i")):
            if side in (one, "mean"):
                key = f"{one}_{base}"
                found.setdefault(key, np.where(directions == direction, values[name], np.nan))
                made_of[-1].append(list(found).index(key))
    averages = np.zeros((len(found), len(names)))
    for k, parts in enumerate(made_of):
        averages[parts, k] = 1 / len(parts)
    return np.stack(list(found.values()), axis=1), averages


def tied(benchmark: Benchmark, rankings: Rankings) -> Bool[ndarray, "n"]:
    """In which queries a right and a wrong item tie; by rule, where such a tie decides something."""
    gallery = benchmark.gallery
    found = []
    for search, placed, sizes in zip(
        (gallery.i2t, gallery.t2i), (rankings.i2t, rankings.t2i), gallery_sizes(gallery), strict=True
    ):
        if placed.shares is not None and isinstance(search.positives, Plausible):
            strict, optimistic = placed.shares[:, 0], placed.shares[:, 2]
            found.append((strict < optimistic).any(axis=0))
        else:
            of = _side_ranks(search, placed, sizes)
            found.append(np.bincount(of.query, weights=of.tied > 0, minlength=len(search)) > 0)
    return np.concatenate(found)


def chance(benchmark: Benchmark, names: Sequence[str] | None = None) -> dict[str, float]:
    """The value of each measure under a random order of the gallery, in closed form.

    It is what a scorer that returns a constant gets under `half`, where the rankings are whole.
    """
    return {name: mean(benchmark, values) for name, values in chance_per_item(benchmark, names).items()}


def chance_per_item(
    benchmark: Benchmark, names: Sequence[str] | None = None
) -> dict[str, Float[ndarray, "n"]]:
    """What chance gives each query, as `per_item`."""
    return per_item(benchmark, constant(benchmark), ties=Ties.HALF, measures=names)


def constant(benchmark: Benchmark) -> Rankings:
    """The answers of a scorer to which all pairs are alike."""
    gallery = benchmark.gallery
    of_image, of_caption = gallery_sizes(gallery)
    sides = []
    for search, sizes, parts, of_items in (
        (gallery.i2t, of_image, gallery.image_parts, gallery.caption_parts),
        (gallery.t2i, of_caption, gallery.caption_parts, gallery.image_parts),
    ):
        none = np.empty((len(search), 0))
        above, level, shares = np.empty(0, np.int64), np.empty(0, np.int64), None
        if isinstance(search.positives, Plausible):
            asked = None if parts is None else parts[search.queries]
            shares = _constant_shares(search.positives, sizes, asked, of_items)
        else:
            found = search.positives
            present = found.items >= 0
            above = np.where(present, 0, -1)
            level = np.where(present, sizes[found.queries], 0)
        sides.append(
            Placed(above, level, sizes, none.astype(np.int32), none.astype(np.float32), shares=shares)
        )
    return Rankings(sides[0], sides[1])


def facts(benchmark: Benchmark, rankings: Rankings, unsupported: Mapping[str, str]) -> dict[str, Any]:
    """What a result says of the gallery: its size, what was left out, and what was cut."""
    gallery = benchmark.gallery
    cut: dict[str, int | None] = {}
    said: dict[str, Any] = {
        "images": gallery.n_images,
        "captions": gallery.n_captions,
        "parts": 1 if gallery.image_parts is None else len(np.unique(gallery.image_parts)),
    }
    for name, search, placed, sizes in zip(
        SIDES, (gallery.i2t, gallery.t2i), (rankings.i2t, rankings.t2i), gallery_sizes(gallery), strict=False
    ):
        listed = search.positives if isinstance(search.positives, Positives) else None
        said[name] = {
            "queries": len(search),
            "undefined": int((~search.defined).sum()),
            "positives": None if listed is None else len(listed.items),
            "outside_gallery": 0 if listed is None else int((listed.items < 0).sum()),
        }
        cut[name] = int(placed.depth.min()) if bool((placed.depth < sizes).any()) else None
    said["cut"] = cut if any(depth is not None for depth in cut.values()) else None
    said["unsupported"] = dict(unsupported)
    return said


_ASKED = {"i2t": "image to text", "t2i": "text to image"}


def _values_of(
    search: Search, placed: Placed, sizes: Int[ndarray, "queries"], ties: Ties
) -> Callable[[str], Float[ndarray, "queries"]]:
    """The function that gives a measure's values in one direction."""
    if isinstance(search.positives, Plausible):
        assert placed.shares is not None  # `check` has seen to it
        shares = placed.shares[:, _POLICIES.index(ties)].mean(axis=0)
        return lambda base: shares
    of = _side_ranks(search, placed, sizes)

    def value(base: str) -> Float[ndarray, "queries"]:
        return _measure(base)(of, ties=ties)

    return value


def _measure(base: str) -> Callable[..., Float[ndarray, "queries"]]:
    k = _recall(base)
    return partial(ranking.recall_at_k, k=k) if k else _MEASURES[base]


def _recall(base: str) -> int:
    """The K of a recall's name, 0 where it is the name of something else."""
    found = _RECALL.fullmatch(base)
    return int(found[1]) if found else 0


def _side_ranks(search: Search, placed: Placed, sizes: Int[ndarray, "queries"]) -> Ranks:
    # Parts may differ in size. A rank does not depend on how large the gallery is, only whether a ranking is
    # whole does: those that are get the depth of the largest part.
    largest = int(sizes.max(initial=0))
    depth = np.where(placed.depth >= sizes, largest, placed.depth)
    return from_places(_listed(search), placed.above, placed.level, depth=depth, gallery=largest)


def _listed(search: Search) -> Positives:
    if isinstance(search.positives, Plausible):
        raise InputError("right answers by rule have no ranks", hint="their measure is 'pmrp'")
    return search.positives


def _constant_shares(
    rule: Plausible,
    sizes: Int[ndarray, "queries"],
    parts: Int[ndarray, "queries"] | None,
    item_parts: Int[ndarray, "items"] | None,
) -> Float[ndarray, "thresholds 3 queries"]:
    """The R-Precision of a constant: strict, half and optimistic, from how many items match a query.

    Of n items of which p match, all level, the first r = min(p, cap) hold p r / n matches on average, at
    least r - (n - p), at most r. Items with the same code are counted once.
    """
    shares = np.full((len(rule.thresholds), len(_POLICIES), len(sizes)), np.nan)
    for part in [None] if parts is None else np.unique(parts):
        asked = np.arange(len(sizes)) if parts is None else np.flatnonzero(parts == part)
        items = slice(None) if item_parts is None else item_parts == part
        codes, of = np.unique(rule.query_codes[asked], axis=0, return_inverse=True)
        known, many = np.unique(rule.item_codes[items], axis=0, return_counts=True)
        few = Plausible(codes, known, rule.thresholds, rule.cap)
        for lo in range(0, len(codes), 1024):
            distances = few.distances(slice(lo, lo + 1024))
            inside = (of.reshape(-1) >= lo) & (of.reshape(-1) < lo + 1024)
            rows = asked[inside]
            for t, threshold in enumerate(rule.thresholds):
                p = ((distances <= threshold) @ many)[of.reshape(-1)[inside] - lo]
                r = p if rule.cap is None else np.minimum(p, rule.cap)
                n = sizes[rows]
                values = np.stack([np.maximum(r - (n - p), 0), r * p / n, r])
                shares[t][:, rows] = np.divide(values, r, out=np.full(values.shape, np.nan), where=r > 0)
    return shares
