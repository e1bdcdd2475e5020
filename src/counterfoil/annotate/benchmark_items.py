"""Items of a campaign from the questions of a benchmark, and golden pairs drawn from its gallery.

Which questions become which items follows from the columns of the form of work:

    image, caption            every pair that a question asks about, as Winoground shows them to people
    images, captions          the single directions of quads and choices, as BiVLC's human baseline has them
    image, negative_image, …  the rows that a question stands for in training: its positive pair and negative
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from counterfoil.annotate.forms.base import WorkForm, WorkItem
from counterfoil.annotate.forms.builtin import FULLY, NEGATIVE, NOT, POSITIVE
from counterfoil.annotate.items import CampaignItems, KnownItems
from counterfoil.annotate.pictures import Pictures
from counterfoil.benchmarks.benchmark import Benchmark
from counterfoil.benchmarks.judgements import DIRECTIONS
from counterfoil.errors import DataError, InputError
from counterfoil.evaluation.judged_pairs import right_pairs

#: The four single directions of a quad: image k with both captions, caption k with both images.
QUAD_KINDS: tuple[str, ...] = ("i2t-0", "i2t-1", "t2i-0", "t2i-1")
#: What is right of a pair that belongs together and of one that does not, by the form's main question.
_TRUTHS: Mapping[str, tuple[str, str]] = {
    "match": (FULLY, NOT),
    "yes-no": ("yes", "no"),
    "error-spans": ("right", "wrong"),
}
#: Columns of forms as roles of training rows.
_ROLES: Mapping[str, Mapping[str, str]] = {
    "which-image": {"caption": "caption", "image": "image", "negative_image": "negative_image"},
    "quad-validation": {
        "first_image": "image",
        "second_image": "negative_image",
        "first_caption": "caption",
        "second_caption": "negative_caption",
    },
}


def known_items(benchmark: Benchmark) -> KnownItems:
    """The images and captions of a benchmark by their ids."""
    return KnownItems(
        {image.id: image for image in benchmark.images},
        {caption.id: caption.text for caption in benchmark.captions},
    )


def items_of_benchmark(
    benchmark: Benchmark,
    form: WorkForm,
    pictures: Pictures,
    *,
    sample: int | None = None,
    rng: np.random.Generator,
) -> CampaignItems:
    """The items of a benchmark's questions, or of `sample` of them drawn without replacement.

    Items of a question have its id as their `instance`, so that no person judges two of them. `kind` is the
    direction of a choice, or whether a pair belongs together. Raises `DataError` where the form needs what
    the questions do not have, and where an image or a caption is not at hand.
    """
    if benchmark.card.shows == "video":
        raise DataError("a campaign shows images", where=benchmark.name, given="a benchmark of videos")
    if sample is not None:
        if sample > len(benchmark):
            what, allowed = "a sample larger than the benchmark", f"1 to {len(benchmark):,}"
            raise InputError(what, where=benchmark.name, given=f"{sample:,}", allowed=allowed)
        benchmark = benchmark.select(np.sort(rng.choice(len(benchmark), sample, replace=False)))
    columns = set(form.columns)
    if columns <= {"image", "caption"}:
        drafts = _pairs(benchmark, form)
    elif columns == {"images", "captions"}:
        drafts = _choices(benchmark)
    elif form.name in _ROLES:
        drafts = _roles(benchmark, form)
    else:
        raise DataError(
            f"the form '{form.name}' takes its items from a table",
            where=benchmark.name,
            allowed=", ".join(form.columns),
        )

    def cell(kind: str, at: Any, where: str) -> Any:
        """The text or the image's name at a position of the benchmark, or several."""
        if at is None:
            return None
        if kind in ("images", "texts"):
            return [cell(kind[:-1], position, where) for position in at]
        if kind == "image":
            return pictures.add(benchmark.images[at], where=where)
        caption = benchmark.captions[at]
        if caption.text is None:
            raise DataError(f"caption '{caption.id}' is not at hand", where=where)
        return caption.text

    items = []
    for draft in drafts:
        where = f"question '{draft.instance}'"
        cells = {name: cell(kind, draft.cells.get(name), where) for name, kind in form.columns.items()}
        items.append(replace(draft, cells=cells))
        form.page(items[-1])
    rows = {"item": [item.id for item in items], "question": [item.instance for item in items]}
    return CampaignItems(tuple(items), pa.table(rows, pa.schema(dict.fromkeys(rows, pa.string()))))


# Items whose cells are positions of images and captions in the benchmark.


def _pairs(benchmark: Benchmark, form: WorkForm) -> Iterable[WorkItem]:
    """Every pair that a question asks about: "17", "17_s1", or of quads "17_c0_i1"."""
    questions = benchmark.listed
    captions, images = (positions.reshape(-1) for positions in questions.pairs())
    filled = questions.filled
    places = np.argwhere(np.ones(questions.shape, dtype=bool) if filled is None else filled)
    if len(places) != len(captions):
        raise DataError("questions that are not of single pairs", where=benchmark.name)
    right, wrong = _TRUTHS.get(form.name, ("", ""))
    for (question, *slot), caption, image in zip(
        places.tolist(), captions.tolist(), images.tolist(), strict=True
    ):
        name = questions.ids[question]
        kind, truth = "", ""
        if slot:
            belongs = slot[0] == slot[1] if len(slot) == 2 else slot[0] < questions.correct
            kind, truth = ("right pair", right) if belongs else ("wrong pair", wrong)
        ending = "_c{}_i{}".format(*slot) if len(slot) == 2 else "".join(f"_s{at}" for at in slot)
        cells = {"image": image, "caption": caption}
        yield WorkItem(name + ending, cells, instance=name, kind=kind, truth=truth)


def _choices(benchmark: Benchmark) -> Iterable[WorkItem]:
    """Four items of a quad, one of a choice: "17_i2t-0", the place of the right one as truth."""
    questions = benchmark.paired
    captions, images = questions.slots()
    for name, texts, shown in zip(questions.ids, captions.tolist(), images.tolist(), strict=True):
        texts, shown = ([at for at in slots if at >= 0] for slots in (texts, shown))
        if len(texts) > 1 and len(shown) > 1:
            for at, kind in enumerate(QUAD_KINDS):
                side = at % 2
                cells = {"images": [shown[side]], "captions": texts}
                if kind.startswith("t2i"):
                    cells = {"images": shown, "captions": [texts[side]]}
                yield WorkItem(f"{name}_{kind}", cells, instance=name, kind=kind, truth=str(side))
        else:
            truth = "|".join(map(str, range(questions.correct)))
            kind = "i2t" if len(texts) > 1 else "t2i"
            cells = {"images": shown, "captions": texts}
            yield WorkItem(name, cells, instance=name, kind=kind, truth=truth)


def _roles(benchmark: Benchmark, form: WorkForm) -> Iterable[WorkItem]:
    source, roles = benchmark.questions.training_rows(where=benchmark.name)
    wanted = _ROLES[form.name]
    lacking = sorted(set(wanted.values()) - set(roles))
    if lacking or source is None:
        raise DataError(
            f"the form '{form.name}' needs questions with a {(lacking or ['negative'])[0].replace('_', ' ')}",
            where=benchmark.name,
            given=f"form '{benchmark.card.form}'",
        )
    names = [benchmark.questions.ids[at] for at in source.tolist()]
    several, seen = Counter(names), Counter[str]()
    for row, name in enumerate(names):
        own = name if several[name] == 1 else f"{name}/{seen[name]}"
        seen[name] += 1
        cells = {column: int(roles[role][row]) for column, role in wanted.items()}
        yield WorkItem(own, cells, instance=name)


def drawn_golden(
    gallery: Benchmark,
    proposed: set[tuple[str, str]],
    n: int,
    form: WorkForm,
    pictures: Pictures,
    rng: np.random.Generator,
) -> tuple[WorkItem, ...]:
    """Golden items of a match: true pairs of the gallery, and random pairs that are none (ECCV Caption 3.2).

    `n` of each, of the images and captions that are asked about. A random pair is neither right in the
    gallery nor among `proposed`, the (image, caption) ids of a model. Fewer than `n` come back where
    there are no more true pairs. Raises `InputError` for forms that do not judge pairs.
    """
    if form.name not in ("match", "yes-no"):
        raise InputError(
            "golden items are drawn for pairs", given=form.name, allowed="match, yes-no; else give a table"
        )
    used = [{pair[side] for pair in proposed} for side in (0, 1)]
    images = [image.id for image in gallery.images if image.id in used[0]]
    captions = [caption.id for caption in gallery.captions if caption.id in used[1]]
    # (image, caption) ids that are right in either direction.
    true: set[tuple[str, str]] = set()
    everything = [image.id for image in gallery.images], [caption.id for caption in gallery.captions]
    for way in DIRECTIONS:
        names, items = (images, everything[1]) if way == "i2t" else (captions, everything[0])
        for query, item in right_pairs(gallery, way, names, items).tolist():
            true.add((names[query], items[item]) if way == "i2t" else (items[item], names[query]))
    fitting = sorted(pair for pair in true if pair[0] in used[0] or pair[1] in used[1])
    if not fitting or not images or not captions:
        raise DataError("no true pairs of the images and captions asked about", where=gallery.name)
    known = known_items(gallery)
    drawn = [fitting[at] for at in rng.permutation(len(fitting))[:n].tolist()]
    wrong: list[tuple[str, str]] = []
    tries = 0
    while len(wrong) < n and tries < 100 * n:
        tries += 1
        pair = images[int(rng.integers(len(images)))], captions[int(rng.integers(len(captions)))]
        if pair not in proposed and pair not in true and pair not in wrong:
            wrong.append(pair)
    if not wrong:
        raise DataError("no random pair that no model proposed", where=gallery.name)
    allowed = (POSITIVE, NEGATIVE) if form.name == "match" else (("yes",), ("no",))
    golden = []
    for kind, pairs, values, truth in zip(
        ("true pair", "random pair"), (drawn, wrong), allowed, _TRUTHS[form.name], strict=True
    ):
        for at, (image, caption) in enumerate(pairs):
            cells = {"image": pictures.add(known.images[image]), "caption": known.captions[caption]}
            name = f"golden {kind} {at}"
            golden.append(WorkItem(name, cells, "golden", {form.main: values}, kind=kind, truth=truth))
            form.page(golden[-1])
    return tuple(golden)
