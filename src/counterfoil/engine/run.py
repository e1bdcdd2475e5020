"""Answers of any scorer to any benchmark, with the fewest computations, none of which is repeated."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Bool, Float64
from numpy import ndarray

from counterfoil.benchmarks.answers import Answers, Outcomes, Scores
from counterfoil.benchmarks.benchmark import Benchmark
from counterfoil.benchmarks.records import Caption, Image
from counterfoil.engine.deduplicate import Asked, ability_for, check_at_hand, items
from counterfoil.engine.session import Session, compare_rows, with_provenance
from counterfoil.errors import InputError, ScoreError
from counterfoil.models.base import (
    Ability,
    Classifier,
    Embedder,
    PairScorer,
    Picks,
    QuestionItems,
    QuestionScorer,
    Scorer,
    abilities,
    stream_pairs,
)
from counterfoil.registry import resolve

_TIES = "equal probabilities are wrong, and one half is natural"


def detect(benchmark: Benchmark, scorer: Classifier, *, session: Session = Session()) -> Outcomes:
    """What a detector of synthetic items gets right of quads or choices, item 0 of each being natural.

    Quads by the rule of two steps (`detection.two_steps`), choices by the candidates alone
    (`detection.likelier`). Source: BiVLC, section 5.3.
    """
    from counterfoil.metrics.detection import likelier, two_steps

    ability_for(scorer, benchmark)
    captions, images = benchmark.paired.slots()
    candidates = {
        kind: slots for kind, slots in (("images", images), ("captions", captions)) if slots.shape[1] > 1
    }
    work, cache = session.prepare(benchmark, scorer, reads=tuple(candidates))
    probabilities_of = session.classify(scorer, work, cache, kinds=tuple(candidates))
    of = {"images": work.image_of, "captions": work.caption_of}
    synthetic = {
        # Behind the last candidate is none that could be chosen.
        kind: np.where(slots < 0, np.inf, probabilities_of[kind][of[kind]][slots])
        for kind, slots in candidates.items()
    }
    if len(synthetic) == 2:
        right = two_steps(synthetic["captions"], synthetic["images"])
    else:
        (probabilities,) = synthetic.values()
        correct = benchmark.paired.correct
        pair = [probabilities[:, :correct].max(axis=1), probabilities[:, correct:].min(axis=1)]
        right = {"accuracy": likelier(np.stack(pair, axis=1)) == 1}
    return with_provenance(Outcomes(right, _TIES), scorer, session=session)


#: What a model that guesses gets where each direction of a quad is a question of its own, and where the
#: answer is one of two matchings.
_FOUR = {"i2t": 1 / 4, "t2i": 1 / 4, "group": 1 / 16}
_ONE = {"i2t": 1 / 2, "t2i": 1 / 2, "group": 1 / 2}
_PICKED = "options were picked, so nothing ties"


def pick(benchmark: Benchmark, scorer: QuestionScorer, *, session: Session = Session()) -> Outcomes:
    """Right and wrong of a scorer that picked options of whole questions, quads or choices.

    `ipos2t` is whether image 0 picked caption 0, `tneg2i` whether caption 1 picked image 1; of a choice
    `accuracy`.
    """
    if benchmark.paired.correct > 1:
        problem = "one pick does not answer a question with several right candidates"
        given = f"{benchmark.name}, {benchmark.paired.correct} right candidates"
        hint = "score its pairs: --set protocol=yes-no"
        raise InputError(problem, where=scorer.identity.name, given=given, hint=hint)
    check_at_hand(benchmark)
    questions = question_items(benchmark)
    total, picked = len(questions), list[Picks]()
    session.progress("asking questions", 0, total)
    for answer in scorer.pick(questions):
        picked.append(answer)
        session.progress("asking questions", len(picked), total)
    missing = np.array([not answer.answered for answer in picked])
    check_answered(missing, scorer)
    captions = np.array([answer.captions for answer in picked]).reshape(total, -1)
    images = np.array([answer.images for answer in picked]).reshape(total, -1)
    quads = captions.shape[1] == images.shape[1] == 2
    if not quads:
        right = {"accuracy": (captions if captions.shape[1] else images)[:, 0] == 0}
        return with_provenance(Outcomes(right, _PICKED, unanswered=missing), scorer, session=session)
    right = {
        **{name: captions[:, place] == place for place, name in enumerate(("ipos2t", "ineg2t"))},
        **{name: images[:, place] == place for place, name in enumerate(("tpos2i", "tneg2i"))},
    }
    # One answer names the whole matching where the scorer says so.
    matched = bool(getattr(scorer, "picks_matchings", False))
    note, chance = "each direction of a quad is a question of its own", _FOUR
    if matched:
        note, chance = "one matching answers all directions of a quad", _ONE
    outcomes = Outcomes(right, f"{_PICKED}; {note}", unanswered=missing, chance=chance)
    return with_provenance(outcomes, scorer, session=session)


def question_items(benchmark: Benchmark) -> list[QuestionItems]:
    """The items of each quad or choice, in the order of the benchmark: the right candidate stands first."""
    slots = (side.tolist() for side in benchmark.paired.slots())
    return [
        QuestionItems(
            tuple(benchmark.images[place] for place in images if place >= 0),
            tuple(benchmark.captions[place] for place in captions if place >= 0),
        )
        for captions, images in zip(*slots, strict=True)
    ]


def score_pairs(benchmark: Benchmark, scorer: PairScorer | Scorer, *, session: Session) -> Scores:
    """One score per distinct pair; of a scorer that may refuse, NaN for pairs without an answer.

    Such a scorer (it has `unanswered`) keeps its own answers, and nothing is kept here.
    """
    work, cache = session.prepare(benchmark, scorer)
    if not hasattr(scorer, "unanswered"):
        scores = work.spread(session.score_pairs(scorer, work, cache))
        return _signed(benchmark, scorer, scores, session)
    size, total = session.batch_size, len(work.pairs)
    pairs = [(work.images[image], work.captions[caption]) for caption, image in work.pairs]
    batches = [pairs[start : start + size] for start in range(0, total, size)]
    session.progress("scoring pairs", 0, total)
    parts: list[ndarray] = []
    done = 0
    for part in stream_pairs(scorer, batches, workers=session.workers):
        parts.append(np.asarray(part, dtype=np.float64))
        done += len(part)
        session.progress("scoring pairs", done, total)
    values = np.concatenate(parts)
    if np.isinf(values).any():
        raise ScoreError("the scorer gave numbers that are not finite", where=scorer.identity.name)
    scores = np.asarray(benchmark.listed.collect(work.spread(values)))
    missing = np.isnan(scores).reshape(len(benchmark), -1).any(axis=1)
    check_answered(missing, scorer)
    return with_provenance(Scores(scores, unanswered=missing), scorer, session=session)


def check_answered(missing: Bool[ndarray, "n"], scorer: Any) -> None:
    """Raise `ScoreError` where questions have no answer and the scorer refuses to go on without them."""
    if missing.any() and scorer.unanswered == "refuse":
        raise ScoreError(
            "questions without an answer: refused, or not readable",
            where=scorer.identity.name,
            given=f"{int(missing.sum()):,} of {len(missing):,}",
            hint="say what becomes of them with --unanswered wrong or --unanswered leave-out; the answers "
            "are kept, nothing is sent again",
        )


def run(benchmark: Benchmark, scorer: Any, *, session: Session = Session()) -> Answers:
    """What `scorer` answers to every question of `benchmark`: scores, outcomes, or places in a gallery.

    Each distinct item is embedded, or each distinct pair scored, once; given tables are matched to the
    questions (`join_scores`), galleries ranked (`rank`), caption metrics read references (`caption_scoring`),
    detectors apply the rule of two steps (`detect`). Finished shards go to the cache of the `session`, so
    that a run that is stopped goes on and returns the same bits. Scores are float64, in the shape of the
    questions, and finite. Raises `InputError` where the scorer has no ability for the form, `DataError` where
    items are not at hand, `ScoreError` for odd numbers.
    """
    ability = ability_for(scorer, benchmark)
    if benchmark.questions.directed:
        from counterfoil.engine.rank import rank_galleries

        return rank_galleries([benchmark], scorer, session=session)[0]
    answer = _QUESTIONS[ability]
    answers: Answers = (resolve(answer) if isinstance(answer, str) else answer)(
        benchmark, scorer, session=session
    )
    return answers


def score_items(
    scorer: Any,
    images: Sequence[Image],
    image_keys: Sequence[str],
    captions: Sequence[Caption],
    pairs: Asked,
    *,
    session: Session,
) -> Float64[ndarray, "*asked"]:
    """The scores of `pairs`, (caption, image) positions among items that no benchmark holds."""
    able = [ability for ability in abilities(scorer) if ability in _OF_PAIRS]
    if not able:
        problem = "gives no scores of new images and captions"
        raise InputError(problem, where=scorer.identity.name, allowed="dual encoders and scorers of pairs")
    used = np.arange(len(captions)), np.arange(len(images))
    work = items(images, captions, used, image_keys, pairs)
    reads = "images" in getattr(scorer, "needs", ("images", "captions"))
    cache = session.cache_for(scorer) if reads else session.caption_only_cache(scorer)
    if able[0] == "embeds":
        assert isinstance(scorer, Embedder)
        values = compare_rows(scorer, *session.embed(scorer, work, cache), *work.pairs.T)
    else:
        assert not isinstance(scorer, Embedder)
        values = session.score_pairs(scorer, work, cache)
    if not np.isfinite(values).all():
        raise ScoreError("a score is not finite", where=f"scores of {scorer.identity.name}")
    return work.spread(values)


#: The abilities of scorers that can score pairs which no benchmark holds.
_OF_PAIRS: tuple[Ability, ...] = ("embeds", "scores_pairs")


def _embedded(benchmark: Benchmark, scorer: Any, *, session: Session) -> Scores:
    """Every distinct pair compared; where captions are compared with captions no image is looked at."""
    text_pairs = benchmark.questions.text_pairs()
    work, cache = session.prepare(benchmark, scorer)
    if text_pairs is None:
        values = compare_rows(scorer, *session.embed(scorer, work, cache), *work.pairs.T)
        return _signed(benchmark, scorer, work.spread(values), session)
    captions = session.embed_captions(scorer, work, cache)
    session.note_truncated(scorer, work, cache, scorer.identity.name)
    pairs = (work.caption_of[side].ravel() for side in text_pairs)
    return _signed(benchmark, scorer, compare_rows(scorer, captions, captions, *pairs), session)


def _learned(benchmark: Benchmark, scorer: Any, *, session: Session) -> Scores:
    """The answer to every question by what was learned from others; no image is opened."""
    check_at_hand(benchmark, images=False)
    from counterfoil.benchmarks.contrasts import Contrasts

    contrasts = Contrasts.of(benchmark)
    candidates = benchmark.questions.caption_candidates()
    assert candidates is not None
    return _signed(benchmark, scorer, scorer.answer(contrasts)[candidates.row_of], session)


def _aligned(benchmark: Benchmark, given: Any, *, session: Session) -> Answers:
    from counterfoil.engine.join_scores import join_scores

    return with_provenance(join_scores(given, benchmark, note=session.note), given, session=session)


#: The functions that answer questions of forms other than galleries, by ability.
_QUESTIONS: Mapping[Ability, Callable[..., Answers] | str] = {
    "embeds": _embedded,
    "embeds_texts": _embedded,
    "scores_pairs": score_pairs,
    "picks": pick,
    "classifies": detect,
    "reads_references": "counterfoil.engine.caption_scoring:score_benchmark",
    "learns": _learned,
    "given_scores": _aligned,
    "given_embeddings": _aligned,
}


def _signed(benchmark: Benchmark, scorer: Any, scores: Float64[ndarray, "..."], session: Session) -> Scores:
    checked = Scores(benchmark.listed.collect(scores))
    checked.check(benchmark, where=f"scores of {scorer.identity.name}")
    return with_provenance(checked, scorer, session=session)
