"""`merge`: right pairs of several sources become one set, with what each source is worth."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from counterfoil.benchmarks.benchmark import Benchmark
from counterfoil.benchmarks.judgements import Direction, gain_of
from counterfoil.benchmarks.tables import DataTable, booleans, floats, labels, read_table
from counterfoil.build.calibration import share
from counterfoil.build.step import BuiltStep, Output, StepContext, setting, split_rows
from counterfoil.build.verification import Rule, check_rule
from counterfoil.errors import DataError, InputError
from counterfoil.evaluation.judged_pairs import right_pairs

#: Why a pair goes.
WRONG, OUTVOTED = "wrong by the verified pairs", "not right by the rule"
#: Columns that say how right a pair is; the first there is counts.
_GAINS = ("gain", "answer", "right", "rating", "agg_score")

Pair = tuple[str, str]


@dataclass(frozen=True)
class Merge(BuiltStep):
    """Pairs of an image and a caption that sources call right become one row each, with their sources.

    The rows themselves are a source where they have pairs with a `gain` (or `answer`, `right`, `rating`), or
    no such column: then all are right. `any` source that calls a pair right is enough; under `majority` more
    of the sources that know the pair, under `all` every source there is. Verified pairs decide on their own.
    """

    name: ClassVar[str] = "merge"
    opens: ClassVar[bool] = False

    tables: tuple[str, ...] = setting(
        (), "Tables of pairs: image, caption and gain, answer, right or rating.", file=True
    )
    benchmarks: tuple[str, ...] = setting((), "Galleries whose right pairs are a source, such as eccv, cxc.")
    data: str | None = setting(None, "The folder with the benchmarks' files.", file=True)
    verified: str | None = setting(None, "A table of pairs that people verified.", file=True)
    rating: float = setting(3.0, "Pairs rated at least so high are right.", within="a finite number")
    rule: Rule = setting("any", "Of sources: any, majority, all.")

    def __post_init__(self) -> None:
        super().__post_init__()
        check_rule(self.rule)

    @property
    def requires(self) -> Sequence[str]:
        return ("image", "caption")

    @property
    def produces(self) -> Sequence[str]:
        return ("gain", "sources")

    def run(self, rows: pa.Table, context: StepContext) -> Output:
        """A row per pair that is right, in the order of the sources; pairs that are not, with the reason.

        Facts hold of every source its pairs, how many of them are right by each other source (`also_in`) and,
        with verified pairs, its precision (of its pairs that were verified) and its recall (of all that were
        verified right). Raises `DataError` for tables that hold no pairs and benchmarks that are no gallery.
        """
        sources: dict[str, dict[Pair, float]] = {}
        if len(rows):
            columns = {name: rows[name].to_pylist() for name in rows.column_names}
            sources["rows"] = self._pairs(DataTable(columns, "the rows"))
        for path in self.tables:
            sources[_new(Path(path).stem, sources)] = self._pairs(read_table(path))
        data = None if self.data is None else Path(self.data)
        for name in self.benchmarks:
            sources[_new(name, sources)] = _of_gallery(context.benchmark(name, data, None))
        verified = {} if self.verified is None else self._pairs(read_table(self.verified))
        pairs = list(dict.fromkeys(pair for of in [*sources.values(), verified] for pair in of))
        if not pairs:
            raise InputError(
                "no pairs to merge", where=f"step {context.step}", hint="name tables or benchmarks"
            )
        gains = np.array([[of.get(pair, np.nan) for of in sources.values()] for pair in pairs])
        truth = np.array([verified.get(pair, np.nan) for pair in pairs])
        right, known = np.nan_to_num(gains) > 0, ~np.isnan(gains)
        yes = right.sum(axis=1)
        accepted = {"any": yes > 0, "majority": 2 * yes > known.sum(axis=1), "all": right.all(axis=1)}[
            self.rule
        ]
        accepted = np.where(np.isnan(truth), accepted, truth > 0)
        mean = np.nansum(gains, axis=1) / np.maximum(known.sum(axis=1), 1)
        names = list(sources)
        table = pa.table(
            {
                "id": pa.array([f"{image}/{caption}" for image, caption in pairs], pa.string()),
                "image": pa.array([image for image, _ in pairs], pa.string()),
                "caption": pa.array([caption for _, caption in pairs], pa.string()),
                "gain": pa.array(np.where(np.isnan(truth), mean, truth)),
                "sources": pa.array(
                    ["+".join(n for n, yes in zip(names, row, strict=True) if yes) for row in right],
                    pa.string(),
                ),
            }
        )
        why = np.where(np.isnan(truth), OUTVOTED, WRONG).tolist()
        facts = {
            "pairs": len(pairs),
            "right": int(accepted.sum()),
            "sources": _statement(names, right, truth),
        }
        return Output(*split_rows(table, accepted, why), facts)

    def _pairs(self, table: DataTable) -> dict[Pair, float]:
        """The gain of every pair of a table; of several rows of one pair the mean."""
        images, captions = labels(table, "image"), labels(table, "caption")
        column = next((name for name in _GAINS if name in table), None)
        gains = np.ones(len(table)) if column is None else self._gains(table, column)
        sums: dict[Pair, list[float]] = {}
        for row, pair in enumerate(zip(images, captions, strict=True)):
            if not all(pair):
                raise DataError("a pair without an image or a caption", where=table.where(row))
            if not np.isnan(gains[row]):
                sums.setdefault(pair, []).append(float(gains[row]))
        return {pair: float(np.mean(of)) for pair, of in sums.items()}

    def _gains(self, table: DataTable, column: str) -> NDArray[np.float64]:
        if column == "answer":
            gains = [gain_of(word) if word else np.nan for word in labels(table, column)]
            odd = next((row for row, gain in enumerate(gains) if gain is None), None)
            if odd is not None:
                raise DataError(
                    "an answer that cannot be read",
                    where=table.where(odd, column),
                    given=table[column][odd],
                    allowed="100% YES, Partially YES, Mostly NO, 100% NO, yes, no",
                )
            return np.array(gains, dtype=np.float64)
        if column == "right":
            return booleans(table, column).astype(np.float64)
        numbers = floats(table, column)
        return numbers if column == "gain" else (numbers >= self.rating).astype(np.float64)


def _new(name: str, known: dict[str, Any]) -> str:
    if name in known:
        raise InputError("two sources have one name", given=name, hint="rename a file")
    return name


def _of_gallery(benchmark: Benchmark) -> dict[Pair, float]:
    """The right pairs of a gallery, of both directions."""
    images = [image.id for image in benchmark.images]
    captions = [caption.id for caption in benchmark.captions]
    gain_of_pair: dict[Pair, float] = {}
    sides: tuple[tuple[Direction, list[str], list[str]], ...] = (
        ("i2t", images, captions),
        ("t2i", captions, images),
    )
    for way, asking, items in sides:
        for query, item in right_pairs(benchmark, way, asking, items).tolist():
            pair = asking[query], items[item]
            gain_of_pair[pair if way == "i2t" else pair[::-1]] = 1.0
    return gain_of_pair


def _statement(names: list[str], right: NDArray[np.bool_], truth: NDArray[np.float64]) -> dict[str, Any]:
    """Of each source its right pairs, how many are right in each other, and its precision and recall."""
    ones, seen = np.ones(len(right)), ~np.isnan(truth)
    facts: dict[str, Any] = {}
    for at, name in enumerate(names):
        own = right[:, at]
        facts[name] = {
            "right": int(own.sum()),
            "alone": int((own & (right.sum(axis=1) == 1)).sum()),
            "also_in": {
                other: share(right[:, to], own, ones).to_json() for to, other in enumerate(names) if to != at
            },
        }
        if seen.any():
            true = truth > 0
            facts[name]["precision"] = share(true, own & seen, ones).to_json()
            facts[name]["recall"] = share(own, true, ones).to_json()
    return facts
