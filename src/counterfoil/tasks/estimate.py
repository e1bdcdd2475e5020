"""The time of a command in tables, with its space, energy and price, and the stage that bounds it.

    seconds = rest + sum over stages of (first + each x further batches + shard x shards) / machines

The first batch has loading and starting in it, a shard is what is written to the cache at once.
The rest is what one process does by itself: starting, reading, comparing, ranking, intervals.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import hypot
from typing import Any

import pyarrow as pa

from counterfoil.engine.estimating import StageEstimate
from counterfoil.errors import UnknownNameError
from counterfoil.report.markup import Column, Table, text_table
from counterfoil.tasks.results import Tabular

#: Dense bf16 (of T4 and V100 fp16) peak of cards in TFLOP/s, from NVIDIA's data sheets.
CARDS: Mapping[str, float] = {
    "t4": 65,
    "v100": 125,
    "l4": 121,
    "a10": 125,
    "rtx-3090": 71,
    "rtx-4090": 165,
    "l40s": 362,
    "a100": 312,
    "h100": 989,
    "h200": 989,
    "b200": 2250,
}

_UNITS = ((86400.0, "d"), (3600.0, "h"), (60.0, "min"), (1.0, "s"))


@dataclass(frozen=True, kw_only=True)
class Costs:
    """What an hour of a machine costs, and what it draws.

    `price` is per hour and machine in any currency, `watts` of one machine, `carbon` grams of CO2 per kWh.
    """

    machines: int = 1
    price: float | None = None
    watts: float | None = None
    carbon: float | None = None
    #: Cards (`CARDS`) for which the stages of torch models are projected, at this share of their peak.
    cards: Sequence[str] = ()
    share: float = 0.4

    def __post_init__(self) -> None:
        for card in self.cards:
            if card not in CARDS:
                raise UnknownNameError("card", card, CARDS)


@dataclass(frozen=True, eq=False, repr=False)
class WorkEstimate(Tabular):
    """What a command would take here; `rest` are the seconds outside of the stages.

    Rows by "stage" have `stage`, `items`, `seconds`, `error` (one standard error), `rate` (items per second),
    `gflops` (per item) and `bytes` (kept in the cache).
    """

    command: str
    stages: tuple[StageEstimate, ...]
    rest: float
    costs: Costs = field(default_factory=Costs)

    rows_by = ("stage",)

    @property
    def seconds(self) -> float:
        """All of it, on the machines of `costs`."""
        return self.rest + sum(each.seconds for each in self.stages) / self.costs.machines

    @property
    def error(self) -> float:
        """One standard error of `seconds`, that of sampling batches."""
        return hypot(*(each.error for each in self.stages)) / self.costs.machines if self.stages else 0.0

    @property
    def bound(self) -> str:
        """The stage that takes longest, or the rest."""
        longest = max(self.stages, key=lambda each: each.seconds, default=None)
        if longest is None or longest.seconds / self.costs.machines < self.rest:
            return "reading, comparing and intervals"
        return longest.stage

    @property
    def tables(self) -> Sequence[Table]:
        """The stages with their times, and the cards asked for."""
        columns = [
            Column(name, style="text") for name in ("items", "per second", "GFLOP each", "cache", "time")
        ]
        rows = [
            (
                each.stage,
                f"{each.items:,}",
                _rate(each.rate),
                f"{each.flops / 1e9:,.3g}" if each.flops else "",
                _size(each.kept),
                duration(each.seconds / self.costs.machines),
            )
            for each in self.stages
        ]
        rows.append(("everything else", "", "", "", "", duration(self.rest)))
        found = [text_table(f"estimate of counterfoil {self.command}", "stage", columns, rows)]
        return [*found, self._cards()] if self.costs.cards else found

    def _cards(self) -> Table:
        work = sum(each.flops * each.items for each in self.stages)
        rows = [
            (card, f"{CARDS[card]:,.0f}", duration(work / (CARDS[card] * 1e12 * self.costs.share)))
            for card in self.costs.cards
        ]
        columns = [Column(name, style="text") for name in ("peak TFLOP/s", "time of models")]
        title = f"one card at {self.costs.share:.0%} of its peak, if it need not wait for images"
        return text_table(title, "card", columns, rows)

    @property
    def notes(self) -> Sequence[str]:
        """The total, what bounds it, and what it costs."""
        low, high = max(0.0, self.seconds - 2 * self.error), self.seconds + 2 * self.error
        machines = self.costs.machines
        where = "here" if machines == 1 else f"on {machines:,} machines like this one"
        found = [
            f"about {duration(self.seconds)} {where} [{duration(low)} to {duration(high)}]; "
            f"what takes longest: {self.bound}"
        ]
        hours = self.seconds / 3600 * machines
        costs = []
        if self.costs.price is not None:
            costs.append(f"{hours * self.costs.price:,.2f} at {self.costs.price:g} an hour")
        if self.costs.watts is not None:
            energy = hours * self.costs.watts / 1000
            costs.append(f"{energy:,.3g} kWh at {self.costs.watts:g} W")
            if self.costs.carbon is not None:
                costs.append(
                    f"{energy * self.costs.carbon / 1000:,.3g} kg CO2 at {self.costs.carbon:g} g/kWh"
                )
        return [*found, *([", ".join(costs)] if costs else [])]

    def _rows(self, by: str) -> pa.Table:
        return pa.Table.from_pylist([_plain(each) for each in self.stages])

    def to_json(self) -> dict[str, Any]:
        """All of it as plain values, in seconds and bytes."""
        return {
            "command": self.command,
            "seconds": self.seconds,
            "error": self.error,
            "rest": self.rest,
            "machines": self.costs.machines,
            "bound": self.bound,
            "stages": [_plain(each) for each in self.stages],
        }


def _plain(stage: StageEstimate) -> dict[str, Any]:
    return {
        "stage": stage.stage,
        "items": stage.items,
        "seconds": stage.seconds,
        "error": stage.error,
        "rate": stage.rate,
        "gflops": stage.flops / 1e9,
        "bytes": stage.kept,
    }


def duration(seconds: float) -> str:
    """A time in its two largest units.

    >>> duration(0.04), duration(75), duration(11_000), duration(200_000)
    ('0.04 s', '1 min 15 s', '3 h 3 min', '2 d 8 h')
    """
    if seconds < 60:
        return f"{seconds:.2g} s" if seconds < 10 else f"{seconds:.0f} s"
    for (unit, name), (lower, below) in pairwise(_UNITS):
        if seconds >= unit:
            whole, rest = divmod(round(seconds / lower), round(unit / lower))
            return f"{whole:,} {name} {rest} {below}"
    raise AssertionError(seconds)


def _rate(rate: float) -> str:
    return "" if not rate else f"{rate:,.0f}" if rate >= 100 else f"{rate:.3g}"


def _size(count: float) -> str:
    """Bytes in a unit that leaves few digits.

    >>> _size(900), _size(3_200_000)
    ('900 B', '3.2 MB')
    """
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:,.3g} TB"
