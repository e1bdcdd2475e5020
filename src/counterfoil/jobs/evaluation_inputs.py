"""Inputs of jobs: benchmarks and models found and loaded, sessions, given answers narrowed, early checks."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Annotated, Any, Literal, cast

from counterfoil import catalog
from counterfoil.benchmarks.benchmark import BENCHMARKS, Benchmark
from counterfoil.benchmarks.forms import FORMS, Form
from counterfoil.engine.session import Session, executor_named
from counterfoil.errors import DataError, InputError
from counterfoil.inputs.files import is_distant, read_json
from counterfoil.inputs.options import key_values
from counterfoil.jobs import shared_options as shared
from counterfoil.jobs.job import Feedback, at_end, feedback_of, job, option, path_of
from counterfoil.models.base import Options, abilities, identity_of, stated_identity
from counterfoil.storage.object_store import user_cache

#: Paths given with one option: under "" that for all benchmarks, and those of single ones.
PathsOf = Mapping[str, Path]


def read_places(paths: shared.Data, benchmarks: Sequence[str], *, option: str = "--data") -> PathsOf:
    """A path for all benchmarks, one per name, or texts as in a shell: PATH once, and NAME=PATH of some.

    Raises `DataError` where a path does not exist. A URL is looked at when it is read.

    >>> found = read_places(["sugarcrepe=/", "."], ["sugarcrepe", "bivlc"])
    >>> {name: str(path) for name, path in found.items()}
    {'sugarcrepe': '/', '': '.'}
    """
    folders: dict[str, Path] = {}
    if isinstance(paths, Mapping):
        for name, path in paths.items():
            if not isinstance(path, str | Path):
                raise InputError("not a path", where=f"{option}, {name}", given=path)
            folders[name] = Path(path)
    elif isinstance(paths, str | Path):
        folders[""] = Path(paths)
    benchmarks = [BENCHMARKS.spelt(benchmark) for benchmark in benchmarks]
    for value in paths if isinstance(paths, list | tuple) else ():
        name, equals, path = value.partition("=")
        name = BENCHMARKS.spelt(name)
        problem, allowed = "", None
        if equals and (name in benchmarks or name in BENCHMARKS):
            if name not in benchmarks:
                problem, allowed = "names a benchmark that is not asked about", benchmarks
            elif not path:
                problem, allowed = "lacks a path", [f"{name}=PATH"]
            elif name in folders:
                problem = "names one benchmark twice"
        elif not value:
            problem, allowed = "lacks a path", ["PATH, or NAME=PATH"]
        elif "" in folders:
            problem, allowed = "is given twice", [f"{option} NAME=PATH for each benchmark"]
        else:
            name, path = "", value
        if problem:
            raise InputError(f"{option} {problem}", given=value or None, allowed=allowed)
        folders[name] = Path(path)
    for place in folders.values():
        if not is_distant(place) and not place.exists():
            raise DataError("no such file or folder", where=place, hint=f"check {option}")
    return folders


def data_of(paths: PathsOf, benchmark: str, *, many: bool) -> Path | None:
    """Where the data of a benchmark lie: its own path, of `many` PATH/NAME, or what was fetched.

    Sets of judged captions share folders called as the first words of the name: flickr8k for flickr8k-expert.
    """
    if benchmark in paths:
        return paths[benchmark]
    plain = paths.get("")
    if plain is None or not many:
        return catalog.fetched_data(benchmark) if plain is None else plain
    card = BENCHMARKS.get(benchmark)
    names = [benchmark]
    if card is not None and FORMS[card.form].judged:
        words = benchmark.split("-")
        names += ["-".join(words[:count]) for count in range(len(words) - 1, 0, -1)]
    for name in names:
        if (plain / name).exists():
            return plain / name
    if (folder := catalog.fetched_data(benchmark)) is not None:
        return folder
    return None if card is not None and card.hub else plain


@dataclass(frozen=True)
class BenchmarkSources:
    """Benchmarks that are named or read, and where the data and images of those that are named lie."""

    benchmarks: Sequence[str | Benchmark]
    data: PathsOf
    images: PathsOf

    @classmethod
    def of(
        cls, benchmarks: Sequence[shared.AnyBenchmark], data: shared.TableData, images: shared.Data
    ) -> "BenchmarkSources":
        """What arguments name; a table in memory is read as the one benchmark that is named."""
        if _in_memory(data):
            tables = []
            for benchmark in benchmarks:
                odd = isinstance(images, Mapping) or (isinstance(images, tuple) and len(images) != 1)
                if isinstance(benchmark, Benchmark) or odd:
                    raise InputError(
                        "data in memory are of one benchmark that is named",
                        given=str(benchmark),
                        allowed='"pairs", data=frame, images=FOLDER',
                    )
                (folder,) = images if isinstance(images, tuple) else (images,)
                tables.append(catalog.benchmark(str(benchmark), data=data, images=folder))
            benchmarks, data, images = tables, None, None
        named = [one if isinstance(one, Benchmark) else str(one) for one in benchmarks]
        names = [one.name if isinstance(one, Benchmark) else one for one in named]
        return cls(named, read_places(data, names), read_places(images, names, option="--images"))

    @property
    def names(self) -> list[str]:
        return [one if isinstance(one, str) else one.name for one in self.benchmarks]

    @property
    def paths(self) -> list[Path]:
        return [*self.data.values(), *self.images.values()]

    def images_of(self, benchmark: str) -> Path | None:
        """The folder of pictures for a benchmark: its own, else the plain one."""
        return self.images.get(benchmark, self.images.get(""))

    def check_names(self) -> None:
        """Raise `UnknownNameError` for a name that is neither a benchmark's nor a folder's."""
        for benchmark in self.benchmarks:
            if isinstance(benchmark, str) and not Path(benchmark).is_dir():
                catalog.benchmark_card(benchmark)

    def read(
        self,
        benchmark: str | Benchmark,
        feedback: Feedback,
        model: Any = None,
        *,
        many: bool | None = None,
        counts: bool = True,
    ) -> Benchmark:
        """One of them from its data; from the questions that given answers carry where no data is named."""
        if isinstance(benchmark, Benchmark):
            return benchmark
        with feedback.busy(f"reading {benchmark}"):
            several = len(self.benchmarks) > 1 if many is None else many
            data = data_of(self.data, benchmark, many=several)
            if data is None and "given_scores" in abilities(model) and benchmark in catalog.BENCHMARKS:
                from counterfoil.benchmarks.readers.specs import from_table

                carried = from_table(catalog.benchmark_card(benchmark), model.table)
                if carried is not None:
                    return carried
            images = self.images_of(benchmark)
            loaded = catalog.benchmark(benchmark, data=data, images=images, counts=counts)
            groups = loaded.questions.groupings
            for name in dict.fromkeys((*loaded.card.groupings, *groups)):
                if benchmark.endswith(".toml") and not any(groups.get(name, ())):
                    feedback.warn(f"{benchmark}: the grouping '{name}' fits no question and is not shown")
            return loaded


@dataclass(frozen=True, eq=False)
class JobInputs:
    """What a job on benchmarks works with: its arguments, and what was made of those that many jobs have."""

    rows: Mapping[str, Any]
    sources: BenchmarkSources
    #: Of models that are given by name.
    options: Options
    session: Session
    feedback: Feedback

    @classmethod
    def of(
        cls, rows: Any, benchmarks: Sequence[shared.AnyBenchmark], model: object = "", **options: Any
    ) -> "JobInputs":
        """The inputs that arguments give; `options` are those of the model besides."""
        sources = BenchmarkSources.of(benchmarks, rows["data"], rows["images"])
        feedback = feedback_of(rows)
        session = session_of(rows, feedback, model)
        return cls(rows, sources, model_options(rows, **options), session, feedback)

    def load(self, model: Any, options: Options | None = None, name: str = "") -> Any:
        """The model, loaded where it is a name; `name` is what it is called meanwhile."""
        if not isinstance(model, str):
            return model
        with self.feedback.busy(f"loading {name or model}"):
            return catalog.model(model, options or self.options, memory=self.session.folder)


def _in_memory(data: object) -> bool:
    """Whether `data` is a table itself, not a path or paths by benchmark."""
    if isinstance(data, Mapping):
        return not all(isinstance(path, str | Path) for path in data.values())
    if isinstance(data, list | tuple):
        return not all(isinstance(path, str) for path in data)
    return data is not None and not isinstance(data, str | Path)


def at_hand(benchmark: Benchmark, feedback: Feedback, *, name: str = "") -> Benchmark:
    """The questions whose images and captions are at hand; a note says how many they are."""
    part = benchmark.available()
    feedback.note(f"{name or benchmark.name}: {len(part):,} of {len(benchmark):,} questions are at hand")
    return part


def title_of(model: Any) -> str:
    """What results call a model that is named or loaded."""
    if isinstance(model, str):
        return model
    return str(getattr(model, "title", "") or stated_identity(model).name)


def measures(benchmarks: Sequence[Benchmark], named: Sequence[str]) -> list[list[str] | None]:
    """The named measures that each benchmark has, None for all; raises where one has none of them."""
    from counterfoil.evaluation.evaluate import of

    if not named:
        return [None] * len(benchmarks)
    lacking: list[dict[str, InputError]] = [{} for _ in benchmarks]
    for (one, errors), name in product(zip(benchmarks, lacking, strict=True), named):
        try:
            of(one).check_measures(one, [name])
        except InputError as error:
            errors[name] = error
    for name in named:
        if all(name in errors for errors in lacking):
            raise lacking[0][name]
    for errors in lacking:
        if len(errors) == len(set(named)):
            raise errors[named[0]]
    return [[name for name in named if name not in errors] for errors in lacking]


def whole_benchmark(name: str, place: Path | None, images: Path | None) -> Benchmark | None:
    """The benchmark with its images, drawn on the spot if it is; None where nothing says where it is."""
    if place is not None:
        from counterfoil.benchmarks.folder import is_benchmark_folder, load

        return (
            load(place) if is_benchmark_folder(place) else catalog.benchmark(name, data=place, images=images)
        )
    card = catalog.BENCHMARKS.get(name)
    # What is drawn comes from no file, and is always the same.
    drawn = card is not None and card.reader.startswith("counterfoil.world.")
    return catalog.benchmark(name, images=images) if drawn else None


def whole_rows(model: str, benchmarks: Sequence[str]) -> bool:
    """Whether each row of a given table, read before benchmarks are, answers a question of its own."""

    def form(name: str) -> type[Form] | None:
        if name in catalog.BENCHMARKS:
            return FORMS[catalog.BENCHMARKS[name].form]
        try:
            return FORMS.get(read_json(Path(name, "card.json")).get("form"))
        except (DataError, AttributeError):
            return None

    forms = [form(name) for name in benchmarks] if model.startswith("given:") else [None]
    return all(question_form is not None and question_form.row_per_question for question_form in forms)


def in_data_folder(path: Path | None, data: Path | None) -> Path | None:
    """A relative path may also be meant from the data folder."""
    return data / path if path and data and not path.exists() and (data / path).exists() else path


def beside_data(model: str, data: Path | None) -> str:
    """A relative path to given numbers may also be meant from the data folder."""
    kind, _, path = model.partition(":")
    return f"{kind}:{in_data_folder(Path(path), data)}" if kind in ("given", "embeddings") and path else model


def narrowed(
    model: Any, benchmark: Benchmark, limit: int | None, unanswered: str, *, feedback: Feedback
) -> tuple[Any, Benchmark, int]:
    """The given answers (None for other models), the questions left, and how many lack an answer."""
    given = "given_scores" in abilities(model)
    if not given or (not model.partial and model.unanswered is None and limit is None):
        return None, benchmark if limit is None else benchmark.limited(limit), 0
    from counterfoil.engine.join_scores import answered, covered, matched

    if model.partial:
        whole, benchmark = len(benchmark), covered(model, benchmark)
        if len(benchmark) < whole:
            feedback.note(f"{benchmark.name}: {len(benchmark):,} of {whole:,} questions are answered in full")
    if model.unanswered is None and limit is None:
        return None, benchmark, 0
    model = matched(model, benchmark, note=feedback.warn)
    if limit is not None:
        model, benchmark = model.take(benchmark.spread(limit)), benchmark.limited(limit)
    empty = 0 if model.unanswered is None else int(model.unanswered.sum())
    if empty:
        say_unanswered(benchmark, empty, unanswered, feedback)
        if unanswered == "leave-out":
            model, benchmark = answered(model, benchmark)
    return model, benchmark, empty


def say_unanswered(benchmark: Benchmark, empty: int, policy: str, feedback: Feedback) -> None:
    """Note how many questions have no answer, and what becomes of them."""
    what = "left out" if policy == "leave-out" else "counted as wrong"
    feedback.note(
        f"{benchmark.name}: {empty:,} of {len(benchmark):,} questions have no answer and are {what}"
    )


def check_at_hand(spec: str, backbone: str, benchmark: Benchmark) -> None:
    """Raise `DataError` where items that `spec` looks at are missing, as known before a model is loaded."""
    from counterfoil.engine.plan import check_at_hand as check_items

    kind, _, name = spec.partition(":")
    models = ("open-clip", "hf")
    if kind in models:
        check_items(benchmark)
    elif kind == "metric" and backbone.partition(":")[0] in models and benchmark.card.shows == "image":
        from counterfoil.models.captions.registry import METRICS

        check_items(benchmark, images="images" in METRICS[name].needs)


def list_benchmarks() -> list[str]:
    """The names of all benchmarks, as `counterfoil list benchmarks` has them with their facts.

    >>> {"bivlc", "winoground", "pairs"} <= set(list_benchmarks())
    True
    """
    return list(catalog.BENCHMARKS)


@job()
def load_benchmark(
    name: Annotated[str | Path, option()],
    data: shared.TableData = None,
    images: Annotated[str | Path | None, option(folder=True)] = None,
    *,
    counts: Annotated[bool, option()] = True,
) -> Benchmark:
    """The benchmark called `name`, read from `data`; without it from what was fetched.

    `name` is one of `counterfoil list benchmarks`, or a folder in counterfoil's own format. Your own table is
    "pairs" (quads and choices), "gallery", "statements", "ratings" or "preferences", with `data` its file or
    the table itself: a pandas frame, an Arrow table, a list of dicts or a dict of columns, with images as
    paths, bytes or pictures. `images` is the folder of the images, where the data name files. With `counts`
    False the data may hold another number of questions than the release. Raises `UnknownNameError` for an
    unknown name and `DataError` for data that do not fit.

    >>> load_benchmark("world-quads")
    <Benchmark world-quads: 500 questions, 785 images, 1,000 captions>
    >>> load_benchmark("pairs", [{"image": "a.jpg", "caption": "a cat", "negative_caption": "a dog"}])
    <Benchmark pairs: 1 questions, 1 images, 2 captions>
    """
    return catalog.benchmark(str(name), data=data, images=images, counts=counts)


@job()
def load_model(
    spec: Annotated[str, option()],
    *,
    device: Annotated[Any, shared.DEVICE] = "auto",
    precision: Literal["fp32", "bf16", "fp16"] = "fp32",
    prompt: str = "{}",
    backbone: str = "",
    settings: shared.Settings = None,
    column: str | None = None,
    ids: str | Path | None = None,
    unanswered: Literal["refuse", "wrong", "leave-out"] = "refuse",
    seed: Annotated[int, shared.SEED] = 0,
    api_key: str = "",
    cache: shared.Cache = "default",
) -> shared.AnyModel:
    """The model that `spec` names as KIND:WHAT, such as `open-clip:ViT-B-32-quickgelu/openai`.

    `device` is "auto", "cpu", "cuda", "cuda:1", "mps" or a torch device, `precision` "fp32", "bf16" or
    "fp16", `prompt` a template with {} for the caption. A caption metric (`metric:clip-s`) looks with the
    model `backbone`, and takes `settings`, as other kinds do; `api_key` is that of a chat endpoint, sent to
    it and nowhere written. A given table (`given:scores.csv`) has its numbers in `column`; `unanswered` says
    what becomes of questions without an answer ("refuse", "wrong", "leave-out"); a given similarity may take
    the ids of rows and columns from the npz file `ids`. A local model that `cache` remembers is loaded once
    something is left to compute. Raises `UnknownNameError` for an unknown kind or name, `ModelError` for
    weights that do not fit.

    >>> load_model("blind:length").identity.name
    'blind:length'
    """
    options = Options(
        device=str(device),
        precision=precision,
        prompt=prompt,
        column=column,
        unanswered=unanswered,
        seed=seed,
        ids=path_of(ids),
        backbone=backbone,
        settings=settings_of(settings),
        api_key=api_key,
    )
    loaded: shared.AnyModel = catalog.model(spec, options, memory=cache_of(cache))
    return loaded


def session_of(work: shared.Work, feedback: Feedback, model: object = "") -> Session:
    """The session of a job's work; a `model` of one's own may have no place in the default cache."""
    named = work["executor"]
    executor = executor_named(named) if isinstance(named, str) else named
    if isinstance(named, str) and executor is not None and executor.distant:
        at_end(cast(Any, executor).close)
    cache, workers = cache_for(model, work["cache"]), processes(work["workers"])
    return Session(cache, work["batch_size"], workers, note=feedback.remark, executor=executor)


def processes(workers: int | None) -> int:
    """How many processes decode images: by default one per core, at most 8."""
    return min(8, os.cpu_count() or 1) if workers is None else workers


def cache_of(cache: shared.Cache) -> Path | None:
    """The folder of finished work: the one named, else the user's cache folder; None keeps nothing."""
    if cache is None:
        return None
    named = os.environ.get("COUNTERFOIL_CACHE") if cache == "default" else cache
    return Path(named) if named else user_cache()


def cache_for(model: object, cache: shared.Cache) -> Path | None:
    """The cache; None where "default" was asked for and nothing tells one model from another of its name."""
    if cache == "default" and not isinstance(model, str):
        from counterfoil.models.callables import FunctionModel

        identity = identity_of(model)
        reproducible = identity.revision or (identity.weights and not isinstance(model, FunctionModel))
        return cache_of("default") if reproducible else None
    return cache_of(cache)


def settings_of(settings: shared.Settings, where: str = "--set") -> dict[str, str]:
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


def model_options(given: Mapping[str, Any], **others: Any) -> Options:
    """Options of a model that is given by name: those among the arguments of a job, and `others`."""
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
