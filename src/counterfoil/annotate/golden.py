"""Golden items, whose right answer is known: how they are drawn, where people meet them, and who is right."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from counterfoil.annotate.forms.base import WorkForm, WorkItem
from counterfoil.annotate.forms.builtin import FULLY, NEGATIVE, NOT, POSITIVE
from counterfoil.annotate.pictures import Pictures
from counterfoil.annotate.settings import CampaignRecipe
from counterfoil.benchmarks.benchmark import Benchmark
from counterfoil.benchmarks.judgements import DIRECTIONS
from counterfoil.errors import DataError, InputError
from counterfoil.stats.bootstrap import random_numbers

#: What is right of a pair that belongs together and of one that does not, by the form's main question.
TRUTHS: Mapping[str, tuple[str, str]] = {
    "match": (FULLY, NOT),
    "yes-no": ("yes", "no"),
    "error-spans": ("right", "wrong"),
}


def is_right(item: WorkItem, answer: Mapping[str, Any]) -> bool | None:
    """Whether every golden field has one of its values, of several values all; None of no golden item."""
    if not item.golden:
        return None
    return all(
        set(value) == set(allowed) if isinstance(value := answer.get(name), list) else value in allowed
        for name, allowed in item.golden.items()
    )


def grouped(names: Iterable[str]) -> dict[str, list[int]]:
    """The places of each name, in order of first appearance."""
    groups: dict[str, list[int]] = {}
    for i, name in enumerate(names):
        groups.setdefault(name, []).append(i)
    return groups


def by_right_answer(items: Iterable[WorkItem]) -> list[list[int]]:
    """The places of items of known answer, those with the same right answer together."""
    right = ({name: sorted(values) for name, values in item.golden.items()} for item in items)
    return list(grouped(json.dumps(answer, sort_keys=True) for answer in right).values())


def is_golden_place(seed: int, person: str, place: int, share: float) -> bool:
    """Whether a person's page at this place, from 0, is golden: one in every 1 / share pages, at random."""
    if share <= 0:
        return False
    stretch = int(np.floor((place + 0.5) * share))
    first, end = int(np.ceil(stretch / share - 0.5)), int(np.ceil((stretch + 1) / share - 0.5))
    return place == first + int(random_numbers(seed, "golden place", person, stretch).integers(end - first))


def own_order(items: Sequence[WorkItem], seed: int, person: str, what: str) -> tuple[int, ...]:
    """A person's own order of items of known answer, in which right answers alternate."""
    rng = random_numbers(seed, what, person)
    groups = [rng.permutation(members) for members in by_right_answer(items)]
    keyed = [(i, rng.random(), int(item)) for members in groups for i, item in enumerate(members)]
    return tuple(item for _, _, item in sorted(keyed))


def add_golden(
    blocks: list[list[int]], items: Sequence[WorkItem], recipe: CampaignRecipe, rng: np.random.Generator
) -> None:
    """Add golden items to each block: right answers in turn, every item as often as the others."""
    if not recipe.golden_per_block:
        return
    gold = [position for position, item in enumerate(items) if item.role == "golden"]
    answers = [
        [gold[position] for position in members]
        for members in by_right_answer(items[position] for position in gold)
    ]
    used: Counter[int] = Counter()
    of_answer: Counter[int] = Counter()
    for block in blocks:
        taken = {items[position].exclusion_group for position in block}
        here: Counter[int] = Counter()
        for _ in range(recipe.golden_per_block):
            free = [
                (here[group], of_answer[group], used[position], rng.random(), group, position)
                for group, members in enumerate(answers)
                for position in members
                if items[position].exclusion_group not in taken
            ]
            if not free:
                what = f"golden items do not go into blocks of {recipe.golden_per_block} golden ones"
                hint = "give more golden items, of instances of their own, or lower golden_per_block"
                raise InputError(what, given=f"{len(gold):,} golden items", hint=hint)
            *_, group, position = min(free)
            block.append(position)
            taken.add(items[position].exclusion_group)
            here[group] += 1
            of_answer[group] += 1
            used[position] += 1


def drawn_golden(
    gallery: Benchmark,
    proposed: set[tuple[str, str]],
    n: int,
    form: WorkForm,
    pictures: Pictures,
    rng: np.random.Generator,
) -> tuple[WorkItem, ...]:
    """At most `n` true pairs of the images and captions that are asked about, and `n` random ones that are
    neither right nor `proposed` (ECCV Caption 3.2).
    """
    # A server reads this module too, and draws nothing.
    from counterfoil.evaluation.judged_pairs import right_pairs

    if form.name not in ("match", "yes-no"):
        allowed_forms = "match, yes-no; else give a table"
        raise InputError("golden items are drawn for pairs", given=form.name, allowed=allowed_forms)
    used = [{pair[side] for pair in proposed} for side in (0, 1)]
    images = [image.id for image in gallery.images if image.id in used[0]]
    captions = [caption.id for caption in gallery.captions if caption.id in used[1]]
    true: set[tuple[str, str]] = set()
    everything = [image.id for image in gallery.images], [caption.id for caption in gallery.captions]
    for way in DIRECTIONS:
        names, items = (images, everything[1]) if way == "i2t" else (captions, everything[0])
        for query, item in right_pairs(gallery, way, names, items).tolist():
            true.add((names[query], items[item]) if way == "i2t" else (items[item], names[query]))
    fitting = sorted(pair for pair in true if pair[0] in used[0] or pair[1] in used[1])
    if not fitting or not images or not captions:
        raise DataError("no true pairs of the images and captions asked about", where=gallery.name)
    pictured = {image.id: image for image in gallery.images}
    texts = {caption.id: caption.text for caption in gallery.captions}
    drawn = [fitting[i] for i in rng.permutation(len(fitting))[:n].tolist()]
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
    gold = []
    for kind, pairs, values, truth in zip(
        ("true pair", "random pair"), (drawn, wrong), allowed, TRUTHS[form.name], strict=True
    ):
        for i, (image, caption) in enumerate(pairs):
            cells = {"image": pictures.add(pictured[image]), "caption": texts[caption]}
            name = f"golden {kind} {i}"
            gold.append(WorkItem(name, cells, "golden", {form.main: values}, kind=kind, truth=truth))
            form.page(gold[-1])
    return tuple(gold)
