"""Judges of proposed pairs: the drawn world, a benchmark, a table of people's answers, or a scorer."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from counterfoil import catalog
from counterfoil.build.pooling import Judge, table_judge
from counterfoil.data.benchmark import Benchmark
from counterfoil.data.judgements import Direction, gain_of
from counterfoil.engine.run import score_items
from counterfoil.engine.session import Session
from counterfoil.engine.topk import ModelLists
from counterfoil.errors import DataError, InputError
from counterfoil.evaluation.judged_pairs import right_pairs
from counterfoil.evaluation.pooling import Tasks
from counterfoil.scorers.base import Options
from counterfoil.tasks.evaluation_inputs import whole_benchmark
from counterfoil.tasks.feedback import SILENT
from counterfoil.tasks.session_options import SessionOptions
from counterfoil.world.people import Annotator, judge

#: The judge that knows the truth of the drawn world.
WORLD = "world"

_Item = TypeVar("_Item")


@dataclass(frozen=True, kw_only=True)
class RoundOptions(SessionOptions):
    """Options of pooling in rounds; the defaults are those of the command line.

    `people` simulated people of that accuracy and bias answer in place of the world's truth, the majority
    counts. `threshold` is that of a scorer that judges; `draws` are those behind the intervals of bias, which
    is not measured at 0. `data` and `images` say where the gallery lies whose pictures are looked at, where
    the runs do not; `cache`, `batch_size` and `workers` are for models that look at them.
    """

    rounds: int = 3
    k: int = 5
    direction: Direction | None = None
    queries: str | Path | Sequence[str] | None = None
    ids: str | Path | None = None
    tasks: Tasks = field(default_factory=Tasks)
    people: int = 0
    accuracy: float = 0.95
    bias: float = 0.0
    threshold: float | None = None
    draws: int = 500
    seed: int = 0
    device: str = "auto"
    data: Path | None = None
    images: Path | None = None

    def __post_init__(self) -> None:
        for name, least in (("rounds", 1), ("k", 1), ("people", 0), ("draws", 0)):
            if getattr(self, name) < least:
                raise InputError(name, given=getattr(self, name), allowed=f"{least} or more")
        if self.threshold is not None and not np.isfinite(self.threshold):
            raise InputError("threshold", given=self.threshold, allowed="a finite number")
        # Raises where the chances would not be chances.
        Annotator("simulated", self.accuracy, self.bias)


def judge_of(
    judge: str | Path | Benchmark | Judge,
    models: Sequence[ModelLists],
    chosen: Mapping[Direction, Sequence[str]],
    options: RoundOptions,
    gallery: Benchmark | None,
    session: Session | None,
) -> tuple[Judge, int | None]:
    """A function that judges pairs, and how many right pairs there are among those that could be asked."""
    if callable(judge):
        return judge, None
    if isinstance(judge, Benchmark):
        return _of_benchmark(judge, models, chosen, options)
    name = str(judge)
    if name == WORLD:
        known = next((lists.benchmark for lists in models if lists.benchmark is not None), None)
        if known is None or known.card.name != "world-gallery":
            raise InputError(
                "the world judges runs over its own gallery only",
                given="no run" if known is None else known.name,
                allowed="runs over world-gallery",
                hint="or name a table of judgements, a benchmark or a scorer with --judge",
            )
        return _of_benchmark(known, models, chosen, options)
    if Path(name).is_file():
        return table_judge(Path(name)), None
    if Path(name).is_dir() or ":" not in name:
        return _of_benchmark(catalog.benchmark(name), models, chosen, options)
    return _of_scorer(name, models, options, gallery, session), None


def _of_benchmark(
    benchmark: Benchmark,
    models: Sequence[ModelLists],
    chosen: Mapping[Direction, Sequence[str]],
    options: RoundOptions,
) -> tuple[Judge, int]:
    """The right answers of a gallery as the judge, or simulated people who see them."""
    image_ids, caption_ids = models[0].image_ids, models[0].caption_ids
    codes = []
    for way, names in chosen.items():
        items = models[0].ids(way)[1]
        pairs = right_pairs(benchmark, way, names, items)
        if way == "i2t":
            codes += [(names[q], items[i]) for q, i in pairs.tolist()]
        else:
            codes += [(items[i], names[q]) for q, i in pairs.tolist()]
    right = dict.fromkeys(codes, True)
    if not right:
        raise DataError(
            "the benchmark knows no right pair of these items",
            where=benchmark.name,
            allowed=f"images such as {image_ids[0]}, captions such as {caption_ids[0]}",
        )
    crowd = [Annotator(f"person {at + 1}", options.accuracy, options.bias) for at in range(options.people)]
    rng = np.random.default_rng(options.seed)

    def truth(table: pa.Table) -> NDArray[np.float64]:
        pairs = list(zip(table["image"].to_pylist(), table["caption"].to_pylist(), strict=True))
        if not crowd:
            return np.array([float(pair in right) for pair in pairs])
        answers = judge(table.select(["image", "caption"]), right, crowd, rng)
        votes = np.array([gain_of(answer) for answer in answers["answer"].to_pylist()], dtype=np.float64)
        return (votes.reshape(len(crowd), len(pairs)).mean(axis=0) > 0.5).astype(np.float64)

    return truth, len(right)


def _of_scorer(
    name: str,
    models: Sequence[ModelLists],
    options: RoundOptions,
    gallery: Benchmark | None,
    session: Session | None,
) -> Judge:
    """A scorer as the judge: right where its score is at or above the threshold."""
    if options.threshold is None:
        raise InputError(
            "a scorer judges by a threshold",
            given=name,
            hint="choose one on verified pairs, and give it with --threshold",
        )
    items = gallery or _gallery(models, options)
    if items is None:
        raise InputError("a scorer needs the images and captions", given=name, hint="name their benchmark")
    scorer = catalog.scorer(name, Options(device=options.device))
    images = {image.id: image for image in items.images}
    captions = {caption.id: caption for caption in items.captions}
    threshold, used = options.threshold, session or options.session(SILENT)

    def scored(table: pa.Table) -> NDArray[np.float64]:
        shown, image = _used(table["image"].to_pylist(), images, items.name)
        texts, caption = _used(table["caption"].to_pylist(), captions, items.name)
        scores = score_items(scorer, shown, used.keys(shown), texts, (caption, image), session=used)
        return (scores >= threshold).astype(np.float64)

    return scored


def _gallery(models: Sequence[ModelLists], options: RoundOptions) -> Benchmark | None:
    """The gallery of the runs among the models, with its pictures where they are at hand."""
    benchmark = next((lists.benchmark for lists in models if lists.benchmark is not None), None)
    if benchmark is None:
        return None if options.data is None else catalog.benchmark(str(options.data), images=options.images)
    return whole_benchmark(benchmark.name, options.data or benchmark.path, options.images) or benchmark


def _used(names: list[str], known: Mapping[str, _Item], where: str) -> tuple[list[_Item], NDArray[np.int64]]:
    """The different items that are named, and the position of each name among them."""
    number: dict[str, int] = {}
    at = np.array([number.setdefault(name, len(number)) for name in names], dtype=np.int64)
    lacking = next((name for name in number if name not in known), None)
    if lacking is not None:
        raise DataError("no such item", where=where, given=lacking)
    return [known[name] for name in number], at
