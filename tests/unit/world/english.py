"""A slow twin of the checker that knows nothing of meanings: it reads the English and tries everything."""

import re
from itertools import combinations, product

import numpy as np

from counterfoil.world.captions import Meaning, Phrase
from counterfoil.world.scenes import CONTAINERS, Thing

WORDS = {
    "shape": ["circle", "square", "triangle", "star", "heart", "diamond", "moon", "flower", "ring", "box"],
    "size": ["small", "large"],
    "texture": ["plain", "striped", "dotted"],
    "colour": ["red", "orange", "yellow", "green", "blue", "purple", "pink"],
}
KIND = {word: kind for kind, words in WORDS.items() for word in words}
RELATIONS = ("to the left of", "to the right of", "above", "below", "inside", "around")
NUMBERS = {"two": 2, "three": 3, "four": 4}
BEGINNINGS = (
    "there is ",
    "there are ",
    "here is ",
    "here are ",
    "a picture of ",
    "an image of ",
    "we see ",
    "this picture shows ",
)


def lawful(scene):
    """Whether a cell holds no two things, but for a small one in a container, which is large and plain."""
    cells: dict[tuple[int, int], list[Thing]] = {}
    for thing in scene.things:
        cells.setdefault(thing.cell, []).append(thing)
        if thing.shape in CONTAINERS and (thing.size, thing.texture) != ("large", "plain"):
            return False
    for together in cells.values():
        held = [thing.size for thing in together if thing.shape not in CONTAINERS]
        if len(together) > 2 or (len(together) == 2 and held != ["small"]):
            return False
    return all(0 <= min(cell) <= max(cell) <= 2 for cell in cells)


def true_by_reading(sentence, scene):
    """Whether an English caption is true of a scene: every way to point at things is tried, one by one."""
    rest = sentence.rstrip(".").lower()
    rest, closes_things, _ = rest.partition(", and nothing else")
    for beginning in BEGINNINGS:
        rest = rest.removeprefix(beginning)
    rest = re.sub(r"; there (is|are) also ", " and ", rest)
    relation = None
    for words in RELATIONS:
        if f" {words} " in rest:
            relation = words
            rest = re.sub(rf" (is |are )?{words} ", " and ", rest)
    phrases = []
    for part in re.split(r", | and ", rest):
        first, *words = part.split()
        words[-1] = "box" if words[-1] == "boxes" else words[-1].removesuffix("s")
        phrases.append((NUMBERS.get(first, 1), first in NUMBERS, words))

    def is_so(words, i):
        return all(word == "shape" or getattr(scene.things[i], KIND[word]) == word for word in words)

    def bears(i, j):
        a, b = scene.things[i], scene.things[j]
        near = abs(a.x - b.x) < 0.1 and abs(a.y - b.y) < 0.1
        # Neighbours of the grid lie 0.315 apart give or take 0.03, others in line by 0.03 at most.
        return {
            "to the left of": b.x - a.x > 0.2,
            "to the right of": a.x - b.x > 0.2,
            "above": b.y - a.y > 0.2,
            "below": a.y - b.y > 0.2,
            "inside": near and b.shape in ("ring", "box") and a.shape not in ("ring", "box"),
            "around": near and a.shape in ("ring", "box") and b.shape not in ("ring", "box"),
        }[relation]

    def true_of(pointed):
        flat = [i for group in pointed for i in group]
        if len(set(flat)) < len(flat):
            return False
        for (count, exact, words), group in zip(phrases, pointed, strict=True):
            if not all(is_so(words, i) for i in group):
                return False
            if exact and sum(is_so(words, i) for i in everything) != count:
                return False
        if relation is not None and not all(bears(i, j) for i in pointed[0] for j in pointed[1]):
            return False
        return not (closes_things and len(scene.things) > len(flat))

    everything = range(len(scene.things))
    ways = [list(combinations(everything, count)) for count, _, _ in phrases]
    return any(true_of(pointed) for pointed in product(*ways))


def random_meaning(scene, rng):
    """A caption loosely after the scene: most of what it says is taken from there."""
    count = int(rng.integers(1, 4))
    order = rng.permutation(len(scene.things))

    def phrase(k):
        thing = scene.things[order[k % len(order)] if rng.random() < 0.8 else rng.integers(len(order))]
        said = {
            kind: getattr(thing, kind) if rng.random() < 0.93 else str(rng.choice(words))
            for kind, words in WORDS.items()
            if rng.random() < 0.4
        }
        fitting = sum(all(getattr(t, k) == v for k, v in said.items()) for t in scene.things)
        if rng.random() < 0.3:
            return Phrase(**said, count=int(np.clip(fitting + rng.choice([-1, 0, 0, 0, 1]), 1, 4)))
        return Phrase(**said)

    relation = str(rng.choice(RELATIONS)) if count > 1 and rng.random() < 0.6 else None
    phrases = [phrase(k) for k in range(count)]
    pairs = [(a, b) for a in scene.things for b in scene.things if a.cell == b.cell and a != b]
    if relation in ("inside", "around") and pairs and rng.random() < 0.8:
        held, holder = next((a, b) for a, b in pairs if b.shape in ("ring", "box"))
        told = [Phrase(held.shape if rng.random() < 0.8 else None), Phrase(holder.shape)]
        phrases[:2] = told if relation == "inside" else told[::-1]
    return Meaning(tuple(phrases), relation, str(rng.choice(["", "", "things"])))
