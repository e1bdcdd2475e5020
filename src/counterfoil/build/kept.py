"""Texts that models wrote, kept batch by batch while a step is unfinished."""

from collections.abc import Callable, Sequence

from counterfoil.build.step import Work
from counterfoil.errors import CounterfoilError
from counterfoil.inputs.files import read_json
from counterfoil.store import digest_value, write_json


def kept_texts(work: Work, asked: object, count: int, write: Callable[[], Sequence[str]]) -> list[str]:
    """The `count` texts of a batch: those that were kept, else what `write` gives, which is kept.

    `asked` is all that the texts depend on, in plain values. A damaged file is written again.
    """
    place = work.keep / f"{digest_value(asked)}.json"
    if place.is_file():
        try:
            texts = read_json(place)["texts"]
        except (CounterfoilError, KeyError, TypeError):
            texts = None
        if isinstance(texts, list) and len(texts) == count:
            return texts
    texts = list(write())
    write_json(place, {"texts": texts})
    return texts
