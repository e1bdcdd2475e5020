"""Audits, annotator bias, the ledger of papers and studies in the world, from Python."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from counterfoil.api.arguments import (
    feedback_of,
    path_of,
)
from counterfoil.benchmarks.benchmark import Benchmark
from counterfoil.engine.deduplicate import Note, Progress
from counterfoil.evaluation.result import Run
from counterfoil.jobs.bias import AnnotatorStudy, gallery
from counterfoil.jobs.bias import bias as bias_task
from counterfoil.jobs.reproduce import Ledger
from counterfoil.jobs.reproduce import reproduce as reproduce_task
from counterfoil.jobs.study import StudyReport
from counterfoil.jobs.study import study as study_task


def bias(
    scores: Sequence[Run | str | Path],
    judgements: str | Path,
    *,
    k: int | None = None,
    measures: str | Sequence[str] = ("graded_recall_at_1", "graded_r_precision"),
    direction: Literal["i2t", "t2i"] | None = None,
    aggregate: Literal["majority", "mean"] = "majority",
    undefined: Literal["out", "zero"] = "out",
    positives: Sequence[str | Path | Benchmark] = (),
    data: str | Path | None = None,
    ids: str | Path | None = None,
    draws: int = 2000,
    seed: int = 0,
    quiet: bool = False,
    progress: Progress | None = None,
) -> AnnotatorStudy:
    """What the choice of machine annotators does to a benchmark, as `counterfoil bias` has it.

    `scores` are those of `pool`, `judgements` is its table with a column `answer` or `gain` filled in. Each
    model is measured on the benchmarks that each set of models would have made; bias is how far that is off
    the benchmark that all made together. The models propose their first `k` items, by default what the table
    says they proposed, else 5. `aggregate` says how several answers to one pair are made one, `undefined`
    whether queries for which a set found nothing are left out or count 0. Right answers of the galleries
    `positives` (read from `data`) are held against the judgements. Raises `DataError` for judged items and
    queries that a model does not rank.

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
    return bias_task(
        scores,
        judgements,
        k=k,
        measures=(measures,) if isinstance(measures, str) else measures,
        direction=direction,
        aggregate=aggregate,
        undefined=undefined,
        positives=[
            positive if isinstance(positive, Benchmark) else gallery(positive, data) for positive in positives
        ],
        ids=ids,
        draws=draws,
        seed=seed,
        feedback=feedback_of(quiet=quiet, progress=progress),
    )


def reproduce(
    data: str | Path | None = None, papers: str | Sequence[str] | None = None, *, quiet: bool = False
) -> Ledger:
    """What the papers print beside what is recomputed, as `counterfoil reproduce` has it.

    `data` is the folder of released files, by default that of COUNTERFOIL_DATA; where one is not there, its
    numbers are "no data". `papers` are names such as "bivlc" and "winoground", by default all. Raises
    `DataError` where a file is there but cannot be used.

    >>> found = reproduce(papers="bivlc", quiet=True).only("same")
    >>> [(entry.table, entry.printed, entry.rounded) for entry in found.entries][-1]
    ('Table 7', '0.49', '0.49')
    """
    from counterfoil.cli.paths import data_folder

    folder = data_folder(path_of(data))
    return reproduce_task(folder, papers, feedback=feedback_of(quiet=quiet))


def study(
    out: str | Path,
    *,
    full: bool = False,
    seed: int = 0,
    quiet: bool = False,
    progress: Progress | None = None,
    note: Note | None = None,
) -> StudyReport:
    """The study of `counterfoil demo --full`: four models trained on a drawn world, measured, and what held.

    Minutes of work, which the first note estimates. Networks, runs and the report are kept in the folder
    `out`; a study that was stopped goes on where it was, one with another seed or plan begins anew. `full`
    takes three seeds per model and two more studies, as `--dials` does. Raises `MissingExtraError` without
    the extras `train` and `report`, `InputError` for a folder that holds something else.
    """
    feedback = feedback_of(quiet=quiet, progress=progress, note=note)
    return study_task(out, full=full, seed=seed, feedback=feedback)
