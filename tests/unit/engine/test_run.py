import itertools
import resource
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import pytest

from counterfoil.benchmarks import Benchmark, Caption, Card, Choice, Image
from counterfoil.engine.cache import SCHEMA
from counterfoil.engine.rank import rank_galleries
from counterfoil.engine.session import Session, run
from counterfoil.errors import InputError, ScoreError, StorageError
from counterfoil.metrics import contrast
from counterfoil.models import baselines
from counterfoil.models.base import Ability, Classifier, Identity, Options
from counterfoil.models.lazy import LazyPairModel, lazy
from engine import fakes
from refusals import refuses
from small_galleries import several


def expected(benchmark):
    """Scores worked out pair by pair, with no engine."""
    captions, images = benchmark.questions.pairs()
    values = np.empty(captions.shape)
    for cell in np.ndindex(captions.shape):
        caption = fakes.vector(benchmark.captions[captions[cell]].text.encode())
        values[cell] = caption @ fakes.vector(benchmark.images[images[cell]].read())
    return values


def test_an_embedder_sees_every_distinct_item_once_and_every_pair_is_right():
    benchmark = fakes.quads(20, distinct_images=30, distinct_captions=33)
    embedder = fakes.FakeEmbedder()
    answers = run(benchmark, embedder, session=Session(batch_size=7))
    assert len(embedder.images_seen) == 30
    assert sorted(embedder.captions_seen) == sorted({c.text for c in benchmark.captions})
    assert embedder.calls == ["images", "captions"]
    # The fake's rounding is at most 65535e-9 of a cosine for each side.
    np.testing.assert_allclose(answers.values, expected(benchmark), atol=2e-4)


def test_a_model_of_pairs_sees_every_distinct_pair_once():
    choices = fakes.choices(5, k=3)
    np.testing.assert_array_equal(run(choices, fakes.FakeModel()).values, expected(choices))
    benchmark = fakes.quads(10, distinct_images=4, distinct_captions=20)
    model = fakes.FakeModel()
    answers = run(benchmark, model, session=Session(batch_size=3))
    assert len(model.pairs_seen) == len(set(model.pairs_seen))
    np.testing.assert_array_equal(answers.values, expected(benchmark))
    # Pairs of one image follow each other, so that a model may decode it once.
    assert len([1 for a, b in itertools.pairwise([image for image, _ in model.pairs_seen]) if a != b]) == 3


def test_captions_come_by_length_then_text_and_images_by_first_use():
    embedder = fakes.FakeEmbedder()
    run(fakes.quads(9), embedder, session=Session(batch_size=4))
    assert embedder.images_seen == [f"i{i}" for i in range(18)]
    assert embedder.captions_seen == sorted(
        embedder.captions_seen, key=lambda text: (len(text.split()), text)
    )


@pytest.mark.parametrize("kind", ["embedder", "model"])
def test_a_second_run_computes_nothing_and_gives_the_same_bits(tmp_path, kind):
    benchmark = fakes.quads(40)
    make = fakes.FakeEmbedder if kind == "embedder" else fakes.FakeModel
    first = run(benchmark, make(), session=Session(tmp_path, batch_size=8))
    again = make()
    steps = []
    session = Session(tmp_path, batch_size=5, progress=lambda *s: steps.append(s))
    assert run(benchmark, again, session=session).values.tobytes() == first.values.tobytes()
    assert not getattr(again, "images_seen", ())
    assert not getattr(again, "pairs_seen", ())
    assert all(done == total for stage, done, total in steps if stage != "reading images")


def test_benchmarks_share_what_they_have_in_common_and_progress_starts_there(tmp_path):
    run(fakes.quads(2), fakes.FakeEmbedder(), session=Session(tmp_path))
    steps, embedder = [], fakes.FakeEmbedder()
    session = Session(tmp_path, batch_size=4, progress=lambda *s: steps.append(s))
    run(fakes.quads(5), embedder, session=session)
    assert embedder.images_seen == [f"i{i}" for i in range(4, 10)]
    images = [step[1:] for step in steps if step[0] == "embedding images"]
    assert images == [(4, 10), (8, 10), (10, 10)]
    assert [step[1:] for step in steps if step[0] == "embedding captions"] == images
    # The cache has no other files.
    root = tmp_path / f"v{SCHEMA}"
    assert sorted({path.name for path in root.glob("*/*")}) == ["captions", "identity.json", "images"]
    (note,) = root.glob("*/identity.json")
    assert '"name": "fake:embedder"' in note.read_text()


def test_a_damaged_shard_is_named_computed_again_and_replaced(tmp_path):
    benchmark = fakes.quads(200)  # 400 images: shards of 256 and 144
    first = run(benchmark, fakes.FakeEmbedder(), session=Session(tmp_path))
    files = sorted(tmp_path.glob("v*/*/images/*.npz"))
    assert len(files) == 2
    whole = files[1].read_bytes()
    files[1].write_bytes(whole[: len(whole) // 2])
    notes, embedder = [], fakes.FakeEmbedder()
    second = run(benchmark, embedder, session=Session(tmp_path, note=notes.append))
    assert second.values.tobytes() == first.values.tobytes()
    assert len(embedder.images_seen) in (256, 144)
    assert embedder.captions_seen == []
    assert len(notes) == 1
    assert str(files[1]) in notes[0]
    assert files[1].read_bytes() == whole


@pytest.mark.parametrize(("most", "kept"), [(100, 0), (4096, 1)])
def test_a_full_disk_is_one_error_and_leaves_a_valid_cache(tmp_path, most, kept):
    # The kernel lets no file grow further: writing fails half-way, of the first note or of a later shard.
    benchmark = fakes.quads(160, distinct_images=40)
    plain = run(benchmark, fakes.FakeEmbedder(), session=Session(batch_size=32))
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, before[1]))
    try:
        with pytest.raises(StorageError, match="the disk is full"):
            run(benchmark, fakes.FakeEmbedder(), session=Session(tmp_path, batch_size=32))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert not list(tmp_path.rglob("*.part"))
    assert len(list(tmp_path.rglob("*.npz"))) == kept
    notes = []
    again = run(benchmark, fakes.FakeEmbedder(), session=Session(tmp_path, batch_size=32, note=notes.append))
    assert notes == []
    assert again.values.tobytes() == plain.values.tobytes()


def odd(change):
    """An embedder whose batches of captions are changed; None ends them."""

    class Odd(fakes.FakeEmbedder):
        def embed_captions(self, batches):
            for number, part in enumerate(super().embed_captions(batches)):
                if (changed := change(number, part)) is None:
                    return
                yield changed

    return Odd()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda n, part: part[:-1] if n == 2 else part, "wrong number of rows"),
        (lambda n, part: part[:, 0] if n == 2 else part, "wrong number of rows"),
        (lambda n, part: part[:, :-1] if n == 2 else part, r"different widths.*given: 7 after 8"),
        (lambda n, part: part[:, :-1], "captions and images have embeddings of different widths.*7 and 8"),
        (lambda n, part: None if n == 3 else part, "stopped before all batches were done"),
    ],
)
def test_wrong_embeddings_are_errors(change, message):
    refuses(message, run, fakes.quads(9), odd(change), error=ScoreError, session=Session(batch_size=4))


def test_a_nan_embedding_names_its_caption_and_is_not_kept(tmp_path):
    benchmark = fakes.quads(9)
    order = sorted((c.text for c in benchmark.captions), key=lambda text: (len(text.split()), text))

    def nan(number, part):
        part[2, 3] = np.nan if number == 1 else part[2, 3]
        return part

    few = Session(batch_size=4, cache=tmp_path)
    assert repr(order[4 + 2]) in refuses("", run, benchmark, odd(nan), session=few, error=ScoreError)
    assert not list(tmp_path.glob("v*/*/captions/*"))


def test_a_model_that_gives_nan_names_the_pair():
    class Broken(fakes.FakeModel):
        def score(self, images, captions):
            values = super().score(images, captions)
            values[-1] = np.inf
            return values

    with pytest.raises(ScoreError, match="image 'i0' with caption 'caption number 1'"):
        run(fakes.choices(3), Broken(), session=Session(batch_size=2))


def test_workers_and_a_generator_are_stopped_when_something_fails():
    closed = []

    class Watched(fakes.FakeEmbedder):
        def embed_images(self, batches, *, workers=0):
            try:
                yield from super().embed_images(batches, workers=workers)
            finally:
                closed.append(True)

    def progress(stage, done, total):
        if stage == "embedding images" and done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(fakes.quads(9), Watched(), session=Session(batch_size=4, progress=progress))
    assert closed == [True]


def test_missing_images_stop_the_run_but_of_blind_models_which_leave_nothing_in_the_cache(tmp_path):
    benchmark = fakes.choices(3)
    full = run(benchmark, baselines.load_blind("random"), session=Session(tmp_path)).values
    object.__setattr__(benchmark, "images", tuple(Image(i.id) for i in benchmark.images))
    embedder = fakes.FakeEmbedder()
    refuses("3 of 3 missing", run, benchmark, embedder)
    assert embedder.calls == []
    np.testing.assert_array_equal(
        run(benchmark, baselines.load_blind("random"), session=Session(tmp_path)).values, full
    )
    assert run(benchmark, baselines.load_blind("length")).values.tolist() == [[3.0, 3.0]] * 3
    object.__setattr__(benchmark, "captions", tuple(Caption(c.id) for c in benchmark.captions))
    assert run(benchmark, baselines.load_blind("constant")).values.tolist() == [[0.0, 0.0]] * 3
    refuses("6 of 6 without", run, benchmark, baselines.load_blind("length"))
    assert not list(tmp_path.rglob("*.npz"))


def test_options_out_of_range_are_refused():
    with pytest.raises(InputError, match="batch size; given: 0"):
        run(fakes.quads(1), fakes.FakeEmbedder(), session=Session(batch_size=0))
    with pytest.raises(InputError, match="workers; given: -1"):
        run(fakes.quads(1), fakes.FakeEmbedder(), session=Session(workers=-1))


def test_captions_over_the_limit_are_counted_and_the_count_is_kept(tmp_path):
    class Short(fakes.FakeEmbedder):
        counted = 0

        def over_limit(self, captions):
            self.counted += len(captions)
            return sum(len(str(caption.text).split()) > 7 for caption in captions)

    # Captions are of 2 to 8 words in turn: of 28, four have eight.
    benchmark, notes = fakes.quads(14), []
    first, second = Short(), Short()
    run(benchmark, first, session=Session(tmp_path, note=notes.append))
    run(benchmark, second, session=Session(tmp_path, note=notes.append))
    note = "fake:embedder: 4 of 28 captions are longer than the model reads and cut off by its tokenizer"
    assert notes == [note] * 2
    assert (first.counted, second.counted) == (56, 0)


class Streaming:
    """A model of pairs that writes down its calls, and closes what it opened."""

    does: ClassVar[tuple[Ability, ...]] = ("scores_pairs",)

    def __init__(self, inner, stop_after=None):
        self.inner, self.identity, self.stop_after = inner, inner.identity, stop_after
        self.needs: tuple[str, ...] = ("images", "captions")
        self.calls: list[tuple[list[int], int]] = []
        self.closed = 0

    def score_pairs(self, batches, *, workers=0):
        self.calls.append(([len(batch) for batch in batches], workers))
        try:
            for number, batch in enumerate(batches):
                if number == self.stop_after:
                    return
                yield self.inner.score(*zip(*batch, strict=True))
        finally:
            self.closed += 1


def test_a_stream_gets_all_batches_in_one_call_and_gives_the_same_bytes(tmp_path):
    benchmark = fakes.choices(11)
    plain = run(benchmark, fakes.FakeModel(), session=Session(tmp_path / "plain", batch_size=4))
    model = Streaming(fakes.FakeModel())
    streamed = run(benchmark, model, session=Session(tmp_path / "stream", batch_size=4, workers=3))
    assert streamed.values.tobytes() == plain.values.tobytes()
    ((sizes, workers),) = model.calls
    assert workers == 3
    assert set(sizes[:-1]) == {4}
    assert sum(sizes) == len(model.inner.pairs_seen) == len(set(model.inner.pairs_seen))
    shards = [sorted((tmp_path / name).rglob("pairs/*.npz")) for name in ("plain", "stream")]
    assert [path.name for path in shards[0]] == [path.name for path in shards[1]]
    assert [path.read_bytes() for path in shards[0]] == [path.read_bytes() for path in shards[1]]
    again = Streaming(fakes.FakeModel())
    run(benchmark, again, session=Session(tmp_path / "stream", batch_size=4))
    assert again.calls == []


def test_a_stream_is_closed_and_its_end_is_an_error():
    model = Streaming(fakes.FakeModel(), stop_after=1)
    with pytest.raises(ScoreError, match=r"scoring pairs, image .*stopped before all batches were done"):
        run(fakes.choices(11), model, session=Session(batch_size=4))
    assert model.closed == 1
    # A stream ranks a gallery too.
    gallery = several(np.random.default_rng(0), 4, 6)[0]
    plain = baselines.load_blind("random")
    streamed = Streaming(plain)
    streamed.needs = plain.needs
    one, two = (rank_galleries([gallery], item)[0] for item in (plain, streamed))
    np.testing.assert_array_equal(one.i2t.above, two.i2t.above)
    np.testing.assert_array_equal(one.t2i.above, two.t2i.above)


def test_a_model_of_pairs_is_loaded_when_a_batch_asks(tmp_path):
    file = tmp_path / "weights.bin"
    file.write_bytes(b"one")
    made: list[str] = []

    def load(argument, options):
        made.append(argument)
        return Streaming(fakes.FakeModel())

    def asked():
        return lazy("pairs", str(file), Options(), load, tmp_path / "cache")

    benchmark, session = fakes.choices(5), Session(tmp_path / "cache")
    first = run(benchmark, asked(), session=session)
    second = asked()
    assert isinstance(second, LazyPairModel)
    assert run(benchmark, second, session=session).values.tobytes() == first.values.tobytes()
    assert len(made) == 1
    assert run(benchmark, asked()).values.tobytes() == first.values.tobytes()
    assert len(made) == 2


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


def test_quads_are_answered_by_the_rule_of_two_steps(tmp_path):
    benchmark, model = fakes.quads(60, distinct_images=45, distinct_captions=27), FakeClassifier()
    assert isinstance(model, Classifier)
    result = run(benchmark, model, session=Session(batch_size=7, cache=tmp_path))
    halves = 0
    for q in range(60):
        c = [model.of(str(benchmark.captions[2 * q + k].text).encode()) for k in (0, 1)]
        i = [model.of(benchmark.images[2 * q + k].read()) for k in (0, 1)]
        halves += 0.5 in (*c, *i)
        # Python rounds one half to the even 0, and equal candidates are never the likelier.
        expected = {
            "ipos2t": round(float(i[0])) == 0 and c[0] < c[1],
            "ineg2t": round(float(i[1])) == 1 and c[1] > c[0],
            "tpos2i": round(float(c[0])) == 0 and i[0] < i[1],
            "tneg2i": round(float(c[1])) == 1 and i[1] > i[0],
        }
        assert {name: bool(right[q]) for name, right in result.right.items()} == expected
    assert halves > 10
    assert set(contrast.from_directions(result.right)) >= {"i2t", "t2i", "group"}
    # Each distinct item is asked about once, and its answer is kept.
    texts = {caption.text for caption in benchmark.captions}
    assert len(model.seen) == len(set(model.seen)) == 45 + len(texts)
    again = FakeClassifier()
    second = run(benchmark, again, session=Session(tmp_path, batch_size=3))
    assert again.seen == []
    assert all((second.right[name] == right).all() for name, right in result.right.items())


@pytest.mark.parametrize(("correct", "uneven"), [(1, False), (2, False), (1, True)])
def test_choices_ask_the_candidates_alone(correct, uneven, tmp_path):
    whole = fakes.choices(40, 3)
    candidates = whole.questions.candidates.copy()
    if uneven:
        candidates[::3, 2] = -1
    questions = Choice(
        whole.questions.ids, query=whole.questions.query, candidates=candidates, correct=correct
    )
    gone = tuple(Image(image.id) for image in whole.images)
    benchmark = Benchmark(whole.card, gone, whole.captions, questions)
    model = FakeClassifier()
    result = run(benchmark, model, session=Session(tmp_path))
    assert model.seen
    assert set(model.seen) <= {caption.id for caption in whole.captions}
    values = [
        [model.of(str(whole.captions[c].text).encode()) for c in row if c >= 0] for row in candidates.tolist()
    ]
    assert result.right["accuracy"].tolist() == [max(row[:correct]) < min(row[correct:]) for row in values]
    # Captions are known by what they say, so they are kept though no image was looked at.
    again = FakeClassifier()
    run(benchmark, again, session=Session(tmp_path))
    assert again.seen == []


def test_choices_among_images():
    whole = fakes.quads(30)
    questions = Choice(
        tuple(map(str, range(30))),
        query=np.arange(30, dtype=np.int64),
        candidates=whole.questions.images,
        asks="caption",
    )
    card = Card(name="fake", title="Fake", form="choice")
    captions = tuple(Caption(caption.id) for caption in whole.captions)
    model = FakeClassifier()
    result = run(Benchmark(card, whole.images, captions, questions), model)
    expected = [
        model.of(whole.images[a].read()) < model.of(whole.images[b].read()) for a, b in whole.questions.images
    ]
    assert result.right["accuracy"].tolist() == expected


def test_numbers_that_are_no_probabilities_and_galleries_are_refused():
    with pytest.raises(ScoreError, match=r"fake:classifier: the detector gave numbers that are no probab"):
        run(fakes.quads(10), FakeClassifier(scale=1.5))
    refuses("not finite", run, fakes.quads(10), FakeClassifier(scale=float("nan")), error=ScoreError)
    # A gallery cannot be ranked.
    gallery = several(np.random.default_rng(0), 4, 6)[0]
    for ask in (run, lambda benchmark, model: rank_galleries([benchmark], model)):
        words = "fake:classifier: .* questions of form 'gallery'"
        refuses(words, ask, gallery, FakeClassifier(), error=InputError)
