"""Large work on paper: hours, money and carbon of what was never run, from constants that are named.

A machine is one card with processors beside it. Its stages run at the same time, each at its own rate, but
for comparing, which begins when all vectors are there:

    fetch    = images x bytes of an image / network
    decode   = images x seconds of an image / processors
    embed    = (images x FLOP of an image + captions x FLOP of a caption) / (peak x share)
    draw     = drawn x FLOP of a drawn image / (peak x share)
    store    = bytes kept / network
    compare  = directions x pairs x width / 512 / (pairs per second and processor x processors)
    seconds  = (the longest of the first five + compare) / machines

It holds no start-up, no failures and no waiting for a place in a queue. Nothing of it was measured but the
rate of comparing: the other rates are round numbers to be replaced by one's own.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import pyarrow as pa

from counterfoil.errors import InputError, UnknownNameError
from counterfoil.report.markup import Column, Table, text_table
from counterfoil.tasks.estimate import CARDS, Costs, duration
from counterfoil.tasks.results import Tabular


@dataclass(frozen=True)
class Workload:
    """Items of a work that is projected; `pairs` are compared in so many `directions`, by vectors of `width`.

    `flops` are of one image, one caption and one drawn image, `image_bytes` of one image file, `kept` bytes
    of one image and of one caption or drawn image in the cache.
    """

    about: str
    images: float = 0.0
    captions: float = 0.0
    drawn: float = 0.0
    pairs: float = 0.0
    directions: int = 2
    width: int = 512
    flops: tuple[float, float, float] = (0.0, 0.0, 0.0)
    image_bytes: float = 0.0
    kept: tuple[float, float, float] = (0.0, 0.0, 0.0)


#: CLIP's towers: FLOP of an image of 224 pixels and of a caption of 77 tokens, two to a product and a
#: sum, as they are commonly counted. `counterfoil estimate` prints those of a model that is at hand.
_B32, _L14 = (8.8e9, 6.0e9), (162e9, 13.3e9)
#: A step of SDXL's UNet at 1,024 pixels, twice for guidance, and as many steps as its pipeline takes.
_SDXL = 6.0e12 * 2 * 50

PROJECTS: Mapping[str, Workload] = {
    "laion-2b": Workload(
        "embeddings of LAION-2B's 2.32 billion pairs by a ViT-L/14",
        images=2.32e9,
        captions=2.32e9,
        width=768,
        flops=(*_L14, 0.0),
        image_bytes=50e3,
        kept=(768 * 4.0, 768 * 4.0, 0.0),
    ),
    "coco-pooling": Workload(
        "all 76 billion pairs of COCO's 123,287 images and 616,767 captions, by a ViT-B/32",
        images=123_287,
        captions=616_767,
        pairs=123_287 * 616_767,
        flops=(*_B32, 0.0),
        image_bytes=160e3,
        kept=(512 * 4.0, 512 * 4.0, 0.0),
    ),
    "trohn-img": Workload(
        "negative images for the 296,070 rows of TROHN-Img by SDXL, 50 steps with guidance",
        drawn=296_070,
        flops=(0.0, 0.0, _SDXL),
        kept=(0.0, 0.0, 1.5e6),
    ),
}


@dataclass(frozen=True, kw_only=True)
class MachineRates:
    """What one machine does: a `card` (`CARDS`) at a `share` of its peak, and `processors` beside it.

    `decode` are seconds of one processor for an image, `network` bytes per second, and `compared` pairs per
    second that one processor compares by vectors of 512 numbers, keeping the best (`benchmarks/pooling.py`:
    20,000 x 100,000 in 27.9 s on two).
    """

    card: str = "h200"
    share: float = 0.4
    processors: int = 16
    decode: float = 0.008
    network: float = 1.25e9
    compared: float = 20_000 * 100_000 / 27.9 / 2

    def __post_init__(self) -> None:
        if self.card not in CARDS:
            raise UnknownNameError("card", self.card, CARDS)
        for name in ("share", "processors", "decode", "network", "compared"):
            if getattr(self, name) <= 0:
                raise InputError(name, given=getattr(self, name), allowed="above 0")

    def seconds(self, work: Workload) -> dict[str, float]:
        """Seconds of each stage on one machine.

        >>> rates = MachineRates(card="h100", share=0.5)
        >>> round(rates.seconds(Workload("drawing", drawn=100, flops=(0, 0, 989e12)))["draw"], 6)
        200.0
        """
        rate = CARDS[self.card] * 1e12 * self.share
        image, caption, drawn = work.flops
        kept = zip(work.kept, (work.images, work.captions, work.drawn), strict=True)
        return {
            "fetch": work.images * work.image_bytes / self.network,
            "decode": work.images * self.decode / self.processors,
            "embed": (work.images * image + work.captions * caption) / rate,
            "draw": work.drawn * drawn / rate,
            "store": sum(size * count for size, count in kept) / self.network,
            "compare": work.directions * work.pairs * (work.width / 512) / (self.compared * self.processors),
        }


@dataclass(frozen=True, eq=False, repr=False)
class WorkProjection(Tabular):
    """A work of `PROJECTS` on the machines of `costs`; rows by "stage" have `stage` and `seconds`."""

    name: str
    rates: MachineRates = field(default_factory=MachineRates)
    costs: Costs = field(default_factory=Costs)

    rows_by = ("stage",)

    def __post_init__(self) -> None:
        if self.name not in PROJECTS:
            raise UnknownNameError("project", self.name, PROJECTS)

    @property
    def stages(self) -> dict[str, float]:
        """Seconds of each stage that there is, on all machines."""
        found = self.rates.seconds(PROJECTS[self.name])
        return {name: seconds / self.costs.machines for name, seconds in found.items() if seconds}

    @property
    def seconds(self) -> float:
        """The longest stage of those that run at the same time, and comparing."""
        stages = self.stages
        compare = stages.pop("compare", 0.0)
        return max(stages.values(), default=0.0) + compare

    @property
    def bound(self) -> str:
        """The stage that takes longest."""
        return max(self.stages.items(), key=lambda item: item[1])[0]

    @property
    def machine_hours(self) -> float:
        """Hours of all machines together."""
        return self.seconds / 3600 * self.costs.machines

    @property
    def money(self) -> float | None:
        """What that costs, where a price is given."""
        return None if self.costs.price is None else self.machine_hours * self.costs.price

    @property
    def carbon(self) -> float | None:
        """Kilograms of CO2, where watts and grams per kWh are given."""
        if self.costs.watts is None or self.costs.carbon is None:
            return None
        return self.machine_hours * self.costs.watts / 1000 * self.costs.carbon / 1000

    @property
    def tables(self) -> Sequence[Table]:
        """The stages with their times."""
        rows = [(name, duration(seconds)) for name, seconds in self.stages.items()]
        title = f"{self.name}: {PROJECTS[self.name].about}"
        return [text_table(title, "stage", [Column("time", style="text")], rows)]

    @property
    def notes(self) -> Sequence[str]:
        """The total, what bounds it, what it costs, and what was assumed."""
        machines, rates = self.costs.machines, self.rates
        found = [
            f"about {duration(self.seconds)} on {machines:,} machines, "
            f"{self.machine_hours:,.1f} machine hours; what takes longest: {self.bound}"
        ]
        costs = [] if self.money is None else [f"{self.money:,.2f} at {self.costs.price:g} an hour"]
        if self.carbon is not None:
            costs.append(
                f"{self.carbon:,.3g} kg CO2 at {self.costs.watts:g} W and {self.costs.carbon:g} g/kWh"
            )
        found += [", ".join(costs)] if costs else []
        return [
            *found,
            f"assumed of a machine: {rates.card} at {rates.share:.0%} of {CARDS[rates.card]:,.0f} TFLOP/s, "
            f"{rates.processors} processors, {1000 * rates.decode:g} ms to decode an image, "
            f"{rates.network / 1e9:g} GB/s, "
            f"{rates.compared / 1e6:,.1f} million pairs per second and processor",
        ]

    def _rows(self, by: str) -> pa.Table:
        return pa.Table.from_pylist([{"stage": name, "seconds": each} for name, each in self.stages.items()])

    def to_json(self) -> dict[str, Any]:
        """All of it as plain values."""
        return {
            "project": self.name,
            "work": asdict(PROJECTS[self.name]),
            "rates": asdict(self.rates),
            "machines": self.costs.machines,
            "seconds": self.seconds,
            "machine_hours": self.machine_hours,
            "bound": self.bound,
            "money": self.money,
            "carbon": self.carbon,
            "stages": self.stages,
        }
