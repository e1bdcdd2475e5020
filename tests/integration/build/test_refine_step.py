"""Rating and refining: real captions to the end, scores from files, blind models held out and not."""

import json
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

from build_fixtures import step_work
from counterfoil import catalog
from counterfoil.benchmarks.records import Caption, Image
from counterfoil.build.pipeline import run_step
from counterfoil.build.rating import blind_accuracy
from counterfoil.build.step import StepContext, with_column
from counterfoil.build.steps.rate import Rate
from counterfoil.build.steps.read import of_benchmark
from counterfoil.build.steps.refine import NO_SCORE, SURPLUS, Refine
from counterfoil.engine.session import Session
from counterfoil.errors import InputError
from counterfoil.jobs.audit import audit
from counterfoil.models.base import Options
from counterfoil.stats.intervals import cluster_interval
from counterfoil.store import write_csv
from counterfoil.world.sample import quads
from refusals import refuses


def work_in(folder, **more):
    return step_work(folder, "1-refine", cache=folder / "cache", batch_size=256, **more)


def pairs(n=400, seed=0):
    """Rows of which the wrong caption is told by a word in two thirds, with a score that knows nothing."""
    rng = np.random.default_rng(seed)
    nouns = ["cat", "dog", "bus", "cup", "hat", "car", "tree", "boat", "bird", "lamp"]
    right = [f"a {a} and a {b} by a {c} {i}" for i, (a, b, c) in enumerate(rng.choice(nouns, (n, 3)))]
    odd, calm = rng.random(n) < 2 / 3, rng.random(n) < 0.8
    wrong = [f"{text} {'oddly' if of else 'calmly'}" for text, of in zip(right, odd, strict=True)]
    right = [f"{text} {'calmly' if of else 'oddly'}" for text, of in zip(right, calm, strict=True)]
    return pa.table(
        {
            "id": [f"r{i}" for i in range(n)],
            "image": [f"{i // 2}.jpg" for i in range(n)],
            "caption": right,
            "negative_caption": wrong,
            "subset": rng.choice(["one", "two"], n).tolist(),
            "noise": rng.random(n),
            "negative_noise": rng.random(n),
        }
    )


def test_a_sixth_of_the_seven_files_of_sugarcrepe_is_rated_refined_and_audited(
    shared_data, text_models, tmp_path
):
    bench = catalog.benchmark("sugarcrepe", data=shared_data / "sugarcrepe")
    bench = bench.select(np.arange(0, len(bench), 6))
    work = work_in(tmp_path)
    rows = of_benchmark(bench, work)
    assert (len(rows), len(rows["subset"].unique())) == (1_252, 7)
    classifier = f"text-classifier:{text_models / 'cola'}"
    for model, name in (("blind:length", "length"), ("blind:unigram", "unigram"), (classifier, "cola")):
        rows = run_step(Rate(model=model, score=name), rows, work).kept
    step = Refine(within="subset", held_out=("blind:bag-of-words",))
    output = run_step(step, rows, work)
    kept = output.kept
    assert output.reasons == {SURPLUS: len(rows) - len(kept)}
    before, after = (Counter(table["subset"].to_pylist()) for table in (rows, kept))
    assert output.facts["within"] == {name: [before[name], after[name]] for name in before}
    for name, facts in output.facts["scores"].items():
        assert facts["after"]["value"] == 0.5, name
        assert facts["chance_after"]
    assert not facts["before"]["low"] <= 0.5 <= output.facts["scores"]["length"]["before"]["high"]
    bag = output.facts["held_out"]["blind:bag-of-words"]
    assert bag["before"]["value"] > bag["after"]["value"]
    # The same bytes once more, and an audit of what is left of the benchmark.
    again = run_step(step, rows, work)
    assert again.kept.equals(kept)
    assert json.dumps(again.facts) == json.dumps(output.facts)
    ids = set(kept["id"].to_pylist())
    left = bench.select(np.array([name in ids for name in bench.questions.ids]))
    model = catalog.model(classifier)
    actual = audit(left, models=model, pictures=False, draws=200, cache=tmp_path / "cache")
    blind = {result.model: result["accuracy"] for result in actual.audits[0].blind}
    for name, estimate in blind.items():
        if name.startswith(("blind:length", "text-classifier")):
            assert estimate.value == 0.5
            assert estimate.low <= 0.5 <= estimate.high
    assert sum(name.startswith(("blind:length", "text-classifier")) for name in blind) == 2


def test_rating_gives_the_scores_of_the_model_once_per_caption(text_models, tmp_path):
    rows = pairs(12)
    rate = Rate(model=f"lm:{text_models / 'gpt2'}", set=("score=mean",))
    made = run_step(rate, rows, work_in(tmp_path))
    assert made.kept.column_names == [*rows.column_names, "lm", "negative_lm"]
    model = catalog.model(f"lm:{text_models / 'gpt2'}", Options(device="cpu", settings={"score": "mean"}))
    for column, score in (("caption", "lm"), ("negative_caption", "negative_lm")):
        batch = [(Image("x"), Caption("x", text)) for text in rows[column].to_pylist()]
        assert np.allclose(made.kept[score], next(iter(model.score_pairs([batch]))), atol=1e-5)

    def refuse(name, settings):
        result = catalog.model(name, Options(device="cpu", settings=dict(settings)))

        class Stopped:
            does, needs, identity = ("scores_pairs",), ("captions",), result.identity

            def score_pairs(self, batches, *, workers=0):
                assert not list(batches), "scored twice"
                return iter(())

        return Stopped()

    cached = StepContext(tmp_path, step="1-refine", model=refuse, session=Session(tmp_path / "cache"))
    assert run_step(rate, rows, cached).kept.equals(made.kept)


def test_models_of_images_look_at_the_images_of_the_rows(tmp_path):
    bench = quads(7, size=48)
    work = work_in(tmp_path)
    rows = of_benchmark(bench, work)
    rated = run_step(Rate(model="pixels:colours"), rows, work).kept
    rated = run_step(Rate(model="pixels:colours", image="negative_image", score="other"), rated, work).kept
    model = catalog.model("pixels:colours")
    images = [bench.images[image] for image in bench.questions.images[:, 0]]
    for column, side in (("pixels", 0), ("negative_pixels", 1)):
        captions = [bench.captions[i] for i in bench.questions.captions[:, side]]
        assert rated[column].to_pylist() == model.score(images, captions).tolist()
    assert np.array(rated["other"]).tolist() != np.array(rated["pixels"]).tolist()
    refuses("looks at images", run_step, Rate(model="pixels:colours"), rows.drop_columns(["image"]), work)


def test_a_language_model_takes_part_and_another_is_held_out(text_models, tmp_path):
    rows, one, other = pairs(30), f"lm:{text_models / 'gpt2'}", f"lm:{text_models / 'bert'}"
    said = []
    work = work_in(tmp_path, note=said.append)
    output = run_step(Refine(balance=(one,), held_out=(other, "blind:length")), rows, work)
    assert set(output.facts["scores"]) == {"noise", one}
    assert output.facts["scores"][one]["after"]["value"] == 0.5
    # The same once more of what was kept, caption by caption.
    kept = run_step(Rate(model=one), output.kept, work).kept
    gaps = np.array(kept["lm"]) - np.array(kept["negative_lm"])
    assert (gaps > 0).mean() + (gaps == 0).mean() / 2 == 0.5
    after = output.facts["held_out"][other]["after"]
    numbers = f"{100 * after['value']:.1f} % [{100 * after['low']:.1f}, {100 * after['high']:.1f}]"
    assert f"refined against noise, {one}; tested on models held out: {other} {numbers}" in said[-1]
    assert said[-1].endswith("; other models may still tell right captions from wrong ones")
    assert output.facts["not_ruled_out"] == said[-1]


def outcome(rows, folder, **settings):
    return run_step(Refine(**{"held_out": (), **settings}), rows, work_in(folder))


def test_scores_come_from_files_by_id_or_by_order(tmp_path):
    rows = pairs(50)
    right, wrong = np.array(rows["noise"]), np.array(rows["negative_noise"])
    by_order, by_id, gap = (tmp_path / name for name in ("noise.csv", "ids.csv", "gap.csv"))
    write_csv(by_order, pa.table({"score": right, "negative_score": wrong}))
    write_csv(by_id, rows.select(["id", "noise", "negative_noise"]).take(np.arange(50)[::-1]))
    write_csv(gap, pa.table({"gap": right - wrong}))
    expected = outcome(rows, tmp_path, scores=("noise",)).kept["id"]
    plain = rows.drop_columns(["noise", "negative_noise"])
    for path in (by_order, by_id, gap):
        assert outcome(plain, tmp_path, scores=(str(path),)).kept["id"] == expected
    assert outcome(rows, tmp_path).kept["id"] == expected
    assert set(outcome(rows, tmp_path, scores=("noise", str(gap))).facts["scores"]) == {"noise", "gap"}


def test_rows_without_a_score_are_dropped_with_that_reason(tmp_path):
    rows = pairs(50)
    gone = [None if i < 5 else value for i, value in enumerate(rows["noise"].to_pylist())]
    dropped = outcome(with_column(rows, "noise", pa.array(gone)), tmp_path).dropped.to_pylist()
    assert [row["id"] for row in dropped if row["reason"] == NO_SCORE] == [f"r{i}" for i in range(5)]


def test_what_does_not_fit_is_refused_in_one_line(tmp_path):
    rows = pairs(20)
    short, other, odd = (tmp_path / name for name in ("short.csv", "other.csv", "odd.csv"))
    short.write_text("score,negative_score\n1,2\n")
    other.write_text("id,score,negative_score\nr1,1,2\n")
    odd.write_text("score,caption\n1,2\n")
    plain = rows.drop_columns(["noise", "negative_noise"])
    for given, settings, match in [
        (plain, {}, "no scores to balance"),
        (plain, {"scores": (str(short),)}, "1 scores of 20 rows"),
        (plain, {"scores": (str(other),)}, "19 of 20, first: r0"),
        (plain, {"scores": (str(odd),)}, "no scores of right and wrong"),
        (plain, {"scores": (str(tmp_path / "none.csv"),)}, "none.csv"),
        (rows, {"scores": ("noise", "noise")}, "two scores of one name"),
        (plain, {"scores": ("noise",)}, "no column 'noise'"),
        (rows, {"scores": ("subset",)}, "negative_subset"),
        (rows, {"balance": ("pixels:colours",)}, "no blind model"),
        (rows, {"balance": ("blind:length",), "held_out": ("blind:length",)}, "not held out"),
    ]:
        refuses(match, outcome, given, tmp_path, error=InputError, **settings)
    for kind, settings, match in [
        (Rate, {"set": ("end",)}, "KEY=VALUE"),
        (Rate, {"score": "caption", "columns": ("caption",)}, "name of the scores"),
    ]:
        refuses(match, kind, error=InputError, **settings)
    with pytest.raises(InputError, match="learns"):
        run_step(Rate(model="blind:learned", columns=("caption",)), rows, work_in(tmp_path))


def test_the_interval_is_that_of_clusters():
    rng = np.random.default_rng(0)
    clusters = np.repeat(np.arange(120), 3)
    gaps = np.round(rng.normal(0.2, 1, 120).repeat(3) + rng.normal(0, 1, 360), 1)
    result = blind_accuracy(gaps, clusters)
    right = (gaps > 0) + 0.5 * (gaps == 0)
    low, high = cluster_interval(right[:, None], clusters)
    assert result.value == right.mean()
    assert result.low == pytest.approx(low[0], abs=1e-9)
    assert result.high == pytest.approx(high[0], abs=1e-9)
    alone = blind_accuracy(gaps, np.arange(360))
    assert alone.high - alone.low < result.high - result.low


def test_a_subset_of_which_no_row_is_left_is_said(tmp_path):
    # Of one subset every right caption has the higher score, so that no row has its mirror.
    rows = pa.table(
        {
            "id": [str(i) for i in range(8)],
            "caption": [f"a cat {i}" for i in range(8)],
            "negative_caption": [f"a dog {i}" for i in range(8)],
            "subset": ["swap"] * 4 + ["add"] * 4,
            "score": [1.0, 0.0, 1.0, 0.0, 1.0, 1.0, 1.0, 1.0],
            "negative_score": [0.0, 1.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0],
        }
    )
    told = []
    work = work_in(tmp_path, note=told.append)
    output = run_step(Refine(within="subset", scores=("score",)), rows, work)
    assert output.facts["within"] == {"swap": [4, 4], "add": [4, 0]}
    assert "subset 'add': none of its 4 rows is left" in told
