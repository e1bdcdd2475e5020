"""The lists of models that `bias` and `pool` are given: runs, embeddings and similarities, in any mixture."""

from collections.abc import Sequence
from pathlib import Path

from counterfoil.data.tables import first_double
from counterfoil.engine.top_lists import ModelLists, of_embeddings, of_rankings, of_similarity, renumbered
from counterfoil.errors import DataError, InputError
from counterfoil.evaluation.run import Run, find_runs
from counterfoil.inputs.arrays import read_npz
from counterfoil.scorers.base import Options
from counterfoil.scorers.embeddings import CAPTION_IDS, IMAGE_IDS, ids_of
from counterfoil.scorers.given import load_embeddings
from counterfoil.scorers.similarity import load_similarity


def load(sources: Sequence[Path], *, ids: Path | None, widest: bool = False) -> tuple[ModelLists, ...]:
    """The lists of run folders, then of embeddings (npz) and similarities (npy), numbered as in the first.

    Where a model has runs of several galleries one must be named, or the `widest` is taken, which answers
    most queries.

    Raises `DataError` where galleries differ, ids are missing, or a folder holds no run of a gallery, and
    `InputError` where two have one name.
    """
    if ids is not None and not ids.is_file():
        raise DataError("no such file", where=ids, hint="check --ids")
    found = _runs([source for source in sources if source.is_dir()], widest)
    found += [_file(source, ids) for source in sources if not source.is_dir()]
    names = [lists.name for lists in found]
    double = first_double(names)
    if double is not None:
        raise InputError(
            "two models have one name", given=double, hint="give each once, or rename files and folders"
        )
    return tuple(renumbered(lists, found[0]) for lists in found)


def _runs(folders: Sequence[Path], widest: bool) -> list[ModelLists]:
    """The gallery runs in some folders."""
    if not folders:
        return []
    runs = [run for run in find_runs(folders) if run.answers.has_rankings]
    # A folder that contributes nothing was given by mistake, whatever there is in the others.
    without = [folder for folder in folders if not any(folder.rglob("gallery.parquet"))]
    if without or not runs:
        where = ", ".join(map(str, without or folders))
        raise DataError("no run of a gallery", where=where, allowed="coco-5k, eccv, ...")
    chosen: list[Run] = []
    for name in dict.fromkeys(run.name for run in runs):
        its = [run for run in runs if run.name == name]
        whole = [run for run in its if run.benchmark.gallery.image_parts is None]
        if not whole:
            raise DataError(
                "its queries see only a part of the gallery",
                where=f"{name} on {its[0].benchmark.name}",
                hint="give a run over the whole of it, such as coco-5k",
            )
        if len(whole) > 1 and not widest:
            raise InputError(
                "a model has runs of several galleries",
                where=name,
                given=", ".join(run.benchmark.name for run in whole),
                hint=f"name one, as in RUN/{whole[0].benchmark.name}",
            )
        chosen.append(max(whole, key=lambda run: len(run.benchmark)))
    return [of_rankings(run.name, run.benchmark, run.answers.rankings) for run in chosen]


def _file(path: Path, ids: Path | None) -> ModelLists:
    if not path.is_file():
        raise DataError(
            "no such file or folder",
            where=path,
            allowed="a run folder, embeddings (.npz) or a similarity (.npy)",
        )
    if path.suffix.lower() == ".npz":
        return _embeddings(path, ids)
    if path.suffix.lower() == ".npy":
        return _similarity(path, ids)
    raise DataError(
        "nothing that ranks",
        where=path,
        allowed="a run folder, embeddings (.npz) or a similarity (.npy)",
    )


def _embeddings(path: Path, ids: Path | None) -> ModelLists:
    found = load_embeddings(str(path))
    image_ids, caption_ids = found.image_ids, found.caption_ids
    if image_ids is None or caption_ids is None:
        image_ids, caption_ids = _ids_beside(ids, path, len(found.images), len(found.captions))
    return of_embeddings(path.stem, found, image_ids, caption_ids)


def _similarity(path: Path, ids: Path | None) -> ModelLists:
    found = load_similarity(str(path), Options(ids=ids))
    if found.image_ids is None or found.caption_ids is None:
        raise _no_ids(path)
    return of_similarity(path.stem, found.values, found.image_ids, found.caption_ids)


def _ids_beside(
    ids: Path | None, path: Path, images: int, captions: int
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    if ids is None:
        raise _no_ids(path)
    arrays = read_npz(ids, names="image_ids caption_ids", hint="check the path after '--ids'")
    both = [
        ids_of(arrays, names, rows, ids, per=f"embedding of {path.name}")
        for names, rows in ((IMAGE_IDS, images), (CAPTION_IDS, captions))
    ]
    if both[0] is None or both[1] is None:
        raise DataError("holds no image_ids and caption_ids", where=ids, given=", ".join(arrays))
    return both[0], both[1]


def _no_ids(path: Path) -> DataError:
    return DataError(
        "rows have no image or caption ids",
        where=path,
        hint="name an npz file with image_ids and caption_ids with --ids",
    )
