"""The frame of every page: one file with its own style, script and data, which fetches nothing."""

import base64
import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Any

from counterfoil.evaluation.compare import Comparison
from counterfoil.evaluation.result import tenths
from counterfoil.report import figure_style
from counterfoil.report.tables import Table, measure_label, number, plainly, written

#: The script that every page has: its tables can be sorted and saved, its pictures enlarged.
_SHARED = "page.js"
#: The widest figure, in CSS pixels, whose text is still read at 328 pixels.
_SHRINKS = 450


@dataclass(frozen=True)
class Drawing:
    """A figure in the page; panels, unless it is one, stand beside each other, as far as there is room."""

    title: str
    caption: str
    panels: tuple[str, ...]

    @property
    def shrinks(self) -> bool:
        """Whether the figure can be read where it is shrunk to a telephone's width; others are scrolled."""
        width = re.search(r'style="width: (\d+)px', self.panels[0])
        return width is None or int(width[1]) <= _SHRINKS


def drawn(title: str, caption: str, name: str, *figures: Any, alt: str = "") -> Drawing:
    """Figures in the page as one; `alt` is what a screen reader says, by default the title."""
    names = [f"{name}-{number}" if number else name for number in range(len(figures))]
    svgs = (
        figure_style.svg(one, name=of, title=alt or title) for one, of in zip(figures, names, strict=True)
    )
    return Drawing(title, caption, tuple(svgs))


@dataclass(frozen=True)
class Grouping:
    """One way to divide a benchmark's questions, as tables (one per measure where there are many groups)."""

    name: str
    official: bool
    drawings: tuple[Drawing, ...]
    tables: tuple[Table, ...]


@dataclass(frozen=True)
class Section:
    """A part of a page under a heading; `key` ends its id. Notes are sentences, `Note`s, or (name, text)."""

    key: str
    title: str
    about: str = ""
    drawings: tuple[Drawing, ...] = ()
    groupings: tuple[Grouping, ...] = ()
    tables: tuple[Table, ...] = ()
    notes: tuple[Any, ...] = ()


def render(
    template: str,
    *,
    title: str,
    styles: Sequence[str] = ("page.css",),
    scripts: Sequence[str] = (),
    contents: Sequence[tuple[str, str]] = (),
    **values: Any,
) -> str:
    """The page that `template` makes of `values`; `styles` and `scripts` are files in static/, `contents` the
    sections that its head leads to, each an id and a name.
    """
    script = "".join(static(name) for name in (_SHARED, *scripts))
    frame = {"style": "".join(map(static, styles)), "script": script, "policy": policy(script)}
    return environment().get_template(template).render(title=title, contents=contents, **frame, **values)


def fragment(tables: Sequence[Table], lines: Sequence[str] = ()) -> str:
    """Tables, as pages have them, with lines below and no page around them: what a notebook shows."""
    return environment().get_template("fragment.html").render(tables=tables, lines=lines)


def policy(script: str = "") -> str:
    """The content security policy of a page: its own style, pictures it carries, and this script alone."""
    allowed = ""
    if script:
        digest = base64.b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode("ascii")
        allowed = f"script-src 'sha256-{digest}'; "
    return (
        f"default-src 'none'; img-src data:; style-src 'unsafe-inline'; {allowed}"
        "base-uri 'none'; form-action 'none'"
    )


@cache
def static(name: str) -> str:
    """The text of a file in static/."""
    return (files("counterfoil.report") / "static" / name).read_text(encoding="utf-8")


@cache
def environment() -> Any:
    """Jinja, with everything escaped that a template does not mark safe, and no name that is not given."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    jinja = Environment(
        loader=PackageLoader("counterfoil.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    jinja.filters |= {"written": written, "plainly": plainly, "tenths": tenths, "number": number}
    jinja.globals |= {"measure_label": measure_label}
    return jinja


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
    text = _WITHIN.sub(lambda match: match["web"] or f"…/{match['last']}", text)
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
    """The comparison without paths and users; models that then have one name are numbered."""
    user_names = users([run.name for run in comparison.runs])
    user_names |= users([[run.manifest, run.result.provenance] for run in comparison.runs])
    names: dict[str, str] = {}
    for run in comparison.runs:
        plain = shareable(run.name, user_names)
        numbered = (plain, *(f"{plain} ({number})" for number in range(2, len(names) + 2)))
        names[run.name] = next(name for name in numbered if name not in names.values())
    runs = []
    for run in comparison.runs:
        name, provenance = names[run.name], _within(run.result.provenance, user_names)
        result = replace(run.result, model=name, provenance=provenance)
        runs.append(replace(run, name=name, result=result, manifest=_within(run.manifest, user_names)))
    baseline = names.get(comparison.baseline or "", comparison.baseline)
    differences = tuple(replace(d, a=names[d.a], b=names[d.b]) for d in comparison.differences)
    return replace(comparison, runs=tuple(runs), baseline=baseline, differences=differences)


def _within(value: Any, names: set[str]) -> Any:
    if isinstance(value, Mapping):
        return {key: _within(part, names) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_within(part, names) for part in value]
    return shareable(value, names) if isinstance(value, str) else value
