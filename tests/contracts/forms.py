"""Toy benchmarks of every form of question, and answers to them: small, exact on every machine.

One function per form, with keyword arguments for what a test varies. `perfect_of` gives scores by the truth,
`scores_of` random scores of few values, so that many tie. `rankings` is the slow twin of the engine's pass
over a gallery: query by query, pair by pair.
"""

import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal

import numpy as np
import PIL.Image
from numpy.typing import NDArray

from counterfoil.benchmarks import forms
from counterfoil.benchmarks.answers import Answers, DirectionRanks, Outcomes, Rankings, Scores
from counterfoil.benchmarks.benchmark import Benchmark, Card
from counterfoil.benchmarks.records import BytesSource, Caption, Image
from counterfoil.benchmarks.references import References
from counterfoil.metrics.class_rules import Plausible, precision_at_r
from counterfoil.metrics.ranks import Qrels


def quads(n: int = 12, *, share: int = 1, name: str = "toy", **card: Any) -> Benchmark:
    """Quads of captions of their own; `share` consecutive ones have the first image in common.

    Every third is of type "swap", the others "add".
    """
    first = np.arange(n) // share
    return Benchmark(
        _card("quad", name=name, title="Toy quads", groupings=("type",), **card),
        (*(Image(f"{i}_i0") for i in range(first[-1] + 1)), *(Image(f"{i}_i1") for i in range(n))),
        tuple(Caption(f"{i}_c{k}", f"caption {i} {k}") for i in range(n) for k in range(2)),
        forms.Quad(
            tuple(str(i) for i in range(n)),
            groupings={"type": tuple("swap" if i % 3 == 0 else "add" for i in range(n))},
            captions=np.arange(2 * n).reshape(n, 2),
            images=np.stack([first, first[-1] + 1 + np.arange(n)], axis=1),
        ),
    )


def choices(
    subsets: Mapping[str, int],
    *,
    k: int | Sequence[int] = 2,
    correct: int = 1,
    asks: Literal["image", "caption"] = "image",
    macro: str = "subset",
    **card: Any,
) -> Benchmark:
    """Choices among k items of their own, in subsets: {"add": 6, "swap": 2} makes six and two questions.

    `asks` says what the query is: an "image" (choose among captions) or a "caption" (choose among images).
    Several k are those of the questions in turn.
    """
    labels = tuple(label for label, count in subsets.items() for _ in range(count))
    n = len(labels)
    counts = np.resize(np.asarray(k), n)
    candidates = np.full((n, counts.max()), -1)
    candidates[np.arange(counts.max()) < counts[:, None]] = np.arange(counts.sum())
    images, captions = (n, int(counts.sum())) if asks == "image" else (int(counts.sum()), n)
    return Benchmark(
        _card("choice", title="Toy choices", macro=macro, groupings=("subset",), **card),
        tuple(Image(str(i)) for i in range(images)),
        tuple(Caption(f"c{i}", f"caption {i}") for i in range(captions)),
        forms.Choice(
            tuple(str(i) for i in range(n)),
            groupings={"subset": labels},
            query=np.arange(n),
            candidates=candidates,
            correct=correct,
            asks=asks,
        ),
    )


def paraphrases(subsets: Mapping[str, int], *, per_image: int = 1, **card: Any) -> Benchmark:
    labels = tuple(label for label, count in subsets.items() for _ in range(count))
    n = len(labels)
    return Benchmark(
        _card("paraphrase", macro="subset", groupings=("subset",), **card),
        tuple(Image(str(i)) for i in range(-(-n // per_image))),
        tuple(Caption(f"c{i}", f"caption {i}") for i in range(3 * n)),
        forms.Paraphrase(
            tuple(str(i) for i in range(n)),
            groupings={"subset": labels},
            captions=np.arange(3 * n).reshape(n, 3),
            images=np.arange(n) // per_image,
        ),
    )


def statements(
    truth: Sequence[bool], *, per_image: int = 2, calibration: int = 0, groups: int = 0, **card: Any
) -> Benchmark:
    """Statements of these truths, so many of each image; the last `calibration` only choose the threshold.

    With `groups` statement i is in group i // 2 modulo `groups`. Three people voted for the truth.
    """
    n = len(truth)
    right = np.asarray(truth, dtype=bool)
    return Benchmark(
        _card("statement", title="Toy statements", **card),
        tuple(Image(f"i{i}") for i in range(-(-n // per_image))),
        tuple(Caption(f"c{i}", f"statement {i}") for i in range(n)),
        forms.Statement(
            tuple(f"q{i}" for i in range(n)),
            groupings={"kind": tuple("abcdefgh"[i // 2 % groups] for i in range(n))} if groups else {},
            captions=np.arange(n),
            images=np.arange(n) // per_image,
            truth=right,
            calibration=np.arange(n) >= n - calibration if calibration else None,
            votes=np.where(right[:, None], [0.0, 3.0], [3.0, 0.0]),
        ),
    )


def quads_of(images, captions, *, ids=(), labels=None, **card):
    """Images 2i and 2i + 1 with captions 2i and 2i + 1 are question i; `labels` are groupings."""
    positions = np.arange(len(images), dtype=np.int64).reshape(-1, 2)
    names = tuple(ids) or tuple(str(i) for i in range(len(positions)))
    questions = forms.Quad(names, captions=positions, images=positions, groupings=labels or {})
    return Benchmark(_card("quad", **card), tuple(images), tuple(captions), questions)


def choices_of(images, captions, *, ids=(), labels=None, **card):
    """Choices among captions: of n images each has the next k of n x k captions, the first of them right.

    `labels` are the groupings of the questions.
    """
    n = len(images)
    questions = forms.Choice(
        tuple(ids) or tuple(str(i) for i in range(n)),
        query=np.arange(n, dtype=np.int64),
        candidates=np.arange(len(captions), dtype=np.int64).reshape(n, -1),
        groupings=labels or {},
    )
    return Benchmark(_card("choice", **card), tuple(images), tuple(captions), questions)


def gallery(
    name: str = "toy-gallery",
    images: range = range(6),
    *,
    asked: slice = slice(None),
    parts: int = 1,
    rule: bool = False,
    **card: Any,
) -> Benchmark:
    """Images with two captions each, right for them; the `asked` images, and their captions, are queries.

    With `parts` image i is in part i modulo `parts`, with its captions. By `rule` all items of one class are
    right for one another: image i shows class i modulo 3.
    """
    n = len(images)
    i2t = np.arange(n)[asked]
    t2i = np.arange(2 * n).reshape(n, 2)[asked].reshape(-1)
    of_image = np.arange(n) % parts
    right: list[Qrels | Plausible] = [
        Qrels.of([[2 * i, 2 * i + 1] for i in i2t.tolist()]),
        Qrels.of([[i // 2] for i in t2i.tolist()]),
    ]
    if rule:
        codes = np.arange(n)[:, None] % 3 == np.arange(3)
        of_caption = codes[np.arange(2 * n) // 2]
        right = [Plausible(codes[i2t], of_caption), Plausible(of_caption[t2i], codes)]
        card = {"measures": ("pmrp",), **card}
    return gallery_of(
        [Image(str(i)) for i in images],
        [Caption(f"{i}_{k}", f"caption {k} of {i}") for i in images for k in range(2)],
        right,
        queries=(i2t, t2i),
        parts=(of_image, np.repeat(of_image, 2)) if parts > 1 else (None, None),
        **{"name": name, "title": name.upper(), **card},
    )


def gallery_of(
    images: Sequence[Image],
    captions: Sequence[Caption],
    right: Sequence[Qrels | Plausible],
    *,
    queries: Sequence[NDArray[np.int64]] = (),
    owners: NDArray[np.int64] | None = None,
    parts: Sequence[NDArray[np.int64] | None] = (None, None),
    labels: Mapping[str, tuple[str, ...]] | None = None,
    source: str = "",
    **card: Any,
) -> Benchmark:
    """A gallery with what is `right` for images, and for captions, all of them queries if none are named.

    Images own as many captions each unless `owners` says which; `parts` are those of images and of captions,
    `labels` the groupings of the queries.
    """
    n, m = len(images), len(captions)
    asked = queries or (np.arange(n), np.arange(m))
    questions = forms.Gallery(
        (*(f"i2t/{images[i].id}" for i in asked[0]), *(f"t2i/{captions[i].id}" for i in asked[1])),
        groupings=labels or {},
        i2t=forms.RetrievalDirection(asked[0], right[0]),
        t2i=forms.RetrievalDirection(asked[1], right[1]),
        owners=np.arange(m) // (m // n) if owners is None else owners,
        n_images=n,
        image_parts=parts[0],
        caption_parts=parts[1],
    )
    return Benchmark(_card("gallery", **card), tuple(images), tuple(captions), questions, source=source)


def ratings_of(ratings: NDArray[np.float64], images: NDArray[np.int64], **more: Any) -> Benchmark:
    """Caption i is of image `images[i]` and rated `ratings[i]`; further captions are references.

    Here and below `ids`, `shown` images, `captions` and facts of the `card` can be other than the usual ones.
    """
    n = len(ratings)
    questions = partial(forms.Rated, captions=np.arange(n), images=images, ratings=ratings)
    return _judged("Toy ratings", n, questions, **more)


def pairs_of(votes: NDArray[np.float64], images: NDArray[np.int64], **more: Any) -> Benchmark:
    """Captions 2i and 2i + 1 are of image `images[i]` and got `votes[i]`; of equal votes the first."""
    n, label = len(votes), (votes[:, 1] > votes[:, 0]).astype(np.int64)
    captions = np.arange(2 * n).reshape(n, 2)
    places = {"captions": captions, "images": images, "votes": votes, "label": label}
    return _judged("Toy pairs", n, partial(forms.Preference.between, **places), **more)


def paragraphs_of(n: int, sentences: int, images: NDArray[np.int64], **more: Any) -> Benchmark:
    """Two paragraphs per question, the first preferred; `images` and `references` are of all sentences."""
    owners = np.repeat(np.arange(n), 2 * sentences)
    sides = np.tile(np.repeat([0, 1], sentences), n)
    facts = {"votes": np.tile([[2.0, 1.0]], (n, 1)), "label": np.zeros(n, dtype=np.int64)}
    places = {"captions": np.arange(len(owners)), "images": images, "owners": owners, "sides": sides}
    return _judged("Toy preference", n, partial(forms.Preference, **places, **facts), **more)


def rated(ratings: NDArray[np.float64], *, per_image: int = 5, groups: int = 0, **more: Any) -> Benchmark:
    """Captions rated (n, raters), so many of each image; two references each."""
    n = len(ratings)
    kinds = tuple("abcdefgh"[i % groups] for i in range(n)) if groups else ()
    own = {"captions": _written(n, n + 1), "groupings": {"source": kinds} if groups else {}}
    references = References.of([[n + i, n + i + 1] for i in range(n)])
    return ratings_of(ratings, np.arange(n) // per_image, references=references, **own, **more)


def preferred(
    votes: NDArray[np.float64], *, per_image: int = 2, groups: int = 0, macro: bool = False, **more: Any
) -> Benchmark:
    """Two captions of an image each, with (n, 2) votes; three references that both share."""
    n = len(votes)
    kinds = tuple(("HC", "HI", "HM", "MM")[i % groups] for i in range(n)) if groups else ()
    return pairs_of(
        votes,
        np.arange(n) // per_image,
        captions=_written(2 * n, n + 2),
        card={"macro": "kind"} if macro else {},
        groupings={"kind": kinds} if groups else {},
        references=References.of([[2 * n + i, 2 * n + i + 1, 2 * n + i + 2] for i in range(n)]),
        **more,
    )


def grades(n: int, *, raters: int = 1, seed: int = 0) -> NDArray[np.float64]:
    """Ratings from 1 to 4, as many of each (n a multiple of 4)."""
    rng = np.random.default_rng(seed)
    return np.stack([rng.permutation(np.arange(n) % 4 + 1.0) for _ in range(raters)], axis=1)


def _written(candidates: int, references: int) -> list[Caption]:
    return [Caption(f"c{i}", f"caption {i}") for i in range(candidates)] + [
        Caption(f"r{i}", f"reference {i}") for i in range(references)
    ]


def _judged(
    title: str,
    n: int,
    questions_of: Callable[..., forms.Rated | forms.Preference],
    *,
    ids: Sequence[str] = (),
    shown: Sequence[Image] = (),
    captions: Sequence[Caption] = (),
    card: Mapping[str, Any] | None = None,
    **own: Any,
) -> Benchmark:
    """The benchmark of n questions, with images and captions for all that they name."""
    questions = questions_of(tuple(ids) or tuple(f"q{i}" for i in range(n)), **own)
    named = int(questions.captions.max()) + 1
    return Benchmark(
        _card(questions.form, **{"title": title, **(card or {})}),
        tuple(shown) or tuple(Image(f"i{i}", photo=f"p{i}") for i in range(questions.images.max() + 1)),
        tuple(captions) or tuple(Caption(f"c{i}", f"caption {i}") for i in range(named)),
        questions,
    )


def _card(form: str, **facts: Any) -> Card:
    return Card(**{"name": f"toy-{form}", "title": f"Toy {form}", "form": form, **facts})


def shown(benchmark: Benchmark) -> Benchmark:
    """The same questions with pictures to open, each of colours of its own, and captions of 3 to 6 words."""
    colours = ("red", "green", "blue", "yellow", "white", "black", "pink")
    images = []
    for number, image in enumerate(benchmark.images):
        # Squares of 8 pixels in two colours, of which no two pictures have the same.
        pixels = np.full((48, 40, 3), (37 * number % 256, 90, 255 - 11 * number % 256), dtype=np.uint8)
        pixels[: 8 * (1 + number % 5), 8:24] = (250, 23 * number % 256, 10)
        buffer = io.BytesIO()
        PIL.Image.fromarray(pixels).save(buffer, "PNG")
        images.append(replace(image, source=BytesSource(buffer.getvalue(), image.id)))
    texts = [f"a {colours[i % 7]} {('cat', 'dog', 'bird')[i % 3]}" for i in range(len(benchmark.captions))]
    texts = [text + " in the sun" * (i % 2) for i, text in enumerate(texts)]
    captions = tuple(replace(item, text=t) for item, t in zip(benchmark.captions, texts, strict=True))
    return replace(benchmark, images=tuple(images), captions=captions)


def shape_of(benchmark: Benchmark) -> tuple[int, ...]:
    if benchmark.card.form == "gallery":
        return len(benchmark.images), len(benchmark.captions)
    return benchmark.listed.shape


def scores_of(benchmark: Benchmark, *, seed: int = 0, values: int = 4) -> NDArray[np.float64]:
    """Scores of a few whole values, so that many tie; with `values` 1 the scores of a constant model."""
    result = np.random.default_rng(seed).integers(0, values, shape_of(benchmark)).astype(np.float64)
    # Of statements they are probabilities.
    if benchmark.card.form == "statement":
        return result / max(values - 1, 1)
    return without_gaps(benchmark, result)


def without_gaps(benchmark: Benchmark, scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """The scores, minus infinity where a question has no candidate; those of some questions as they are."""
    questions = benchmark.questions
    if not isinstance(questions, forms.Choice) or len(scores) != len(questions):
        return scores
    return np.where(questions.candidates < 0, -np.inf, scores)


def perfect_of(benchmark: Benchmark) -> NDArray[np.float64]:
    """Scores by the truth: 1 for pairs that belong together and 0 for others; of ratings their mean."""
    questions = benchmark.questions
    if isinstance(questions, forms.Rated):
        return np.nanmean(questions.ratings, axis=1)
    if isinstance(questions, forms.Statement):
        return questions.truth.astype(np.float64)
    result = np.zeros(shape_of(benchmark))
    if isinstance(questions, forms.Quad):
        result[:] = np.eye(2)
    elif isinstance(questions, forms.Choice):
        result[:, : questions.correct] = 1
    elif isinstance(questions, forms.Paraphrase):
        result[:, 0] = 1
    elif isinstance(questions, forms.Preference):
        result[np.arange(len(result)), questions.label] = 1
    else:
        assert isinstance(questions, forms.Gallery)
        right = questions.i2t.positives
        for row, image in enumerate(questions.i2t.queries):
            if isinstance(right, Plausible):
                result[image] = right.distances(np.array([row]))[0] <= right.thresholds[0]
            else:
                result[image, right.take(np.array([row])).items] = 1
    return result


def answers_of(benchmark: Benchmark, scores: NDArray[np.float64]) -> Answers:
    if benchmark.card.form == "gallery":
        return rankings(benchmark, scores)
    return Scores(without_gaps(benchmark, scores))


def outcomes_of(benchmark: Benchmark, scores: NDArray[np.float64]) -> Outcomes:
    """Right and wrong of scores under strict ties, decided question by question."""
    questions = benchmark.questions
    if isinstance(questions, forms.Quad):
        result = {
            "ipos2t": [four[0, 0] > four[1, 0] for four in scores],
            "ineg2t": [four[1, 1] > four[0, 1] for four in scores],
            "tpos2i": [four[0, 0] > four[0, 1] for four in scores],
            "tneg2i": [four[1, 1] > four[1, 0] for four in scores],
        }
    elif isinstance(questions, forms.Preference):
        labelled = zip(scores, questions.label, strict=True)
        result = {"accuracy": [two[label] > two[1 - label] for two, label in labelled]}
    elif isinstance(questions, forms.Statement):
        with_truth = zip(scores, questions.truth, strict=True)
        result = {"accuracy": [(score > 0.5) if true else (score < 0.5) for score, true in with_truth]}
    elif isinstance(questions, forms.Paraphrase):
        result = {"accuracy": [same > first and same > second for same, first, second in scores]}
    else:
        assert isinstance(questions, forms.Choice)
        right = questions.correct
        result = {"accuracy": [row[:right].min() > row[right:].max() for row in scores]}
    return Outcomes({name: np.asarray(column, dtype=bool) for name, column in result.items()})


def rankings(benchmark: Benchmark, scores: NDArray[np.float64], *, top: int = 4) -> Rankings:
    """Where scores of all images with all captions put the right answers, and what they put first."""
    asked = benchmark.gallery
    return Rankings(
        _placed(asked.i2t, scores, asked.image_parts, asked.caption_parts, top),
        _placed(asked.t2i, scores.T, asked.caption_parts, asked.image_parts, top),
    )


def _placed(
    search: forms.RetrievalDirection,
    lines: NDArray[np.float64],
    of_query: NDArray[np.int64] | None,
    of_item: NDArray[np.int64] | None,
    top: int,
) -> DirectionRanks:
    above, level, depth, best, shares = [], [], [], [], []
    for q, query in enumerate(search.queries):
        line, seen = lines[query], np.arange(lines.shape[1])
        if of_query is not None:
            seen = np.flatnonzero(of_item == of_query[query])
        depth.append(len(seen))
        # In a gallery of parts no first items are kept.
        best.append(sorted(seen, key=lambda i: (-line[i], i))[:top] if of_query is None else [])
        if isinstance(search.positives, Plausible):
            rule = search.positives
            near = (rule.query_codes[q] != rule.item_codes[seen]).sum(axis=1)
            rows = line[seen][None]
            own = [precision_at_r(rows, near[None] <= t, cap=rule.cap)[:, 0] for t in rule.thresholds]
            shares.append(own)
            continue
        for item in search.positives.items[search.positives.starts[q] : search.positives.starts[q + 1]]:
            above.append(int((line[seen] > line[item]).sum()) if item >= 0 else -1)
            level.append(int((line[seen] == line[item]).sum()) if item >= 0 else 0)
    first = np.array(best, dtype=np.int32).reshape(len(search), -1 if best else 0)
    return DirectionRanks(
        np.array(above, dtype=np.int64),
        np.array(level, dtype=np.int64),
        np.array(depth, dtype=np.int64),
        first,
        lines[search.queries[:, None], first].astype(np.float32),
        np.transpose(np.array(shares), (1, 2, 0)) if shares else None,
    )
