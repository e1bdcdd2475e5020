"""The frame of every page: one file with its own style and script, closed by a content policy.

A page is a template that extends `base.html`. It carries its style, its pictures and its data, fetches
nothing, and may run no script but its own: the policy names that one by its digest.
"""

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from counterfoil.evaluation.studies.evidence import tenths
from counterfoil.report import drawing, markup
from counterfoil.report.glossary import WORDS
from counterfoil.report.labels import measure_label, measure_meaning

#: The script that every page has: its tables can be sorted and saved, its pictures enlarged.
_SHARED = "page.js"
#: The widest figure, in CSS pixels, whose text is still read at 328 pixels.
_SHRINKS = 450


@dataclass(frozen=True)
class Drawing:
    """A figure in the page: for wide screens, and for narrow ones where that needs another layout."""

    title: str
    caption: str
    wide: str
    narrow: str = ""

    @property
    def shrinks(self) -> bool:
        """Whether the figure can be read where it is shrunk to a telephone's width; others are scrolled."""
        return drawing.width(self.wide) <= _SHRINKS


@dataclass(frozen=True)
class Panels:
    """Small figures of one kind, side by side as far as there is room."""

    title: str
    caption: str
    drawings: tuple[str, ...]


def render(
    template: str,
    *,
    title: str,
    styles: Sequence[str] = ("page.css",),
    scripts: Sequence[str] = (),
    **values: Any,
) -> str:
    """The page that `template` (a file in templates/) makes of `values`, as HTML.

    `styles` and `scripts` are files in static/, in the order in which they apply and run. All scripts of a
    page become one, with what every page has ("page.js") before them.

    >>> render("base.html", title="A page").count("<script>")
    1
    """
    script = "".join(static(name) for name in (_SHARED, *scripts))
    return (
        environment()
        .get_template(template)
        .render(
            title=title,
            style="".join(static(name) for name in styles),
            script=script,
            policy=policy(script),
            **values,
        )
    )


def fragment(found: Sequence[markup.Table], lines: Sequence[str] = ()) -> str:
    """Tables, as pages have them, with lines below and no page around them: what a notebook shows.

    >>> row = markup.Row("a <b>", (markup.Cell(0.5, 0.4, 0.6),))
    >>> html = fragment([markup.Table("numbers", (markup.Column("%"),), (row,))], ["n = 4"])
    >>> "a &lt;b&gt;" in html, "<p>n = 4</p>" in html, "<script" in html
    (True, True, False)
    """
    return environment().get_template("fragment.html").render(tables=found, lines=lines)


def policy(script: str = "") -> str:
    """The content security policy of a page: its own style, pictures it carries, and this script alone.

    >>> policy()
    "default-src 'none'; img-src data:; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
    """
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

    made = Environment(
        loader=PackageLoader("counterfoil.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["written"] = markup.written
    made.filters["plainly"] = markup.plainly
    made.filters["tenths"] = tenths
    made.globals["WORDS"] = WORDS
    made.globals["measure_label"] = measure_label
    made.globals["measure_meaning"] = measure_meaning
    return made
