"""The table of abilities: which kind of scorer answers which form of question."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from counterfoil.data.benchmark import Benchmark
from counterfoil.errors import InputError
from counterfoil.scorers.base import Ability, abilities

_QUESTIONS = ("quad", "choice", "preference", "rated")


@dataclass(frozen=True)
class Answering:
    """The name of a kind of scorer in errors, and the forms that it answers; None is any form."""

    kind: str
    forms: tuple[str, ...] | None = None


#: Who answers which form. Of a scorer with several abilities the first that fits is used.
ANSWERS: Mapping[Ability, Answering] = {
    "embeds": Answering("a dual encoder"),
    "scores_pairs": Answering("a scorer of pairs"),
    "classifies": Answering("a detector", ("quad", "choice")),
    "reads_references": Answering("a caption metric", _QUESTIONS),
    "given_scores": Answering("a table of answers (csv, json, parquet)", _QUESTIONS),
    "given_embeddings": Answering("embeddings (npz)"),
    "given_similarity": Answering("a similarity (npy)", ("gallery",)),
    "given_rankings": Answering("rankings (json, npz)", ("gallery",)),
}


def ability_for(scorer: Any, benchmark: Benchmark) -> Ability:
    """The ability with which `scorer` answers `benchmark`.

    Raises `InputError` where it has none for this form, and `TypeError` for what is no scorer.
    """
    able, form = abilities(scorer), benchmark.questions.form
    for ability in able:
        forms = ANSWERS[ability].forms
        if forms is None or form in forms:
            return ability
    if not able:
        raise TypeError(f"{type(scorer).__name__} is no scorer: it declares no ability in `does`")
    answering = [each.kind for each in ANSWERS.values() if each.forms is None or form in each.forms]
    raise InputError(
        f"{ANSWERS[able[0]].kind} cannot answer questions of form '{form}'",
        where=scorer.identity.name,
        given=benchmark.name,
        allowed=ANSWERS[able[0]].forms,
        hint=f"this form is answered by {', '.join(answering)}",
    )
