"""Names to things: benchmarks, models, measures, recipes. Resolved when asked for, with "did you mean"."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from counterfoil.benchmarks.benchmark import BENCHMARKS as BENCHMARKS, Benchmark, Card, cards_of
from counterfoil.benchmarks.forms import FORMS
from counterfoil.benchmarks.forms.base import ENTRIES
from counterfoil.benchmarks.image_files import is_image_folder
from counterfoil.benchmarks.readers.own import OWN_TABLES, kind_of
from counterfoil.benchmarks.tables import EXTENSIONS, memory_table, open_rows
from counterfoil.errors import DataError, InputError, MissingExtraError, ModelError
from counterfoil.inputs.files import is_distant
from counterfoil.metrics.measures import MEASURES, Declared
from counterfoil.models.base import DEFAULT, Embedder, Options, prompt_of, remember_source
from counterfoil.models.registry import MODELS as MODELS, TEXT_MODELS, ModelEntry
from counterfoil.models.runtime import CANNOT_BE_HAD
from counterfoil.registry import resolve
from counterfoil.storage import local_folder
from counterfoil.storage.object_store import data_folder

if TYPE_CHECKING:
    from counterfoil.models.captions.base import CaptionMetric

#: Reads the scenes behind the world's pictures, which no layer of models knows.
ORACLE = ModelEntry(
    "world",
    "oracle",
    "knows the scenes behind the world's pictures, and gets everything right",
    "world:oracle",
    "counterfoil.studies.oracle:load",
    embeds=False,
)

#: The answers of a campaign's people, which the layer of campaigns reads.
PEOPLE = ModelEntry(
    "people",
    "CAMPAIGN",
    "the answers of people to a benchmark's questions: the folder of a campaign, or of its export",
    "people:campaign/",
    "counterfoil.annotate.people_model:load",
    "annotate",
    "counterfoil.models.settings:PeopleSettings",
    embeds=False,
)

#: A blind baseline with a model behind it, which is named as that of a caption metric is.
CONSTANT_IMAGE = "blind:constant-image"

BENCHMARKS.extend(lambda: cards_of("counterfoil.world"))
MODELS.extend((ORACLE, PEOPLE))


def benchmark_name(name: str) -> str:
    """The name of a benchmark that was written with other separators or capitals; any other name as it is.

    >>> benchmark_name("Sugar_Crepe"), benchmark_name("mscoco"), benchmark_name("./mine")
    ('sugarcrepe', 'coco-5k', './mine')
    """
    return BENCHMARKS.spelt(name)


def register(entry: Any) -> None:
    """Add a benchmark (`Card`), model, measure, metric, recipe, step or form of question to those known.

    Raises `InputError` for other values, a name that is taken, and a measure of an unknown form.
    """
    if isinstance(entry, Declared) and entry.form not in FORMS:
        raise InputError("no such form of question", where=entry.name, given=entry.form, allowed=list(FORMS))
    # Names of the others are known without the steps, which stand above the engine.
    from counterfoil.build.steps.registry import STEPS
    from counterfoil.models.captions.registry import METRICS
    from counterfoil.train.recipes import RECIPES

    registries: tuple[Any, ...] = (BENCHMARKS, MODELS, MEASURES, METRICS, RECIPES, ENTRIES, STEPS)
    for registry in registries:
        if registry.takes(entry):
            registry.register(entry)
            return
    kinds = [registry.kind for registry in registries]
    raise InputError("nothing that can be registered", given=type(entry).__name__, allowed=kinds)


def benchmark(
    name: str, *, data: Any = None, images: str | Path | None = None, counts: bool = True
) -> Benchmark:
    """The benchmark called `name`, read from `data` (a path or a table in memory), else as fetched.

    `name` may also be a folder in counterfoil's own format (./NAME where a benchmark is called so), or a TOML
    file. Without `counts` the data may hold another number of questions than the release.
    """
    # Evaluation loads SciPy, which names alone (a shell that completes them) do not wait for.
    from counterfoil.evaluation.run import is_run_folder

    name = benchmark_name(name)
    if data is not None and not isinstance(data, str | Path):
        if name not in OWN_TABLES:
            raise InputError("data in memory are a table of one's own", where=name, allowed=OWN_TABLES)
        card, folder = benchmark_card(name), None if images is None else Path(images)
        in_memory: Benchmark = resolve(card.reader)(card, memory_table(data), folder)
        return in_memory
    paths = (name, data or "") if name not in BENCHMARKS else ()
    spec = next((Path(place) for place in paths if str(place).endswith(".toml")), None)
    if spec is not None:
        name, data = str(spec), spec.parent if data is None or Path(data) == spec else data
    data = fetched_data(name) if data is None else Path(data)
    images = None if images is None else Path(images)
    if data is not None and is_distant(data):
        hint = "mount the folder, or copy it; its images may stay behind a URL, named with --images"
        raise DataError("the data of benchmarks are read from a disk", where=data, hint=hint)
    for place in (data, None if name in BENCHMARKS else Path(name)):
        if place is not None and place.is_dir() and is_run_folder(place):
            hint = "'counterfoil compare' reads it; evaluate the benchmark that it was made from"
            what = "a run, not a benchmark: it holds answers and no pictures"
            raise DataError(what, where=place, hint=hint)
    if data is not None and not data.exists():
        raise DataError("no such file or folder", where=data, hint="check --data")
    if name not in BENCHMARKS and (stored := _stored(Path(name))) is not None:
        return stored
    if name and name not in BENCHMARKS and Path(name).is_dir():
        allowed = "a folder in counterfoil's own format, with card.json and manifest.json"
        hint = "name the benchmark and give its data with --data"
        raise DataError("no benchmark in this folder", where=name, allowed=allowed, hint=hint)
    card = benchmark_card(name)
    if images is not None and not is_image_folder(images):
        raise DataError("no such folder", where=images, hint="check --images")
    if spec is None and data is not None and (stored := _stored(data)) is not None:
        return stored
    if not counts:
        title = f"{card.title}, another selection"
        card = card.model_copy(update={"title": title, "size": None, "counts": {}, "also": {}})
    if spec is not None:
        from counterfoil.benchmarks.readers.specs import read_own

        return read_own(spec, card, data, images)
    benchmark: Benchmark = resolve(card.reader)(card, data, images)
    return benchmark


def _stored(place: Path) -> Benchmark | None:
    """The benchmark in a folder of counterfoil's own format, None where it is none."""
    if not place.is_dir():
        return None
    from counterfoil.benchmarks.folder import is_benchmark_folder, load

    return load(place) if is_benchmark_folder(place) else None


def fetched_data(benchmark: str) -> Path | None:
    """The folder that `counterfoil benchmarks fetch` filled for a benchmark; None where it is not whole."""
    from counterfoil.benchmarks.fetching import fetched, serving

    release = serving(benchmark)
    return None if release is None else fetched(release, data_folder())


def benchmark_card(name: str) -> Card:
    """The card of a benchmark, by its name or its TOML file; raises `UnknownNameError` for other names."""
    if name.endswith(".toml"):
        from counterfoil.benchmarks.readers.specs import own_spec

        return own_spec(Path(name))[0]
    if name not in BENCHMARKS and Path(name).is_file() and Path(name).suffix.lower() in EXTENSIONS:
        kind = kind_of(open_rows(Path(name), ()).columns)
        allowed = "pairs, gallery, ratings, preferences or statements, with the table as --data"
        hint = f"write {kind} --data {name}" if kind else f"scores are a model: given:{name}"
        raise DataError("a table, and no name of a benchmark", where=name, allowed=allowed, hint=hint)
    return BENCHMARKS.find(name)


def model(spec: str, options: Options = DEFAULT, *, memory: Path | None = None) -> Any:
    """The model that `spec` names, such as `open-clip:ViT-B-32-quickgelu/openai` or `given:scores.csv`.

    With a folder `memory`, a local model whose identity is remembered there is loaded once it is needed.
    """
    if spec.partition(":")[0] in TEXT_MODELS:
        allowed = f"metric:token-match --backbone {spec}"
        raise InputError("reads captions and looks at no images", where=spec, allowed=allowed)
    return _model(spec, options, memory)


def _model(spec: str, options: Options, memory: Path | None, like: Any = None) -> Any:
    """As `model`; `like` is the same model with another prompt, whose towers will do where it has some."""
    prefix, argument = model_name(spec)
    entry = MODELS[prefix]
    if prefix == "metric":
        model: Any = caption_metrics([argument], options, memory=memory)[argument]
    elif spec == CONSTANT_IMAGE and options.backbone:
        # The model that `options` names behind `blind:constant-image`, which shows it the mean image alone.
        from counterfoil.models.baselines import constant_image

        model = _model(options.backbone, replace(options, backbone="", settings={}), memory)
        model = constant_image(model, options)
    else:
        _check_settings(spec, entry, options)
        load: Callable[[str, Options], Any] = partial(_load, entry)
        if like is not None:
            load = partial(_with_prompt, like, load)
        if memory is not None and entry.extra == "models":
            from counterfoil.models.lazy import lazy

            folder = local_folder(memory)
            model = lazy(prefix, argument, options, load, folder, models=entry.named_models)
        else:
            model = load(argument, options)
            # A model that keeps its own answers is given the folder of finished work.
            if memory is not None and hasattr(model, "kept_in"):
                model = model.kept_in(memory)
    remember_source(model, partial(_once_more, entry, spec, options, memory))
    return model


def _once_more(entry: ModelEntry, spec: str, options: Options, memory: Path | None) -> Any:
    """As `_model`, in a process that may lack what `register` added to this one."""
    if entry.prefix not in MODELS:
        MODELS.register(entry)
    return _model(spec, options, memory)


def _check_settings(spec: str, entry: ModelEntry, options: Options) -> None:
    """Raise `InputError` where a model takes no settings, and for one that it does not take or allow."""
    if options.backbone:
        allowed = f"metric:NAME, {CONSTANT_IMAGE}"
        raise InputError("--backbone is for caption metrics", where=spec, allowed=allowed)
    if options.settings and not entry.settings:
        taking = [f"{kind.prefix}:{kind.argument}" for kind in MODELS.values() if kind.settings]
        given = next(iter(options.settings))
        raise InputError("takes no settings", where=spec, given=given, allowed=["metric:NAME", *taking])
    if options.settings and (kind := entry.settings_class) is not None:
        from counterfoil.models.settings import settings_of

        settings_of(kind, options.settings, where=spec)


def model_name(spec: str) -> tuple[str, str]:
    """The kind of model that `spec` names, and what stands behind the colon; nothing is loaded."""
    prefix, colon, argument = spec.partition(":")
    prefix = MODELS.spelt(prefix)
    if spec and not (colon and prefix in MODELS) and Path(spec).is_dir():
        from counterfoil.models.checkpoint import is_checkpoint

        if is_checkpoint(Path(spec)):
            prefix, colon, argument = "ckpt", ":", spec
    if not colon:
        prefix, argument = _bare(spec)
    entry = MODELS.find(prefix, where=spec)
    if not argument:
        raise InputError("the model lacks its argument", given=spec, allowed=f"{prefix}:{entry.argument}")
    if prefix == "metric":
        from counterfoil.models.captions.registry import entry as metric_entry

        metric_entry(argument)
    return prefix, argument


def full_name(spec: str) -> str:
    """`spec` with the kind of model that it leaves out; raises as `model_name`."""
    return ":".join(model_name(spec)) if spec and ":" not in spec else spec


def _bare(spec: str) -> tuple[str, str]:
    """What a name without a kind means; raises `InputError` where that is nothing, or several things."""
    from counterfoil.models.registry import models_called

    specs = models_called(spec) if spec else ()
    if len(specs) > 1:
        raise InputError("several kinds of model could be meant", given=spec, allowed=specs)
    if specs:
        prefix, _, argument = specs[0].partition(":")
        return prefix, argument
    suffix = Path(spec).suffix.lower()
    likely = "embeddings" if suffix == ".npz" else "given" if suffix in (*EXTENSIONS, ".npy") else ""
    hint = f"did you mean '{likely}:{spec}'?" if likely else "'counterfoil list models' lists all kinds"
    allowed = "open-clip:ARCH/TAG, hf:NAME_OR_FOLDER, given:PATH, blind:length, ..."
    raise InputError("a model is written KIND:WHAT", given=spec or "(empty)", allowed=allowed, hint=hint)


def check_metric(spec: str, backbone: str) -> None:
    """Raise `InputError` where a caption metric lacks a model, or has one too many; nothing is loaded."""
    prefix, name = model_name(spec)
    if prefix == "metric":
        from counterfoil.models.captions.registry import check

        check(name, backbone)
        if not _may_embed(backbone):
            raise _no_model(backbone)


def _may_embed(spec: str) -> bool:
    """Whether a model may embed items one by one, as far as its kind says; none is loaded."""
    entry = MODELS.get(spec.partition(":")[0])
    return entry is None or entry.embeds is not False


def has_model(spec: str) -> bool:
    """Whether `spec` names a model with weights, or a metric, which may have one behind it."""
    prefix, _ = model_name(spec)
    return prefix == "metric" or MODELS[prefix].extra == "models"


def caption_metrics(
    names: Sequence[str],
    options: Options = DEFAULT,
    *,
    memory: Path | None = None,
    settings: Mapping[str, Mapping[str, str]] | None = None,
) -> "dict[str, CaptionMetric]":
    """Caption metrics by name; those that look with the same model, asked in the same way, share it.

    `settings` are those of each metric, in place of those in `options`, which all get.
    """
    from counterfoil.models.captions.base import LocalEmbedder
    from counterfoil.models.captions.registry import METRICS, load
    from counterfoil.models.precomputed_galleries import PrecomputedEmbeddings

    models: dict[str, Any] = {}

    def backbone(wanted: Options) -> Any:
        # Of one metric to the next only the prompt differs: see `_with_prompt`.
        plain = replace(wanted, backbone="", settings={})
        if options.backbone.startswith("embeddings:"):
            # Given embeddings are of captions within their prompt already.
            plain = replace(plain, prompt=DEFAULT.prompt)
        key = repr(plain)
        if key not in models and _may_embed(options.backbone):
            like = next(iter(models.values()), None)
            models[key] = _model(options.backbone, plain, memory, like)
        if not isinstance(models.get(key), Embedder | PrecomputedEmbeddings | LocalEmbedder):
            raise _no_model(options.backbone)
        return models[key]

    def options_of(name: str) -> Options:
        named = options if settings is None else replace(options, settings=settings.get(name, {}))
        # A metric of texts has no use for the model of the others.
        alone = len(names) == 1 or name not in METRICS or METRICS[name].has_model
        return named if alone else replace(DEFAULT, settings=named.settings)

    return {name: load(name, options_of(name), backbone) for name in names}


def _no_model(backbone: str) -> InputError:
    what = "no model to look with: it does not embed images and captions one by one"
    allowed = "open-clip:..., hf:..., a checkpoint of a dual encoder, or embeddings:PATH"
    return InputError(what, where=f"--backbone {backbone}", allowed=allowed)


def _with_prompt(like: Any, load: Callable[[str, Options], Any], argument: str, options: Options) -> Any:
    """A model that is there, with the prompt of `options` and no second copy in memory; else a new one."""
    from counterfoil.models.dual import DualEncoder
    from counterfoil.models.lazy import LazyEmbedder

    model = like.model() if isinstance(like, LazyEmbedder) else like
    if not isinstance(model, DualEncoder):
        return load(argument, options)
    return model.with_prompt(prompt_of(options, where=model.identity.name))


def _load(entry: ModelEntry, argument: str, options: Options) -> Any:
    """Load a model of a kind; a hub that does not answer is an error at once."""
    where = f"{entry.prefix}:{argument}"
    distant = entry.extra == "models" and entry.prefix != "ckpt" and not Path(argument).exists()
    if distant and entry.prefix != "open-clip":
        from counterfoil.models.hub_reach import in_cache, unreachable
        from counterfoil.models.registry import HUB_NAME

        # Before libraries are imported, which takes longer than the answer.
        if HUB_NAME.fullmatch(argument) and not in_cache(argument) and (network_error := unreachable()):
            raise _not_to_be_had(where, network_error)
    try:
        load = resolve(entry.target)
    except ModuleNotFoundError as error:
        if not entry.extra or (error.name or "").startswith("counterfoil"):
            raise
        raise MissingExtraError(error.name or "torch", entry.extra) from None
    if not distant:
        return load(argument, options)
    from counterfoil.models.hub_reach import cache_alone_where_unreachable

    with cache_alone_where_unreachable() as network_error:
        try:
            return load(argument, options)
        except ModelError as error:
            if not network_error or CANNOT_BE_HAD not in str(error):
                raise
            raise _not_to_be_had(where, network_error) from None


def _not_to_be_had(where: str, network_error: str) -> ModelError:
    hint = "load it once with a network, or name a local folder; given:, embeddings:, ckpt:, blind:, "
    hint += "people: and metric: without a model need no network"
    return ModelError(f"the model {CANNOT_BE_HAD}", where=where, given=network_error, hint=hint)
