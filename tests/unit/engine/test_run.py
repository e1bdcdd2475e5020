import errno
import itertools
import os
import resource

import numpy as np
import pytest

from counterfoil.benchmarks import Caption, Image
from counterfoil.engine.cache import SCHEMA
from counterfoil.engine.session import Session, run
from counterfoil.errors import InputError, ScoreError, StorageError
from counterfoil.models import baselines
from refusals import refuses


def expected(fakes, benchmark):
    """Scores worked out pair by pair, with no engine."""
    captions, images = benchmark.questions.pairs()
    values = np.empty(captions.shape)
    for cell in np.ndindex(captions.shape):
        caption = fakes.vector(benchmark.captions[captions[cell]].text.encode())
        values[cell] = caption @ fakes.vector(benchmark.images[images[cell]].read())
    return values


def test_an_embedder_sees_every_distinct_item_once_and_every_pair_is_right(fakes):
    benchmark = fakes.quads(20, distinct_images=30, distinct_captions=33)
    embedder = fakes.FakeEmbedder()
    answers = run(benchmark, embedder, session=Session(batch_size=7))
    assert len(embedder.images_seen) == 30
    assert sorted(embedder.captions_seen) == sorted({c.text for c in benchmark.captions})
    assert embedder.calls == ["images", "captions"]
    # The fake's rounding is at most 65535e-9 of a cosine for each side.
    np.testing.assert_allclose(answers.values, expected(fakes, benchmark), atol=2e-4)


def test_a_scorer_of_pairs_sees_every_distinct_pair_once(fakes):
    choices = fakes.choices(5, k=3)
    np.testing.assert_array_equal(run(choices, fakes.FakeScorer()).values, expected(fakes, choices))
    benchmark = fakes.quads(10, distinct_images=4, distinct_captions=20)
    scorer = fakes.FakeScorer()
    answers = run(benchmark, scorer, session=Session(batch_size=3))
    assert len(scorer.pairs_seen) == len(set(scorer.pairs_seen))
    np.testing.assert_array_equal(answers.values, expected(fakes, benchmark))
    # Pairs of one image follow each other, so that a scorer may decode it once.
    order = [image for image, _ in scorer.pairs_seen]
    assert len([1 for a, b in itertools.pairwise(order) if a != b]) == 3


def test_captions_come_by_length_then_text_and_images_by_first_use(fakes):
    embedder = fakes.FakeEmbedder()
    run(fakes.quads(9), embedder, session=Session(batch_size=4))
    assert embedder.images_seen == [f"i{i}" for i in range(18)]
    assert embedder.captions_seen == sorted(
        embedder.captions_seen, key=lambda text: (len(text.split()), text)
    )


@pytest.mark.parametrize("kind", ["embedder", "scorer"])
def test_a_second_run_computes_nothing_and_gives_the_same_bits(fakes, tmp_path, kind):
    benchmark = fakes.quads(40)
    make = fakes.FakeEmbedder if kind == "embedder" else fakes.FakeScorer
    first = run(benchmark, make(), session=Session(tmp_path, batch_size=8))
    again = make()
    steps = []
    second = run(
        benchmark, again, session=Session(tmp_path, batch_size=5, progress=lambda *s: steps.append(s))
    )
    assert second.values.tobytes() == first.values.tobytes()
    assert not getattr(again, "images_seen", ())
    assert not getattr(again, "pairs_seen", ())
    assert all(done == total for stage, done, total in steps if stage != "reading images")


def test_two_benchmarks_share_what_they_have_in_common(fakes, tmp_path):
    run(fakes.quads(10), fakes.FakeEmbedder(), session=Session(tmp_path))
    embedder = fakes.FakeEmbedder()
    run(fakes.quads(12), embedder, session=Session(tmp_path))
    assert embedder.images_seen == ["i20", "i21", "i22", "i23"]


def test_progress_counts_every_batch_and_starts_where_the_cache_ends(fakes, tmp_path):
    run(fakes.quads(2), fakes.FakeEmbedder(), session=Session(tmp_path))
    steps = []
    run(
        fakes.quads(5),
        fakes.FakeEmbedder(),
        session=Session(tmp_path, batch_size=4, progress=lambda *s: steps.append(s)),
    )
    images = [step[1:] for step in steps if step[0] == "embedding images"]
    assert images == [(4, 10), (8, 10), (10, 10)]
    assert [step[1:] for step in steps if step[0] == "embedding captions"] == images


def test_a_damaged_shard_is_named_computed_again_and_replaced(fakes, tmp_path):
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


@pytest.mark.parametrize("nth", [1, 4])
def test_a_full_disk_is_one_error_and_leaves_a_valid_cache(fakes, tmp_path, monkeypatch, nth):
    benchmark, cache = fakes.quads(160), tmp_path / "cache"
    plain = run(benchmark, fakes.FakeEmbedder(), session=Session(batch_size=32))
    calls = 0
    fsync = os.fsync

    def full(handle):
        nonlocal calls
        calls += 1
        if calls >= nth:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        fsync(handle)

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StorageError, match="the disk is full"):
        run(benchmark, fakes.FakeEmbedder(), session=Session(cache, batch_size=32))
    monkeypatch.undo()
    assert not list(cache.rglob("*.part"))
    notes = []
    again = run(benchmark, fakes.FakeEmbedder(), session=Session(cache, batch_size=32, note=notes.append))
    assert notes == []
    assert again.values.tobytes() == plain.values.tobytes()


def test_a_write_the_system_cuts_short_leaves_nothing_behind(fakes, tmp_path):
    # The kernel refuses to let a file grow beyond 4 kB: writing fails half-way, not at the end.
    benchmark = fakes.quads(150)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, before[1]))
    try:
        with pytest.raises(StorageError, match="the disk is full"):
            run(benchmark, fakes.FakeEmbedder(), session=Session(tmp_path))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert not list(tmp_path.rglob("*.npz"))
    assert not list(tmp_path.rglob("*.part"))


def odd(fakes, change):
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
def test_wrong_embeddings_are_errors(fakes, change, message):
    refuses(message, run, fakes.quads(9), odd(fakes, change), error=ScoreError, session=Session(batch_size=4))


def test_a_nan_embedding_names_its_caption_and_is_not_kept(fakes, tmp_path):
    benchmark = fakes.quads(9)
    order = sorted((c.text for c in benchmark.captions), key=lambda text: (len(text.split()), text))

    def nan(number, part):
        part[2, 3] = np.nan if number == 1 else part[2, 3]
        return part

    few = Session(batch_size=4, cache=tmp_path)
    assert repr(order[4 + 2]) in refuses("", run, benchmark, odd(fakes, nan), session=few, error=ScoreError)
    assert not list(tmp_path.glob("v*/*/captions/*"))


def test_a_scorer_that_gives_nan_names_the_pair(fakes):
    class Broken(fakes.FakeScorer):
        def score(self, images, captions):
            values = super().score(images, captions)
            values[-1] = np.inf
            return values

    with pytest.raises(ScoreError, match="image 'i0' with caption 'caption number 1'"):
        run(fakes.choices(3), Broken(), session=Session(batch_size=2))


def test_workers_and_a_generator_are_stopped_when_something_fails(fakes):
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


def test_missing_images_stop_before_the_model_runs(fakes):
    benchmark = fakes.choices(3)
    object.__setattr__(benchmark, "images", tuple(Image(i.id) for i in benchmark.images))
    embedder = fakes.FakeEmbedder()
    refuses("3 of 3 missing", run, benchmark, embedder)
    assert embedder.calls == []


def test_blind_scorers_need_nothing_at_hand_and_leave_nothing_in_the_cache(fakes, tmp_path):
    benchmark = fakes.choices(3)
    full = run(benchmark, baselines.load_blind("random"), session=Session(tmp_path)).values
    object.__setattr__(benchmark, "images", tuple(Image(i.id) for i in benchmark.images))
    np.testing.assert_array_equal(
        run(benchmark, baselines.load_blind("random"), session=Session(tmp_path)).values, full
    )
    assert run(benchmark, baselines.load_blind("length")).values.tolist() == [[3.0, 3.0]] * 3
    object.__setattr__(benchmark, "captions", tuple(Caption(c.id) for c in benchmark.captions))
    assert run(benchmark, baselines.load_blind("constant")).values.tolist() == [[0.0, 0.0]] * 3
    refuses("6 of 6 without", run, benchmark, baselines.load_blind("length"))
    assert not list(tmp_path.rglob("*.npz"))


def test_options_out_of_range_are_refused(fakes):
    with pytest.raises(InputError, match="batch size; given: 0"):
        run(fakes.quads(1), fakes.FakeEmbedder(), session=Session(batch_size=0))
    with pytest.raises(InputError, match="workers; given: -1"):
        run(fakes.quads(1), fakes.FakeEmbedder(), session=Session(workers=-1))


def test_the_cache_has_no_other_files(fakes, tmp_path):
    run(fakes.quads(3), fakes.FakeEmbedder(), session=Session(tmp_path))
    root = tmp_path / f"v{SCHEMA}"
    assert sorted({path.name for path in root.glob("*/*")}) == ["captions", "identity.json", "images"]
    (note,) = root.glob("*/identity.json")
    assert '"name": "fake:embedder"' in note.read_text()


def test_captions_over_the_limit_are_counted_and_the_count_is_kept(fakes, tmp_path):
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
