"""Removal of local paths and user names from pages that are passed on.

Of an absolute path the last part stays, which names the file; everything before it, users' names among it,
becomes "…". Addresses on the web, relative paths and names of models are left alone.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from counterfoil.evaluation.compare import Comparison
from counterfoil.evaluation.run import Run

#: A text that is a path from its beginning, maybe behind "given:" or "--out="; what it ends in is kept.
_WHOLE = re.compile(
    r"(?!https?:)((?:[\w-]+[:=])?)(?:file://)?(?:~[^/\\]*[/\\]|/|[A-Za-z]:[/\\]|\\\\)(?:.*[/\\])?([^/\\]+)[/\\]?"
)
#: Paths in the midst of a text, as far as the next blank; not the path of an address on the web.
_WITHIN = re.compile(
    r"(?P<web>\bhttps?://\S+)"
    r"|(?<![\w./\\~-])(?:file://)?(?:~[\w.-]*/|/(?=[^\s/]+/)|[A-Za-z]:\\)(?:[^\s/\\'\"<>|]+[/\\])*(?P<last>[^\s/\\'\"<>|]+)"
)
_USERS = re.compile(r"(?:/home/|/Users/|[A-Za-z]:\\Users\\)([^/\\\s:]+)")


def shareable(text: str, users: Iterable[str] = ()) -> str:
    """The text without absolute paths, of which the last part stays, and without the names of `users`.

    >>> shareable("given:/home/jane/my data/clip.csv"), shareable("--out=~/runs/clip")
    ('given:…/clip.csv', '--out=…/clip')
    >>> shareable("in /home/jane/a.png: no image"), shareable("https://a.org/b/c"), shareable("runs/clip")
    ('in …/a.png: no image', 'https://a.org/b/c', 'runs/clip')
    """
    if whole := _WHOLE.fullmatch(text):
        text = f"{whole[1]}…/{whole[2]}"
    text = _WITHIN.sub(lambda found: found["web"] or f"…/{found['last']}", text)
    for user in users:
        text = re.sub(rf"(?<!\w){re.escape(user)}(?!\w)", "…", text)
    return text


def users(value: object) -> set[str]:
    """The names of users that paths in a text, or anywhere in nested values, tell.

    >>> users({"command": ["counterfoil", "/home/jane/x"]})
    {'jane'}
    """
    if isinstance(value, Mapping):
        return {name for part in value.values() for name in users(part)}
    if isinstance(value, list | tuple):
        return {name for part in value for name in users(part)}
    return set(_USERS.findall(value)) if isinstance(value, str) else set()


def shared(comparison: Comparison) -> Comparison:
    """The comparison with nothing private in the names of its scorers and in how they came about.

    Scorers that differ only in what is left out are numbered.
    """
    known = users([run.name for run in comparison.runs])
    known |= users([[run.manifest, run.result.provenance] for run in comparison.runs])
    names: dict[str, str] = {}
    for run in comparison.runs:
        plain = shareable(run.name, known)
        taken = list(names.values())
        number = next(n for n in range(1, len(taken) + 2) if _numbered(plain, n) not in taken)
        names[run.name] = _numbered(plain, number)
    return replace(
        comparison,
        runs=tuple(_run(run, names[run.name], known) for run in comparison.runs),
        baseline=names.get(comparison.baseline or "", comparison.baseline),
        differences=tuple(replace(d, a=names[d.a], b=names[d.b]) for d in comparison.differences),
    )


def _numbered(name: str, number: int) -> str:
    return name if number == 1 else f"{name} ({number})"


def _run(run: Run, name: str, known: set[str]) -> Run:
    provenance = _within(run.result.provenance, known)
    result = replace(run.result, scorer=name, provenance=provenance)
    return replace(run, name=name, result=result, manifest=_within(run.manifest, known))


def _within(value: Any, known: set[str]) -> Any:
    """Nested values with every text in them made shareable."""
    if isinstance(value, Mapping):
        return {key: _within(part, known) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_within(part, known) for part in value]
    return shareable(value, known) if isinstance(value, str) else value
