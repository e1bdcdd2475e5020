"""What `evaluate` needs before it can measure: benchmarks found and read, scorers asked."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from counterfoil import catalog
from counterfoil.cli import terminal
from counterfoil.data.benchmark import Benchmark
from counterfoil.data.galleries import Gallery
from counterfoil.data.scores import Answers


def measures(benchmarks: Sequence[Benchmark], named: Sequence[str]) -> list[list[str] | None]:
    """The named measures that each benchmark has, in their order; None (all of them) where none is named.

    Raises what `evaluate` would, before anything is scored: where no benchmark has a measure, and where a
    benchmark has none of them.
    """
    from counterfoil.errors import InputError
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


def answers(
    benchmarks: Sequence[Benchmark],
    scorer: Any,
    *,
    first: Any,
    depth: int,
    top: int,
    beyond_is_wrong: bool,
    quiet: bool,
    **how: Any,
) -> Iterator[Answers]:
    """The answers to each benchmark in turn; galleries are asked together, when the first one's turn is."""
    from counterfoil.engine.answers import answers as of_galleries
    from counterfoil.engine.run import run

    galleries = [each for each in benchmarks if isinstance(each.questions, Gallery)]
    ranked: Iterator[Answers] | None = None
    for benchmark in benchmarks:
        answer: Answers
        with terminal.progress(quiet=quiet) as report:
            if not isinstance(benchmark.questions, Gallery):
                answer = run(benchmark, scorer, progress=report, **how)
            else:
                if ranked is None:
                    found = of_galleries(
                        galleries,
                        scorer,
                        first_stage=first,
                        depth=depth,
                        top=top,
                        beyond_is_wrong=beyond_is_wrong,
                        progress=report,
                        **how,
                    )
                    ranked = iter(found)
                answer = next(ranked)
        yield answer


def settings(pairs: Sequence[str]) -> dict[str, str]:
    """What `--set KEY=VALUE` says, by key; raises `InputError` for what is no such pair, and for a key twice.

    >>> settings(["prefix=", "references=paper"])
    {'prefix': '', 'references': 'paper'}
    """
    from counterfoil.errors import InputError

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
    from counterfoil.engine.judge import metric_for
    from counterfoil.scorers.captions.protocols import CaptionMetric

    return metric_for(scorer, benchmark.images) if isinstance(scorer, CaptionMetric) else scorer


def check(scorer: Any, benchmark: Benchmark) -> None:
    """Raise where a caption metric lacks something in a benchmark, before any benchmark is measured."""
    from counterfoil.engine.judge import check as check_metric
    from counterfoil.scorers.captions.protocols import CaptionMetric

    if isinstance(scorer, CaptionMetric):
        check_metric(benchmark, scorer)


def whole_rows(scorer: str, benchmarks: Sequence[str]) -> bool:
    """Whether each row of a given table answers a question of its own: where all of them rate captions.

    The table is read before the benchmarks are, since it may carry their questions.
    """
    from counterfoil.errors import DataError
    from counterfoil.store import read_json

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


def place(data: Path | None, benchmark_name: str, *, many: bool) -> Path | None:
    """Where one of several benchmarks lies: `data/NAME` where there is such a folder, else `data` itself.

    Several sets of people's judgements come in one folder, so of those a folder called as the first words of
    the name will do: flickr8k for flickr8k-expert and flickr8k-cf.
    """
    if data is None or not many:
        return data
    names = [benchmark_name]
    card = catalog.benchmarks().get(benchmark_name)
    if card is not None and card.form in ("rated", "preference"):
        words = benchmark_name.split("-")
        names += ["-".join(words[:count]) for count in range(len(words) - 1, 0, -1)]
    return next((data / name for name in names if (data / name).exists()), data)


def benchmark(name: str, data: Path | None, images: Path | None, scorer: Any) -> Benchmark:
    """The benchmark from its data; from the questions that given answers carry where no data is named."""
    from counterfoil.scorers.given import GivenTable

    if data is None and isinstance(scorer, GivenTable) and not Path(name).is_dir():
        carried = catalog.benchmark_from_answers(name, scorer.table)
        if carried is not None:
            return carried
    return catalog.benchmark(name, data=data, images=images)
