"""Training sets drawn from the world: loose captions, positives with ever more negatives, further positives.

    loose        image, caption: a scene and something true of it, said in passing
    coco         image, caption: the first half of a contrast
    trohn-text   the same, and negative_caption
    trohn-img    the same, and negative_image, as a generator draws it for the negative caption
    pac          image, caption, and machine-made positives: generated_image, generated_caption

At one seed coco, trohn-text and trohn-img have the same rows, and so do loose and pac.
"""

from collections.abc import Sequence
from dataclasses import replace
from math import ceil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from counterfoil.benchmarks.forms import Ids
from counterfoil.benchmarks.publishing.tables import IMAGE, schema_of
from counterfoil.benchmarks.training_rows import IMAGE_ROLES, TrainingSet
from counterfoil.errors import DataError, InputError, UnknownNameError
from counterfoil.stats.dependence import numbered
from counterfoil.store import writing
from counterfoil.world.captions import OPENINGS, describe, text
from counterfoil.world.generator import imagine
from counterfoil.world.sample import DrawingSettings, Items, Progress, contrasts, groupings, silent, stream
from counterfoil.world.scenes import one_of, sample_scene

KINDS = ("loose", "coco", "trohn-text", "trohn-img", "pac")
#: Those whose captions are loose: of scenes, not of contrasts.
_LOOSE = ("loose", "pac")
#: What a machine makes of loose rows.
_GENERATED = ("generated_image", "generated_caption")
#: Loose rows between two reports of progress.
_REPORT = 1000


def training(
    n: int,
    *,
    kind: str,
    seed: int = 0,
    size: int = 48,
    styles: Sequence[str] = ("natural",),
    failure: float = 0.0,
    progress: Progress = silent,
) -> TrainingSet:
    """`n` rows to learn from, with pictures of `size` x `size` pixels; the same seed gives the same bytes.

    Positives are drawn in the `styles` in turn, negative and generated images in the synthetic one; no scene
    is one of the benchmarks'. With chance `failure` a negative image does not show its caption (BiVLC
    estimates 0.61 of SDXL's), and the grouping `faithful` says "no". Other groupings are `type` and `subset`.

    >>> made = training(14, kind="trohn-img", failure=0.5)
    >>> len(made), list(made.rows)
    (14, ['image', 'caption', 'negative_caption', 'negative_image'])
    """
    if kind not in KINDS:
        raise UnknownNameError("kind of training set", kind, KINDS)
    drawing = DrawingSettings.checked(n, "rows", styles, {"seed": seed, "size": size, "progress": progress})
    if not 0 <= failure <= 1:
        raise InputError("a failure rate is a chance", given=failure, allowed="0 to 1")
    if kind != "trohn-img" and failure:
        why = "nothing is generated in this kind of training set, so nothing fails"
        raise InputError(why, given=kind, allowed="trohn-img")
    items = Items()
    if kind in _LOOSE:
        rows, labels = _loose(n, kind, drawing, items)
    else:
        rows, labels = _contrasted(n, kind, drawing, items, failure)
    drawn = (*styles, "synthetic") if kind in ("trohn-img", "pac") else styles
    failing = f", failure {failure:g}" if kind == "trohn-img" else ""
    return TrainingSet(
        name=f"world-{kind}",
        images=items.images(drawing),
        captions=items.captions(),
        rows={role: np.asarray(positions, dtype=np.int64) for role, positions in rows.items()},
        groupings=labels,
        source=f"{kind}, {replace(drawing, styles=drawn).source}{failing}",
    )


def _loose(
    n: int, kind: str, drawing: DrawingSettings, items: Items
) -> tuple[dict[str, list[int]], dict[str, tuple[str, ...]]]:
    rng, generator = stream("loose", drawing.seed), stream("loose", drawing.seed, 1)
    roles = ("image", "caption") if kind == "loose" else ("image", "caption", *_GENERATED)
    columns: dict[str, list[int]] = {role: [] for role in roles}
    for row in range(n):
        scene = sample_scene(rng)
        columns["image"].append(items.image(scene, drawing.styles[row % len(drawing.styles)]))
        columns["caption"].append(items.caption(text(describe(scene, rng), opening=one_of(OPENINGS, rng))))
        if kind == "pac":
            columns["generated_image"].append(items.image(scene, "synthetic"))
            sentence = text(describe(scene, generator), opening=one_of(OPENINGS, generator))
            columns["generated_caption"].append(items.caption(sentence))
        if row % _REPORT == 0 or row + 1 == n:
            drawing.progress("making up scenes", row + 1, n)
    return columns, dict.fromkeys(("type", "subset", "faithful"), ("",) * n)


def _contrasted(
    n: int, kind: str, drawing: DrawingSettings, items: Items, failure: float
) -> tuple[dict[str, list[int]], dict[str, tuple[str, ...]]]:
    seed, styles = drawing.seed, drawing.styles
    pairs = contrasts(n, seed=seed, of="contrasts", distinct=False, progress=drawing.progress)
    rng = stream("contrasts", seed, 1)
    openings = [one_of(OPENINGS, rng) for _ in pairs]
    faithful = [""] * n
    columns = {
        "image": [items.image(pair.scenes[0], styles[row % len(styles)]) for row, pair in enumerate(pairs)]
    }
    for which, role in enumerate(("caption", "negative_caption")[: 1 if kind == "coco" else 2]):
        spoken = zip(pairs, openings, strict=True)
        columns[role] = [items.caption(text(pair.captions[which], opening=start)) for pair, start in spoken]
    if kind == "trohn-img":
        columns["negative_image"] = []
        for row, pair in enumerate(pairs):
            # A stream per row: what fails in one changes no other.
            scene, right = imagine(pair, stream("contrasts", seed, 2, 1 + row), failure=failure)
            columns["negative_image"].append(items.image(scene, "synthetic"))
            faithful[row] = "yes" if right else "no"
    return columns, {**groupings(pairs), "faithful": tuple(faithful)}


TRAIN, VALIDATION = "train.parquet", "validation.parquet"

#: Rows written at a time.
_GROUP = 1000


def save_training(
    training_set: TrainingSet, folder: Path, *, share: float = 0.2, progress: Progress = silent
) -> tuple[int, int]:
    """Write a training set in the layout of TROHN-Img; the numbers of rows for training and for validation.

    The last rows, at least `share`, are for validation: all rows of an image are on one side. Files appear
    whole or not at all, and replace those of a set saved there before.
    """
    if not 0 < share < 1:
        raise InputError("a share of the rows is for validation", given=share, allowed="between 0 and 1")
    # Images in order of first appearance; the last ones that together have enough rows are held back.
    numbers, n = numbered(training_set.rows["image"]), len(training_set)
    from_last = np.cumsum(np.bincount(numbers)[::-1])
    first = int(numbers.max()) - int(np.searchsorted(from_last, ceil(share * n)))
    if first <= 0:
        where, hint = training_set.source or training_set.name, "ask for more rows"
        given = f"{int(numbers.max()) + 1} images in {n} rows"
        raise InputError("too few images to keep some for validation", where=where, given=given, hint=hint)
    halves = {
        folder / TRAIN: np.flatnonzero(numbers < first),
        folder / VALIDATION: np.flatnonzero(numbers >= first),
    }
    names = [*training_set.rows, *training_set.groupings]
    schema = schema_of({name: IMAGE if name in IMAGE_ROLES else pa.string() for name in names})
    for path in halves:
        path.unlink(missing_ok=True)
    try:
        done = 0
        for path, rows in halves.items():
            with writing(path) as file, pq.ParquetWriter(file, schema, compression="zstd") as writer:
                for start in range(0, len(rows), _GROUP):
                    group = rows[start : start + _GROUP]
                    writer.write_table(pa.table(_columns(training_set, group), schema=schema))
                    done += len(group)
                    progress("saving", done, n)
    except BaseException:
        for path in halves:
            path.unlink(missing_ok=True)
        raise
    return len(halves[folder / TRAIN]), len(halves[folder / VALIDATION])


def _columns(training_set: TrainingSet, rows: Ids) -> dict[str, Sequence[object]]:
    columns: dict[str, Sequence[object]] = {}
    # Neighbouring rows share images; encoding one once is enough.
    encoded: dict[int, dict[str, object]] = {}
    for role, positions in training_set.rows.items():
        numbers = positions[rows].tolist()
        if role not in IMAGE_ROLES:
            columns[role] = [training_set.captions[i].text for i in numbers]
            if None in columns[role]:
                name = training_set.captions[numbers[columns[role].index(None)]].id
                where = training_set.source or training_set.name
                raise DataError(f"caption '{name}' is not at hand", where=where)
            continue
        for i in numbers:
            if i not in encoded:
                data = training_set.images[i].checked()
                ending = "png" if data.startswith(b"\x89PNG") else "jpg"
                encoded[i] = {"bytes": data, "path": f"{training_set.images[i].id}.{ending}"}
        columns[role] = [encoded[i] for i in numbers]
    for name, labels in training_set.groupings.items():
        columns[name] = [labels[i] for i in rows]
    return columns
