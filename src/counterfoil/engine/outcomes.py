"""Answers that are right or wrong: of detectors, and of models that pick options of whole questions."""

from functools import partial

import numpy as np

from counterfoil.benchmarks.answers import Outcomes
from counterfoil.benchmarks.benchmark import Benchmark
from counterfoil.engine.plan import ability_for, caption_probabilities, check_at_hand, image_probabilities
from counterfoil.engine.session import Session, check_answered, with_provenance
from counterfoil.errors import InputError, ScoreError
from counterfoil.models.base import Classifier, Picks, QuestionItems, QuestionModel

_TIES = "equal probabilities are wrong, and one half is natural"


def detect(benchmark: Benchmark, model: Classifier, *, session: Session = Session()) -> Outcomes:
    """What a detector of synthetic items gets right of quads or choices, item 0 of each being natural.

    Quads by the rule of two steps (`detection.two_steps`), choices by the candidates alone
    (`detection.likelier`). Source: BiVLC, section 5.3.
    """
    from counterfoil.metrics.detection import likelier, two_steps

    ability_for(model, benchmark)
    captions, images = benchmark.paired.slots()
    candidates = {
        kind: slots for kind, slots in (("images", images), ("captions", captions)) if slots.shape[1] > 1
    }
    work, cache = session.prepare(benchmark, model, reads=tuple(candidates))
    of_kind = {
        "images": (work.image_of, partial(session.embed_images, compute=image_probabilities)),
        "captions": (work.caption_of, partial(session.embed_captions, compute=caption_probabilities)),
    }
    synthetic = {}
    for kind, slots in candidates.items():
        of_item, classify = of_kind[kind]
        values = classify(model, work, cache)[:, 0]
        if len(values) and not 0 <= values.min() <= values.max() <= 1:
            problem = "the detector gave numbers that are no probabilities"
            given = f"{values.min()} to {values.max()}"
            raise ScoreError(problem, where=model.identity.name, given=given, allowed="0 to 1")
        # Behind the last candidate is none that could be chosen.
        synthetic[kind] = np.where(slots < 0, np.inf, values[of_item][slots])
    if len(synthetic) == 2:
        right = two_steps(synthetic["captions"], synthetic["images"])
    else:
        (probabilities,) = synthetic.values()
        correct = benchmark.paired.correct
        pair = [probabilities[:, :correct].max(axis=1), probabilities[:, correct:].min(axis=1)]
        right = {"accuracy": likelier(np.stack(pair, axis=1)) == 1}
    return with_provenance(Outcomes(right, _TIES), model, session=session)


#: What a model that guesses gets where each direction of a quad is a question of its own, and where the
#: answer is one of two matchings.
_FOUR = {"i2t": 1 / 4, "t2i": 1 / 4, "group": 1 / 16}
_ONE = {"i2t": 1 / 2, "t2i": 1 / 2, "group": 1 / 2}
_PICKED = "options were picked, so nothing ties"


def pick(benchmark: Benchmark, model: QuestionModel, *, session: Session = Session()) -> Outcomes:
    """Right and wrong of a model that picked options of whole questions, quads or choices.

    `ipos2t` is whether image 0 picked caption 0, `tneg2i` whether caption 1 picked image 1; of a choice
    `accuracy`.
    """
    if benchmark.paired.correct > 1:
        problem = "one pick does not answer a question with several right candidates"
        given = f"{benchmark.name}, {benchmark.paired.correct} right candidates"
        hint = "score its pairs: --set protocol=yes-no"
        raise InputError(problem, where=model.identity.name, given=given, hint=hint)
    check_at_hand(benchmark)
    questions = question_items(benchmark)
    total, picked = len(questions), list[Picks]()
    session.progress("asking questions", 0, total)
    for answer in model.pick(questions):
        picked.append(answer)
        session.progress("asking questions", len(picked), total)
    missing = np.array([not answer.answered for answer in picked])
    check_answered(missing, model)
    captions = np.array([answer.captions for answer in picked]).reshape(total, -1)
    images = np.array([answer.images for answer in picked]).reshape(total, -1)
    quads = captions.shape[1] == images.shape[1] == 2
    if not quads:
        right = {"accuracy": (captions if captions.shape[1] else images)[:, 0] == 0}
        return with_provenance(Outcomes(right, _PICKED, unanswered=missing), model, session=session)
    right = {
        **{name: captions[:, place] == place for place, name in enumerate(("ipos2t", "ineg2t"))},
        **{name: images[:, place] == place for place, name in enumerate(("tpos2i", "tneg2i"))},
    }
    # One answer names the whole matching where the model says so.
    matched = bool(getattr(model, "picks_matchings", False))
    note, chance = "each direction of a quad is a question of its own", _FOUR
    if matched:
        note, chance = "one matching answers all directions of a quad", _ONE
    outcomes = Outcomes(right, f"{_PICKED}; {note}", unanswered=missing, chance=chance)
    return with_provenance(outcomes, model, session=session)


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
