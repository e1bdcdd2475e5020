"""Benchmarks and scorers by name: what there is, and loading one."""

from pathlib import Path
from typing import Any

from counterfoil import catalog
from counterfoil.benchmarks.benchmark import Benchmark
from counterfoil.jobs.arguments import AnyScorer, Cache, Settings, TableData, cache_of, path_of, settings_of
from counterfoil.models.base import Options


def list_benchmarks() -> list[str]:
    """The names of all benchmarks, as `counterfoil list benchmarks` has them with their facts.

    >>> {"bivlc", "winoground", "pairs"} <= set(list_benchmarks())
    True
    """
    return list(catalog.benchmarks())


def load_benchmark(
    name: str | Path, data: TableData = None, images: str | Path | None = None, *, counts: bool = True
) -> Benchmark:
    """The benchmark called `name`, read from `data`; without it from what was fetched, or the hub.

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


def load_scorer(
    spec: str,
    *,
    device: Any = "auto",
    precision: str = "fp32",
    prompt: str = "{}",
    backbone: str = "",
    settings: Settings = None,
    column: str | None = None,
    ids: str | Path | None = None,
    unanswered: str = "refuse",
    seed: int = 0,
    api_key: str = "",
    cache: Cache = "default",
) -> AnyScorer:
    """The scorer that `spec` names as KIND:WHAT, such as `open-clip:ViT-B-32-quickgelu/openai`.

    `device` is "auto", "cpu", "cuda", "cuda:1", "mps" or a torch device, `precision` "fp32", "bf16" or
    "fp16", `prompt` a template with {} for the caption. A caption metric (`metric:clip-s`) looks with the
    model `backbone`, and takes `settings`, as other kinds do; `api_key` is that of a chat endpoint, sent to
    it and nowhere written. A given table (`given:scores.csv`) has its numbers in `column`; `unanswered` says
    what becomes of questions without an answer ("refuse", "wrong", "leave-out"); a given similarity may take
    the ids of rows and columns from the npz file `ids`. A local model that `cache` remembers is loaded once
    something is left to compute. Raises `UnknownNameError` for an unknown kind or name, `ModelError` for
    weights that do not fit.

    >>> load_scorer("blind:length").identity.name
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
    loaded: AnyScorer = catalog.scorer(spec, options, memory=cache_of(cache))
    return loaded
