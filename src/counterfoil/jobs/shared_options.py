"""Options that several commands share, with their defaults, and what jobs make of them."""

import os
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Protocol, TypedDict, cast, runtime_checkable

from counterfoil.benchmarks.benchmark import Benchmark
from counterfoil.engine.deduplicate import Note, Progress
from counterfoil.engine.executor import Executor
from counterfoil.engine.session import Session, executor_named
from counterfoil.errors import InputError
from counterfoil.inputs.limits import most
from counterfoil.inputs.options import Option, key_values
from counterfoil.jobs.job import (
    Feedback,
    at_end,
    documented,
    ignore,
    option,
    terminal_feedback,
)
from counterfoil.models.base import Options, identity_of
from counterfoil.storage.location import user_cache

#: All that can be measured: scorers of pairs, dual encoders, detectors, caption metrics, given numbers, and
#: blind scorers that learn. What one is shows in what it can do, so that nothing is imported to say it.
if TYPE_CHECKING:
    from counterfoil.engine.rank import Given
    from counterfoil.models.base import Classifier, Embedder, Scorer
    from counterfoil.models.captions.base import CaptionMetric
    from counterfoil.models.learned import LearnedScorer

    AnyScorer = Scorer | Embedder | Classifier | CaptionMetric | Given | LearnedScorer
else:

    @runtime_checkable
    class AnyScorer(Protocol):
        """What has an identity."""

        identity: Any


#: A name, a folder, or what was loaded.
AnyBenchmark = str | Path | Benchmark
#: A folder of finished work, "default" for the user's own, None to keep nothing.
Cache = str | Path | None
#: A path, a path per benchmark, or texts PATH and NAME=PATH.
Data = str | Path | Mapping[str, str | Path] | Sequence[str] | None
#: Data of one benchmark: a path, or a table in memory (`counterfoil.benchmarks.tables.memory_table`).
TableData = Any
#: Values by name; in a shell KEY=VALUE.
Settings = Mapping[str, Any] | Sequence[str] | None

DRAWS = Option("Bootstrap samples.", 10_000, low=100, high=most("draws"), panel="Statistics")
SEED = Option("Random seed.", 0, low=0, high=most("seed"), panel="Statistics")
TITLE = Option("Title of the HTML page.", panel="Results")
BENCHMARK = Option(
    "Name (see 'counterfoil list benchmarks') or folder of a benchmark.",
    complete="benchmarks",
)
BENCHMARKS = Option(
    "Names (see 'counterfoil list benchmarks'), folders or TOML files of benchmarks.",
    complete="benchmarks",
)
SCORER = Option(
    "What gives the scores, as KIND:WHAT; see 'counterfoil list scorers'.",
    complete="scorers",
)
RUNS = Option("Run folders, or folders of them.")
SCORES = Option("Run folders, embeddings (.npz) or similarities (.npy).", metavar="SCORES", least=1)
IDS = Option("An npz file with image_ids and caption_ids, for files without.", None)
QUERIES = Option("Ids of the queries, one per line.", None, metavar="PATH")
DIRECTION = Option("Query with captions (t2i), with images (i2t), or both.", "both")
LIMIT = Option("Take N evenly spaced questions.", None, low=1)
SETTINGS = Option(
    "Setting of the scorer or caption metric, KEY=VALUE, such as references=paper; may be repeated.",
    None,
    flag="--set",
    metavar="KEY=VALUE",
    panel="Model",
)
#: Where a model computes, as text or as PyTorch has it.
DEVICE = option("auto", pattern="auto|(cpu|cuda|mps|xpu)(:[0-9]{1,3})?", metavar="auto|cpu|cuda[:N]|mps|xpu")
WORKERS = Option(
    "Processes that decode images; default: one per core, at most 8.",
    None,
    low=0,
    high=most("workers"),
    panel="Work",
)
CACHE = Option(
    "Folder that keeps embeddings and scores; --no-cache neither reads nor writes one.",
    "default",
    shown="the user's own",
    variable="COUNTERFOIL_CACHE",
    panel="Work",
)
PROMPT = Option("Template around captions, with {} for the caption.", "{}", panel="Model")
#: Options of pages.
PRIVATE = Option("Keep paths and user names of this machine, which pages leave out.", False, panel="Results")
PICTURES = Option("Show images on the page; auto follows the benchmark's licence.", "auto", panel="Results")
OVERWRITE = Option("Replace files that exist; never one that the command reads.", False)
AVAILABLE = Option("Take only questions whose images and captions are present.", False, panel="Data")
COUNTS = Option(
    "Whether to require as many questions as the release has.", True, flag="--no-counts", panel="Data"
)


class Reporting(TypedDict, total=False):
    """How a job says what it does; by default notes and a bar on standard error.

    `quiet` shows warnings alone, `progress` is called with (stage, done, total) in place of the bar, `note`
    with each line about what was decided; `feedback` is all of it, from another job.
    """

    quiet: bool
    progress: Progress | None
    note: Note | None
    feedback: Feedback


@documented
class Work(Reporting, total=False):
    """How models are run, and where finished work is kept.

    Work:
        batch_size: Items per batch; it changes no decision.
        executor: Where missing scores are computed: local, a Ray cluster, or rank:R/N (process R of N that
            share a cache).
    """

    batch_size: Annotated[int, option(32, low=1, high=most("batch_size"))]
    workers: Annotated[int | None, WORKERS]
    cache: Annotated[Cache, CACHE]
    executor: Annotated[str | Executor, option("local", metavar="local | ray | ray://HOST:PORT | rank:R/N")]


@documented
class Device(TypedDict, total=False):
    """Where and how precisely a model computes.

    Model:
        device: Device of the models; auto takes a GPU if there is one.
        precision: Precision of weights and activations.
    """

    device: Annotated[Any, DEVICE]
    precision: Annotated[Literal["fp32", "bf16", "fp16"], option("fp32")]


@documented
class Sources(TypedDict, total=False):
    """Where the data and the images of benchmarks that are given by name lie.

    Data:
        data: File or folder of the benchmark, or a folder that holds one per name; NAME=PATH for one of
            several; may be repeated. Default: what 'counterfoil benchmarks fetch' downloaded.
        images: Folder of the images that the data name; NAME=FOLDER for one benchmark.
    """

    data: Annotated[Data | TableData, option(None, metavar="[NAME=]PATH")]
    images: Annotated[Data, option(None, metavar="[NAME=]FOLDER")]


def feedback_of(reporting: Reporting) -> Feedback:
    """The feedback of the terminal, parts of it replaced, or that of another job."""
    if (given := reporting.get("feedback")) is not None:
        if not isinstance(given, Feedback):
            raise InputError("wrong type", where="argument 'feedback'", given=type(given).__name__)
        return given
    quiet, progress, note = reporting.get("quiet", False), reporting.get("progress"), reporting.get("note")
    if not isinstance(quiet, bool):
        raise InputError("neither True nor False", where="argument 'quiet'", given=quiet)
    for name, function in (("progress", progress), ("note", note)):
        if function is not None and not callable(function):
            raise InputError("not a function", where=f"argument '{name}'", given=function)
    feedback = terminal_feedback(quiet=quiet)
    if progress is not None:
        feedback = replace(feedback, progress=lambda: nullcontext(progress))
    if note is not None:
        feedback = replace(feedback, note=note, warn=note, remark=note)
    elif quiet:
        feedback = replace(feedback, warn=ignore)
    return feedback


def session_of(work: Work, feedback: Feedback, scorer: object = "") -> Session:
    """The session of a job's work; a `scorer` of one's own may have no place in the default cache."""
    named = work["executor"]
    executor = executor_named(named) if isinstance(named, str) else named
    if isinstance(named, str) and executor is not None and executor.distant:
        at_end(cast(Any, executor).close)
    cache, workers = cache_for(scorer, work["cache"]), processes(work["workers"])
    return Session(cache, work["batch_size"], workers, note=feedback.remark, executor=executor)


def processes(workers: int | None) -> int:
    """How many processes decode images: by default one per core, at most 8."""
    return min(8, os.cpu_count() or 1) if workers is None else workers


def cache_of(cache: Cache) -> Path | None:
    """The folder of finished work: the one named, else the user's cache folder; None keeps nothing."""
    if cache is None:
        return None
    named = os.environ.get("COUNTERFOIL_CACHE") if cache == "default" else cache
    return Path(named) if named else user_cache()


def cache_for(scorer: object, cache: Cache) -> Path | None:
    """The cache; None where "default" was asked for and nothing tells one scorer from another of its name."""
    if cache == "default" and not isinstance(scorer, str):
        from counterfoil.models.callables import FunctionScorer

        identity = identity_of(scorer)
        reproducible = identity.revision or (identity.weights and not isinstance(scorer, FunctionScorer))
        return cache_of("default") if reproducible else None
    return cache_of(cache)


def path_of(given: str | Path | None) -> Path | None:
    """The path, where one is given."""
    return None if given is None else Path(given)


def settings_of(settings: Settings, where: str = "--set") -> dict[str, str]:
    """Settings as they would be typed, by key; of those that were typed KEY=VALUE the values."""
    if isinstance(settings, list | tuple):
        return key_values(settings, where)
    words = {True: "yes", False: "no", None: "none"}
    return {
        key: ",".join(map(str, value))
        if isinstance(value, list | tuple)
        else words[value]
        if value is None or isinstance(value, bool)
        else str(value)
        for key, value in cast(Mapping[str, Any], settings or {}).items()
    }


def scorer_options(given: Mapping[str, Any], **others: Any) -> Options:
    """Options of a scorer that is given by name: those among the arguments of a job, and `others`."""
    names = ("precision", "prompt", "column", "unanswered", "seed", "ids", "backbone")
    options = {name: given[name] for name in names if name in given}
    settings = settings_of(given.get("settings"))
    return Options(**{"device": str(given.get("device", "auto")), "settings": settings, **options, **others})


def api_key(variable: str | None = None) -> str:
    """The key of endpoints: from the environment variable named, else from COUNTERFOIL_API_KEY, else none."""
    from counterfoil.inputs.fields import secret

    name = variable or "COUNTERFOIL_API_KEY"
    key = secret(os.environ.get(name, ""), where=name)
    if variable is not None and not key:
        raise InputError("the environment variable is not set", where="--api-key-env", given=variable)
    return key
