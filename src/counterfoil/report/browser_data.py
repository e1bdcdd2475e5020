"""Data of the question browser: questions, answers and pictures as one JSON value inside the page.

Right and wrong are decided here, by the measures, and the page only shows them: its script compares no
scores. All is columns, so that some thousand questions stay within a megabyte or two.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from itertools import zip_longest
from typing import Any

import numpy as np
from numpy.typing import NDArray

from counterfoil.data.benchmark import Benchmark
from counterfoil.evaluation.compare import Comparison
from counterfoil.evaluation.run import Run
from counterfoil.report import labels as label_of
from counterfoil.report.pictures import Album
from counterfoil.report.tables import ranking

#: The kinds of failure, by the digit that stands for them.
KINDS: Mapping[str, tuple[str, ...]] = {
    "quad": ("all right", "only I2T fails", "only T2I fails", "both fail"),
    "choice": ("right", "wrong"),
}
_DIRECTIONS = ("ipos2t", "ineg2t", "tpos2i", "tneg2i")


def kinds(run: Run) -> NDArray[np.int64]:
    """(n,) positions in `KINDS` of the run's form: what fails in each question, by the run's tie policy.

    A value below 1, such as the half of a tie, is a failure.
    """
    if "i2t" not in run.items:
        return (run.items["accuracy"] < 1).astype(np.int64)
    return (run.items["i2t"] < 1) + 2 * (run.items["t2i"] < 1).astype(np.int64)


def richest(comparison: Comparison) -> Benchmark:
    """Of the runs' benchmarks the one with the most images, then captions, at hand; the first of equals."""

    def riches(benchmark: Benchmark) -> tuple[int, int]:
        images = sum(image.source is not None for image in benchmark.images)
        return images, sum(caption.text is not None for caption in benchmark.captions)

    return max((run.benchmark for run in comparison.runs), key=riches)


def spread(comparison: Comparison, kinds: Callable[[Run], NDArray[np.int64]] = kinds) -> list[int]:
    """All questions, in an order whose every beginning is a fair sample.

    `kinds` says what fails in each question. Each group and each pattern of failures has its turn, so
    whichever questions the pictures last for, every kind of failure is among them.
    """
    strata: dict[tuple[object, ...], list[int]] = {}
    patterns = np.stack([kinds(run) for run in comparison.runs], axis=1)
    labels = next(iter(comparison.runs[0].benchmark.questions.groupings.values()), None)
    for i, pattern in enumerate(patterns.tolist()):
        strata.setdefault((labels[i] if labels else "", *pattern), []).append(i)
    turns = zip_longest(*strata.values())
    return [i for turn in turns for i in turn if i is not None]


def benchmark_data(comparison: Comparison, album: Album, *, pictures: bool, captions: bool) -> dict[str, Any]:
    """The questions of one benchmark with every scorer's answers, and pictures as far as `album` has room."""
    benchmark = richest(comparison)
    questions = benchmark.paired
    caption_at, image_at = questions.slots()
    order = spread(comparison) if pictures else []
    shown = album.add(benchmark.images, [image_at[i].tolist() for i in order]) if pictures else {}
    with_picture = [all(p in shown for p in positions) for positions in image_at.tolist()]
    return {
        "name": comparison.benchmark,
        "title": benchmark.card.title,
        "form": questions.form,
        "ties": str(comparison.runs[0].result.ties.get("policy", "")),
        "asks": getattr(questions, "asks", None),
        "correct": getattr(questions, "correct", None),
        "ids": list(questions.ids),
        "kinds": list(KINDS[questions.form]),
        "captions": [[c.text if captions else None, c.id] for c in benchmark.captions],
        "images": [[image.id, shown.get(p, -1)] for p, image in enumerate(benchmark.images)],
        "captionAt": caption_at.tolist(),
        "imageAt": image_at.tolist(),
        "pictured": sum(with_picture),
        "groupings": [grouping(name, labels) for name, labels in questions.groupings.items() if any(labels)],
        "models": [_model(run) for run in comparison.runs],
        "best": [run.name for run in comparison.runs].index(ranking(comparison)[0]),
    }


def to_json(value: object) -> str:
    """JSON that can stand inside an HTML script element: nothing in it ends the element or begins a comment.

    >>> to_json("</script><!--")
    '"\\\\u003c/script\\\\u003e\\\\u003c!--"'
    """
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for mark in "<>&\u2028\u2029":
        text = text.replace(mark, f"\\u{ord(mark):04x}")
    return text


def grouping(name: str, labels: Sequence[str]) -> dict[str, Any]:
    """A grouping as its labels and, per question, the position of its label (-1 for none)."""
    distinct = list(dict.fromkeys(label for label in labels if label))
    number = {label: i for i, label in enumerate(distinct)}
    called = [label_of.group(label) for label in distinct]
    return {
        "name": label_of.grouping(name),
        "labels": called,
        "codes": [number.get(label, -1) for label in labels],
    }


def _model(run: Run) -> dict[str, Any]:
    answers = run.answers
    scores = None
    if answers.has_scores:
        # Six digits are for showing; what is right was decided on the full ones.
        flat = answers.scores.reshape(len(answers.scores), -1)
        scores = [[float(f"{value:.6g}") for value in row] for row in flat.tolist()]
    data = {"name": run.name, "kinds": "".join(map(str, kinds(run).tolist())), "scores": scores}
    if _DIRECTIONS[0] in run.items:
        bits = sum((run.items[name] >= 1).astype(np.int64) << i for i, name in enumerate(_DIRECTIONS))
        data["directions"] = "".join(f"{value:x}" for value in np.asarray(bits).tolist())
    return data
