"""Pascal-50S and Abstract-50S: which of two captions people found nearer to a reference, 48 times each pair.

    pair_pascal.mat       new_input: (image file, caption A, caption B) of every pair; category: 1 to 4;
                          new_data: who wrote them: machines (1 to 5), people (6; 7 of another image)
    consensus_pascal.mat  triplets: 48 rows after each other for every pair: reference, B, C, and which of the
                          two is nearer to the reference (1: B, else C)

in a folder, or in its folder pyCIDErConsensus. What pair_pascal.mat says of votes (11 of them) is not read.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from counterfoil.benchmarks.benchmark import Benchmark, Card
from counterfoil.benchmarks.forms import Preference
from counterfoil.benchmarks.readers.coco_files import named_photographs
from counterfoil.benchmarks.readers.human_ratings import CaptionTable, clean_caption, finished, placed
from counterfoil.benchmarks.readers.rows import not_on_hub
from counterfoil.benchmarks.references import References
from counterfoil.errors import DataError

#: Both were written by people and are right; one is of another image; person against machine; two machines.
CATEGORIES = ("HC", "HI", "HM", "MM")

#: How many people judged each pair, each with a reference of their own.
JUDGED = 48

#: Metrics that read references get five of them, in five draws (PAC-S section 4.3).
SAMPLE, DRAWS, SEED = 5, 5, 0

_FOLDERS = ("JPEGImages", "VOC2010/JPEGImages", "VOCdevkit/VOC2010/JPEGImages")
_INSIDE = "pyCIDErConsensus"
_PEOPLE, _WRONG = 6, 7
#: Pairs of Abstract-50S in which both captions are right; they come first.
_RIGHT = 200


@dataclass
class _Pairs:
    """Pairs as they are read: image, both captions, 48 references, votes."""

    images: list[str] = field(default_factory=list)
    candidates: list[list[int]] = field(default_factory=list)
    references: list[list[int]] = field(default_factory=list)
    votes: list[list[float]] = field(default_factory=list)


def read_pascal(card: Card, data: Path | None, images: Path | None) -> Benchmark:
    """Pascal-50S: 4,000 pairs, 1,000 of each category; the label is the caption of more votes.

    Where both have 24, the label is drawn, with a fixed seed. Metrics that read references get five of the
    48, in five draws. Questions are called by the pair's number from 0. Raises `DataError` naming file and
    pair of what does not fit, and where the categories do not agree with who wrote the captions.
    """
    if data is None:
        raise not_on_hub(card)
    pairs, consensus = (_place(data, f"{name}_pascal.mat") for name in ("pair", "consensus"))
    loaded = _load(pairs)
    input_, category, systems = (
        _variable(loaded, name, pairs) for name in ("new_input", "category", "new_data")
    )
    names = _categories(category, systems, pairs)
    captions = CaptionTable()
    voted = _votes(
        captions, _pairs(input_, pairs), _variable(_load(consensus), "triplets", consensus), consensus
    )
    return _benchmark(card, voted, captions, {"category": names}, [pairs, consensus], data, images)


def read_abstract(card: Card, data: Path | None, images: Path | None) -> Benchmark:
    """Abstract-50S, from pair_abstract.mat and consensus_abstract.mat in the layout of Pascal-50S.

    The group of a pair is its place: both captions are right (HC) in the first 200, one is of another image
    (HI) in the others. Without pair_abstract.mat the captions come from the triplets, and images are called
    by the pair's number.
    """
    if data is None:
        raise not_on_hub(card)
    consensus = _place(data, "consensus_abstract.mat")
    triplets = _variable(_load(consensus), "triplets", consensus)
    try:
        pairs: Path | None = _place(data, "pair_abstract.mat")
    except DataError:
        pairs = None
    if pairs is not None:
        given = _pairs(_variable(_load(pairs), "new_input", pairs), pairs)
    else:
        given = []
        for number, row in enumerate(triplets.reshape(-1)[::JUDGED]):
            where = f"{consensus}, triplets, row {number * JUDGED + 1}"
            _, left, right = (_text(cell, where) for cell in _fields(row, 4, where)[:3])
            given.append((str(number), left, right))
    captions = CaptionTable()
    voted = _votes(captions, given, triplets, consensus)
    names = tuple(CATEGORIES[0] if number < _RIGHT else CATEGORIES[1] for number in range(len(given)))
    files = [*([pairs] if pairs else []), consensus]
    return _benchmark(card, voted, captions, {"category": names}, files, data, images)


def _benchmark(
    card: Card,
    pairs: _Pairs,
    captions: CaptionTable,
    groupings: dict[str, tuple[str, ...]],
    files: Sequence[Path],
    data: Path,
    images: Path | None,
) -> Benchmark:
    names, pictures = placed(pairs.images)
    votes = np.array(pairs.votes, dtype=np.float64)
    # At most half a vote to either side: it only decides where votes are equal.
    drawn = np.random.default_rng(SEED).uniform(-0.5, 0.5, len(votes))
    label = np.where(votes[:, 0] > votes[:, 1] + drawn, 0, 1).astype(np.int64)
    ties = int((votes[:, 0] == votes[:, 1]).sum())
    questions = Preference.between(
        tuple(str(number) for number in range(len(votes))),
        np.array(pairs.candidates, dtype=np.int64),
        pictures,
        votes,
        label,
        references=References.of(pairs.references),
        groupings=groupings,
        sample=SAMPLE,
        draws=DRAWS,
        seed=SEED,
    )
    source = ", ".join(str(file) for file in files)
    return finished(
        card,
        captions.items,
        named_photographs(names, _FOLDERS, data, images),
        questions,
        source=f"{source} ({ties:,} labels drawn with seed {SEED}, votes being equal)" if ties else source,
        path=data,
    )


def _votes(
    captions: CaptionTable, pairs: list[tuple[str, str, str]], triplets: NDArray[Any], path: Path
) -> _Pairs:
    rows = triplets.reshape(-1)
    if len(rows) != JUDGED * len(pairs):
        raise DataError(
            f"not {JUDGED} judgements of every pair",
            where=path,
            given=f"{len(rows):,} judgements of {len(pairs):,} pairs",
            allowed=f"{JUDGED * len(pairs):,}",
        )
    voted = _Pairs()
    for number, (image, *sides) in enumerate(pairs):
        votes = [0.0, 0.0]
        references = []
        for at in range(number * JUDGED, (number + 1) * JUDGED):
            where = f"{path}, triplets, row {at + 1}"
            fields = _fields(rows[at], 4, where)
            reference, left, right = (_text(cell, where) for cell in fields[:3])
            winner = _inner(fields[3])
            if not isinstance(winner, int | float | np.number):
                raise DataError("no winner", where=where, given=type(winner).__name__, allowed="a number")
            chosen = left if winner == 1 else right
            if chosen not in sides:
                raise DataError(
                    f"the judgement is not of pair {number}",
                    where=where,
                    given=chosen,
                    allowed=" | ".join(sides),
                )
            # By its text, as the released code counts: equal captions share their votes.
            for side, text in enumerate(sides):
                votes[side] += chosen == text
            references.append(captions.add(reference, f"{number}_r{at % JUDGED}"))
        voted.images.append(image)
        voted.candidates.append([captions.add(text, f"{number}_c{side}") for side, text in enumerate(sides)])
        voted.references.append(references)
        voted.votes.append(votes)
    return voted


def _pairs(rows: NDArray[Any], path: Path) -> list[tuple[str, str, str]]:
    pairs = []
    for number, row in enumerate(rows.reshape(-1)):
        where = f"{path}, new_input, row {number + 1}"
        image, left, right = (_text(cell, where) for cell in _fields(row, 3, where))
        pairs.append((Path(image).name, left, right))
    if not pairs:
        raise DataError("no pairs", where=path)
    return pairs


def _categories(category: NDArray[Any], systems: NDArray[Any], path: Path) -> tuple[str, ...]:
    """The category of every pair, if it agrees with who wrote the captions."""
    numbers = category.reshape(-1)
    if systems.shape != (len(numbers), 2):
        raise DataError(
            "who wrote the captions is not told of every pair",
            where=f"{path}, new_data",
            given=systems.shape,
            allowed=f"({len(numbers)}, 2)",
        )
    machines = (systems < _PEOPLE).sum(axis=1)
    sums = systems.sum(axis=1)
    known = [sums == 2 * _PEOPLE, sums == _PEOPLE + _WRONG, machines == 1, machines == 2]
    for at, number in enumerate(numbers.tolist()):
        if number not in (1, 2, 3, 4) or not known[int(number) - 1][at]:
            raise DataError(
                "a category does not agree with who wrote the captions",
                where=f"{path}, pair {at}",
                given=f"category {number}, written by {systems[at].tolist()}",
                allowed="1: 6 and 6, 2: 6 and 7, 3: one machine (1 to 5), 4: two",
            )
    return tuple(CATEGORIES[int(number) - 1] for number in numbers.tolist())


def _place(data: Path, name: str) -> Path:
    folder = data if data.is_dir() else data.parent
    path_there = next((path for path in (folder / name, folder / _INSIDE / name) if path.is_file()), None)
    if path_there is None:
        raise DataError("file missing", where=folder / name, hint=f"it may lie in {_INSIDE} too")
    return path_there


def _load(path: Path) -> dict[str, Any]:
    from scipy.io import loadmat

    try:
        return dict(loadmat(path))
    # On broken bytes scipy's reader can raise any exception.
    except Exception as error:
        raise DataError(
            f"not a MATLAB file that scipy reads: {type(error).__name__}", where=path, hint="is it cut off?"
        ) from None


def _variable(loaded: dict[str, Any], name: str, path: Path) -> NDArray[Any]:
    variable = loaded.get(name)
    if not isinstance(variable, np.ndarray):
        there = [key for key in loaded if not key.startswith("__")]
        raise DataError(f"no variable '{name}'", where=path, given=", ".join(there))
    return variable


def _fields(row: Any, number: int, where: str) -> list[Any]:
    """The fields of a structure, or the cells of a row."""
    fields = list(row.tolist()) if isinstance(row, np.void) else list(np.ravel(row))
    if len(fields) != number:
        raise DataError(
            "not a row as released", where=where, given=f"{len(fields)} fields", allowed=str(number)
        )
    return fields


def _inner(value: Any) -> Any:
    """The value inside nested cells, as MATLAB's files have them."""
    while isinstance(value, np.ndarray) and value.size == 1:
        value = value.reshape(-1)[0]
    return value


def _text(value: Any, where: str) -> str:
    inner = _inner(value)
    return clean_caption("" if isinstance(inner, np.ndarray) and not inner.size else inner, where)
