"""Settings of caption metrics that have a backbone, with the official values."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from counterfoil.errors import InputError, UnknownNameError
from counterfoil.metrics.captions.clip_score import CLIP_WEIGHT, PAC_WEIGHT, Arithmetic, Negative
from counterfoil.metrics.captions.em_score import Best, Padding

#: What CLIPScore and PAC-S put before every caption.
PREFIX = "A photo depicts "


@dataclass(frozen=True)
class Settings:
    """How a metric is computed; each metric takes what concerns it."""

    #: Put before candidates and references; a blank is added where it ends with none.
    prefix: str = ""
    weight: float = 1.0
    #: "released" leaves negative cosines with references, "paper" counts them as 0.
    negative: Negative = "released"
    #: "exact", or "half" as CLIPScore's code on a GPU.
    arithmetic: Arithmetic = "exact"
    #: The largest of several references: of each "component" (released) or of the "whole" (PAC-S equation 8).
    max: Best = "component"
    #: Where document frequencies come from: "benchmark" (see `corpora.SOURCES`), "references",
    #: "candidates", "none" or a JSON file of captions.
    idf: str = "none"
    padding: Padding = "none"
    #: Which of the three token-match gives: "f1", "precision" or "recall".
    part: str = "f1"
    #: Whether the model is one that PAC-S released ("pac-s"), which no file says of itself, or any other.
    model: str = "any"


@dataclass(frozen=True)
class Kind:
    """What the name of a metric stands for."""

    #: What it reads.
    needs: tuple[str, ...]
    official: Settings
    #: What may be set of it.
    takes: tuple[str, ...]
    #: The same where it is asked about videos; none where it cannot be.
    of_videos: "Kind | None" = None


_PICTURE = ("images", "captions")
_ALL = ("images", "captions", "references")
_COSINE = ("prefix", "weight", "arithmetic")
_FRAMES = ("prefix", "idf", "padding")
#: What PAC-S takes besides.
_PAC = ("model",)

_EM = Kind(_PICTURE, Settings(idf="benchmark"), _FRAMES)
_REF_EM = Kind(_ALL, Settings(idf="benchmark"), (*_FRAMES, "max"))


def _of_pac(kind: Kind) -> Kind:
    return replace(kind, takes=(*kind.takes, *_PAC))


KINDS: Mapping[str, Kind] = {
    "clip-s": Kind(_PICTURE, Settings(PREFIX, CLIP_WEIGHT), _COSINE),
    "ref-clip-s": Kind(_ALL, Settings(PREFIX, CLIP_WEIGHT), (*_COSINE, "negative")),
    # PAC-S section 3.2: with its own model, a video is scored as EMScore scores it.
    "pac-s": Kind(_PICTURE, Settings(PREFIX, PAC_WEIGHT), (*_COSINE, *_PAC), _of_pac(_EM)),
    "ref-pac-s": Kind(_ALL, Settings(PREFIX, PAC_WEIGHT), (*_COSINE, "negative", *_PAC), _of_pac(_REF_EM)),
    "em-score": _EM,
    "ref-em-score": _REF_EM,
    "token-match": Kind(("captions", "references"), Settings(), ("prefix", "idf", "part")),
}

_WORDS: Mapping[str, tuple[str, ...]] = {
    "negative": ("released", "paper"),
    "arithmetic": ("exact", "half"),
    "max": ("component", "whole"),
    "padding": ("none", "released"),
    "part": ("f1", "precision", "recall"),
    "model": ("any", "pac-s"),
}


def read(given: Mapping[str, str], name: str, *, videos: bool = False) -> Settings:
    """The official values of the metric called `name`, of pictures or of videos, but for what is given.

    One command may ask about both, so what concerns the other alone is passed over. Raises `UnknownNameError`
    for what concerns neither, `InputError` for a value that is not allowed.

    >>> read({"weight": "1"}, "clip-s")  # doctest: +ELLIPSIS
    Settings(prefix='A photo depicts ', weight=1.0, negative='released', ...)
    >>> read({"negative": "papr"}, "ref-clip-s")
    Traceback (most recent call last):
    counterfoil.errors.InputError: metric:ref-clip-s: no such value of 'negative'; given: papr; ...
    """
    where, picture = f"metric:{name}", KINDS[name]
    moving = picture.of_videos
    known = dict.fromkeys([*picture.takes, *(moving.takes if moving else ())])
    kind = moving if videos and moving else picture
    found: dict[str, Any] = {}
    for key, value in given.items():
        if key not in known:
            raise UnknownNameError("setting", key, known, where=where)
        if value not in _WORDS.get(key, (value,)):
            raise InputError(
                f"no such value of '{key}'", where=where, given=value or "(empty)", allowed=_WORDS[key]
            )
        read_value = {"weight": _weight, "prefix": _prefix}.get(key, _as_it_is)(value, where)
        if key in kind.takes:
            found[key] = read_value
    return replace(kind.official, **found)


def deciding_settings(settings: Settings, kind: Kind) -> dict[str, Any]:
    """What of the settings decides a metric's numbers, for its identity; the prefix is in the prompt.

    >>> deciding_settings(KINDS["pac-s"].official, KINDS["pac-s"])
    {'weight': 2.0, 'arithmetic': 'exact', 'model': 'any'}
    """
    names = [each.name for each in fields(settings) if each.name in kind.takes and each.name != "prefix"]
    return {name: getattr(settings, name) for name in names}


def _as_it_is(text: str, where: str) -> str:
    return text


def _weight(text: str, where: str) -> float:
    try:
        weight = float(text)
    except ValueError:
        weight = float("nan")
    if not 0 < weight < float("inf"):
        raise InputError("not a weight", where=where, given=text or "(empty)", allowed="a number above 0")
    return weight


def _prefix(text: str, where: str) -> str:
    if "{}" in text:
        raise InputError("a prefix stands before captions", where=where, given=text, hint="leave {} out")
    return text if not text or text.endswith(" ") else f"{text} "
