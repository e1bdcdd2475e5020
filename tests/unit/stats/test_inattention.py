"""Signs of careless people: false alarms and detection by simulation, and what each sign looks at."""

from itertools import permutations

import numpy as np
import pytest

from counterfoil.errors import InputError
from counterfoil.stats.inattention import SIGNS, inattention, lower_tail, run_tail
from refusals import refuses

KINDS = ("able", "hasty", "side", "careless", "adversarial", "bot")


def campaign(rng, kinds, *, per_person=60, labels=3, classes=4, golden=10, skill=(12, 1.5)):
    """The signs of people who judge random items and all golden ones, in random order.

    Able people differ in skill, speed and habits. Hasty ones take a fifth of the time and guess 30 % of it;
    a side is clicked 70 % of the time; careless ones guess; adversarial ones are wrong; bots guess at once.
    """
    people = len(kinds)
    items = per_person * people // labels
    truth = rng.integers(0, classes, items + golden)
    drawn = np.argsort(rng.random((items, people)), axis=1)[:, :labels].ravel()
    item = np.r_[np.repeat(np.arange(items), labels), np.repeat(np.arange(items, items + golden), people)]
    who = np.r_[drawn, np.tile(np.arange(people), golden)]
    order = rng.permutation(len(item))
    item, who = item[order], who[order]
    kind, n = np.array(kinds)[who], len(item)
    speed = 4 * np.exp(0.3 * rng.standard_normal(people))
    habit = np.cumsum(rng.dirichlet(np.full(classes, 20.0), people), axis=1)
    seconds = speed[who] * np.exp(0.5 * rng.standard_normal(n))
    seconds = np.select([kind == "hasty", kind == "bot"], [seconds * 0.2, seconds * 0.1], seconds)
    guess, even = (rng.random(n)[:, None] < habit[who]).argmax(axis=1), rng.integers(0, classes, n)
    answer = np.where(rng.random(n) < rng.beta(*skill, people)[who], truth[item], guess)
    answer = np.where((kind == "hasty") & (rng.random(n) < 0.3), even, answer)
    answer = np.where((kind == "side") & (rng.random(n) < 0.7), 0, answer)
    answer = np.where((kind == "careless") | (kind == "bot"), even, answer)
    answer = np.where(kind == "adversarial", (truth[item] + rng.integers(1, classes, n)) % classes, answer)
    known = np.where(np.arange(items + golden) >= items, truth, -1)
    return inattention(who, item, answer, n_classes=classes, seconds=seconds, gold=known)


# 5 % are promised; 8 repetitions know that to 8 points, and 30 to 4.
@pytest.mark.parametrize(("pools", "crowds"), [(8, 2), pytest.param(30, 8, marks=pytest.mark.slow)])
def test_able_people_are_rarely_flagged_and_careless_ones_mostly(pools, crowds):
    rng = np.random.default_rng(0)
    alarms = [campaign(rng, ["able"] * 30).flagged().any() for _ in range(pools)]
    assert np.mean(alarms) <= 0.05 + 2 * (0.05 * 0.95 / pools) ** 0.5
    # One of each other kind among 24 able people.
    rng, kinds = np.random.default_rng(1), np.array(["able"] * 24 + list(KINDS[1:]))
    flags = np.array([campaign(rng, kinds).flagged() for _ in range(crowds)])
    result = {kind: float(flags[:, kinds == kind].mean()) for kind in KINDS}
    assert result["able"] <= 0.05 / crowds
    assert result["bot"] > 0.9
    assert result["adversarial"] > 0.9
    assert result["side"] > 0.8
    assert result["careless"] >= 0.5
    assert result["hasty"] > 0.15


def test_each_sign_sees_what_it_is_for():
    rng = np.random.default_rng(2)
    people, items = np.tile(np.arange(20), 80), np.repeat(np.arange(80), 20)
    truth = np.repeat(rng.integers(0, 3, 80), 20)
    answers = np.where(rng.random(1600) < 0.9, truth, rng.integers(0, 3, 1600))
    seconds = 4 * np.exp(0.4 * rng.standard_normal(1600))
    known = np.where(np.arange(80) < 20, truth[::20], -1)

    def signs(answers, seconds):
        result = inattention(people, items, answers, n_classes=3, seconds=seconds, gold=known)
        return {int(p): result.reasons(int(p)) for p in np.flatnonzero(result.flagged())}

    assert signs(answers, seconds) == {}
    assert signs(answers, np.where(people == 3, seconds * 0.05, seconds)) == {3: ("fast",)}
    assert "straight" in signs(np.where(people == 5, 1, answers), seconds)[5]
    # Only on the golden items: not often enough to disagree throughout.
    wrong = np.where((people == 7) & (items < 20), (answers + 1) % 3, answers)
    assert "golden" in signs(wrong, seconds)[7]
    wrong = np.where((people == 9) & (items >= 20), (answers + 1) % 3, answers)
    assert "disagree" in signs(wrong, seconds)[9]
    # Right in number, but all of one answer in a row, where items come in random order.
    order = np.arange(1600.0)
    mine = people == 11
    order[mine] = np.argsort(np.argsort(answers[mine], kind="stable"))
    result = inattention(people, items, answers, n_classes=3, order=order)
    assert result.reasons(11) == ("straight",)
    # Answers below the floor are seen even where all are fast.
    people, items = np.tile(np.arange(10), 40), np.repeat(np.arange(40), 10)
    result = inattention(people, items, items % 3, n_classes=3, seconds=np.full(400, 0.1))
    assert all(result.reasons(person) == ("fast",) for person in range(10))


def test_one_slow_answer_or_an_unknown_time_makes_no_difference():
    rng = np.random.default_rng(3)
    people, items = np.tile(np.arange(10), 30), np.repeat(np.arange(30), 10)
    seconds = np.exp(rng.standard_normal(300))
    answers = rng.integers(0, 2, 300)
    first = inattention(people, items, answers, n_classes=2, seconds=seconds)
    gone = seconds.copy()
    gone[people == 4] = np.nan
    second = inattention(people, items, answers, n_classes=2, seconds=gone)
    assert np.isnan(second.p[4, 0])
    assert np.isnan(second.value[4, 0])
    assert not np.isnan(first.p[4, 0])
    assert not np.isnan(second.adjusted[4, 1])


def test_few_people_have_no_pool_and_no_answers_are_refused():
    people, items = np.tile(np.arange(5), 30), np.repeat(np.arange(30), 5)
    known = np.zeros(30, dtype=np.int64)
    result = inattention(people, items, items % 2, n_classes=2, seconds=np.full(150, 3.0), gold=known)
    assert np.isnan(result.p[:, SIGNS.index("golden")]).all()
    assert np.isnan(result.p[:, SIGNS.index("disagree")]).all()
    assert not result.flagged().any()
    none = np.empty(0, dtype=np.int64)
    refuses("no answers", inattention, none, none, none, error=InputError, n_classes=2)


def test_run_tail_is_never_below_how_often_such_runs_come():
    for answers in ([0, 0, 0, 1, 1, 2], [0, 0, 0, 0, 1, 2], [1, 1, 1, 1, 1, 0], [0, 1, 0, 1, 0, 1]):

        def longest(row):
            ends = [i for i in range(len(row)) if i + 1 == len(row) or row[i + 1] != row[i]]
            return max(b - a for a, b in zip([-1, *ends], ends, strict=False))

        exact = np.mean([longest(row) >= longest(answers) for row in permutations(answers)])
        assert exact - 1e-12 <= run_tail(np.array(answers), 3) <= 1
    assert run_tail(np.zeros(9, dtype=np.int64), 2) == 1
    assert run_tail(np.r_[np.zeros(30, dtype=np.int64), np.ones(30, dtype=np.int64)], 2) < 1e-15


def test_tails_of_a_normal_pool_are_uniform_enough():
    rng = np.random.default_rng(4)
    noise = np.full(40, 0.5)
    p = np.concatenate(
        [
            lower_tail(rng.standard_normal(40) + np.sqrt(noise) * rng.standard_normal(40), noise)
            for _ in range(300)
        ]
    )
    for level in (0.05, 0.2, 0.5):
        assert (p <= level).mean() == pytest.approx(level, abs=0.02)
    assert (p <= 0.001).mean() < 0.002
    assert np.isnan(lower_tail(np.r_[np.zeros(7), np.nan], np.ones(8))).all()
