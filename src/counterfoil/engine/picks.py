"""Answers of scorers that may leave questions without one: picks within questions, and scores of pairs.

A refusal or an unreadable answer is no wrong answer. A scorer that can refuse says in `unanswered` what
becomes of such questions: "refuse" raises an error here; otherwise answers mark them (`unanswered`), and the
task counts them as wrong or leaves them out.
"""

from typing import Any

import numpy as np
from jaxtyping import Bool
from numpy import ndarray

from counterfoil.data.answers import Outcomes, Scores
from counterfoil.data.benchmark import Benchmark
from counterfoil.engine.plan import check_at_hand
from counterfoil.engine.session import Session, with_provenance
from counterfoil.errors import InputError, ScoreError
from counterfoil.scorers.base import PairScorer, Picks, QuestionItems, QuestionScorer, Scorer, stream_pairs

#: What a model that guesses gets where each direction of a quad is a question of its own, and where the
#: answer is one of two matchings.
_FOUR = {"i2t": 1 / 4, "t2i": 1 / 4, "group": 1 / 16}
_ONE = {"i2t": 1 / 2, "t2i": 1 / 2, "group": 1 / 2}
_PICKED = "options were picked, so nothing ties; "


def pick(benchmark: Benchmark, scorer: QuestionScorer, *, session: Session = Session()) -> Outcomes:
    """Right and wrong of a scorer that picks options of whole questions, quads or choices.

    `ipos2t` is whether image 0 picked caption 0, `tneg2i` whether caption 1 picked image 1, and so on; of a
    choice `accuracy` is whether the right candidate was picked. Chance is that of picking: a quad's group is
    right with 1/16 where four things are picked, and 1/2 where one of two matchings is. Raises `InputError`
    for choices with several right candidates, `ScoreError` for questions without an answer where the scorer
    refuses those, and what the scorer raises.
    """
    if benchmark.paired.correct > 1:
        raise InputError(
            "one pick does not answer a question with several right candidates",
            where=scorer.identity.name,
            given=f"{benchmark.name}, {benchmark.paired.correct} right candidates",
            hint="score its pairs: --set protocol=yes-no",
        )
    check_at_hand(benchmark)
    questions = question_items(benchmark)
    total, found = len(questions), list[Picks]()
    session.progress("asking questions", 0, total)
    for each in scorer.pick(questions):
        found.append(each)
        session.progress("asking questions", len(found), total)
    missing = np.array([not each.answered for each in found])
    check_answered(missing, scorer)
    captions = np.array([each.captions for each in found]).reshape(total, -1)
    images = np.array([each.images for each in found]).reshape(total, -1)
    quads = captions.shape[1] == images.shape[1] == 2
    if not quads:
        right = {"accuracy": (captions if captions.shape[1] else images)[:, 0] == 0}
        note = "options were picked, so nothing ties"
        return with_provenance(Outcomes(right, note, unanswered=missing), scorer, session=session)
    right = {
        **{name: captions[:, place] == place for place, name in enumerate(("ipos2t", "ineg2t"))},
        **{name: images[:, place] == place for place, name in enumerate(("tpos2i", "tneg2i"))},
    }
    # One answer names the whole matching where the scorer says so.
    matched = bool(getattr(scorer, "picks_matchings", False))
    note = _PICKED + (
        "one matching answers all directions of a quad"
        if matched
        else "each direction of a quad is a question of its own"
    )
    chance = _ONE if matched else _FOUR
    return with_provenance(Outcomes(right, note, unanswered=missing, chance=chance), scorer, session=session)


def question_items(benchmark: Benchmark) -> list[QuestionItems]:
    """The items of each quad or choice, in the order of the benchmark: the right candidate stands first."""
    captions, images = benchmark.paired.slots()
    return [
        QuestionItems(
            tuple(benchmark.images[place] for place in of_images if place >= 0),
            tuple(benchmark.captions[place] for place in of_captions if place >= 0),
        )
        for of_captions, of_images in zip(captions.tolist(), images.tolist(), strict=True)
    ]


def score_or_refuse(benchmark: Benchmark, scorer: PairScorer | Scorer, *, session: Session) -> Scores:
    """One score per distinct pair of a scorer that may refuse, NaN for pairs without an answer.

    Nothing is kept here: such a scorer keeps its own answers, refusals among them. `unanswered` marks the
    questions of which some pair has no answer. Raises `ScoreError` for those where the scorer refuses them,
    and for infinite scores.
    """
    work, _ = session.prepare(benchmark, scorer)
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
