"""Options that several commands share, with their defaults."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Protocol, TypedDict, runtime_checkable

from counterfoil.benchmarks.benchmark import Benchmark
from counterfoil.engine.executor import Executor
from counterfoil.engine.plan import Note, Progress
from counterfoil.inputs.limits import most
from counterfoil.inputs.options import Option
from counterfoil.jobs.job import Feedback, documented, option

#: All that can be measured: models of pairs, dual encoders, detectors, caption metrics, given numbers, and
#: blind models that learn. What one is shows in what it can do, so that nothing is imported to say it.
if TYPE_CHECKING:
    from counterfoil.engine.rank import Given
    from counterfoil.models.base import Classifier, Embedder, Model
    from counterfoil.models.baselines import LearnedModel
    from counterfoil.models.captions.base import CaptionMetric

    AnyModel = Model | Embedder | Classifier | CaptionMetric | Given | LearnedModel
else:

    @runtime_checkable
    class AnyModel(Protocol):
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
    "Name (see 'counterfoil list benchmarks') or folder of a benchmark.", complete="benchmarks"
)
BENCHMARKS = Option(
    "Names (see 'counterfoil list benchmarks'), folders or TOML files of benchmarks.", complete="benchmarks"
)
MODEL = Option("What gives the scores, as KIND:WHAT; see 'counterfoil list models'.", complete="models")
RUNS = Option("Run folders, or folders of them.")
SCORES = Option("Run folders, embeddings (.npz) or similarities (.npy).", metavar="SCORES", least=1)
IDS = Option("An npz file with image_ids and caption_ids, for files that have none.", None)
QUERIES = Option("Ids of the queries, one per line.", None, metavar="PATH")
DIRECTION = Option("Query with captions (t2i), with images (i2t), or both.", "both")
LIMIT = Option("Take N evenly spaced questions.", None, low=1)
SETTINGS = Option(
    "Setting of the model or caption metric, KEY=VALUE, such as references=paper; may be repeated.",
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
        batch_size: Items per batch; it does not change results.
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
