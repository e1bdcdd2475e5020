"""Small inputs of every form of question, as files a user would have; all numbers are exact on every machine.

Nothing here is drawn or encoded: scores are multiples of 1/8 from a fixed generator, so that no sum of them
depends on the order in which a machine adds.
"""

import json
from pathlib import Path

import numpy as np

from faults.files import write_csv

N = 24
_COLOURS = ("red", "green", "blue", "yellow")
_THINGS = ("cat", "dog", "bird", "horse", "cow", "sheep")
_PLACES = ("on", "under", "behind", "beside")


def make(folder: Path) -> None:
    rng = np.random.default_rng(2026)
    _contrasts(folder, rng)
    _rated(folder, rng)
    _gallery(folder, rng)
    _captions(folder)
    _people(folder, rng)


def _caption(k: int, *, swapped: bool = False) -> str:
    first, second = _THINGS[k % 6], _THINGS[(k // 6 + 1 + k) % 6]
    if swapped:
        first, second = second, first
    end = " today" * (k % 3)
    return f"a {_COLOURS[k % 4]} {first} {_PLACES[k % 3]} a {second} number {k // 2}{end}"


def _eighths(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    return rng.integers(-16, 17, shape) / 8


def _contrasts(folder: Path, rng: np.random.Generator) -> None:
    choices = [
        {
            "image": f"p{k}.png",
            "caption": _caption(k),
            "negative_caption": _caption(k, swapped=True),
            "kind": ("swap", "replace", "add")[k % 3],
        }
        for k in range(N)
    ]
    write_csv(folder / "choices.csv", choices)
    # A negative picture that is another row's picture, and a caption that comes twice: crossed factors.
    quads = [{**row, "negative_image": f"p{(k + 1) % N}.png"} for k, row in enumerate(choices)]
    write_csv(folder / "quads.csv", quads)
    for name in ("a", "b", "c"):
        four = _eighths(rng, (N, 2, 2)) + np.eye(2) * (1 if name == "a" else 0.5)
        rows = [
            {"id": str(k), **{f"c{i}_i{j}": four[k, i, j] for i in (0, 1) for j in (0, 1)}} for k in range(N)
        ]
        write_csv(folder / f"quads-{name}.csv", rows)
        two = _eighths(rng, (N, 2))
        write_csv(
            folder / f"choices-{name}.csv",
            [{"id": str(k), "s0": two[k, 0], "s1": two[k, 1]} for k in range(N)],
        )
    write_csv(folder / "outcomes.csv", [{"id": str(k), "correct": int(k % 3 > 0)} for k in range(N)])


def _rated(folder: Path, rng: np.random.Generator) -> None:
    rows = [
        {
            "image": f"p{k // 3}.png",
            "caption": f"{_caption(k)} seen {k}" + " again" * (k % 4),
            "rating": int(rng.integers(1, 5)),
            "group": ("system one", "system two", "system three")[k % 3],
        }
        for k in range(2 * N)
    ]
    write_csv(folder / "ratings.csv", rows)
    for name in ("a", "b"):
        given = [
            {
                "image": r["image"],
                "caption": r["caption"],
                "score": float(_eighths(rng, ())) + int(r["rating"]) / 4,
            }
            for r in rows
        ]
        write_csv(folder / f"ratings-{name}.csv", given)
    pairs = [
        {
            "image": f"p{k}.png",
            "caption_a": _caption(k),
            "caption_b": _caption(k, swapped=True),
            "preferred": "ab"[k % 5 == 0],
            "group": ("HC", "HI")[k % 2],
        }
        for k in range(N)
    ]
    write_csv(folder / "preferences.csv", pairs)


def _gallery(folder: Path, rng: np.random.Generator) -> None:
    images, captions = [f"p{k}.png" for k in range(12)], [f"{_caption(k)} in view {k}" for k in range(N)]
    positives = [
        {"image": images[k // 2], "caption": captions[k], "gain": 1.0 if k % 5 else 0.5} for k in range(N)
    ]
    positives += [{"image": images[0], "caption": captions[5], "gain": 0.5}]
    write_csv(folder / "gallery.csv", positives)
    kept = dict.fromkeys(row["caption"] for row in positives)
    for name in ("a", "b", "c"):
        similarity = _eighths(rng, (len(images), len(kept))).astype(np.float32)
        similarity[np.arange(N) // 2, np.arange(N)] += {"a": 2, "b": 1, "c": 0.5}[name]
        np.save(folder / f"gallery-{name}.npy", similarity)
    np.savez(
        folder / "gallery-ids.npz",
        image_ids=np.array(images),
        caption_ids=np.array([f"c{k}" for k in range(len(kept))]),
    )


def _captions(folder: Path) -> None:
    images = {f"p{k}": _caption(k) for k in range(N)}
    (folder / "candidates.json").write_text(json.dumps(images))
    references = {key: [f"there is {text}", text.replace("a ", "the ", 1)] for key, text in images.items()}
    (folder / "references.json").write_text(json.dumps(references))
    for name, word in (("one", "cat"), ("two", "car"), ("three", "number")):
        rows = [{"image_id": key, "caption": text.replace(word, "thing")} for key, text in images.items()]
        (folder / f"{name}.json").write_text(json.dumps(rows))
    humans = [
        {"system": name, "M1": 0.5 + k / 8, "M2": 1 - k / 4} for k, name in enumerate(("one", "two", "three"))
    ]
    write_csv(folder / "humans.csv", humans)


def _people(folder: Path, rng: np.random.Generator) -> None:
    names = ("x", "y", "z")
    votes = [
        {"winner": names[k % 3], "loser": names[(k + 1 + k % 2) % 3], "judge": f"j{int(rng.integers(5))}"}
        for k in range(40)
    ]
    write_csv(folder / "votes.csv", votes)
    judged = [
        {
            "item": f"i{k // 3}",
            "person": f"p{(k // 3 + 2 * (k % 3)) % 7}",
            "question": "match",
            "answer": (1 + k // 3) % 4 if rng.random() < 0.8 else int(rng.integers(4)),
            "seconds": round(float(rng.exponential(6)), 1),
            "kind": ("add", "swap")[k // 3 % 2],
        }
        for k in range(90)
    ]
    write_csv(folder / "judgements.csv", judged)
