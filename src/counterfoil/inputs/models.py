"""Values that counterfoil wrote, read again through pydantic models, with file and field in every error.

A file of ours that was changed by hand, cut, or written by something else is noticed where it is read, not
where a field is first missed.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from counterfoil.errors import CounterfoilError, DataError
from counterfoil.inputs.files import read_json

#: How pydantic speaks of an object, with the name of our class.
_INSTANCE = re.compile(r"a valid dictionary( or .*)?$")


class Stored(BaseModel):
    """The base of what is stored: types as they are written, finite numbers, and room for later fields.

    Fields that a newer version wrote are kept; what may not be there at all is for the model to say.
    """

    model_config = ConfigDict(frozen=True, strict=True, allow_inf_nan=False, extra="allow")


Model = TypeVar("Model", bound=BaseModel)


def read_model(path: str | Path, model: type[Model], *, hint: str | None = "was it edited?") -> Model:
    """The value in a JSON file of ours; raises `DataError` naming the file and the field that is off."""
    return check_model(read_json(path), model, where=path, hint=hint)


def check_model(
    value: object,
    model: type[Model],
    *,
    where: object,
    hint: str | None = "was it edited?",
    error: type[CounterfoilError] = DataError,
) -> Model:
    """A value as the model has it; raises `error` naming the field that is missing or off.

    >>> class Card(Stored):
    ...     name: str
    ...     counts: dict[str, int] = {}
    >>> check_model({"name": "a", "counts": {"x": "1"}}, Card, where="card.json")
    Traceback (most recent call last):
    counterfoil.errors.DataError: card.json, field 'counts.x': wrong value; given: '1'; allowed: ...
    """
    if not isinstance(value, Mapping):
        raise error("not an object", where=where, given=_shown(value), hint=hint)
    try:
        return model.model_validate(dict(value))
    except ValidationError as caught:
        first = caught.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"]))
        if first["type"] == "missing":
            raise error(f"no field '{place}'", where=where, hint=hint) from None
        message = str(first["msg"])
        start = "Input should be "
        words: dict[str, Any] = (
            {"what": "wrong value", "allowed": _INSTANCE.sub("an object", message.removeprefix(start))}
            if message.startswith(start)
            else {"what": message[0].lower() + message[1:]}
        )
        raise error(
            **words,
            where=f"{where}, field '{place}'" if place else where,
            given=_shown(first.get("input")),
            hint=hint,
        ) from None


def _shown(value: object) -> str:
    if isinstance(value, dict | list | tuple):
        return f"{type(value).__name__} of {len(value)}"
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
