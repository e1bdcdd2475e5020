from dataclasses import replace

import numpy as np
import pytest

from counterfoil.benchmarks import Caption, Image
from counterfoil.benchmarks.references import References
from counterfoil.engine import caption_scoring
from counterfoil.engine.caption_scoring import CaptionInputs, score_benchmark, score_captions
from counterfoil.engine.session import Session, run
from counterfoil.errors import DataError, InputError
from counterfoil.models.base import Identity
from counterfoil.models.precomputed_galleries import PrecomputedEmbeddings
from engine.metric_fakes import Best, Cosine, Overlap, Words, frames, preferred, rated

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
    found = run(benchmark, metric).values
    expected = [
        len(set(text.split()) & {word for other in others for word in other.split()}) / 20
        for text, _, others in rows_of(benchmark)
    ]
    assert found.tolist() == expected
    assert metric.rows == [20]


@pytest.mark.parametrize(
    "needs", [("images", "captions"), ("captions", "references"), ("images", "captions", "references")]
)
@pytest.mark.parametrize("block", [1 << 23, 40])
def test_embeddings_of_distinct_items_are_compared_row_by_row(fakes, monkeypatch, needs, block):
    monkeypatch.setattr(caption_scoring, "_BLOCK", block)
    benchmark = rated(20)
    embedder = fakes.FakeEmbedder()
    metric = Cosine(embedder, needs)
    found = score_benchmark(benchmark, metric, session=Session(batch_size=4)).values
    expected = []
    for text, image, others in rows_of(benchmark):
        caption = fakes.vector(text.encode())
        value = caption @ fakes.vector(image.read()) if "images" in needs else 0.0
        if "references" in needs:
            value += np.mean([caption @ fakes.vector(other.encode()) for other in others])
        expected.append(value)
    np.testing.assert_allclose(found, expected, atol=2e-4)
    assert len(embedder.captions_seen) == len(set(embedder.captions_seen))
    assert len(embedder.images_seen) == (4 if "images" in needs else 0)
    assert (len(metric.blocks) > 1) == (block == 40)
    assert sum(metric.blocks) == 20


def test_a_second_run_from_the_cache_embeds_nothing(fakes, tmp_path):
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
    found = score_benchmark(benchmark, Best(local, needs), session=Session(batch_size=3)).values
    expected = []
    for text, image, others in rows_of(benchmark):
        tokens = local.tokens(text).vectors
        value = np.mean([max(float(token @ frame) for frame in frames(image.read())) for token in tokens])
        if references:
            words = [word for other in others for word in local.tokens(other).vectors]
            value += np.mean([max(float(token @ word) for word in words) for token in tokens])
        expected.append(value)
    np.testing.assert_allclose(found, expected, atol=1e-5)
    assert len(local.images_seen) == 4
    assert len(local.captions_seen) == len(set(local.captions_seen)) == 15


def test_draws_of_references_are_answered_one_by_one(fakes):
    benchmark = preferred(6, sample=2, draws=3)
    metric = Cosine(fakes.FakeEmbedder(), ("captions", "references"))
    found = score_benchmark(benchmark, metric)
    assert found.values.shape == (6, 2, 3)
    drawn = benchmark.questions.drawn()
    for draw, references in enumerate(drawn):
        fixed = replace(benchmark, questions=replace(benchmark.questions, references=references, sample=None))
        alone = score_benchmark(fixed, Cosine(fakes.FakeEmbedder(), ("captions", "references"))).values
        np.testing.assert_allclose(found.values[:, :, draw], alone, atol=2e-4)
    assert len({found.values[:, :, draw].tobytes() for draw in range(3)}) == 3
    # Each text once, however often it was drawn.
    seen = metric.embedder.captions_seen
    assert len(seen) == len(set(seen))
    without = score_benchmark(benchmark, Cosine(fakes.FakeEmbedder()))
    assert without.values.shape == (6, 2)


def test_a_paragraph_gets_the_mean_over_its_sentences_and_each_side_is_a_load():
    benchmark, metric = preferred(4, sentences=3), Overlap()
    found = score_benchmark(benchmark, metric).values
    rows, sides = rows_of(benchmark), benchmark.questions.sides
    flat = np.empty(len(rows))
    for side in (0, 1):
        own = [row for row, at in zip(rows, sides, strict=True) if at == side]
        flat[sides == side] = Overlap().of_texts([text for text, _, _ in own], [refs for _, _, refs in own])
    assert metric.rows == [12, 12]
    assert found.shape == (4, 2)
    np.testing.assert_allclose(found, flat.reshape(4, 2, 3).mean(axis=2))


def test_other_forms_are_answered_where_no_references_are_needed(fakes):
    benchmark = fakes.quads(5)
    found = score_benchmark(benchmark, Cosine(fakes.FakeEmbedder())).values
    assert found.shape == (5, 2, 2)
    np.testing.assert_allclose(found, run(benchmark, fakes.FakeEmbedder()).values, atol=1e-12)
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
    found = score_benchmark(benchmark, Cosine(given)).values
    expected = [
        captions[row] @ images[row % 4] / np.linalg.norm(captions[row]) / np.linalg.norm(images[row % 4])
        for row in range(6)
    ]
    np.testing.assert_allclose(found, expected)
    # Neither pictures nor texts need be at hand.
    gone = replace(
        benchmark,
        images=tuple(Image(image.id) for image in benchmark.images),
        captions=tuple(Caption(caption.id) for caption in benchmark.captions),
    )
    assert score_benchmark(gone, Cosine(given)).values.tolist() == found.tolist()
    # Rows in order, without ids.
    plain = replace(given, captions=captions, image_ids=None, caption_ids=None)
    assert score_benchmark(benchmark, Cosine(plain)).values.tolist() == found.tolist()
    # Captions that nothing asks about may be missing, references that are asked about may not.
    half = replace(given, captions=captions[:6], caption_ids=tuple(f"c{i}" for i in range(6)))
    assert score_benchmark(benchmark, Cosine(half)).values.tolist() == found.tolist()
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
        (
            Cosine(None),
            {"image": np.array([0, 0])},
            "images are not at hand; given: 1 of 1 missing",
        ),
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


def test_galleries_are_refused():
    from small_galleries import benchmark

    with pytest.raises(InputError, match="a caption metric cannot answer questions of form 'gallery'"):
        run(benchmark(np.random.default_rng(0), 3, 4), Overlap())
