"""Items of a campaign from the questions of a benchmark, by the columns of the form of work:

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
from counterfoil.annotate.golden import TRUTHS
from counterfoil.annotate.items import CampaignItems
from counterfoil.annotate.pictures import Pictures
from counterfoil.benchmarks.benchmark import Benchmark
from counterfoil.errors import DataError, InputError

#: The four single directions of a quad: image k with both captions, caption k with both images.
QUAD_KINDS: tuple[str, ...] = ("i2t-0", "i2t-1", "t2i-0", "t2i-1")
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


def items_of_benchmark(
    benchmark: Benchmark,
    form: WorkForm,
    pictures: Pictures,
    *,
    sample: int | None = None,
    rng: np.random.Generator,
) -> CampaignItems:
    """The items of a benchmark's questions, or of `sample` of them; their `instance` is the question."""
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
        what, allowed = f"the form '{form.name}' takes its items from a table", ", ".join(form.columns)
        raise DataError(what, where=benchmark.name, allowed=allowed)

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
    right, wrong = TRUTHS.get(form.name, ("", ""))
    listed = zip(places.tolist(), captions.tolist(), images.tolist(), strict=True)
    for (question, *slot), caption, image in listed:
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
        what = (lacking or ["negative"])[0].replace("_", " ")
        text, given = f"the form '{form.name}' needs questions with a {what}", f"form '{benchmark.card.form}'"
        raise DataError(text, where=benchmark.name, given=given)
    names = [benchmark.questions.ids[at] for at in source.tolist()]
    several, seen = Counter(names), Counter[str]()
    for row, name in enumerate(names):
        role_name = name if several[name] == 1 else f"{name}/{seen[name]}"
        seen[name] += 1
        cells = {column: int(roles[role][row]) for column, role in wanted.items()}
        yield WorkItem(role_name, cells, instance=name)
