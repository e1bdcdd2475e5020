"""A user's script for `mypy` in `make lint`: what is right passes, and what is marked as wrong would not."""

from typing import assert_type

import counterfoil as cf


def script() -> None:
    bench = cf.load_benchmark("pairs", data="my.csv", images="photos")
    clip = cf.load_model("open-clip:ViT-B-32-quickgelu/openai", device="cpu")
    mine = cf.as_model(lambda images, captions: [0.0] * len(images), name="none", version="1")
    runs: list[cf.EvaluationRun] = [cf.evaluate(clip, bench), cf.evaluate(mine, bench)]
    assert_type(cf.compare(runs, baseline=runs[0]), cf.RunComparison).to_html("report.html", title="mine")
    assert_type(runs[0].result["group"].value, float)
    cf.evaluate(mine, bench, drawz=3)  # type: ignore[call-arg]
