"""Is the difference more than luck?"""

from dataclasses import replace

import numpy as np
import pytest

from counterfoil.benchmarks import Outcomes, Scores
from counterfoil.errors import InputError, UnknownNameError
from counterfoil.evaluation.compare import Difference, compare, is_significant, over_shared
from evaluation.made_runs import evaluated
from paired_columns import difference_interval
from refusals import refuses


def _quality(benchmark, quality, seed):
    """Scores in which true pairs are `quality` standard deviations above false ones."""
    noise = np.random.default_rng(seed).normal(size=(len(benchmark), 2, 2))
    return Scores(noise + quality * np.eye(2))


def test_a_real_difference_is_found_and_none_is_not(quads):
    benchmark = quads(300)
    qualities = {"weak": 0.5, "weak too": 0.5, "strong": 2.0}
    runs = [
        evaluated(name, benchmark, _quality(benchmark, q, i)) for i, (name, q) in enumerate(qualities.items())
    ]
    (comparison,) = compare(runs, baseline="weak")
    found = {(d.a, d.measure): d for d in comparison.against_baseline()}
    assert found["strong", "group"].p_holm < 0.01
    assert found["strong", "group"].low > 0
    assert found["weak too", "group"].p_holm > 0.05
    means = [run.items["group"].mean() for run in runs]
    assert found["strong", "group"].value == pytest.approx(means[2] - means[0])


@pytest.mark.parametrize(
    ("interval", "signed"),
    [
        ("clusters", "ci:clusters|clusters:image"),
        ("wilson", "ci:clusters|clusters:question"),
        ("crossed", "ci:crossed|clusters:image+caption"),
        ("folds", "ci:folds"),
    ],
)
def test_a_difference_has_a_signature(quads, interval, signed):
    benchmark = quads(20, share=2)
    runs = [evaluated(f"m{i}", benchmark, _quality(benchmark, 1.0, i)) for i in range(2)]
    (comparison,) = compare(runs, interval=interval)
    assert comparison.differences[0].signature.startswith(f"i2t|ties:strict|{signed}|v")


@pytest.mark.parametrize(("share", "given"), [(1, True), (2, False)])
def test_mcnemar_is_only_for_independent_questions(quads, share, given):
    benchmark = quads(20, share=share)
    runs = [evaluated(f"m{i}", benchmark, _quality(benchmark, 1.0, i)) for i in range(2)]
    assert all((d.mcnemar is not None) == given for d in compare(runs)[0].differences)


def test_one_comparison_per_benchmark(quads, choices):
    quad, choice = quads(6), choices({"add": 4, "swap": 3})
    right = Outcomes({"accuracy": np.array([1, 0, 1, 1, 0, 1, 0], dtype=bool)})
    runs = [evaluated(name, quad, _quality(quad, 1.0, seed)) for seed, name in enumerate("ab")]
    runs.append(evaluated("a", choice, right))
    found = compare(runs, baseline="a")
    sizes = [(c.benchmark, len(c.runs), len(c.differences)) for c in found]
    assert sizes == [("toy", 2, 3), ("toy-choice", 1, 0)]


def test_runs_that_cannot_be_paired_are_refused(quads):
    short, long = quads(5), quads(6)
    a, b = evaluated("a", short, _quality(short, 1, 0)), evaluated("b", long, _quality(long, 1, 0))
    refuses(r"ask different questions.*'a' 5 and 'b' 6", compare, [a, b], error=InputError)
    refuses("have one name", compare, [a, a], error=InputError)
    with pytest.raises(UnknownNameError, match="did you mean 'clip-large'"):
        compare([evaluated("clip-large", short, _quality(short, 1, 0)), a], baseline="clip-larg")


def test_runs_are_compared_over_the_questions_that_all_answer(quads):
    whole = quads(30)
    rows = np.array([3, 7, 8, 20, 29])
    part = whole.part(rows, "some")
    answers = [_quality(whole, 1.0, seed) for seed in range(3)]
    runs = [evaluated(f"m{seed}", whole, each) for seed, each in enumerate(answers)]
    people = evaluated("people", part, answers[2].take(rows))
    notes: list[str] = []
    found = over_shared([*runs, people], note=notes.append, draws=100)
    expected = [evaluated(f"m{seed}", part, each.take(rows)) for seed, each in enumerate(answers)]
    for run, other in zip(found, [*expected, people], strict=True):
        assert run.benchmark.questions.ids == part.questions.ids
        assert {name: run.items[name].tolist() for name in run.items} == {
            name: other.items[name].tolist() for name in other.items
        }
        for measure, value in other.result.measures.items():
            assert run.result.measures[measure].value == value.value
    assert len(notes) == 3
    assert "'m0' is measured on the 5 of its questions that all runs answer" in notes[0]
    # The model that gave the very answers of the sample is no different from it.
    (comparison,) = compare(found, baseline="people")
    assert {d.value for d in comparison.against_baseline() if d.a == "m2"} == {0.0}
    alone = evaluated("b", whole.part(np.array([0]), "one"), answers[0].take(np.array([0])))
    refuses("is answered by all runs", over_shared, [people, alone], error=InputError, note=notes.append)


def test_galleries_are_not_cut_to_some_queries_nor_paired_with_others(galleries):
    asked, fewer = galleries(parts=False, values=30), galleries(parts=False, values=30)
    run, other = _ranked("a", asked, asked.scores), _ranked("b", fewer, fewer.scores)
    ids = other.benchmark.questions.ids
    renamed = replace(other.benchmark.questions, ids=(*ids[:-1], "another"))
    other = replace(other, benchmark=replace(other.benchmark, questions=renamed))
    refuses("cannot be cut to some questions", over_shared, [run, other], error=InputError, note=print)
    with pytest.raises(InputError, match="other galleries, or other right answers"):
        compare([run, _ranked("b", galleries(gains=True), asked.scores)])


def _ranked(name, asked, scores):
    return evaluated(name, asked.benchmark, asked.scored(scores).rankings, draws=50)


@pytest.mark.parametrize("parts", [False, True])
def test_galleries_are_compared(galleries, parts):
    asked = galleries(parts=parts, values=30)
    own = np.zeros(asked.scores.shape)
    own[np.arange(36) // 3, np.arange(36)] = 15
    runs = [_ranked("good", asked, asked.scores + own), _ranked("bad", asked, asked.scores)]
    (comparison,) = compare(runs)
    assert [d.measure for d in comparison.differences] == ["i2t_map_at_r", "t2i_map_at_r", "mean_map_at_r"]
    for d in comparison.differences:
        gap = runs[0].result.measures[d.measure].value - runs[1].result.measures[d.measure].value
        assert d.value == pytest.approx(gap, abs=1e-15)
        assert d.low <= d.value <= d.high
        assert d.mcnemar is None
    assert comparison.differences[2].p < 0.01
    # Turned around, everything changes its sign and nothing else.
    (turned,) = compare(runs[::-1])
    for d, t in zip(comparison.differences, turned.differences, strict=True):
        assert (t.value, t.p) == (-d.value, d.p)
        assert (t.low, t.high) == (pytest.approx(-d.high, abs=1e-12), pytest.approx(-d.low, abs=1e-12))
    (same,) = compare([runs[0], replace(runs[0], name="again")])
    assert all((d.value, d.p) == (0.0, 1.0) and d.low < 0 < d.high for d in same.differences)


def test_the_test_of_a_gallery_is_over_images(galleries):
    """The twelve images with their captions are units, and directions weigh a half each."""
    asked = galleries(values=30)
    runs = [_ranked("a", asked, asked.scores), _ranked("b", asked, asked.scores[::-1])]
    (comparison,) = compare(runs)
    values = np.stack([run.items["mean_map_at_r"] for run in runs], axis=1)
    image = np.concatenate([np.arange(12), np.arange(36) // 3])
    direction, known = np.repeat([0, 1], [12, 36]), ~np.isnan(values[:, 0])
    ends = difference_interval(values[known], image[known], np.array([[0, 1]]), groups=direction[known])
    found = comparison.differences[2]
    assert (found.low, found.high, found.p) == pytest.approx([each[0] for each in ends])


def test_decided_is_what_interval_and_test_both_say():
    found = Difference("pairs", "accuracy", "a", "b", 0.1, 0.02, 0.18, 0.01, 0.03, None)
    assert is_significant(found)
    assert is_significant(replace(found, value=-0.1, low=-0.18, high=-0.02))
    assert not is_significant(replace(found, p_holm=0.06))
    assert not is_significant(replace(found, low=-0.01))
