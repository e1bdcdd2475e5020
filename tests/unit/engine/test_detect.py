"""Questions answered by a classifier: the rule of two steps, each distinct item asked about once."""

from dataclasses import dataclass, field

import numpy as np
import pytest

from counterfoil.benchmarks import Benchmark, Caption, Card, Choice, Image
from counterfoil.engine.rank import rank_galleries
from counterfoil.engine.session import Session, run
from counterfoil.errors import InputError, ScoreError
from counterfoil.metrics import contrast
from counterfoil.models.base import Classifier, Identity
from refusals import refuses
from small_galleries import several


@dataclass
class FakeClassifier:
    """Probabilities by what is in an item; writes down what it was asked for."""

    identity: Identity = field(default_factory=lambda: Identity("fake:classifier", revision="1"))
    seen: list[str] = field(default_factory=list)
    scale: float = 1.0

    def image_probabilities(self, batches, *, workers=0):
        for batch in batches:
            self.seen += [image.id for image in batch]
            yield np.array([self.of(image.read()) for image in batch], dtype=np.float32)

    def caption_probabilities(self, batches):
        for batch in batches:
            self.seen += [caption.id for caption in batch]
            yield np.array([self.of(str(caption.text).encode()) for caption in batch], dtype=np.float32)

    def lengths(self, captions):
        return [len(str(caption.text)) for caption in captions]

    def of(self, data):
        # In steps of an eighth, so that ties and exact halves come up.
        return np.float32(self.scale * (sum(data) % 9) / 8)


def test_quads_are_answered_by_the_rule_of_two_steps(fakes, tmp_path):
    benchmark, scorer = fakes.quads(60), FakeClassifier()
    assert isinstance(scorer, Classifier)
    found = run(benchmark, scorer, session=Session(batch_size=7, cache=tmp_path))
    halves = 0
    for q in range(60):
        c = [scorer.of(str(benchmark.captions[2 * q + k].text).encode()) for k in (0, 1)]
        i = [scorer.of(benchmark.images[2 * q + k].read()) for k in (0, 1)]
        halves += 0.5 in (*c, *i)
        # Python rounds one half to the even 0, and equal candidates are never the likelier.
        expected = {
            "ipos2t": round(float(i[0])) == 0 and c[0] < c[1],
            "ineg2t": round(float(i[1])) == 1 and c[1] > c[0],
            "tpos2i": round(float(c[0])) == 0 and i[0] < i[1],
            "tneg2i": round(float(c[1])) == 1 and i[1] > i[0],
        }
        assert {name: bool(right[q]) for name, right in found.right.items()} == expected
    assert halves > 10
    outcome = contrast.from_directions(found.right)
    assert set(outcome) >= {"i2t", "t2i", "group"}


def test_each_distinct_item_is_scored_once_and_kept(fakes, tmp_path):
    benchmark = fakes.quads(20, distinct_images=15, distinct_captions=9)
    scorer = FakeClassifier()
    first = run(benchmark, scorer, session=Session(tmp_path))
    texts = {caption.text for caption in benchmark.captions}
    assert len(scorer.seen) == len(set(scorer.seen)) == 15 + len(texts)
    again = FakeClassifier()
    second = run(benchmark, again, session=Session(tmp_path, batch_size=3))
    assert again.seen == []
    for name, right in first.right.items():
        assert right.tolist() == second.right[name].tolist()


@pytest.mark.parametrize(("correct", "uneven"), [(1, False), (2, False), (1, True)])
def test_choices_ask_the_candidates_alone(correct, uneven, fakes, tmp_path):
    whole = fakes.choices(40, 3)
    candidates = whole.questions.candidates.copy()
    if uneven:
        candidates[::3, 2] = -1
    questions = Choice(
        whole.questions.ids, query=whole.questions.query, candidates=candidates, correct=correct
    )
    gone = tuple(Image(image.id) for image in whole.images)
    benchmark = Benchmark(whole.card, gone, whole.captions, questions)
    scorer = FakeClassifier()
    found = run(benchmark, scorer, session=Session(tmp_path))
    assert scorer.seen
    assert set(scorer.seen) <= {caption.id for caption in whole.captions}
    values = [
        [scorer.of(str(whole.captions[c].text).encode()) for c in row if c >= 0]
        for row in candidates.tolist()
    ]
    expected = [max(row[:correct]) < min(row[correct:]) for row in values]
    assert found.right["accuracy"].tolist() == expected
    # Captions are known by what they say, so they are kept though no image was looked at.
    again = FakeClassifier()
    run(benchmark, again, session=Session(tmp_path))
    assert again.seen == []


def test_choices_among_images(fakes):
    whole = fakes.quads(30)
    questions = Choice(
        tuple(map(str, range(30))),
        query=np.arange(30, dtype=np.int64),
        candidates=whole.questions.images,
        asks="caption",
    )
    card = Card(name="fake", title="Fake", form="choice")
    captions = tuple(Caption(caption.id) for caption in whole.captions)
    scorer = FakeClassifier()
    found = run(Benchmark(card, whole.images, captions, questions), scorer)
    expected = [
        scorer.of(whole.images[a].read()) < scorer.of(whole.images[b].read())
        for a, b in whole.questions.images
    ]
    assert found.right["accuracy"].tolist() == expected


def test_numbers_that_are_no_probabilities(fakes):
    with pytest.raises(ScoreError, match=r"fake:classifier: the detector gave numbers that are no probab"):
        run(fakes.quads(10), FakeClassifier(scale=1.5))
    refuses("not finite", run, fakes.quads(10), FakeClassifier(scale=float("nan")), error=ScoreError)


def test_a_gallery_cannot_be_ranked():
    gallery = several(np.random.default_rng(0), 4, 6)[0]
    for ask in (run, lambda benchmark, scorer: rank_galleries([benchmark], scorer)):
        words = "fake:classifier: .* questions of form 'gallery'"
        refuses(words, ask, gallery, FakeClassifier(), error=InputError)
