"""The time of an evaluation of some questions, and from it what all of them would take."""

import time
from typing import Any

from counterfoil.benchmarks.benchmark import Benchmark
from counterfoil.engine.plan import Progress
from counterfoil.report.tables import duration


class Stopwatch:
    """Progress that is passed on; the start, the first batch and the end of each stage are kept."""

    def __init__(self, progress: Progress, scorer: Any) -> None:
        self._progress, self._scorer = progress, scorer
        self._stages: dict[str, list[tuple[float, int, int]]] = {}
        self._requests = getattr(scorer, "requests", 0)

    def __call__(self, stage: str, done: int, total: int) -> None:
        """Note the time, and pass it on."""
        self._stages.setdefault(stage, [])[2:] = [(time.monotonic(), done, total)]
        self._progress(stage, done, total)

    def note(self, part: Benchmark, whole: Benchmark) -> str | None:
        """What `whole` would take by the time of `part`; None where nothing was waited for."""
        if not self._stages:
            return None
        growth = len(whole) / len(part)
        # How many different images, and texts, some question asks about.
        used = ((of, *of.questions.used()) for of in (whole, part))
        of_whole, of_part = (
            (len(pictures), len({of.captions[at].text for at in texts})) for of, texts, pictures in used
        )
        images, captions = (n / max(1, m) for n, m in zip(of_whole, of_part, strict=True))
        sizes = {"images": images, "captions": captions}
        seconds = 0.0
        for stage, points in self._stages.items():
            took = _seconds(points, sizes.get(stage.rpartition(" ")[2], growth))
            if took is None:
                return f"{whole.name}: part of this came from the cache; --no-cache shows what all would take"
            seconds += took
        costs = [f"{duration(seconds)} at this speed"]
        if requests := getattr(self._scorer, "requests", 0) - self._requests:
            # Answers that were kept say nothing of the endpoint's speed.
            spent = self._scorer.endpoint.spent
            costs = costs if spent.requests > spent.cached else []
            costs.append(f"{round(requests * growth):,} requests")
        return f"{whole.name}: all {len(whole):,} questions would take about {' and '.join(costs)}"


def _seconds(points: list[tuple[float, int, int]], growth: float) -> float | None:
    """Seconds of a stage with `growth` times as many items; None where the cache knew them all.

    The first batch loads the model, so that where there are more the speed is that of the others.

    >>> _seconds([(0.0, 0, 40), (9.0, 20, 40), (10.0, 40, 40)], growth=10)
    28.0
    >>> _seconds([(0.0, 0, 40), (4.0, 40, 40)], growth=10)
    40.0
    """
    (began, done_before, total), (ended, done, _) = points[0], points[-1]
    if done == done_before:
        return None if total else 0.0
    first, loaded = points[1][:2]
    if done == loaded:
        return (ended - began) / (done - done_before) * total * growth
    left = total * growth - (loaded - done_before)
    return first - began + (ended - first) / (done - loaded) * left
