"""How a figure is made and written: colours, canvas, SVG, PDF and PNG. What it shows is `figures`' business.

A figure is made of a few named colours; `svg` writes each as a CSS variable with the light one as fallback,
so one drawing reads well on a light page, on a dark one and on its own.
"""

import io
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from html import escape
from pathlib import Path
from textwrap import wrap
from typing import Any

import numpy as np

from counterfoil.errors import InputError
from counterfoil.store import write_bytes

INK, MUTED, RULE = "#24292f", "#656d76", "#d5dae0"
#: Blue and vermilion stay apart for every kind of colour vision.
RIGHT, WRONG = "#0b62a8", "#c4501b"
FORMATS = ("svg", "pdf", "png")

#: The CSS variable of each colour.
_VARIABLES = {INK: "--ink", MUTED: "--muted", RULE: "--rule", RIGHT: "--right", WRONG: "--wrong"}
_FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Liberation Sans', sans-serif"


def canvas(
    width: float, height: float, rows: int, columns: int, *, sharey: bool = False
) -> tuple[Any, list[Any]]:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure, list(figure.subplots(rows, columns, squeeze=False, sharey=sharey).ravel())


@contextmanager
def style(**more: Any) -> Iterator[None]:
    """matplotlib's settings for as long as a figure is drawn or written."""
    import matplotlib

    settings = {
        "svg.fonttype": "none",
        "font.family": "sans-serif",
        "font.size": 8.5,
        "axes.edgecolor": MUTED,
        "axes.labelcolor": INK,
        "axes.linewidth": 0.6,
        "axes.unicode_minus": True,
        "xtick.color": MUTED,
        "ytick.color": MUTED,
        "xtick.labelcolor": INK,
        "ytick.labelcolor": INK,
        "text.color": INK,
        "text.parse_math": False,
        "figure.constrained_layout.w_pad": 0.06,
        "figure.constrained_layout.h_pad": 0.05,
        **more,
    }
    with matplotlib.rc_context(settings):
        yield


def matrix(
    rows: Sequence[str],
    heads: Sequence[str],
    cells: Mapping[tuple[int, int], tuple[float, str, str]],
    *,
    title: str,
    width: float,
    height: float = 0.27,
) -> Any:
    """Cells of (strength in [-1, 1], text, small text): the sign is the hue, the size how deep it is."""
    with style():
        from matplotlib.patches import Rectangle

        longest = max(len(line) for head in heads for line in head.split("\n"))
        tilted = longest > 9
        margin = 0.1 * max(len(short(name, 26)) for name in rows) + 0.2
        top = 0.55 + (0.065 * longest if tilted else 0.16 * max(head.count("\n") + 1 for head in heads))
        across = margin + width * len(heads) + (0.6 if tilted else 0.1)
        titles = wrap(title, int(13 * (across - margin)) + 4)
        figure, (axes,) = canvas(across, top + height * len(rows) + 0.13 * len(titles), 1, 1)
        for (i, j), (strength, text, small) in cells.items():
            colour = RIGHT if strength >= 0 else WRONG
            # Never so deep that the text on it, dark or light with the page, loses its contrast.
            axes.add_patch(
                Rectangle((j + 0.02, i + 0.03), 0.96, 0.94, fc=colour, ec="none", alpha=0.42 * abs(strength))
            )
            plain = small and not strength
            ink = MUTED if plain else INK
            axes.text(
                j + 0.5, i + (0.36 if small else 0.52), text, ha="center", va="center", fontsize=8, color=ink
            )
            if small:
                axes.text(j + 0.5, i + 0.72, small, ha="center", va="center", fontsize=6.2, color=ink)
        axes.set(xlim=(0, len(heads)), ylim=(len(rows), 0))
        axes.set_yticks(np.arange(len(rows)) + 0.5, [short(name, 26) for name in rows])
        axes.xaxis.tick_top()
        axes.set_xticks(np.arange(len(heads)) + 0.5, heads)
        if tilted:
            axes.set_xticks(
                np.arange(len(heads)) + 0.35,
                [head.replace("\n", "  ") for head in heads],
                rotation=38,
                rotation_mode="anchor",
                ha="left",
                va="bottom",
            )
        axes.tick_params(length=0, colors=INK)
        axes.spines[:].set_visible(False)
        axes.set_title("\n".join(titles), loc="left", fontsize=8, color=MUTED, pad=6)
    return figure


def short(name: str, most: int = 22) -> str:
    """A name that fits; the middle goes, since both ends of a checkpoint's name tell more."""
    if len(name) <= most:
        return name
    head = (most - 1) // 2
    return f"{name[:head]}…{name[len(name) - (most - 1 - head) :]}"


def svg(figure: Any, *, name: str, title: str) -> str:
    """The figure as an `<svg>` element to put in a page: text as text, and the same bytes each time.

    `name` must be unique in the page (it prefixes ids); `title` is what a screen reader says.
    """
    raw = io.StringIO()
    with style(**{"svg.hashsalt": name}):
        figure.savefig(raw, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    text = raw.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.S)
    # matplotlib's sheet styles every element of the page it stands in; its one useful rule goes on the root.
    text = re.sub(r"<defs>\s*<style type=\"text/css\">.*?</style>\s*</defs>", "", text, flags=re.S)
    used = set(re.findall(r"url\(#([^)]+)\)", text)) | set(re.findall(r'href="#([^"]+)"', text))
    text = re.sub(r' id="([^"]*)"', lambda m: m.group(0) if m.group(1) in used else "", text)
    for old in sorted(used, key=len, reverse=True):
        text = text.replace(f'id="{old}"', f'id="{name}-{old}"').replace(f"#{old})", f"#{name}-{old})")
        text = text.replace(f'href="#{old}"', f'href="#{name}-{old}"')
    for colour, variable in _VARIABLES.items():
        text = re.sub(colour, f"var({variable}, {colour})", text, flags=re.I)
    text = re.sub(r"(font: [^;\"']*?px) [^;\"]*", rf"\1 {_FONT}", text)
    width = float(re.search(r'width="([\d.]+)pt"', text).group(1))  # type: ignore[union-attr]
    box = re.search(r'viewBox="([^"]+)"', text).group(1)  # type: ignore[union-attr]
    size = f"width: 100%; max-width: {width * 4 / 3:.0f}px; height: auto"
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" viewBox="{box}" '
        f'role="img" style="{size}; stroke-linejoin: round">'
        f"<title>{escape(title)}</title>"
    )
    return head + text[text.index(">") + 1 :].strip() + "\n"


def save(figure: Any, path: Path, *, title: str = "") -> None:
    """Write the figure to `path` as SVG, PDF or PNG, by its suffix; the same figure gives the same bytes."""
    kind = path.suffix.lower().removeprefix(".")
    if kind not in FORMATS:
        raise InputError(
            "unknown kind of figure", where=path, given=path.suffix or "(no suffix)", allowed=FORMATS
        )
    if kind == "svg":
        write_bytes(path, svg(figure, name="figure", title=title or path.stem).encode())
        return
    raw = io.BytesIO()
    # A date would make equal figures differ.
    metadata = {"CreationDate": None} if kind == "pdf" else {"Software": None}
    with style():
        figure.savefig(raw, format=kind, dpi=200, metadata=metadata)
    write_bytes(path, raw.getvalue())
