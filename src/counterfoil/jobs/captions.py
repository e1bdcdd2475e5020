"""Scores of captions by metrics of the field: a value for all of them, and one for each."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import chain, pairwise
from pathlib import Path
from typing import Annotated, Any, Literal, TypedDict, Unpack

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from counterfoil import catalog
from counterfoil.benchmarks.answers import versions
from counterfoil.benchmarks.caption_files import Named, Written, read_candidates, read_references
from counterfoil.benchmarks.image_files import image_names, image_path, is_image_folder
from counterfoil.benchmarks.records import Caption, FileSource, Image
from counterfoil.benchmarks.references import References, contained
from counterfoil.benchmarks.tables import first_double
from counterfoil.benchmarks.videos import ALL, FEATURES, VIDEOS, Sampling, Video, find, video_folder
from counterfoil.engine.caption_scoring import (
    CaptionInputs,
    metric_for,
    score_captions as scores_of_rows,
    texts,
)
from counterfoil.engine.plan import Note
from counterfoil.engine.session import Session
from counterfoil.errors import DataError, InputError
from counterfoil.evaluation.systems import NumberOf, ratio
from counterfoil.inputs.files import display_path
from counterfoil.inputs.limits import most
from counterfoil.inputs.options import Option
from counterfoil.jobs import shared_options as shared
from counterfoil.jobs.evaluation_inputs import model_options, session_of
from counterfoil.jobs.job import Feedback, documented, feedback_of, job, option, path_of
from counterfoil.jobs.results import SavedTable, declared
from counterfoil.models.base import Options
from counterfoil.models.captions.base import CaptionMetric, TextMetric
from counterfoil.models.captions.registry import SEVERAL, entry, several
from counterfoil.models.captions.text import TextMeasure
from counterfoil.report.tables import Column, Table, amount
from counterfoil.stats.bootstrap import FEWEST, mean_intervals

Policy = Literal["keep", "drop-reference", "drop-item"]

#: Files that are pictures, by the end of their names.
_PICTURES = (".jpg", ".jpeg", ".png", ".webp", ".bmp", ".gif", ".tif", ".tiff")


@documented
class Media(TypedDict, total=False):
    """Where the images or videos of captions are, and which frames of a video are seen.

    Data:
        images: Folder of the images; ids are names of its files.
        videos: Folder of the videos, of folders of frames, or of features of frames.
        frames: Take N evenly spaced frames of each video.
        rate: Take N frames per second of each video.
    """

    images: Annotated[str | Path | None, option(None, folder=True)]
    videos: Annotated[str | Path | None, option(None)]
    frames: Annotated[int | None, option(None, low=1, high=most("frames"))]
    rate: Annotated[float | None, option(None, low=0, high=most("rate"))]


@dataclass(frozen=True)
class MediaFolder:
    """Where the images or videos are that captions are of; neither, for metrics that only read."""

    images: Path | None = None
    videos: Path | None = None
    sampling: Sampling = ALL

    def __post_init__(self) -> None:
        if self.images is not None and self.videos is not None:
            raise InputError("captions are of images or of videos", given="--images and --videos")
        if self.videos is None and self.sampling != ALL:
            raise InputError("frames are those of videos", given="--frames or --rate without --videos")
        if self.images is not None and not is_image_folder(self.images):
            raise DataError("no such folder", where=self.images, hint="check --images")
        if self.videos is not None and not self.videos.is_dir() and not video_folder(self.videos):
            raise DataError("no such folder", where=self.videos, hint="check --videos")

    def items(self, candidates: Written, note: Note) -> tuple[Image, ...] | None:
        """What each candidate is of, in their order; None where no folder is named."""
        if self.videos is not None:
            return self._videos(candidates, self.videos, note)
        if self.images is None:
            return None
        names = sorted(image_names(self.images))
        files = {name: self.images / name for name in names if Path(name).suffix.lower() in _PICTURES}
        file_names = _matched(candidates, Named(files), self.images, "an image")
        _say_left_out(len(files) - len(set(file_names)), "image", self.images, note)
        return tuple(
            Image(name, FileSource(image_path(files[file].name, self.images)))
            for name, file in zip(candidates.captions, file_names, strict=True)
        )

    def _videos(self, candidates: Written, folder: Path, note: Note) -> tuple[Image, ...]:
        there = {
            name: is_folder
            for name, is_folder in sorted(video_folder(folder).items())
            if (is_folder or name.lower().endswith((*VIDEOS, *FEATURES))) and not name.startswith(".")
        }
        # One video may be there as a file, as frames and as features; `find` knows which one is taken.
        stems = dict.fromkeys(name if is_folder else Path(name).stem for name, is_folder in there.items())
        names = _matched(candidates, Named(stems), folder, "a video")
        sources = find(folder, names)
        _say_left_out(len(stems) - len(set(names)), "video", folder, note)
        videos = []
        for name, stem in zip(candidates.captions, names, strict=True):
            if stem not in sources:
                raise DataError("the folder holds no frames", where=folder / stem, given=f"of video '{name}'")
            videos.append(Video(name, sources[stem], sampling=self.sampling))
        return tuple(videos)


def _without_themselves(
    inputs: CaptionInputs, references: References, policy: Policy | None, note: Note
) -> CaptionInputs:
    texts = [str(caption.text) for caption in inputs.captions]
    # Candidates of one image read one list of references, as those of one document.
    containment = contained(texts, inputs.candidate, references, policy or "keep", shared=inputs.owner)
    if policy is None and containment.equal:
        note(
            f"{inputs.name}: {amount(containment.equal, 'candidate')} of {len(inputs):,} with a reference "
            "that says the same, which is kept; see --references-contain"
        )
    if message := containment.description():
        note(f"{inputs.name}: {message}")
    rows = np.flatnonzero(containment.included)
    if not len(rows):
        raise DataError("every candidate is one of its references", where=inputs.name, given=policy)
    return replace(inputs, references=containment.references).take(rows)


def _matched(candidates: Written, there: Named, place: Path, kind: str) -> list[str]:
    """The name in `place` of what each candidate is of; raises `DataError` for none and for several."""
    names_there, missing = [], []
    for name in candidates.captions:
        image = there.find(name)
        if image is None and name in candidates.files:
            image = there.find(candidates.files[name])
        several = there.several(name)
        if image is None and len(several) > 1:
            what, given = f"'{name}' may be several of what is there", ", ".join(several[:3])
            raise DataError(what, where=place, given=given, hint="write the whole name")
        if image is None:
            missing.append(name)
        else:
            names_there.append(image)
    double = first_double(names_there)
    if double is not None and not missing:
        both = zip(candidates.captions, names_there, strict=True)
        names = [name for name, image in both if image == double]
        raise DataError(
            f"one image under two names, '{double}'",
            where=candidates.path,
            given=", ".join(f"'{name}'" for name in names[:3]),
            hint="write one name for all candidates of an image",
        )
    if missing:
        few = ", ".join(f"'{name}'" for name in missing[:3]) + (", ..." if len(missing) > 3 else "")
        raise DataError(
            f"candidates without {kind}",
            where=place,
            given=f"{len(missing):,} of {len(candidates):,} without, first: {few}",
            hint="ids are the names of files, with or without their endings, or COCO's numbers",
        )
    return names_there


def _say_left_out(number: int, what: str, place: Path, note: Note) -> None:
    if number:
        verb = "is" if number == 1 else "are"
        note(f"{display_path(place)}: {amount(number, what)} that no candidate names {verb} left out")


def same_items(all_asked: Sequence[CaptionInputs]) -> None:
    """Raise `DataError` unless all systems wrote captions of the same images."""
    first = all_asked[0]
    first_ids = {first.captions[i].id for i in first.candidate}
    for other in all_asked[1:]:
        other_ids = {other.captions[i].id for i in other.candidate}
        if other_ids != first_ids:
            odd = sorted(other_ids ^ first_ids)
            raise DataError(
                "systems wrote captions of different images",
                where=other.name,
                given=f"{len(other_ids - first_ids):,} that {first.name} has not, "
                f"{len(first_ids - other_ids):,} that it lacks, first: '{odd[0]}'",
                hint="a table compares systems on the same images",
            )


#: The score of an image with several candidates: the mean of theirs, or the best (oracle).
PerImage = Literal["mean", "best"]

METRICS = Option(
    "Metrics, separated by commas (see 'counterfoil list metrics'); bleu is bleu-1 to 4.",
    flag="--metrics",
    commas=True,
    complete="metrics",
)


@dataclass(frozen=True)
class Value:
    """A metric of all candidates: the number the field reports, and the mean over `n` images.

    An image of several candidates counts once, as the mean or the best of them. `low` and `high` are the
    interval of the mean, a bootstrap over images; None where there is none, and `no_interval` says why.
    """

    value: float
    mean: float
    low: float | None
    high: float | None
    n: int
    #: Whether the number reported is the mean over images.
    is_mean: bool
    no_interval: str | None = None


def titles(metrics: Mapping[str, CaptionMetric]) -> dict[str, str]:
    """Titles of metrics whose names would claim too much: PAC-S without a model of PAC-S behind it."""
    return {name: title for name, metric in metrics.items() if (title := getattr(metric, "title", ""))}


def values(
    inputs: CaptionInputs,
    metrics: Mapping[str, CaptionMetric],
    *,
    per_image: PerImage = "mean",
    session: Session,
) -> tuple[dict[str, Value], dict[str, NDArray[np.float64]]]:
    """The value of each metric over images, and its scores, one per row.

    A metric of all captions as one text reads every candidate, or with `per_image` "best" the best of each.
    """
    scores = {name: scores_of_rows(inputs, metric, session=session) for name, metric in metrics.items()}
    # (images,) what each image counts, in the order of their numbers.
    images = scores
    if inputs.owner is not None and per_image == "best":
        images = {name: per_text[_best(inputs, per_text)] for name, per_text in scores.items()}
    elif inputs.owner is not None:
        _, place, counts = np.unique(inputs.owner, return_inverse=True, return_counts=True)
        images = {name: np.bincount(place, weights=per_text) / counts for name, per_text in scores.items()}
    wholes: dict[str, float] = {}
    for name, metric in metrics.items():
        # What is a mean over rows need not be read twice; `whole` is None of such metrics.
        if isinstance(metric, TextMetric) and getattr(metric, "whole", True) is not None:
            chosen = inputs if per_image == "mean" else inputs.take(_best(inputs, scores[name]))
            wholes[name] = float(metric.of_corpus(*texts(chosen.checked(metric))))
    means = [name for name in metrics if name not in wholes]
    intervals: dict[str, tuple[float, float]] = {}
    if means and len(images[means[0]]) >= FEWEST:
        lows, highs = mean_intervals(np.stack([images[name] for name in means], axis=1))
        intervals = {name: (float(lows[k]), float(highs[k])) for k, name in enumerate(means)}
    what = "captions" if len(inputs) == n_images(inputs) else "images"
    by_metric = {}
    for name in metrics:
        per_text, whole, interval = images[name], wholes.get(name), intervals.get(name)
        mean, n, why = float(per_text.mean()), len(per_text), None
        if whole is not None:
            why = "of all captions as one text, not a mean"
        elif interval is None:
            why = f"too few {what} for an interval: {n}, and it takes {FEWEST}"
        elif bool((per_text == per_text[0]).all()):
            why = f"all {what} have the same score"
        low, high = (None, None) if why or interval is None else interval
        value = mean if whole is None else whole
        by_metric[name] = Value(value, mean, low, high, n, is_mean=whole is None, no_interval=why)
    return by_metric, scores


def n_images(inputs: CaptionInputs) -> int:
    """How many images or videos the candidates are of."""
    return len(inputs) if inputs.owner is None else len(np.unique(inputs.owner))


def _best(inputs: CaptionInputs, scores: NDArray[np.float64]) -> NDArray[np.int64]:
    """(images,) the row of the best candidate of each image, the first of equal ones."""
    if inputs.owner is None:
        return np.arange(len(inputs))
    order = np.lexsort((np.arange(len(inputs)), -scores, inputs.owner))
    rows: NDArray[np.int64] = order[np.unique(inputs.owner[order], return_index=True)[1]]
    return rows


def summed(
    inputs: CaptionInputs, metric: CaptionMetric, value: Value, scores: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NumberOf] | None:
    """(rows, k) what adds up over rows to the value of all candidates, and the number that sums make.

    None of a metric of all captions as one text that does not add up.
    """
    if value.is_mean:
        return np.stack([scores, np.ones(len(scores))], axis=1), ratio
    if not isinstance(metric, TextMeasure) or metric.sums is None:
        return None
    counted = metric.counted(*texts(inputs.checked(metric)))
    return None if counted is None else (counted, metric.sums.value)


def no_intervals(rows: Mapping[str, Mapping[str, Value]]) -> list[str]:
    """Why some metrics have no interval, each reason once; with the systems, where it is not of all."""
    by_reason: dict[str, dict[str, list[str]]] = {}
    for system, of_metric in rows.items():
        for name, value in of_metric.items():
            if value.no_interval is not None:
                by_reason.setdefault(value.no_interval, {}).setdefault(name, []).append(system)
    lines = []
    for why, metrics in by_reason.items():
        named = (m if len(of) == len(rows) else f"{m} of {', '.join(of)}" for m, of in metrics.items())
        lines.append(f"{', '.join(named)}: {why}")
    return lines


def to_json(values: Mapping[str, Value]) -> dict[str, Any]:
    return {name: asdict(value) for name, value in values.items()}


@documented
class MetricRows(Media, shared.Device, shared.Work, total=False):
    """How metrics look at captions: the images, the model behind them, and how their work is done.

    Arguments:
        references_contain: Policy for a reference equal to the candidate: keep it, drop it, or drop the item.

    Model:
        backbone: Model of metrics that see images, such as open-clip:ARCH/PRETRAINED or embeddings:PATH.
        settings: Setting of a metric that departs from its official version; may be repeated.
    """

    references_contain: Annotated[Policy | None, option(None)]
    backbone: Annotated[str | None, option(None, metavar="MODEL")]
    settings: Annotated[shared.Settings, option(None, flag="--set", metavar="[METRIC.]KEY=VALUE")]


@dataclass(frozen=True)
class MetricRequest:
    """Caption metrics by name, the model and settings behind them, and how their work is done."""

    names: tuple[str, ...]
    #: `backbone` is the model that metrics look with, `settings` are KEY or METRIC.KEY and a value.
    options: Options
    media: MediaFolder
    policy: Policy | None
    session: Session

    @classmethod
    def of(cls, metrics: str | Sequence[str], rows: MetricRows, feedback: Feedback) -> "MetricRequest":
        """The request for some names; raises `InputError` for those that cannot be computed."""
        names = several(metrics)
        options = model_options(rows, backbone=rows["backbone"] or "")
        looking = [name for name in names if entry(name).has_model]
        if looking and not options.backbone:
            raise InputError(
                "needs a model to look with",
                where=f"metric:{looking[0]}",
                hint="name one with --backbone, such as --backbone open-clip:ViT-B-32-quickgelu/openai",
            )
        if options.backbone and not looking:
            raise InputError(
                "none of these metrics has a model behind it",
                where=", ".join(names),
                given=f"--backbone {options.backbone}",
                hint="leave --backbone out",
            )
        _settings_of(names, options.settings)
        sampling = Sampling(rows["frames"], rows["rate"])
        media = MediaFolder(path_of(rows["images"]), path_of(rows["videos"]), sampling)
        return cls(names, options, media, rows["references_contain"], session_of(rows, feedback))

    def read(
        self,
        candidates: Path,
        references: Path | None,
        *,
        several: bool = False,
        empty: Literal["refuse", "leave-out"] = "refuse",
        note: Note,
    ) -> CaptionInputs:
        """Read candidates, references and images, also those not needed, so that mistakes are found.

        With `several` an image may have more candidates: the first is called as it, others ID@1, ID@2.
        """
        embedded = self.options.backbone.startswith("embeddings:")
        written = read_candidates(candidates, several=several, empty=empty)
        path, counts = written.path, [len(texts) for texts in written.captions.values()]
        if written.left_out:
            bare = written.images_left_out
            left = f"{amount(written.left_out, 'empty candidate')} left out"
            note(f"{path}: {left}" + (f", and {amount(bare, 'image')} with no other" if bare else ""))
        if max(counts) > 1:
            least = f"{min(counts):,} to " if min(counts) < max(counts) else ""
            many = f"{sum(counts):,} candidates of {amount(len(counts), 'image')}"
            note(f"{path}: {many}, {least}{max(counts):,} of each")
        people = None if references is None else read_references(references)
        images = self.media.items(written, note)
        if self.policy is not None and people is None:
            raise InputError(
                "there are no references that could contain a candidate",
                given=f"--references-contain {self.policy}",
                hint="name their file with --references",
            )
        captions = [
            Caption(f"{name}@{number}" if number else name, text)
            for name, texts in written.captions.items()
            for number, text in zip(written.numbers[name], texts, strict=True)
        ]
        candidate = np.arange(len(captions))
        owner = np.repeat(np.arange(len(written)), counts)
        reference_rows = None
        if people is not None:
            # COCO's annotations call images by number, and say which files the numbers are of.
            files = {file: name for name, file in people.files.items() if name in people.captions}
            names = _matched(written, Named([*people.captions, *files]), people.path, "references")
            names = [files.get(name, name) for name in names]
            _say_left_out(len(people) - len(set(names)), "image with references", people.path, note)
            of_people = [
                [Caption(f"{name}#{number}", text) for number, text in enumerate(people.captions[name])]
                for name in names
            ]
            ends = np.cumsum([len(captions), *map(len, of_people)])
            reference_rows = References.of([list(range(*bounds)) for bounds in pairwise(ends.tolist())]).take(
                owner
            )
            captions += chain.from_iterable(of_people)
        double = first_double(caption.id for caption in captions) if embedded else None
        if double is not None:
            what, hint = "two captions of one name", "call the images otherwise"
            raise DataError(what, where=candidates, given=f"'{double}'", hint=hint)
        together = CaptionInputs(
            images=tuple(map(Image, written.captions)) if images is None else images,
            captions=tuple(captions),
            image=None if images is None and not embedded else owner,
            candidate=candidate,
            references=reference_rows,
            owner=owner,
            name=str(candidates),
        )
        for name in self.names:
            together.check_given(f"metric:{name}", entry(name).needs)
        if reference_rows is None:
            return together
        return _without_themselves(together, reference_rows, self.policy, note)

    def load(self, inputs: CaptionInputs, cache: Path | None, feedback: Feedback) -> dict[str, CaptionMetric]:
        """The metrics by name, as they are asked of these; those with a model share the one behind them."""
        options = replace(self.options, settings={})
        settings = _settings_of(self.names, self.options.settings)
        with feedback.busy("loading metrics"):
            metrics = catalog.caption_metrics(self.names, options, memory=cache, settings=settings)
        return {name: metric_for(metric, inputs.images) for name, metric in metrics.items()}


class CaptionScores(SavedTable):
    """Caption metrics of candidates: a value for all of them, and a score for each."""

    values: Mapping[str, Value]
    #: (candidates,) the scores of each metric.
    scores: Mapping[str, NDArray[np.float64]]
    metrics: Mapping[str, CaptionMetric]
    inputs: CaptionInputs
    per_image: PerImage

    rows_by = declared(
        metric="one per `metric`: `value: float` (the number the field reports), `mean: float` over images "
        "with `low: float` and `high: float` (95 %, null where there is none, and `no_interval` says why), "
        "`n: int` images, `is_mean: bool`",
        caption="one per candidate: image, candidate (which of the image's, from 0), caption, and a column "
        "per metric",
    )
    command, saved_by = "captions score", "caption"

    def _rows(self, by: str) -> pa.Table | list[Any]:
        if by == "caption":
            inputs, captions = self.inputs, [self.inputs.captions[i] for i in self.inputs.candidate]
            assert inputs.owner is not None
            images = [inputs.images[i].id for i in inputs.owner]
            # The name of a candidate is that of its image, and @ with its number for all but the first.
            ends = (of.id.removeprefix(image) for of, image in zip(captions, images, strict=True))
            columns: dict[str, list[Any]] = {
                "image": images,
                "candidate": [int(end.removeprefix("@") or 0) for end in ends],
                "caption": [caption.text for caption in captions],
            }
            return pa.table(columns | {name: scores.tolist() for name, scores in self.scores.items()})
        return [({"metric": name}, value) for name, value in self.values.items()]

    @property
    def heading(self) -> str:
        """As in 'c.json, 1,200 captions of 400 images, the best of each'."""
        captions, images = len(self.inputs), n_images(self.inputs)
        several = f" of {amount(images, 'image')}, the {self.per_image} of each" if images != captions else ""
        return f"{self.inputs.name}, {amount(captions, 'caption')}{several}"

    @property
    def tables(self) -> tuple[Table]:
        """The value of each metric; of what is no mean the mean over captions, or images, beside it."""
        values = self.values.values()
        intervals = any(value.low is not None for value in values)
        means = any(not value.is_mean for value in values)
        over = "image" if n_images(self.inputs) < len(self.inputs) else "caption"
        columns = [Column("value", look="bold")]
        columns += [Column("95 % interval", align="center")] * intervals
        columns += [Column(f"{over} mean", look="dim")] * means
        rows = []
        for name, value in self.values.items():
            cells = [name, f"{value.value:.4f}"]
            cells += ["" if value.low is None else f"[{value.low:.4f}, {value.high:.4f}]"] * intervals
            cells += ["" if value.is_mean else f"{value.mean:.4f}"] * means
            rows.append(cells)
        return (Table.of(self.heading, "metric", columns, rows),)

    @property
    def notes(self) -> list[str]:
        """Why some metrics have no interval, and what metrics are whose names would say too much."""
        named = (f"{name}: {title}" for name, title in titles(self.metrics).items())
        return [*no_intervals({"": self.values}), *named]

    def to_json(self) -> dict[str, Any]:
        return {
            "candidates": self.inputs.name,
            "captions": len(self.inputs),
            "images": n_images(self.inputs),
            "per_image": self.per_image,
            "metrics": to_json(self.values),
            "identities": {name: metric.identity.to_json() for name, metric in self.metrics.items()},
            "versions": versions(),
        }


@job(
    outputs="save json",
    examples="""Examples:
  counterfoil captions score --metrics bleu,rouge-l,cider --candidates c.json --references r.json
  counterfoil captions score --metrics clip-s --images photos/ --candidates c.json --backbone hf:./clip
  counterfoil captions score --metrics em-score --videos clips/ --candidates c.json --backbone hf:./clip
  counterfoil captions score --metrics cider --candidates samples.jsonl --references r.json --per-image best

c.json is {"ID": "caption"} or [{"image_id": ID, "caption": "..."}], r.json {"ID": ["caption", ...]} or COCO's
annotations; a table has columns image_id and caption. An ID is the name of a file, with or without its
ending, or COCO's number. An image may have several candidates: a list, or several entries or rows.""",
)
def score_captions(
    candidates: Annotated[str | Path, option(flag="--candidates")],
    metrics: Annotated[str | Sequence[str], METRICS],
    *,
    references: str | Path | None = None,
    empty: Literal["refuse", "leave-out"] = "refuse",
    per_image: PerImage = "mean",
    **options: Unpack[MetricRows],
) -> CaptionScores:
    """Score captions by metrics: a value for the corpus and one per caption.

    Each of several candidates per image gets a score; values and intervals are over images. Embeddings are
    cached, so an interrupted run continues.

    Raises `DataError` for files that do not fit each other, `InputError` where a metric needs what is not
    given.

    Arguments:
        candidates: Captions to score, one or more per image: JSON, CSV or Parquet.
        references: Captions that people wrote: JSON, CSV or Parquet.
        empty: Policy for empty candidates: an error, or leave them out.
        per_image: Value of an image with several candidates: their mean, or the best (oracle).

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     candidates, references = Path(folder, "c.json"), Path(folder, "r.json")
    ...     _ = candidates.write_text('{"1": "a red cat"}')
    ...     _ = references.write_text('{"1": ["a red cat", "the cat"]}')
    ...     scored = score_captions(candidates, "bleu-1", references=references, cache=None, quiet=True)
    >>> round(scored.values["bleu-1"].value, 6)
    1.0
    """
    feedback = feedback_of(options)
    request = MetricRequest.of(metrics, options, feedback)
    with feedback.busy("reading captions"):
        inputs = request.read(
            Path(candidates), path_of(references), note=feedback.note, several=True, empty=empty
        )
    metrics_by_name = request.load(inputs, request.session.folder, feedback)
    with feedback.progress() as report:
        session = replace(request.session, progress=report)
        by_metric, scores = values(inputs, metrics_by_name, per_image=per_image, session=session)
    return CaptionScores(by_metric, scores, metrics_by_name, inputs, per_image)


def _settings_of(names: Sequence[str], given: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """The settings of each metric: `KEY` is of all that are named, `METRIC.KEY` of one (or of all bleu)."""
    settings: dict[str, dict[str, str]] = {name: {} for name in names}
    for key, value in given.items():
        metric, dot, setting = key.partition(".")
        meant = SEVERAL.get(metric, (metric,)) if dot else names
        chosen = [name for name in names if name in meant]
        if not chosen:
            what = "a setting of a metric that is not asked for"
            raise InputError(what, given=f"--set {key}", allowed=names)
        for name in chosen:
            settings[name][setting if dot else key] = value
    return settings
