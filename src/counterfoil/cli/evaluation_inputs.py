"""Inputs of `evaluate`: benchmarks found and read, given answers matched, scorers loaded."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from counterfoil import catalog
from counterfoil.cli import terminal
from counterfoil.data.benchmark import Benchmark
from counterfoil.data.galleries import Gallery
from counterfoil.data.scores import Answers
from counterfoil.errors import CounterfoilError, InputError


def measures(benchmarks: Sequence[Benchmark], named: Sequence[str]) -> list[list[str] | None]:
    """The named measures that each benchmark has, in their order; None (all of them) where none is named.

    Raises what `evaluate` would, before anything is scored: where no benchmark has a measure, and where a
    benchmark has none of them.
    """
    from counterfoil.evaluation.evaluate import check_measures

    if not named:
        return [None] * len(benchmarks)
    lacking: list[dict[str, InputError]] = []
    for each in benchmarks:
        lacking.append({})
        for name in named:
            try:
                check_measures(each, [name])
            except InputError as error:
                lacking[-1][name] = error
    for name in named:
        if all(name in errors for errors in lacking):
            raise lacking[0][name]
    found = [[name for name in named if name not in errors] for errors in lacking]
    for its, errors in zip(found, lacking, strict=True):
        if not its:
            raise errors[named[0]]
    return [*found]


@dataclass
class Asking:
    """A scorer asked benchmark by benchmark; galleries are ranked together, when the first's turn is."""

    scorer: Any
    galleries: Sequence[Benchmark]
    first: Any
    depth: int
    top: int
    truncated_as_miss: bool
    quiet: bool
    how: Mapping[str, Any]
    _ranked: dict[int, Answers] | None = None

    def answers(self, benchmark: Benchmark, answering: Any = None) -> Answers:
        """The answers to one benchmark; `benchmark` is one of `galleries` where it is a gallery.

        `answering` is the part of given answers that is of this benchmark, where there is one.
        """
        from counterfoil.engine.retrieve import rank_galleries as of_galleries
        from counterfoil.engine.run import run

        with terminal.progress(quiet=self.quiet) as report:
            if not isinstance(benchmark.questions, Gallery):
                scorer = self.scorer if answering is None else answering
                return run(benchmark, scorer, progress=report, **self.how)
            if self._ranked is None:
                found = of_galleries(
                    self.galleries,
                    self.scorer,
                    first_stage=self.first,
                    depth=self.depth,
                    top=self.top,
                    truncated_as_miss=self.truncated_as_miss,
                    progress=report,
                    **self.how,
                )
                self._ranked = {id(each): answer for each, answer in zip(self.galleries, found, strict=True)}
            return self._ranked[id(benchmark)]


def not_measured(missing: Sequence[tuple[str, CounterfoilError]], asked: int) -> CounterfoilError:
    """The error that ends a command which measured some of its benchmarks and names the others.

    >>> print(not_measured([("bivlc", CounterfoilError("no such folder", where="b"))], 3))
    1 of 3 benchmarks was not measured: bivlc (b: no such folder)
    """
    one = len(missing) == 1
    return InputError(
        f"{len(missing)} of {asked} benchmarks {'was' if one else 'were'} not measured: "
        + ", ".join(f"{name} ({error})" for name, error in missing)
    )


def settings(pairs: Sequence[str]) -> dict[str, str]:
    """What `--set KEY=VALUE` says, by key; raises `InputError` for what is no such pair, and for a key twice.

    >>> settings(["prefix=", "references=paper"])
    {'prefix': '', 'references': 'paper'}
    """
    found: dict[str, str] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key:
            raise InputError("--set needs KEY=VALUE", given=pair, allowed="such as references=paper")
        if key in found:
            raise InputError("--set names one key twice", given=pair)
        found[key] = value
    return found


def as_asked(scorer: Any, benchmark: Benchmark) -> Any:
    """The scorer that answers `benchmark`: a caption metric may be another one of videos than of pictures."""
    from counterfoil.engine.caption_scoring import metric_for
    from counterfoil.scorers.captions.base import CaptionMetric

    if not isinstance(scorer, CaptionMetric):
        return scorer
    return metric_for(scorer, benchmark.images, benchmark.corpus)


def check(scorer: Any, benchmark: Benchmark) -> None:
    """Raise where a caption metric lacks something in a benchmark, before any benchmark is measured."""
    from counterfoil.engine.caption_scoring import check as check_metric
    from counterfoil.scorers.captions.base import CaptionMetric

    if isinstance(scorer, CaptionMetric):
        check_metric(benchmark, scorer)


def whole_rows(scorer: str, benchmarks: Sequence[str]) -> bool:
    """Whether each row of a given table answers a question of its own: where all of them rate captions.

    The table is read before the benchmarks are, since it may carry their questions.
    """
    from counterfoil.errors import DataError
    from counterfoil.inputs.parsed import read_json

    def form(name: str) -> Any:
        if name in catalog.benchmarks():
            return catalog.benchmarks()[name].form
        try:
            return read_json(Path(name, "card.json")).get("form")
        except (DataError, AttributeError):
            return None

    return scorer.startswith("given:") and all(form(name) == "rated" for name in benchmarks)


def beside(path: Path | None, data: Path | None) -> Path | None:
    """A relative path may also be meant from the data folder."""
    return data / path if path and data and not path.exists() and (data / path).exists() else path


def beside_data(scorer: str, data: Path | None) -> str:
    """A relative path to given numbers may also be meant from the data folder."""
    kind, _, path = scorer.partition(":")
    return f"{kind}:{beside(Path(path), data)}" if kind in ("given", "embeddings") and path else scorer


def benchmark(
    name: str, data: Path | None, images: Path | None, scorer: Any, *, counts: bool = True
) -> Benchmark:
    """The benchmark from its data; from the questions that given answers carry where no data is named."""
    from counterfoil.scorers.given import GivenTable

    if data is None and isinstance(scorer, GivenTable) and name in catalog.benchmarks():
        carried = catalog.benchmark_from_answers(name, scorer.table)
        if carried is not None:
            return carried
    return catalog.benchmark(name, data=data, images=images, counts=counts)


def narrowed(
    scorer: Any, benchmark: Benchmark, limit: int | None, unanswered: str, *, note: Callable[[str], None]
) -> tuple[Any, Benchmark, int]:
    """The given answers (None for other scorers), the questions asked, and how many lack an answer.

    `limit` leaves so many questions, and `unanswered` "leave-out" those that given outcomes answer.
    """
    from counterfoil.engine.align import answered, matched
    from counterfoil.scorers.given import GivenTable

    if not isinstance(scorer, GivenTable) or (scorer.unanswered is None and limit is None):
        return None, benchmark if limit is None else benchmark.limited(limit), 0
    scorer = matched(scorer, benchmark, note=terminal.warn)
    if limit is not None:
        scorer, benchmark = scorer.take(benchmark.spread(limit)), benchmark.limited(limit)
    empty = 0 if scorer.unanswered is None else int(scorer.unanswered.sum())
    if empty:
        what = "left out" if unanswered == "leave-out" else "counted as wrong"
        note(f"{benchmark.name}: {empty:,} of {len(benchmark):,} questions have no answer and are {what}")
        if unanswered == "leave-out":
            scorer, benchmark = answered(scorer, benchmark)
    return scorer, benchmark, empty


def check_at_hand(spec: str, backbone: str, benchmark: Benchmark) -> None:
    """Raise `DataError` where images or captions that the scorer `spec` will look at are missing.

    For dual encoders of a library, alone or as the backbone of a metric, this is known before a model is
    loaded; given embeddings need no items.
    """
    from counterfoil.engine.content import check_at_hand as check_items

    kind, _, name = spec.partition(":")
    models = ("open-clip", "hf")
    if kind in models:
        check_items(benchmark)
    elif kind == "metric" and backbone.partition(":")[0] in models and benchmark.card.shows == "image":
        check_items(benchmark, images="images" in catalog.metrics()[name].needs)
