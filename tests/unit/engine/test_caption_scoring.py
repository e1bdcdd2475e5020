from dataclasses import replace

import numpy as np
import pytest

from counterfoil.benchmarks import BytesSource, Caption, Image
from counterfoil.benchmarks.references import References
from counterfoil.benchmarks.videos import FrameFeatures, Video
from counterfoil.engine import caption_scoring
from counterfoil.engine.cache import Cache
from counterfoil.engine.caption_scoring import CaptionInputs, score_benchmark, score_captions
from counterfoil.engine.plan import items
from counterfoil.engine.session import Session, run
from counterfoil.errors import DataError, InputError, ScoreError
from counterfoil.inputs.files import digest
from counterfoil.models.base import Identity
from counterfoil.models.captions.base import CaptionTokens
from counterfoil.models.precomputed_galleries import PrecomputedEmbeddings
from engine import fakes
from engine.metric_fakes import Best, Cosine, Overlap, Words, frames, preferred, rated
from refusals import refuses

LOOKS = ("images", "captions")


def rows_of(benchmark):
    """Text, image and reference texts of each row, as plain Python."""
    questions = benchmark.questions
    captions, images = questions.pairs()
    return [
        (
            benchmark.captions[c].text,
            benchmark.images[i],
            [benchmark.captions[r].text for r in questions.references.row(row)],
        )
        for row, (c, i) in enumerate(zip(captions, images, strict=True))
    ]


def test_texts_are_read_row_by_row_and_never_taken_together():
    benchmark = rated(20)
    metric = Overlap()
    result = run(benchmark, metric).values
    expected = [
        len(set(text.split()) & {word for other in others for word in other.split()}) / 20
        for text, _, others in rows_of(benchmark)
    ]
    assert result.tolist() == expected
    assert metric.rows == [20]


@pytest.mark.parametrize(
    "needs", [("images", "captions"), ("captions", "references"), ("images", "captions", "references")]
)
@pytest.mark.parametrize("block", [1 << 23, 40])
def test_embeddings_of_distinct_items_are_compared_row_by_row(monkeypatch, needs, block):
    monkeypatch.setattr(caption_scoring, "_BLOCK", block)
    benchmark = rated(20)
    embedder = fakes.FakeEmbedder()
    metric = Cosine(embedder, needs)
    result = score_benchmark(benchmark, metric, session=Session(batch_size=4)).values
    expected = []
    for text, image, others in rows_of(benchmark):
        caption = fakes.vector(text.encode())
        value = caption @ fakes.vector(image.read()) if "images" in needs else 0.0
        if "references" in needs:
            value += np.mean([caption @ fakes.vector(other.encode()) for other in others])
        expected.append(value)
    np.testing.assert_allclose(result, expected, atol=2e-4)
    assert len(embedder.captions_seen) == len(set(embedder.captions_seen))
    assert len(embedder.images_seen) == (4 if "images" in needs else 0)
    assert (len(metric.blocks) > 1) == (block == 40)
    assert sum(metric.blocks) == 20


def test_a_second_run_from_the_cache_embeds_nothing(tmp_path):
    benchmark, session = rated(20), Session(tmp_path)
    first = score_benchmark(benchmark, Cosine(fakes.FakeEmbedder()), session=session).values
    again = fakes.FakeEmbedder()
    score_benchmark(benchmark, Cosine(again, ("images", "captions", "references")), session=session)
    # What the candidates' texts share with the references' is known; the same embedder's images are too.
    assert again.images_seen == []
    third = fakes.FakeEmbedder()
    assert score_benchmark(benchmark, Cosine(third), session=session).values.tolist() == first.tolist()
    assert third.captions_seen == third.images_seen == []


@pytest.mark.parametrize("references", [False, True])
def test_parts_are_matched_row_by_row(references):
    benchmark = rated(20)
    local = Words()
    needs = ("images", "captions", "references") if references else ("images", "captions")
    result = score_benchmark(benchmark, Best(local, needs), session=Session(batch_size=3)).values
    expected = []
    for text, image, others in rows_of(benchmark):
        tokens = local.tokens(text).vectors
        value = np.mean([max(float(token @ frame) for frame in frames(image.read())) for token in tokens])
        if references:
            words = [word for other in others for word in local.tokens(other).vectors]
            value += np.mean([max(float(token @ word) for word in words) for token in tokens])
        expected.append(value)
    np.testing.assert_allclose(result, expected, atol=1e-5)
    assert len(local.images_seen) == 4
    assert len(local.captions_seen) == len(set(local.captions_seen)) == 15


def test_draws_of_references_are_answered_one_by_one():
    benchmark = preferred(6, sample=2, draws=3)
    metric = Cosine(fakes.FakeEmbedder(), ("captions", "references"))
    result = score_benchmark(benchmark, metric)
    assert result.values.shape == (6, 2, 3)
    for draw, references in enumerate(benchmark.questions.drawn()):
        fixed = replace(benchmark, questions=replace(benchmark.questions, references=references, sample=None))
        alone = score_benchmark(fixed, Cosine(fakes.FakeEmbedder(), ("captions", "references"))).values
        np.testing.assert_allclose(result.values[:, :, draw], alone, atol=2e-4)
    assert len({result.values[:, :, draw].tobytes() for draw in range(3)}) == 3
    # Each text once, however often it was drawn.
    seen = metric.embedder.captions_seen
    assert len(seen) == len(set(seen))
    assert score_benchmark(benchmark, Cosine(fakes.FakeEmbedder())).values.shape == (6, 2)


def test_a_paragraph_gets_the_mean_over_its_sentences_and_each_side_is_a_load():
    benchmark, metric = preferred(4, sentences=3), Overlap()
    result = score_benchmark(benchmark, metric).values
    rows, sides = rows_of(benchmark), benchmark.questions.sides
    flat = np.empty(len(rows))
    for side in (0, 1):
        own = [row for row, at in zip(rows, sides, strict=True) if at == side]
        flat[sides == side] = Overlap().of_texts([text for text, _, _ in own], [refs for _, _, refs in own])
    assert metric.rows == [12, 12]
    assert result.shape == (4, 2)
    np.testing.assert_allclose(result, flat.reshape(4, 2, 3).mean(axis=2))


def test_other_forms_are_answered_where_no_references_are_needed():
    benchmark = fakes.quads(5)
    result = score_benchmark(benchmark, Cosine(fakes.FakeEmbedder())).values
    assert result.shape == (5, 2, 2)
    np.testing.assert_allclose(result, run(benchmark, fakes.FakeEmbedder()).values, atol=1e-12)
    with pytest.raises(InputError, match=r"^fake has no references, which metric:overlap compares with"):
        score_benchmark(benchmark, Overlap())


def test_given_embeddings_are_matched_by_their_ids():
    benchmark = rated(6)
    rng = np.random.default_rng(0)
    images, captions = rng.standard_normal((4, 5)), rng.standard_normal((12, 5))
    turned = np.arange(12)[::-1]
    given = PrecomputedEmbeddings(
        Identity("embeddings:x.npz"),
        images=images,
        captions=captions[turned],
        image_ids=tuple(image.id for image in benchmark.images),
        caption_ids=tuple(benchmark.captions[i].id for i in turned),
    )
    result = score_benchmark(benchmark, Cosine(given)).values
    expected = [
        captions[row] @ images[row % 4] / np.linalg.norm(captions[row]) / np.linalg.norm(images[row % 4])
        for row in range(6)
    ]
    np.testing.assert_allclose(result, expected)
    # Neither pictures nor texts need be at hand.
    gone = replace(
        benchmark,
        images=tuple(Image(image.id) for image in benchmark.images),
        captions=tuple(Caption(caption.id) for caption in benchmark.captions),
    )
    assert score_benchmark(gone, Cosine(given)).values.tolist() == result.tolist()
    # Rows in order, without ids.
    plain = replace(given, captions=captions, image_ids=None, caption_ids=None)
    assert score_benchmark(benchmark, Cosine(plain)).values.tolist() == result.tolist()
    # Captions that nothing asks about may be missing, references that are asked about may not.
    half = replace(given, captions=captions[:6], caption_ids=tuple(f"c{i}" for i in range(6)))
    assert score_benchmark(benchmark, Cosine(half)).values.tolist() == result.tolist()
    with pytest.raises(DataError, match=r"captions of toy-rated have no embedding; .* missing: 'c6'"):
        score_benchmark(benchmark, Cosine(half, ("captions", "references")))


class Scored(Overlap):
    """A metric that gives these scores, whatever it is asked."""

    def __init__(self, *scores):
        super().__init__()
        self.scores = np.array(scores)

    def of_texts(self, candidates, references):
        return self.scores


@pytest.mark.parametrize(
    ("metric", "change", "message"),
    [
        (Overlap(), {"references": References.of([[1], []])}, "row 2, caption 'two': a caption has no ref"),
        (Overlap(), {"references": References.of([[1], [2]])}, "^the captions, 'c': the reference is not at"),
        (Cosine(None), {}, "metric:cosine looks at images, and none were given"),
        (Cosine(None), {"image": np.array([0, 0])}, "images are not at hand; given: 1 of 1 missing"),
        (Overlap(), {"candidate": np.empty(0, int), "references": None}, "there are no captions"),
        (Scored(0.5, np.nan), {}, "^the captions, row 2, caption 'two': metric:overlap gave"),
        (Scored(0.5), {}, r"wrong number of scores; given: \(1,\); allowed: \(2,\)"),
    ],
)
def test_what_does_not_fit_is_refused(metric, change, message):
    captions = (Caption("a", "one"), Caption("b", "two"), Caption("c", None))
    fields = {"image": None, "candidate": np.array([0, 1]), "references": References.of([[1], [0]])}
    with pytest.raises(InputError, match=message):
        score_captions(CaptionInputs((Image("i"),), captions, **{**fields, **change}), metric)


def embedded(images, folder, local, note=print, batch_size=2):
    keys = [digest(image.id.encode()) for image in images]
    plan = items(images, (), (np.empty(0, int), np.arange(len(images))), keys)
    return Session(batch_size=batch_size, note=note).frames(local, plan, Cache(folder, Words().identity))


def pictures(n, kind=Image):
    return tuple(kind(f"v{i}", BytesSource(bytes([i + 1] * (i + 1)))) for i in range(n))


def test_items_of_any_number_of_parts_come_back_from_the_cache_as_they_were(tmp_path):
    images = pictures(7)
    first = embedded(images, tmp_path, Words())
    again = Words()
    second = embedded(tuple(reversed(images)), tmp_path, again, batch_size=5)
    assert again.images_seen == []
    assert [len(item) for item in first] == [1 + (i + 1) % 5 for i in range(7)]
    for one, other, image in zip(first, reversed(second), images, strict=True):
        assert one.tobytes() == other.tobytes() == frames(image.read()).tobytes()
        assert one.shape == other.shape


def test_tokens_come_back_whole(tmp_path):
    benchmark, needs, session = rated(20), ("images", "captions", "references"), Session(tmp_path)
    first = score_benchmark(benchmark, Best(Words(), needs), session=session)
    local = Words()
    second = score_benchmark(benchmark, Best(local, needs), session=session)
    assert local.captions_seen == local.images_seen == []
    assert first.values.tobytes() == second.values.tobytes()
    expected = Words().tokens("a word0 and more0")
    ((_, parts),) = Cache(tmp_path, local.identity).stream_parts("tokens", [digest(b"a word0 and more0")], [])
    for name in ("ids", "used", "vectors", "whole"):
        assert np.array_equal(CaptionTokens(**parts).__dict__[name], expected.__dict__[name])


def test_a_run_stopped_in_the_middle_goes_on_after_the_last_video(tmp_path):
    videos = pictures(6, Video)
    local = Words(stop_after=4)
    refuses("", embedded, videos, tmp_path, local, error=KeyboardInterrupt)
    assert local.images_seen == ["v0", "v1", "v2", "v3"]
    local = Words()
    result = embedded(videos, tmp_path, local)
    assert local.images_seen == ["v4", "v5"]
    assert [item.tobytes() for item in result] == [frames(v.read()).tobytes() for v in videos]


def test_frames_that_are_given_are_not_kept_again(tmp_path):
    class Given(Words):
        def embed_frames(self, batches, *, workers=0):
            for batch in batches:
                yield [np.eye(4, dtype=np.float32)[: len(image.id)] for image in batch]

    mixed = (Video("v", FrameFeatures(tmp_path / "v.npy")), Image("ab", BytesSource(b"x")))
    assert [item.shape for item in embedded(mixed, tmp_path / "cache", Given())] == [(1, 4), (2, 4)]
    keys = [digest(b"v"), digest(b"ab")]
    cache = Cache(tmp_path / "cache", Words().identity)
    assert [key for key, _ in cache.stream_parts("frames", keys, [])] == keys[1:]


def test_a_damaged_shard_is_passed_over_and_noted(tmp_path):
    images = pictures(4)
    expected = embedded(images, tmp_path, Words())
    (path,) = tmp_path.rglob("frames/*.npz")
    path.write_bytes(path.read_bytes()[:-40])
    notes = []
    local = Words()
    result = embedded(images, tmp_path, local, note=notes.append)
    assert len(notes) == 1
    assert "damaged cache file passed over" in notes[0]
    assert len(local.images_seen) == 4
    assert [item.tobytes() for item in result] == [item.tobytes() for item in expected]


@pytest.mark.parametrize(
    ("last", "message"),
    [
        (np.empty((0, 4), np.float32), "^embedding frames, image 'v2': an item without any part"),
        (np.full((1, 4), np.nan, np.float32), "^embedding frames, image 'v2': .*numbers that are not finite"),
        (np.ones((1, 3), np.float32), "embeddings of different widths.*given: 3 after 4"),
    ],
)
def test_parts_that_are_no_parts_name_their_item(last, message):
    class Broken(Words):
        def embed_frames(self, batches, *, workers=0):
            whole = np.ones((1, 4), np.float32)
            yield from ([last if image.id == "v2" else whole for image in batch] for batch in batches)

    refuses(message, embedded, pictures(3), None, Broken(), error=ScoreError)
