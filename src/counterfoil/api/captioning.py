"""Caption metrics and comparisons of captioning systems, from Python."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from counterfoil.api.arguments import Cache, cache_of, feedback_of, path_of
from counterfoil.benchmarks.decoding import Sampling
from counterfoil.engine.deduplicate import Note, Progress
from counterfoil.jobs.caption_inputs import MediaFolder, Policy
from counterfoil.jobs.caption_systems import SystemComparison
from counterfoil.jobs.caption_systems import compare_systems as systems_task
from counterfoil.jobs.captions import CaptionScores, MetricRequest
from counterfoil.jobs.captions import score_captions as captions_task


def score_captions(
    candidates: str | Path,
    metrics: str | Sequence[str],
    *,
    references: str | Path | None = None,
    images: str | Path | None = None,
    videos: str | Path | None = None,
    frames: int | None = None,
    rate: float | None = None,
    references_contain: Policy | None = None,
    empty: Literal["refuse", "leave-out"] = "refuse",
    per_image: Literal["mean", "best"] = "mean",
    scorer: str = "",
    settings: Mapping[str, str] | None = None,
    device: str = "auto",
    precision: str = "fp32",
    batch_size: int = 32,
    workers: int | None = None,
    cache: Cache = "default",
    quiet: bool = False,
    progress: Progress | None = None,
    note: Note | None = None,
) -> CaptionScores:
    """The captions in a file scored by metrics, as `counterfoil captions score` does it.

    `candidates` and `references` are JSON, CSV or Parquet files, `metrics` names of `counterfoil list
    metrics`. Metrics that look need the model `scorer` and a folder of `images` or `videos` (of which
    `frames` of each, or `rate` per second, are seen). `settings` are KEY or METRIC.KEY and a value. A
    reference that says what the candidate says stays, goes, or its item goes (`references_contain`: "keep",
    "drop-reference", "drop-item"). An image of several candidates counts their mean or the best. Embeddings
    are kept in `cache`, so work that was stopped goes on where it was. Raises `DataError` for files that do
    not fit each other, `InputError` where a metric needs what is not given.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     candidates, references = Path(folder, "c.json"), Path(folder, "r.json")
    ...     _ = candidates.write_text('{"1": "a red cat"}')
    ...     _ = references.write_text('{"1": ["a red cat", "the cat"]}')
    ...     found = score_captions(candidates, "bleu-1", references=references, cache=None, quiet=True)
    >>> round(found.values["bleu-1"].value, 6)
    1.0
    """
    return captions_task(
        Path(candidates),
        _metrics(metrics, scorer, settings, device, precision, batch_size, workers, cache),
        references=path_of(references),
        media=_media(images, videos, frames, rate),
        policy=references_contain,
        empty=empty,
        per_image=per_image,
        feedback=feedback_of(quiet=quiet, progress=progress, note=note),
    )


def compare_systems(
    predictions: Sequence[str | Path],
    references: str | Path,
    *,
    metrics: str | Sequence[str] = "bleu-4,rouge-l,cider",
    humans: str | Path | None = None,
    over: Literal["images", "systems"] = "images",
    draws: int = 10_000,
    seed: int = 0,
    images: str | Path | None = None,
    videos: str | Path | None = None,
    frames: int | None = None,
    rate: float | None = None,
    references_contain: Policy | None = None,
    scorer: str = "",
    settings: Mapping[str, str] | None = None,
    device: str = "auto",
    precision: str = "fp32",
    batch_size: int = 32,
    workers: int | None = None,
    cache: Cache = "default",
    quiet: bool = False,
    progress: Progress | None = None,
    note: Note | None = None,
) -> SystemComparison:
    """Captioners compared by metrics, as `counterfoil captions systems` does it.

    `predictions` are JSON files, one per system and called after it, of captions of the same images; `humans`
    is a table of what people gave the systems, which says how far metrics order them as people do. `over`
    says what is drawn anew for intervals of those correlations. All else is as in `score_captions`.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     one, two, references = (Path(folder, f"{name}.json") for name in ("one", "two", "r"))
    ...     _ = one.write_text('{"1": "a red cat"}'), two.write_text('{"1": "dogs"}')
    ...     _ = references.write_text('{"1": ["a red cat"]}')
    ...     found = compare_systems([one, two], references, metrics="bleu-1", cache=None, quiet=True)
    >>> found.to_arrow()["system"].to_pylist()
    ['one', 'two']
    """
    return systems_task(
        [Path(file) for file in predictions],
        Path(references),
        _metrics(metrics, scorer, settings, device, precision, batch_size, workers, cache),
        humans=path_of(humans),
        over=over,
        draws=draws,
        seed=seed,
        media=_media(images, videos, frames, rate),
        policy=references_contain,
        feedback=feedback_of(quiet=quiet, progress=progress, note=note),
    )


def _metrics(
    names: str | Sequence[str],
    scorer: str,
    settings: Mapping[str, str] | None,
    device: str,
    precision: str,
    batch_size: int,
    workers: int | None,
    cache: Cache,
) -> MetricRequest:
    return MetricRequest.of(
        names,
        scorer=scorer,
        settings=settings,
        device=device,
        precision=precision,
        cache=cache_of(cache),
        batch_size=batch_size,
        workers=workers,
    )


def _media(
    images: str | Path | None, videos: str | Path | None, frames: int | None, rate: float | None
) -> MediaFolder:
    return MediaFolder(path_of(images), path_of(videos), Sampling(frames, rate))
