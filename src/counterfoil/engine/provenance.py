"""The origin of answers: which scorer gave them, on which machine, with which libraries."""

import platform
from dataclasses import replace
from typing import Any, TypeVar

from counterfoil.data.provenance import versions
from counterfoil.data.scores import Outcomes, Rankings, Scores
from counterfoil.engine.session import Session
from counterfoil.scorers.base import identity_of

_Answers = TypeVar("_Answers", bound=Scores | Outcomes | Rankings)


def signed(answers: _Answers, scorer: Any, *, first: Any = None, session: Session) -> _Answers:
    """The answers with what made them written on them, as a run's manifest has it.

    The identity of a scorer without `weights` gets the digest of those that it holds
    (`identity_of`). `first` is the scorer whose first items `scorer` ranked again, if any.
    """
    identity = identity_of(scorer)
    made_with = dict(getattr(scorer, "provenance", None) or {})
    device = getattr(scorer, "device", None) or made_with.get("device") or identity.options.get("device")
    made = {
        "scorer": {
            **identity.to_json(),
            "key": identity.key,
            # What tables call it where its name would say too much.
            **({"title": title} if (title := getattr(scorer, "title", "")) else {}),
            # What changes answers by no more than rounding: versions of its libraries, device, towers used.
            **({"made_with": made_with} if made_with else {}),
            **({"first_stage": identity_of(first).to_json()} if first is not None else {}),
        },
        "machine": {
            "device": str(device or "cpu"),
            "batch_size": session.batch_size,
            "workers": session.workers,
            "system": platform.platform(),
        },
        "versions": versions(),
    }
    return replace(answers, made=made)
