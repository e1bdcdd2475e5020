"""Candidate pools, benchmarks, single steps, published folders and trainings, from Python."""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, Literal

from counterfoil.api.arguments import feedback_of, path_of
from counterfoil.benchmarks.benchmark import Benchmark
from counterfoil.engine.deduplicate import Progress
from counterfoil.errors import UnknownNameError
from counterfoil.evaluation.pooling import Tasks
from counterfoil.evaluation.result import Run
from counterfoil.jobs.pool import CandidatePool
from counterfoil.jobs.pool import pool as pool_task
from counterfoil.jobs.publish import Published, PublishOptions
from counterfoil.jobs.publish import publish as publish_task


def pool(
    scores: Sequence[Run | str | Path],
    *,
    k: int = 5,
    queries: str | Path | Sequence[str] | None = None,
    direction: Literal["t2i", "i2t", "both"] = "both",
    ids: str | Path | None = None,
    exclude_known: bool = False,
    tasks: Tasks | None = None,
    quiet: bool = False,
    progress: Progress | None = None,
) -> CandidatePool:
    """The pairs that models propose with their first `k` items per query, for people to verify.

    `scores` are runs, run folders, embeddings (.npz) and similarities (.npy) of the same items; `ids` is an
    npz file with `image_ids` and `caption_ids` for files without. `queries` are ids, or the file that has
    them; by default all that every model answers, in one `direction` or both. `exclude_known` leaves out
    pairs that are right in the runs' benchmark already, `tasks` says how pairs are handed out and what they
    cost. Raises `DataError` where the items differ and `InputError` for two models of one name.

    >>> from counterfoil import evaluate
    >>> runs = [evaluate(f"blind:{name}", "world-gallery", draws=100, cache=None, quiet=True)
    ...         for name in ("length", "random")]
    >>> found = pool(runs, k=1, direction="t2i", quiet=True)
    >>> found.summary.models, found.to_arrow().column_names[:3]
    (('blind:length', 'blind:random'), ['pair', 'direction', 'query'])
    """
    return pool_task(
        scores,
        k=k,
        queries=queries,
        direction=direction,
        ids=ids,
        exclude_known=exclude_known,
        tasks=tasks,
        feedback=feedback_of(quiet=quiet, progress=progress),
    )


def publish(
    benchmark: str | Path | Benchmark,
    to: str,
    *,
    data: str | Path | None = None,
    images: str | Path | None = None,
    licence: str = "",
    anyway: bool = False,
    split: float | None = None,
    seed: int = 0,
    execute: bool = False,
    provenance: Mapping[str, Any] | str | Path | None = None,
    quiet: bool = False,
    **facts: Any,
) -> Published:
    """Publish a benchmark to "folder:OUT" or "hub:OWNER/NAME", as `counterfoil publish` has it.

    The folder holds Parquet that `datasets.load_dataset` reads with its images, a dataset card, a Croissant
    file, checksums, and counterfoil's own format; `evaluate` measures it like the benchmark. The hub gets it
    only with `execute`. `licence` is an SPDX identifier, by default what the card states. `provenance` says
    how the questions came to be (`counterfoil.benchmarks.publishing.facts.Provenance.of`), or is a JSON file
    that does. `facts` are further fields of `counterfoil.jobs.publish.PublishOptions`: creators, date,
    release, language, url, private, available, counts, overwrite. Raises `InputError` where a licence forbids
    it, unless `anyway`.

    >>> found = publish("world-choices", "hub:ann/shapes", quiet=True)
    >>> found.licence.spdx, found.executed, "data/test-00000-of-00001.parquet" in found.folder.sizes
    ('Apache-2.0', False, True)
    """
    known = {field.name for field in fields(PublishOptions)}
    for name in facts:
        if name not in known:
            raise UnknownNameError("fact of a publication", name, known)
    origin = provenance if provenance is None or isinstance(provenance, Mapping) else Path(provenance)
    options = PublishOptions(
        data=path_of(data),
        images=path_of(images),
        licence=licence,
        anyway=anyway,
        split=split,
        seed=seed,
        execute=execute,
        provenance=origin,
        **facts,
    )
    named = benchmark if isinstance(benchmark, Benchmark) else str(benchmark)
    return publish_task(named, to, options, feedback=feedback_of(quiet=quiet))
