"""Comparisons of runs, and rank correlations between measures, as tables, pages and plain values."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Unpack

from counterfoil.errors import CounterfoilError, DataError, InputError, UnknownNameError
from counterfoil.evaluation.compare import (
    Comparison,
    Difference,
    check_common,
    compare as tested,
    over_shared,
    remeasured,
)
from counterfoil.evaluation.rank_correlation import RankCorrelation, rank_correlation
from counterfoil.evaluation.result import Run
from counterfoil.evaluation.run import find_runs
from counterfoil.inputs.options import Option
from counterfoil.jobs import shared_options as arguments
from counterfoil.jobs.evaluation_inputs import data_of, whole_benchmark
from counterfoil.jobs.job import SILENT, Feedback, feedback_of, job, option, path_of, terminal_feedback
from counterfoil.jobs.results import Pictures, Tabular, TextTables, declared, measure_rows, write, write_page
from counterfoil.outputs import active_outputs
from counterfoil.report import figures
from counterfoil.report.comparison_tables import by_group, differences, headline, overview
from counterfoil.report.results import rests_on
from counterfoil.report.tables import Column, Table

if TYPE_CHECKING:
    from counterfoil.evaluation.lengths import LengthCorrelation

_PAGE_DATA = Option("Folder of the benchmark's images, if they moved.", None)
_PAGE_IMAGES = Option("Folder of the images, where the data name files.", None, folder=True)


class RunComparison(TextTables):
    """Runs side by side, a `Comparison` per benchmark, with a test of every difference."""

    rows_by = declared(
        difference="one per tested difference: `benchmark`, `measure`, `a` minus `b`, `value: float`, "
        "`low: float` and `high: float` (95 %), `p: float` of no difference, `p_holm: float`, `mcnemar: "
        "float`, `signature`",
        measure="those of all runs, as EvaluationRun has them",
    )

    comparisons: tuple[Comparison, ...]

    def __len__(self) -> int:
        return len(self.comparisons)

    def __iter__(self) -> Iterator[Comparison]:
        return iter(self.comparisons)

    def __getitem__(self, benchmark: str) -> Comparison:
        """The comparison on one benchmark; raises `UnknownNameError` for one that is not here."""
        comparisons = {comparison.benchmark: comparison for comparison in self.comparisons}
        if benchmark not in comparisons:
            raise UnknownNameError("benchmark", benchmark, comparisons)
        return comparisons[benchmark]

    @property
    def differences(self) -> tuple[Difference, ...]:
        """The tested differences on all benchmarks: to the baseline where there is one, else of all pairs."""
        return tuple(d for comparison in self._tested for d in comparison.differences)

    def _rows(self, by: str) -> Sequence[Any]:
        if by == "difference":
            return self.differences
        runs = [run for comparison in self.comparisons for run in comparison.runs]
        return [row for run in runs for row in measure_rows(run)]

    def to_json(self) -> list[dict[str, Any]]:
        """Every run's result, with its differences to the baseline (else to later runs) as `against`."""
        numbers = ("low", "high", "p", "p_holm", "mcnemar", "signature")
        results = []
        for comparison in self.comparisons:
            for run in comparison.runs:
                against: dict[str, dict[str, Any]] = {}
                for d in comparison.differences:
                    if d.a == run.name and comparison.baseline in (None, d.b):
                        facts = {"difference": d.value, **{name: getattr(d, name) for name in numbers}}
                        against.setdefault(d.b, {})[d.measure] = facts
                results.append({**run.result.to_json(), "model": run.name, "against": against})
        return results

    def to_html(
        self,
        path: str | Path,
        *,
        title: Annotated[str, arguments.TITLE] = "counterfoil report",
        pictures: Annotated[Pictures, arguments.PICTURES] = "auto",
        data: Annotated[Path | None, _PAGE_DATA] = None,
        images: Annotated[Path | None, _PAGE_IMAGES] = None,
        private: Annotated[bool, arguments.PRIVATE] = False,
        overwrite: bool = False,
    ) -> None:
        """Write one self-contained page: tables, figures, tests, and the questions to look through.

        `pictures` says which images it carries: "auto" asks the benchmark's licence. They are looked for
        where the runs found them, or in `data` and `images`. Paths and users of this machine are left out,
        except with `private`. A file that exists is replaced only with `overwrite`. Needs matplotlib.
        """
        shown = self
        if pictures != "never":
            paths = {"data": data, "images": images}
            required = pictures == "always" and data is not None
            shown = self.with_images(**paths, required=required, feedback=terminal_feedback())
        write_page(
            shown.comparisons, path, title=title, pictures=pictures, private=private, overwrite=overwrite
        )

    def plot(self, measures: Sequence[str] | None = None, *, benchmark: str | None = None) -> Any:
        """A matplotlib figure of the measures of one benchmark with intervals and chance.

        By default the main measures of the only benchmark. Needs matplotlib.
        """
        if benchmark is None and len(self) > 1:
            names = [comparison.benchmark for comparison in self.comparisons]
            raise InputError("a figure is of one benchmark", allowed=names, hint="name it: benchmark=NAME")
        chosen = self.comparisons[0] if benchmark is None else self[benchmark]
        return figures.measures(chosen, measures)

    def with_images(
        self,
        *,
        data: Path | None = None,
        images: Path | None = None,
        required: bool = False,
        feedback: Feedback = SILENT,
    ) -> "RunComparison":
        """The comparison with images from where the run found them, or from `data` and `images`.

        Where they are not in `data`, that is a note, or with `required` an error.
        """
        comparisons = []
        for comparison in self.comparisons:
            # Where the data and the images of the benchmark lie, as far as anything says so.
            run = comparison.runs[0]
            place = run.benchmark.path
            if data is not None:
                place = data_of({"": data}, comparison.benchmark, many=len(self) > 1)
            folder = images or path_of(run.manifest.get("benchmark", {}).get("images") or None)
            if (outputs := active_outputs()) is not None:
                outputs.read(*(path for path in (place, folder) if path is not None))
            try:
                whole = None
                if not run.benchmark.images_at_hand:
                    whole = whole_benchmark(comparison.benchmark, place, folder)
                if whole is not None:
                    runs = tuple(run.with_benchmark(whole) for run in comparison.runs)
                    if all(after is before for after, before in zip(runs, comparison.runs, strict=True)):
                        raise DataError(
                            "not the questions, captions and images that the runs were measured on",
                            where=place or comparison.benchmark,
                            hint="name the right ones with --data and --images",
                        )
                    comparison = replace(comparison, runs=runs)
            except CounterfoilError as error:
                if required:
                    raise
                feedback.note(f"no pictures of {comparison.benchmark} on the page: {error}")
            comparisons.append(comparison)
        return RunComparison(tuple(comparisons))

    @property
    def tables(self) -> list[Table]:
        """The main measures of each benchmark, and the differences."""
        return self._with_differences(*(overview(c, finer=False) for c in self.comparisons))

    @property
    def csv_tables(self) -> list[Table]:
        """All measures, those of groups, and the differences."""
        return self._with_differences(overview(*self.comparisons), *map(by_group, self.comparisons))

    @property
    def _tested(self) -> list[Comparison]:
        """The comparisons with those of their differences that are tested."""
        return [replace(c, differences=c.against_baseline()) if c.baseline else c for c in self.comparisons]

    def _with_differences(self, *tables: Table) -> list[Table]:
        """These that have columns, and a table of the tested differences per measure that has any."""
        of_differences = [
            differences(comparison, name)
            for comparison in self._tested
            for name in dict.fromkeys(d.measure for d in comparison.differences)
        ]
        return [table for table in (*tables, *of_differences) if table.columns]

    @property
    def text_tables(self) -> list[Table]:
        """The tables of a page of text: a gallery's by itself, with what its authors report."""
        galleries = [of for of in self.comparisons if of.runs[0].benchmark.questions.directed]
        others = [comparison for comparison in self.comparisons if comparison not in galleries]
        overviews = [overview(*others)] if others else []
        overviews += [overview(comparison, measures=headline(comparison) or None) for comparison in galleries]
        return self._with_differences(*overviews, *map(by_group, self.comparisons))

    @property
    def notes(self) -> list[str]:
        """What the intervals of each benchmark rest on."""
        return [
            f"{comparison.runs[0].benchmark.title}: {line}"
            for comparison in self.comparisons
            for line in rests_on(comparison.runs[0].benchmark, [run.result for run in comparison.runs])
        ]


@job(
    outputs="html markdown latex csv json",
    examples="""Examples:
  counterfoil compare runs/*
  counterfoil compare runs/* --baseline clip --html report.html
  counterfoil compare runs/people runs/clip --shared
  counterfoil compare runs/* --latex table.tex --markdown table.md --json comparison.json""",
)
def compare(
    runs: Annotated[Sequence[Run | str | Path], arguments.RUNS],
    *,
    baseline: Run | str | None = None,
    interval: Literal["auto", "wilson", "clusters", "crossed"] | None = None,
    ties: Literal["strict", "half", "optimistic"] | None = None,
    shared: bool = False,
    draws: Annotated[int, arguments.DRAWS] = 10_000,
    seed: Annotated[int, arguments.SEED] = 0,
    **reporting: Unpack[arguments.Reporting],
) -> RunComparison:
    """Compare runs question by question: intervals of differences, p-values, McNemar, Holm.

    The same seed gives the same numbers, to the last bit.

    `runs` are runs, run folders, and folders of them. With a `baseline` (a run or its name) every other run
    is tested against it, else all pairs. `draws` and `seed` are of correlations of runs, where their
    intervals are made anew. Raises what `counterfoil.evaluation.compare` raises, and `InputError` where the
    runs have no benchmark in common.

    Arguments:
        baseline: Compare every other run with this one.
        interval: Method of all intervals; default: the runs keep theirs, and differences use auto.
        ties: Tie policy for all runs; default: as each run counted them.
        shared: Compare over the questions that all runs answer, such as people beside models.

    >>> from counterfoil import evaluate
    >>> runs = [evaluate(f"blind:{name}", "world-quads", limit=50, draws=100, cache=None, quiet=True)
    ...         for name in ("length", "random")]
    >>> compared = compare(runs, baseline=runs[0], draws=100)
    >>> [(d.a, d.b, d.measure) for d in compared.differences][-1]
    ('blind:random', 'blind:length', 'group')
    """
    feedback = feedback_of(reporting)
    loaded = _load_runs(runs, feedback)
    check_common(loaded, note=feedback.note)
    drawn: dict[str, Any] = {"draws": draws, "seed": seed}
    if ties is not None:
        counted = [run.result.ties["policy"] == ties for run in loaded]
        both = zip(loaded, counted, strict=True)
        loaded = [run if same else remeasured(run, ties=ties, **drawn) for run, same in both]
    if shared:
        loaded = [*over_shared(loaded, note=feedback.note, interval=interval or "auto", **drawn)]
    if interval is not None:
        loaded = [remeasured(run, interval=interval, **drawn) for run in loaded]
    name = baseline.name if isinstance(baseline, Run) else baseline
    return RunComparison(tested(loaded, baseline=name, interval=interval or "auto"))


class ModelRankings(Tabular):
    """Rank correlations between measures, and the rank of every model."""

    correlation: RankCorrelation
    runs: tuple[Run, ...]

    rows_by = declared(
        pair="one per pair of measures: `a`, `b`, `models: int`, Kendall's `tau: float` and Spearman's "
        "`rho: float` in [-1, 1] with their intervals (`tau_low: float`, `tau_high: float`, `rho_low: "
        "float`, `rho_high: float`)",
        model="one per `model` and `measure`: `value: float`, `rank: float` from 1, equal models sharing "
        "the best of theirs",
    )

    def _rows(self, by: str) -> Sequence[Any]:
        correlation = self.correlation
        if by == "pair":
            return correlation.pairs
        values, ranks = correlation.values.tolist(), correlation.ranks.tolist()
        return [
            {"model": model, "measure": column.name, "value": values[i][j], "rank": ranks[i][j]}
            for i, model in enumerate(correlation.models)
            for j, column in enumerate(correlation.columns)
        ]

    @property
    def tables(self) -> list[Table]:
        """The agreement of measures, and the ranks of the models."""
        from counterfoil.report.rankings_page import agreements_table, ranks_table

        return [agreements_table(self.correlation), ranks_table(self.correlation)]

    @property
    def notes(self) -> list[str]:
        """The measures that were left out, if any."""
        few = self.correlation.few
        return [f"left out, since fewer than three models have them: {', '.join(few)}"] if few else []

    def to_json(self) -> dict[str, Any]:
        return self.correlation.to_json()

    def to_html(
        self,
        path: str | Path,
        *,
        title: Annotated[str, arguments.TITLE] = "What rankings say",
        private: Annotated[bool, arguments.PRIVATE] = False,
        overwrite: bool = False,
    ) -> None:
        """Write one self-contained page with figures; `private` keeps paths and users. Needs matplotlib."""
        from counterfoil.report.figure_style import check
        from counterfoil.report.rankings_page import page

        check()
        html = page(self.correlation, runs=self.runs, title=title, private=private)
        write(path, html, command="compare rankings", overwrite=overwrite)

    def plot(self) -> Any:
        """A matplotlib figure: the rank of every model by measure."""
        from counterfoil.report.rankings_page import bump

        return bump(self.correlation)


@job(
    outputs="html json",
    examples="""Examples:
  counterfoil compare rankings runs/*
  counterfoil compare rankings runs/* --measure coco-5k:mean_recall_at_1 --measure eccv:mean_map_at_r
  counterfoil compare rankings runs/* --measure "mean_*" --html rankings.html --json rankings.json

A measure may be named with its benchmark (eccv:mean_map_at_r), without (mean_map_at_r), without the direction
(map_at_r, the mean over both), or as a pattern ("eccv:*").""",
)
def rank(
    runs: Sequence[Run | str | Path],
    *,
    measures: Annotated[Sequence[str], option(flag="--measure", complete="measures")] = (),
    draws: Annotated[int, arguments.DRAWS] = 1000,
    seed: Annotated[int, arguments.SEED] = 0,
    **reporting: Unpack[arguments.Reporting],
) -> ModelRankings:
    """Compare how measures and benchmarks rank models.

    Prints Kendall's tau-b and Spearman's correlation between measures, with intervals from resampled models
    and queries, and the rank of every model. Equal seeds give equal numbers.

    `runs` are runs, run folders, and folders of them. Raises `InputError` for fewer than three models, and
    what `counterfoil.evaluation.rank_correlation` raises.

    Arguments:
        runs: Run folders, or folders of them; three models or more.
        measures: Measure, or a pattern of names; may be repeated.

    >>> from counterfoil import evaluate
    >>> runs = [
    ...     evaluate("blind:length", "world-quads", name=name, limit=50, draws=100, cache=None, quiet=True)
    ...     for name in ("one", "two", "three")
    ... ]
    >>> rank(runs, draws=100, quiet=True).correlation.models
    ('one', 'two', 'three')
    """
    loaded = _load_runs(runs, feedback_of(reporting))
    correlation = rank_correlation(loaded, measures=measures, draws=draws, seed=seed)
    return ModelRankings(correlation, tuple(loaded))


def _load_runs(runs: Sequence[Run | str | Path], feedback: Feedback = SILENT) -> list[Run]:
    """The runs among `runs`, then those in folders (however deep); raises `InputError` for none."""
    loaded = [run for run in runs if isinstance(run, Run)]
    folders = [run for run in runs if not isinstance(run, Run)]
    if folders:
        loaded += find_runs(folders, note=feedback.note)
    if not loaded:
        raise InputError("no runs", hint="give runs, run folders, or folders of them")
    return loaded


class Lengths(Tabular):
    """The correlation of each main measure of runs with the length of captions."""

    correlations: "tuple[LengthCorrelation, ...]"

    rows_by = ("correlation",)

    def _rows(self, by: str) -> list[Any]:
        return [correlation.to_json() for correlation in self.correlations]

    def to_json(self) -> list[Any]:
        return self._rows("correlation")

    @property
    def tables(self) -> list[Table]:
        """A table per benchmark."""
        columns = [Column("measure", align="left"), Column("r"), Column("95 % interval"), Column("p")]
        tables = []
        for benchmark in dict.fromkeys(of.benchmark for of in self.correlations):
            its, rows = [of for of in self.correlations if of.benchmark == benchmark], []
            for of in its:
                p = "<0.0001" if of.p < 1e-4 else f"{of.p:.4f}"
                numbers = (f"{of.value:+.2f}", f"[{of.low:+.2f}, {of.high:+.2f}]", p)
                printed = (text.replace("-", "−") for text in numbers)
                varies = of.value == of.value
                rows.append((of.model, of.measure, *(printed if varies else ("–", "does not vary", ""))))
            title = f"{benchmark}, {its[0].questions:,} questions, {its[0].words:.1f} words a caption"
            tables.append(Table.of(title, "model", columns, rows))
        return tables


@job(
    outputs="json",
    examples="""Examples:
  counterfoil compare lengths runs/clip/winoground
  counterfoil compare lengths runs/* --json lengths.json""",
)
def lengths(runs: Annotated[Sequence[Path], arguments.RUNS], *, data: Path | None = None) -> Lengths:
    """Correlate a run's main measures with the length of the captions in words (Pearson).

    As in Table 6 of Winoground's paper, with intervals that account for shared images and captions. For rated
    captions, the score itself is correlated with the caption's length.

    Arguments:
        data: Data of Winoground, where its captions are not at hand: its tags hold lengths.
    """
    from counterfoil.evaluation.lengths import length_correlations, mean_words

    loaded = [run for run in find_runs(runs) if not run.benchmark.questions.directed]
    if not loaded:
        raise InputError("galleries alone: their queries have no captions of their own", given=runs[0])
    correlations = (length_correlations(run, words=mean_words(run.benchmark, data)) for run in loaded)
    return Lengths(tuple(chain.from_iterable(correlations)))
