"""A user's script as a type checker reads it, which is `mypy` in `make lint`; nothing runs it."""

from typing import assert_type

import counterfoil as cf
from counterfoil.evaluation.result import Result


def script() -> None:
    """What is right passes, and what is marked as wrong would be an error if it passed."""
    bench = cf.load_benchmark("pairs", data="my.csv", images="photos")
    clip = cf.load_scorer("open-clip:ViT-B-32-quickgelu/openai", device="cpu")
    mine = cf.scorer(lambda images, captions: [0.0] * len(images), name="none", version="1")
    runs: list[cf.EvaluationRun] = [cf.evaluate(clip, bench), cf.evaluate(mine, bench)]
    value: float = runs[0].result["group"].value
    found: cf.RunComparison = cf.compare(runs, baseline=runs[0])
    found.to_html("report.html", title=str(value))
    assert_type(cf.evaluate(mine, bench).result, Result)
    cf.evaluate(mine, bench, drawz=3)  # type: ignore[call-arg]
