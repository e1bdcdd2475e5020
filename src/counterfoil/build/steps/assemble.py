"""`assemble`: a benchmark in counterfoil's own format, or a training set, of the rows."""

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
import pyarrow as pa

from counterfoil.benchmarks import folder as benchmarks
from counterfoil.benchmarks.benchmark import Benchmark, Card
from counterfoil.benchmarks.folder import BUILT
from counterfoil.benchmarks.readers.questions import Rows, gallery_of_pairs
from counterfoil.benchmarks.records import Caption, Image
from counterfoil.benchmarks.training_rows import CAPTION_ROLES, IMAGE_ROLES, TrainingSet
from counterfoil.build.step import BuiltStep, Output, StepContext, codes_of, filled
from counterfoil.errors import DataError, InputError
from counterfoil.inputs.fields import setting
from counterfoil.world.training import TRAIN, VALIDATION, save_training

#: All that is written there.
_WRITTEN = {*benchmarks.FILES, TRAIN, VALIDATION}
#: Labels of rows that become groupings of the questions.
_LABELS = ("type", "subset", "split")
_FORMS = Literal["auto", "quad", "choice", "gallery", "training"]
#: What rows need for a benchmark of a form, and its measures.
_READ = {
    "quad": ("image", "caption", "negative_caption", "negative_image"),
    "choice": ("image", "caption", "negative_caption"),
    "gallery": ("image", "caption"),
}
_MEASURES = {
    "quad": ("group", "i2t", "t2i"),
    "choice": ("accuracy",),
    "gallery": ("map_at_r", "r_precision", "recall_at_1", "recall_at_5", "recall_at_10"),
}


@dataclass(frozen=True)
class Assemble(BuiltStep):
    """Assemble quads if rows have a negative image, else choices between two captions; or training rows.

    They are saved in the folder `benchmark` of the build; all rows of an image are on one side of a training
    set.
    """

    name: ClassVar[str] = "assemble"
    opens: ClassVar[bool] = False

    form: _FORMS = setting("auto", "What is made; auto: quad where rows have a negative image, else choice.")
    title: str = setting("", "The title of the benchmark; without it the name of the build's folder.")
    licence: str = setting("", "The licence of the benchmark, as SPDX calls it.")
    homepage: str = setting("", "Where the benchmark is described.")
    citation: str = setting("", "How it is cited.")
    validation: float = setting(
        0.2, "Of a training set: the share of rows that are held out.", above=0, below=1
    )

    @property
    def requires(self) -> Sequence[str]:
        return _READ.get(self.form, ("image", "caption"))

    def run(self, rows: pa.Table, context: StepContext) -> Output:
        kind = self.form
        if kind == "auto":
            kind = "quad" if "negative_image" in rows.column_names else "choice"
        where = f"step {context.step}"
        roles = [name for name in (*IMAGE_ROLES, *CAPTION_ROLES) if name in rows.column_names]
        filled(rows, roles, where=where)
        target = context.folder / BUILT
        if kind == "training":
            written = tuple(f"{BUILT}/{name}" for name in (TRAIN, VALIDATION))
            return Output(rows, facts=self._training(rows, context), files=written)
        for name in _READ[kind]:
            if name not in roles:
                hint = f"put a step that makes '{name}' before it"
                raise DataError(f"no column '{name}'", where=where, hint=hint)
        built = self._benchmark(rows, kind, context)
        # What an earlier run left there, or one that was stopped; files of others are not touched.
        names = {path.name for path in target.iterdir()} if target.is_dir() else set()
        odd = sorted(name for name in names - _WRITTEN if not name.endswith(".part"))
        if odd:
            given, hint = ", ".join(odd[:3]), "choose another folder for the build"
            raise InputError("the folder holds files", where=target, given=given, hint=hint)
        if names and not benchmarks.is_benchmark_folder(target):
            shutil.rmtree(target)
        benchmarks.save(built, target, progress=context.progress)
        facts = {"form": kind, "questions": len(built), "benchmark": built.digest}
        return Output(rows, facts=facts, files=(f"{BUILT}/manifest.json",))

    def _benchmark(self, rows: pa.Table, kind: str, context: StepContext) -> Benchmark:
        groupings = _groupings(rows, _LABELS)
        card = Card(
            name=context.folder.name or "built",
            title=self.title or context.folder.name or "built",
            form=kind,
            size=len(rows) if "negative_caption" in _READ[kind] else None,
            licence=self.licence,
            homepage=self.homepage,
            citation=self.citation,
            measures=_MEASURES[kind],
            groupings=tuple(groupings),
            macro="subset" if "subset" in groupings else "",
        )
        source = f"built by recipe, seed {context.seed}"
        if "negative_caption" not in _READ[kind]:
            return pair_gallery(rows, card, context, source=source)
        ids = rows["id"].to_pylist()
        captions = rows["caption"].to_pylist(), rows["negative_caption"].to_pylist()
        images = [
            [context.image(cell, missing=context.photos is None) for cell in rows[column].to_pylist()]
            for column in _READ[kind]
            if column in IMAGE_ROLES
        ]
        for shown in images:
            lacking = sum(image.source is None for image in shown)
            if lacking:
                context.note(
                    f"{lacking:,} of {len(shown):,} images are not at hand; give their folder with --images"
                )
        questions = Rows(card, ids, captions, images, groupings, source)
        return questions.choice() if len(images) == 1 else questions.quad()

    def _training(self, rows: pa.Table, context: StepContext) -> dict[str, object]:
        images: dict[str, int] = {}
        captions: dict[str, int] = {}
        columns: dict[str, np.ndarray] = {}
        for role in (*IMAGE_ROLES, *CAPTION_ROLES):
            if role in rows.column_names:
                items = images if role in IMAGE_ROLES else captions
                cells = rows[role].to_pylist()
                columns[role] = np.array([items.setdefault(cell, len(items)) for cell in cells], np.int64)
        names = {cell: cell.rpartition(".")[0] or cell for cell in images}
        training_set = TrainingSet(
            name=context.folder.name,
            images=tuple(Image(name, context.image(cell).source) for cell, name in names.items()),
            captions=tuple(Caption(str(number), text) for text, number in captions.items()),
            rows=columns,
            groupings=_groupings(rows, ("type", "subset")),
            source=f"built by recipe, seed {context.seed}",
        )
        target = context.folder / BUILT
        if benchmarks.is_benchmark_folder(target):
            shutil.rmtree(target)
        halves = save_training(training_set, target, share=self.validation, progress=context.progress)
        return {"form": "training", "training": halves[0], "validation": halves[1]}


def _groupings(rows: pa.Table, names: Sequence[str]) -> dict[str, tuple[str, ...]]:
    there = [name for name in names if name in rows.column_names]
    return {name: tuple(cell or "" for cell in rows[name].to_pylist()) for name in there}


def pair_gallery(rows: pa.Table, card: Card, context: StepContext, *, source: str) -> Benchmark:
    """The gallery of all images and captions of the rows, its right pairs; equal captions are one."""
    image, cells = codes_of(rows["image"])
    caption, texts = codes_of(rows["caption"])
    right = np.array(list(dict.fromkeys(zip(image, caption, strict=True))), dtype=np.int64).reshape(-1, 2).T
    images = [context.image(cell, missing=context.photos is None) for cell in cells]
    captions = [Caption(f"c{i}", text) for i, text in enumerate(texts)]
    # The image of a caption's first row.
    owners = image[np.unique(caption, return_index=True)[1]]
    return gallery_of_pairs(card, images, captions, owners, (right[0], right[1]), source=source)
