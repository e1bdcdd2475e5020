"""How long a study takes, from its first steps on a clock by hand."""

import pytest

from counterfoil.studies import plan
from counterfoil.studies.plan import Pace


def test_it_says_once_what_its_steps_say(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [100.0]
    monkeypatch.setattr(plan, "perf_counter", lambda: clock[0])
    said: list[str] = []
    passed: list[tuple[str, int, int]] = []
    made = Pace(500, lambda *at: passed.append(at), said.append)
    clock[0] += 8
    made("drawing", 1, 1)
    for step in range(100):
        # The first three steps take a second each, all others a tenth.
        clock[0] += 1.0 if step <= 3 else 0.1
        made("training pretrained", step, 100)
    made("training coco", 30, 60)
    # 8 s of drawing and 4 s until the third step, then 500 steps of 0.1 s.
    assert said == ["takes about 1 min here, by its first 60 steps"]
    assert len(passed) == 102


def test_a_training_too_short_to_be_timed_says_nothing() -> None:
    said: list[str] = []
    made = Pace(500, lambda *at: None, said.append)
    for step in range(4):
        made("training pretrained", step, 3)
    assert said == []
