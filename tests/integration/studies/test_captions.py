"""Caption metrics in the study: the oracle gets everything, and every number comes from a run."""

from dataclasses import replace

import numpy as np
import pytest

from counterfoil.engine.caption_scoring import score_benchmark
from counterfoil.evaluation.run import find_runs
from counterfoil.models.base import Identity, Options
from counterfoil.models.captions import registry as metric_names
from counterfoil.report.study_page import known, page
from counterfoil.studies import captions
from counterfoil.studies.captions import MATCHING, READING, WholeCaptions
from tiny_study import TINY, facts


class Colours:
    """An embedder by hand: a picture is its mean colour, a caption the colours that it names."""

    identity = Identity(name="colours")

    def embed_images(self, batches, *, workers=0):
        for batch in batches:
            means = [np.asarray(image.decode(), np.float32).mean(axis=(0, 1)) for image in batch]
            yield unit(np.stack(means) - 128)

    def embed_captions(self, batches):
        for batch in batches:
            words = [[(c.text or "").count(name) for name in ("red", "green", "blue")] for c in batch]
            yield unit(np.asarray(words, np.float32) + 0.1 * np.arange(1, 4, dtype=np.float32))

    def lengths(self, captions):
        return [len(c.text or "") for c in captions]


def unit(rows):
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@pytest.fixture(scope="module")
def reading(tmp_path_factory):
    """The study without networks: what reads, and the oracle."""
    folder = tmp_path_factory.mktemp("captions")
    return captions.study(TINY, {}, folder, facts=facts, draws=100), folder


def test_the_oracle_gets_everything_and_every_metric_is_there(reading):
    made, folder = reading
    names = [comparison.benchmark for comparison in made.comparisons]
    assert names == ["world-rated", "world-preferences", "world-clips"]
    for comparison in made.comparisons:
        assert [run.name for run in comparison.runs] == ["oracle", *READING]
        known = [e.value for e in comparison.runs[0].result.measures.values()]
        assert known == pytest.approx([1.0] * len(known))
        # What is read tells something, and not everything.
        cider = next(run for run in comparison.runs if run.name == "cider")
        assert all(0 < e.value <= 1 for e in cider.result.measures.values())
    assert len(find_runs([folder])) == 3 * (1 + len(READING))
    assert made.findings == ()


def cosines(benchmark):
    """Of every question the lowest and the highest of what EMScore of whole captions may be of the frames."""
    model = Colours()
    questions = benchmark.judged
    low, high = [], []
    for caption, image in zip(questions.captions, questions.images, strict=True):
        (text,) = next(model.embed_captions([[benchmark.captions[caption]]]))
        item = benchmark.images[image]
        frames = list(item.frames()) if hasattr(item, "frames") else [item.decode()]
        rows = unit(np.stack([np.asarray(f, np.float32).mean(axis=(0, 1)) for f in frames]) - 128)
        found = rows @ text
        low.append(found.min())
        high.append(found.max())
    return np.array(low), np.array(high)


@pytest.mark.parametrize("at", [0, 2])
def test_whole_captions_are_matched_to_frames(reading, at):
    benchmark = reading[0].benchmarks[at]
    options = Options(backbone="colours", settings={"idf": "none"})
    metric = metric_names.load(MATCHING[0], options, lambda asked: WholeCaptions(Colours()))
    scores = score_benchmark(benchmark, metric).values
    low, high = cosines(benchmark)
    if at == 0:
        # A picture is one frame, a caption one token: all that is matched is their cosine.
        assert scores == pytest.approx(low, abs=1e-5)
    else:
        positive = low > 0
        assert (scores[positive] <= high[positive] + 1e-5).all()
        assert np.ptp(high - low) > 0


def test_the_page_says_what_the_oracle_got(reading):
    made, _ = reading
    assert known(made.comparisons).startswith(
        "The oracle, which knows what is shown, has a correlation of 1.0"
    )
    text = page((), captions=made.comparisons, claims=made.findings)
    assert 'id="captions"' in text
    assert "rouge-l" in text
    # Somebody else in its place is not said to know everything.
    length = replace(made.comparisons[0].runs[1], name="oracle")
    value = length.result.measures["kendall_tau_b"].value
    rated = replace(made.comparisons[0], runs=(length,))
    assert f"does not: it got {value:.5f} in Kendall τ-b on World, rated" in known([rated])
    assert 'id="captions"' not in page(())


def test_as_many_questions_as_the_plan_says():
    plan = replace(TINY, judged=26)
    # Whole images and clips, so that every degree comes as often and tau-c can be 1.
    assert [len(each) for each in captions.worlds(plan)] == [24, 26, 12]
