"""Bias of machine annotators: what the choice of models that proposed pairs does to a benchmark."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, Unpack

import numpy as np
from numpy.typing import NDArray

from counterfoil import catalog
from counterfoil.benchmarks.benchmark import Benchmark
from counterfoil.benchmarks.judgements import Judgements, read_judgements
from counterfoil.benchmarks.tables import DataTable
from counterfoil.engine.plan import Progress
from counterfoil.engine.topk import ModelLists, topk_lists
from counterfoil.errors import DataError, InputError
from counterfoil.evaluation import judged_pairs as judged_pairs
from counterfoil.evaluation.annotators import AnnotatorBias, study, to_json as study_to_json
from counterfoil.evaluation.run import Run
from counterfoil.inputs.limits import most
from counterfoil.jobs.job import feedback_of, job, option, path_of
from counterfoil.jobs.pool import check_asked, load
from counterfoil.jobs.results import Tabular, declared, lines
from counterfoil.jobs.shared_options import DRAWS, IDS, SCORES, SEED, Reporting
from counterfoil.report import annotators
from counterfoil.report.annotators import WAYS
from counterfoil.report.tables import Table


class AnnotatorStudy(Tabular):
    """Each model on the benchmarks that each set of models would have made, and how far that is off."""

    models: tuple[str, ...]
    studies: tuple[AnnotatorBias, ...]
    #: The judged right answers that given benchmarks know of, and how many queries have more than one.
    coverages: tuple[judged_pairs.Coverage, ...]
    multiplicities: tuple[judged_pairs.Multiplicity, ...]
    remarks: tuple[str, ...]
    policies: dict[str, str]
    interval: dict[str, Any]

    rows_by = declared(
        annotators="one per direction, measure and set of annotators: how many queries it found something "
        "for, its bias, self_bias and non_self_bias (mean distances to the benchmark of all, in the "
        "measure's unit)",
        model="one per `direction`, `measure`, set of `annotators`, and `model` that is measured on it, "
        "with its `value: float`",
    )
    plot_title = "Bias by number of annotators"

    def _rows(self, by: str) -> list[dict[str, Any]]:
        rows = []
        for measure in self.studies:
            for name, of in study_to_json(measure)["annotators"].items():
                about = {"direction": measure.direction, "measure": measure.measure, "annotators": name}
                values = of.pop("performance")
                if by == "model":
                    rows += [{**about, "model": model, "value": value} for model, value in values.items()]
                else:
                    rows.append({**about, **of})
        return rows

    @property
    def notes(self) -> tuple[str, ...]:
        """What was judged and proposed, and what was left out."""
        return self.remarks

    @property
    def tables(self) -> list[Table]:
        """Performance and bias per direction and measure, what benchmarks know, and several right answers."""
        builders = (annotators.performance, annotators.alone, annotators.by_number)
        all_tables = [table(measure) for measure in self.studies for table in builders]
        if self.coverages:
            all_tables.append(annotators.coverages(self.coverages))
        return [*all_tables, annotators.multiplicities(self.multiplicities)]

    def to_json(self) -> dict[str, Any]:
        return {
            "models": list(self.models),
            "measures": {measure.name: study_to_json(measure) for measure in self.studies},
            "positives": _by_way(self.coverages),
            "multiplicity": _by_way(self.multiplicities),
            "policies": self.policies,
            "interval": self.interval,
            "notes": list(self.notes),
        }

    def plot(self) -> Any:
        """A matplotlib figure: bias by the number of annotators, a panel per direction and measure."""
        return annotators.curves(self.studies)


def _by_way(counts: Sequence[judged_pairs.Coverage | judged_pairs.Multiplicity]) -> dict[str, dict[str, Any]]:
    ways: dict[str, dict[str, Any]] = {}
    for count in counts:
        ways.setdefault(count.direction, {})[count.name] = count.to_json()
    return ways


@job(
    outputs="plot json",
    examples="""Examples:
  counterfoil pool bias runs/*/eccv --judgements judged.csv
  counterfoil pool bias pvse.npz vsrn.npz clip.npz --judgements judged.parquet --k 5 --plot bias.svg
  counterfoil pool bias runs/*/coco-5k --judgements judged.csv --positives coco-5k --positives cxc --data COCO

judged.csv is a table of `counterfoil pool` with a column `answer` (100% YES, Partially YES, Mostly NO,
100% NO) or `gain` (1 to 0). Several rows per pair are several people's answers.""",
)
def bias(
    scores: Annotated[Sequence[Run | str | Path], SCORES],
    judgements: Annotated[str | Path | DataTable, option(flag="--judgements")],
    *,
    k: Annotated[int | None, option(low=1, high=most("k"))] = None,
    measures: Annotated[str | Sequence[str], option(flag="--measure", commas=True)] = (
        "graded_recall_at_1",
        "graded_r_precision",
    ),
    direction: Literal["i2t", "t2i"] | None = None,
    aggregate: Literal["majority", "mean"] = "majority",
    undefined: Literal["out", "zero"] = "out",
    ids: Annotated[str | Path | None, IDS] = None,
    draws: Annotated[int, DRAWS] = 2000,
    seed: Annotated[int, SEED] = 0,
    positives: Sequence[str | Path | Benchmark] = (),
    data: Annotated[str | Path | None, option(variable="COUNTERFOIL_DATA")] = None,
    **reporting: Unpack[Reporting],
) -> AnnotatorStudy:
    """Measure how a benchmark favours the models whose proposals were judged for it.

    Each set of models makes the benchmark of its own proposals. Bias is the mean difference of all models'
    values from those on the benchmark that all models made; self-bias is that of the set itself,
    non-self-bias that of the others.

    `scores` are those of `pool`, `judgements` is its table, filled in. Raises `DataError` for judged items
    and queries that a model does not rank.

    Arguments:
        judgements: Table of judged pairs: direction, image, caption, answer or gain.
        k: Items that each model proposes; default: all ranks of the table, else 5.
        measures: Measures, separated by commas: recall_at_1, r_precision, and both with graded_.
        direction: Direction; for a table without that column, the one of all its judgements.
        aggregate: Aggregation of several answers to a pair.
        undefined: Queries for which a set of models found nothing: leave out, or count as 0.
        positives: Benchmark or folder whose right answers to compare with the judgements; may be repeated.
        data: Folder of the data of those benchmarks.

    >>> from counterfoil import evaluate, pool
    >>> runs = [evaluate(f"blind:{name}", "world-gallery", draws=100, cache=None, quiet=True)
    ...         for name in ("length", "random")]
    >>> pairs = pool(runs, k=2, direction="t2i", quiet=True).to_arrow().to_pylist()
    >>> rows = [f"t2i,{pair['image']},{pair['caption']},{pair['pair'] % 2}" for pair in pairs]
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     judged = Path(folder, "judged.csv")
    ...     _ = judged.write_text("\\n".join(["direction,image,caption,gain", *rows]))
    ...     print(bias(runs, judged, draws=100, quiet=True).models)
    ('blind:length', 'blind:random')
    """
    feedback = feedback_of(reporting)
    with feedback.busy("reading benchmarks"):
        galleries = []
        for positive in positives:
            if not isinstance(positive, Benchmark):
                place = None if Path(positive).is_dir() else data
                positive = catalog.benchmark(str(positive), data=place)
            # Raises where it is none.
            _ = positive.gallery
            galleries.append(positive)
    with feedback.busy("reading judgements and lists"):
        table = judgements if isinstance(judgements, DataTable) else Path(judgements)
        judged = read_judgements(table, direction=direction, aggregate=aggregate)
        models = load(scores, ids=path_of(ids), widest=True)
    clustering = next((m.benchmark for m in models if m.benchmark is not None), next(iter(galleries), None))
    studies: list[AnnotatorBias] = []
    coverages: list[judged_pairs.Coverage] = []
    counts: list[judged_pairs.Multiplicity] = []
    how = "the most frequent answer, of equals the lowest" if aggregate == "majority" else "the mean gain"
    notes = lines(
        f"{judged.pairs:,} judged pairs in {judged.rows:,} rows",
        judged.several and f"{judged.several:,} pairs have several answers: {how}",
        judged.unanswered and f"{judged.unanswered:,} rows have no answer and were left out",
    )
    chosen = [one for one in judged.directions if direction in (None, one.direction)]
    if not chosen:
        ways = ", ".join(one.direction for one in judged.directions)
        raise InputError("no judgement of this direction", given=direction, allowed=ways)
    two_way = False
    for one in chosen:
        with feedback.progress() as report:
            verified, unjudged = _verified(models, one, k, clustering, report)
        with feedback.busy("measuring on the benchmarks of all sets"):
            measured = study(
                verified, tuple(dict.fromkeys(measures)), undefined=undefined, draws=draws, seed=seed
            )
        studies += measured
        notes += _remarks(verified, unjudged, measured[0].queries, undefined)
        two_way = two_way or verified.dependence.crossed
        some, many = judged_pairs.against(one, galleries, dependence=verified.dependence)
        coverages += some
        counts += many
    if clustering is None and any(one.direction == "t2i" for one in judged.directions):
        notes.append("which captions are of one image is not known: intervals take each query by itself")
    method = "bootstrap over queries" + ("" if clustering is None else ", those of one image together")
    method += ", images and captions crossed" if two_way else ""
    return AnnotatorStudy(
        tuple(m.name for m in models),
        tuple(studies),
        tuple(coverages),
        tuple(counts),
        tuple(notes),
        policies={"several_answers": aggregate, "queries_without_right_answers": undefined},
        interval={"method": method, "level": 0.95, "draws": draws, "seed": seed},
    )


def _remarks(
    verified: judged_pairs.JudgedPairs, unjudged: int, queries: NDArray[np.int64], undefined: str
) -> Iterator[str]:
    """What of a direction was not judged or not proposed, and for how many queries sets found nothing."""
    way = WAYS[verified.direction]
    if unjudged:
        total = unjudged + int(verified.proposed.sum())
        yield f"{way}: {unjudged:,} of {total:,} proposals were never judged and count as wrong"
    if stray := int((~verified.proposed.any(axis=1)).sum()):
        yield f"{way}: {stray:,} judged pairs were proposed by no model here and make no benchmark"
    least, most_queries = int(queries[:-1].min()), int(queries[-1])
    if least != most_queries:
        how = "left out of its means" if undefined == "out" else "counted as 0"
        yield (
            f"{way}: all models found something for {most_queries:,} queries, some sets "
            f"for as few as {least:,}; a query without right answers was {how}"
        )


def _verified(
    models: Sequence[ModelLists],
    one: Judgements,
    k: int | None,
    clustering: Benchmark | None,
    report: Progress,
) -> tuple[judged_pairs.JudgedPairs, int]:
    """The judged pairs of a direction with each model's places, and how many proposals were not judged."""
    way = one.direction
    reference = models[0].ids(way)[1]
    number = {name: i for i, name in enumerate(reference)}
    item = np.array([number.get(name, -1) for name in one.items], dtype=np.int64)[one.item]
    if (item < 0).any():
        lost = np.unique(one.item[item < 0])
        raise DataError(
            "judged pairs of items that no model ranks",
            where=way,
            given=f"{int((item < 0).sum()):,} pairs, such as with {one.items[lost[0]]}",
            hint="are the judgements of this gallery?",
        )
    check_asked(models, way, one.queries)
    most = int(np.bincount(one.query[one.gain > 0], minlength=1).max())
    named = judged_pairs.proposals(one, [m.name for m in models])
    handed = k if k is not None else (int(named.max()) if named is not None else 5)
    tops = []
    for m in models:
        # As deep as R-Precision can ask for, where the lists are; never less than what is proposed.
        deep = min(max(handed if named is None else 1, most), m.depth[way])
        tops.append(
            topk_lists(m, way, one.queries, max(deep, 1 if named is not None else handed), progress=report)
        )
    place = judged_pairs.positions_in(one.query, item, tops)
    unjudged = 0
    if named is not None:
        proposed = (named > 0) & (named <= handed)
    else:
        proposed = (place > 0) & (place <= handed)
        unjudged = len(models) * len(one.queries) * handed - int(proposed.sum())
    return judged_pairs.JudgedPairs(
        way,
        tuple(m.name for m in models),
        one.query,
        one.gain,
        place,
        proposed,
        tuple(top.shape[1] for top in tops),
        judged_pairs.asked_about(clustering, way, one.queries),
    ), unjudged
