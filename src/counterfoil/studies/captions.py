"""Caption metrics on the small world, where the correctness of every caption is known.

Metrics that read references, metrics that look through networks that the study has trained, the length of a
caption, and an oracle that knows the scenes, which has to get everything.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from jaxtyping import Float

from counterfoil.benchmarks.benchmark import Benchmark
from counterfoil.benchmarks.records import Caption, Image, PixelSource
from counterfoil.benchmarks.videos import Video
from counterfoil.engine.caption_scoring import score_benchmark
from counterfoil.engine.deduplicate import Progress, silent
from counterfoil.engine.run import run
from counterfoil.engine.session import Session
from counterfoil.evaluation.compare import Comparison, compare
from counterfoil.evaluation.findings import CLAIMS, MOVING, Finding, caption_findings
from counterfoil.models import checkpoint
from counterfoil.models.base import Identity, Options
from counterfoil.models.captions import registry as metric_names
from counterfoil.models.captions.base import CaptionMetric, CaptionTokens
from counterfoil.studies import oracle
from counterfoil.studies.plan import Plan
from counterfoil.studies.runs import DRAWS, keep_run
from counterfoil.world.benchmarks import clips
from counterfoil.world.ratings import GRADES, LEVELS, preferences, rated

#: Frames that are embedded together.
_FRAMES = 64


@dataclass(frozen=True, eq=False)
class WholeCaptions:
    """A `LocalEmbedder` around an embedder of whole items: a caption is its own only token.

    EMScore then matches the caption as a whole to every frame, and document frequencies mean nothing. Frames
    are pictures like any others.
    """

    embedder: Any

    @property
    def identity(self) -> Identity:
        """The embedder's, and that its parts are whole captions and frames."""
        own: Identity = self.embedder.identity
        return replace(own, options={**own.options, "parts": "whole captions, frames"})

    @property
    def local(self) -> "WholeCaptions":
        """Itself: what a metric of parts asks a model for."""
        return self

    def embed_tokens(self, batches: Sequence[Sequence[Caption]]) -> Iterator[list[CaptionTokens]]:
        """For each batch of captions their one token each."""
        only = np.zeros(1, dtype=np.int64)
        for rows in self.embedder.embed_captions(batches):
            yield [CaptionTokens(only, only, row[None].copy(), row.copy()) for row in rows]

    def embed_frames(
        self, batches: Sequence[Sequence[Image]], *, workers: int = 0
    ) -> Iterator[list[Float[np.ndarray, "frames width"]]]:
        """For each batch the unit vectors of its items' frames; a picture has one."""
        for batch in batches:
            if not any(isinstance(item, Video) for item in batch):
                (rows,) = self.embedder.embed_images([batch])
                yield [row[None].copy() for row in rows]
                continue
            embedded = []
            for item in batch:
                frames = [item]
                if isinstance(item, Video):
                    frames = [
                        Image(f"{item.id}, frame {number}", PixelSource(np.asarray(frame)))
                        for number, frame in enumerate(item.frames())
                    ]
                parts = [frames[start : start + _FRAMES] for start in range(0, len(frames), _FRAMES)]
                embedded.append(np.concatenate(list(self.embedder.embed_images(parts))))
            yield embedded


ORACLE = "oracle"
#: Metrics of texts, without METEOR and SPICE: they need Java, and take longer than all others together.
READING = ("length", "bleu-1", "bleu-2", "bleu-3", "bleu-4", "rouge-l", "cider", "cider-d")
#: Metrics of pictures, and of clips, whose captions are matched to every frame.
LOOKING = ("clip-s", "ref-clip-s", "pac-s", "ref-pac-s")
MATCHING = ("em-score", "ref-em-score")
#: The network behind each metric, by the name of its training.
NETWORKS: Mapping[str, tuple[str, ...]] = {
    "trohn-img": ("clip-s", "ref-clip-s", *MATCHING),
    "coco": ("clip-s", "em-score"),
    # The first one again, trained on with generated positives: what makes PAC-S more than another weight.
    "pac": ("pac-s", "ref-pac-s"),
}
#: The network that is named where a metric looks through it.
_NAMED = ("coco",)
#: The prompt is for models that have seen it; the world's have not.
_SETTINGS: Mapping[str, Mapping[str, str]] = {
    **{name: {"prefix": ""} for name in LOOKING},
    **{name: {"idf": "none"} for name in MATCHING},
}
#: The metrics whose answers can be browsed: one of those that hardly differ.
BROWSED = (ORACLE, "length", "bleu-4", "rouge-l", "cider", "clip-s", "ref-clip-s", "pac-s", "em-score")


@dataclass(frozen=True, eq=False)
class CaptionStudy:
    """The results: per benchmark all metrics, and the claims about some of them."""

    comparisons: tuple[Comparison, ...] = ()
    findings: tuple[Finding, ...] = ()
    benchmarks: tuple[Benchmark, ...] = field(default=(), repr=False)


def worlds(plan: Plan) -> tuple[Benchmark, ...]:
    """Rated pictures, preferences and clips, drawn when they are read, as the networks see them."""
    size = plan.size
    # Whole images and clips, so that every degree comes as often and tau-c can be 1.
    pictured, moving = plan.judged - plan.judged % len(LEVELS), plan.judged // 2
    return (
        rated(pictured, size=size, lazy=True),
        preferences(plan.judged, size=size, lazy=True),
        clips(moving - moving % len(GRADES), size=size),
    )


def study(
    plan: Plan,
    checkpoints: Mapping[str, Path],
    folder: Path,
    *,
    facts: Callable[[Benchmark, Any], Mapping[str, Any]],
    progress: Progress = silent,
    draws: int = DRAWS,
) -> CaptionStudy:
    """All metrics on all three benchmarks; runs are kept as `folder`/METRIC-SEED/BENCHMARK.

    `checkpoints` are those of `NETWORKS`; metrics of a network that is not among them are left out. Tests are
    made of what the claims name alone. Raises what asking and measuring raise.
    """
    benchmarks = worlds(plan)
    knows: Any = oracle.load("oracle")

    def no_backbone(options: Options) -> Any:
        raise AssertionError("a metric that reads has no model behind it")

    def ready(model: Any, options: Options) -> Any:
        return model

    # Every metric by the name of its runs.
    metrics: dict[str, CaptionMetric] = {
        name: metric_names.load(name, Options(), no_backbone) for name in READING
    }
    for network in (name for name in NETWORKS if name in checkpoints):
        model = checkpoint.load(str(checkpoints[network]), Options(device="cpu"))
        whole = WholeCaptions(model)
        for name in NETWORKS[network]:
            # The prefix is set to nothing, so the model stands behind the metric as it is.
            behind = whole if name in MATCHING else model
            options = Options(device="cpu", backbone=f"checkpoint:{network}", settings=_SETTINGS[name])
            metric = metric_names.load(name, options, partial(ready, behind))
            metrics[f"{name}, {network}" if network in _NAMED else name] = metric
    comparisons: list[Comparison] = []
    tested: list[Comparison] = []
    for benchmark in benchmarks:
        moving = benchmark.card.shows == "video"
        # Metrics with one network see the same embeddings, computed once; the study keeps none of them.
        with TemporaryDirectory(prefix="counterfoil-") as cache:
            session = Session(cache, batch_size=256, progress=progress)
            answers = [
                (ORACLE, knows, run(benchmark, knows, session=Session(progress=progress))),
                *(
                    (name, metric, score_benchmark(benchmark, metric, session=session))
                    for name, metric in metrics.items()
                    if not (moving and name.split(",")[0] in LOOKING)
                ),
            ]
        runs = []
        for name, scorer, scores in answers:
            place = folder / f"{name.replace(', ', '-')}-{plan.seed}"
            about = facts(benchmark, scorer)
            runs.append(keep_run(place / benchmark.name, name, benchmark, scores, about, draws=draws))
        comparisons.append(Comparison(benchmark.name, tuple(runs), None, ()))
        claimed = {n for claim in CLAIMS for n in (claim.ahead, claim.behind)}
        claimed = {MOVING.get(n, n) for n in claimed} if moving else claimed
        tested += compare([model_run for model_run in runs if model_run.name in claimed])
    return CaptionStudy(tuple(comparisons), caption_findings(tested), benchmarks)
