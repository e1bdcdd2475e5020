"""Drawing of figures: colours, canvas, label layout, SVG, PDF and PNG. `figures` decides their content."""

import io
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from html import escape
from importlib.util import find_spec
from math import ceil
from pathlib import Path
from textwrap import wrap
from typing import Any

import numpy as np

from counterfoil.errors import InputError, MissingExtraError
from counterfoil.report.tables import short
from counterfoil.stats import Reals
from counterfoil.store import write_bytes

#: The light colours of `page.css`. Blue and vermilion stay apart for every kind of colour vision.
INK, MUTED, RULE, RIGHT, WRONG = "#24292f", "#5c646d", "#d5dae0", "#0b62a8", "#b5430f"
FORMATS = ("svg", "pdf", "png")

#: What begins the id of a group of elements that say something where a pointer rests on them.
_TIP = "tip: "
#: The CSS variable of each colour.
_VARIABLES = {INK: "--ink", MUTED: "--muted", RULE: "--rule", RIGHT: "--right", WRONG: "--wrong"}
_FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Liberation Sans', sans-serif"


@cache
def check() -> None:
    """Raise `MissingExtraError` where matplotlib is not installed: the core does without it."""
    if find_spec("matplotlib") is None:
        raise MissingExtraError("matplotlib", "report")


@contextmanager
def panels(
    panel: tuple[float, float],
    count: int = 1,
    columns: int = 1,
    *,
    left: float,
    right: float = 0.1,
    bottom: float = 0.3,
    top: float = 0.3,
    gap: tuple[float, float] = (0.3, 0.55),
    sharey: bool = False,
) -> Iterator[tuple[Any, list[Any]]]:
    """A figure and its `count` axes in `columns` columns, each `panel` wide and high, in inches."""
    columns = max(1, min(columns, count))
    rows = ceil(count / columns)
    width = left + columns * panel[0] + (columns - 1) * gap[0] + right
    height = bottom + rows * panel[1] + (rows - 1) * gap[1] + top
    place = {
        "left": left / width,
        "right": 1 - right / width,
        "bottom": bottom / height,
        "top": 1 - top / height,
        "wspace": gap[0] / panel[0],
        "hspace": gap[1] / panel[1],
    }
    with style():
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        figure = Figure(figsize=(width, height))
        FigureCanvasAgg(figure)
        grid = figure.subplots(rows, columns, squeeze=False, sharey=sharey, gridspec_kw=place).ravel()
        for axes in grid[count:]:
            axes.remove()
        yield figure, list(grid[:count])


def extent(text: str, size: float = 8.5) -> float:
    """How wide a text is in matplotlib's own font, in inches; most fonts of browsers are narrower."""
    check()
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    width, _, _ = text_to_path.get_text_width_height_descent(text, FontProperties(size=size), ismath=False)
    return float(width) / 72


@contextmanager
def style(**more: Any) -> Iterator[None]:
    """matplotlib's settings for as long as a figure is drawn or written."""
    check()
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
    framed: Collection[tuple[int, int]] = (),
    longest: int = 26,
) -> Any:
    """Cells of (strength in [-1, 1], text, small text): the sign is the hue, the size its depth."""
    from matplotlib.patches import Rectangle

    names = [short(name, longest) for name in rows]
    lines = [head.replace("\n", "  ") for head in heads]
    tilted = max(extent(part) for head in heads for part in head.split("\n")) > width - 0.05
    left = max(extent(name) for name in names) + 0.12
    right = 0.06
    if tilted:
        # How far a label leaning at 38 degrees reaches beyond the last column, and up.
        beyond = [(j + 0.35 - len(lines)) * width + 0.79 * extent(line) for j, line in enumerate(lines)]
        right = max(right, *beyond)
        above = 0.62 * max(extent(line) for line in lines) + 0.22
    else:
        above = 0.1 + 0.15 * max(head.count("\n") + 1 for head in heads)
    titles = wrap(title, max(24, int((width * len(heads) + right) / extent("x", 7.5))))
    top = above + 0.1 + 0.15 * len(titles)
    size = width * len(heads), height * len(rows)
    with panels(size, left=left, right=right, bottom=0.05, top=top) as (figure, (axes,)):
        for (i, j), (strength, text, small) in cells.items():
            colour = RIGHT if strength >= 0 else WRONG
            # Never so deep that the text on it, dark or light with the page, loses its contrast.
            fill, deep = (colour, 0.42 * abs(strength)) if text else (RULE, 0.5)
            axes.add_patch(Rectangle((j + 0.02, i + 0.03), 0.96, 0.94, fc=fill, ec="none", alpha=deep))
            says = {"ha": "center", "va": "center", "color": MUTED if small and not strength else INK}
            bold = {"fontweight": "bold"} if (i, j) in framed else {}
            if bold:
                axes.add_patch(Rectangle((j + 0.03, i + 0.045), 0.94, 0.91, fc="none", ec=colour, lw=0.9))
            axes.text(j + 0.5, i + (0.36 if small else 0.52), text, fontsize=8, **says, **bold)
            if small:
                axes.text(j + 0.5, i + 0.72, small, fontsize=6.2, **says)
        axes.set(xlim=(0, len(heads)), ylim=(len(rows), 0))
        axes.set_yticks(np.arange(len(rows)) + 0.5, names)
        axes.xaxis.tick_top()
        lean = {"rotation": 38, "rotation_mode": "anchor", "ha": "left", "va": "bottom"} if tilted else {}
        axes.set_xticks(np.arange(len(heads)) + (0.35 if tilted else 0.5), lines if tilted else heads, **lean)
        axes.tick_params(length=0, colors=INK)
        axes.spines[:].set_visible(False)
        look = {"fontsize": 8, "color": MUTED, "va": "bottom", "linespacing": 1.25}
        place = 1 + above / (height * len(rows))
        axes.text(0, place, "\n".join(titles), transform=axes.transAxes, **look)
    return figure


def plain(
    axes: Any, title: str = "", *, grid: str = "", left: bool = True, size: float = 8.5, pad: float = 5
) -> None:
    """A title on the left, ticks of a size, grid lines across `grid`, and little frame."""
    axes.set_title(title, loc="left", fontsize=9, fontweight="bold", color=INK, pad=pad)
    axes.spines[["top", "right", *(() if left else ("left",))]].set_visible(False)
    axes.tick_params(labelsize=size)
    if grid:
        axes.grid(True, axis=grid, color=RULE, lw=0.5)


def aside(axes: Any, text: str, point: tuple[float, float], offset: tuple[float, float], **look: Any) -> None:
    """A text at an offset, in points, from a point of the axes."""
    look = {"va": "center", "fontsize": 8, "color": INK, **look}
    axes.annotate(text, point, xytext=offset, textcoords="offset points", **look)


def svg(figure: Any, *, name: str, title: str) -> str:
    """The figure as an `<svg>` element, the same bytes each time; `name` must be unique in the page."""
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    # Without backgrounds, and as `savefig` writes it, which leaves the figure as it was, but draws
    # twice: once for layouts, which these figures do not have.
    raw, patches = io.StringIO(), [figure.patch, *(axes.patch for axes in figure.axes)]
    colours = [(patch.get_facecolor(), patch.get_edgecolor()) for patch in patches]
    canvas, dpi = figure.canvas, figure.dpi
    try:
        with style(**{"svg.hashsalt": name}):
            for patch in patches:
                patch.set(facecolor="none", edgecolor="none")
            FigureCanvasSVG(figure).print_svg(raw, metadata={"Date": None, "Creator": None})
    finally:
        for patch, (face, edge) in zip(patches, colours, strict=True):
            patch.set(facecolor=face, edgecolor=edge)
        figure.set_canvas(canvas)
        figure.dpi = dpi
    text = raw.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.S)
    # matplotlib's sheet styles every element of the page it stands in; its one useful rule goes on the root.
    text = re.sub(r"<defs>\s*<style type=\"text/css\">.*?</style>\s*</defs>", "", text, flags=re.S)
    text = re.sub(rf'<g id="{_TIP}([^"]*)">', r"<g><title>\1</title>", text)
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
    size = f"width: {width * 4 / 3:.0f}px; max-width: 100%; height: auto"
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" viewBox="{box}" '
        f'role="img" style="{size}; stroke-linejoin: round">'
        f"<title>{escape(title)}</title>"
    )
    return head + text[text.index(">") + 1 :].strip() + "\n"


def tip(axes: Any, x: float, y: float, text: str) -> None:
    """Show `text` where a pointer rests near the point (x, y) of the axes in a page, by an invisible disc."""
    from matplotlib.lines import Line2D

    # As `axes.plot` makes it, without what that does to guess what was meant: pages hold hundreds.
    disc = Line2D([x], [y], marker="o", markersize=13, markeredgecolor="none", linestyle="none", color=INK)
    disc.set(alpha=0, zorder=9, gid=f"{_TIP}{text}", clip_on=False)
    axes.add_line(disc)


def kind_of(path: Path) -> str:
    """The format that the suffix of a figure's file asks for; raises `InputError` for others."""
    kind = path.suffix.lower().removeprefix(".")
    if kind not in FORMATS:
        raise InputError(
            "unknown kind of figure", where=path, given=path.suffix or "(no suffix)", allowed=FORMATS
        )
    check()
    return kind


def save(figure: Any, path: Path, *, title: str = "") -> None:
    """Write the figure to `path` as SVG, PDF or PNG, by its suffix; the same figure gives the same bytes."""
    kind = kind_of(path)
    if kind == "svg":
        write_bytes(path, svg(figure, name="figure", title=title or path.stem).encode())
        return
    raw = io.BytesIO()
    # A date would make equal figures differ.
    metadata = {"CreationDate": None} if kind == "pdf" else {"Software": None}
    with style():
        figure.savefig(raw, format=kind, dpi=200, metadata=metadata)
    write_bytes(path, raw.getvalue())


def spaced(wanted: Reals, gap: float, low: float, high: float) -> Reals:
    """Heights of labels near those wanted, `gap` apart or more, between `low` and `high`."""
    from scipy.optimize import isotonic_regression

    order = np.argsort(-wanted, kind="stable")
    steps = gap * np.arange(len(wanted))
    # Without the gaps labels only have to stay in order, and bounds are the same for all.
    fitted = isotonic_regression(wanted[order] + steps, increasing=False).x
    placed = np.empty(len(wanted))
    placed[order] = np.maximum(np.minimum(fitted, high), low + gap * (len(wanted) - 1)) - steps
    return placed


def name_ends(axes: Any, ends: Sequence[tuple[float, float, str, str]]) -> None:
    """Names on the right of the axes for what stands at (x, y), each in a colour, none over another."""
    from matplotlib.transforms import ScaledTranslation

    low, high = axes.get_ylim()
    inches = axes.get_position().height * axes.figure.get_figheight()
    gap = 0.16 * (high - low) / inches
    heights = spaced(np.asarray([y for _, y, *_ in ends]), gap, low + gap / 2, high)
    transform = axes.get_yaxis_transform() + ScaledTranslation(10 / 72, 0, axes.figure.dpi_scale_trans)
    lead = {"arrowstyle": "-", "lw": 0.5, "color": MUTED, "shrinkA": 1, "shrinkB": 2, "relpos": (0, 0.5)}
    for (x, y, name, colour), height in zip(ends, heights.tolist(), strict=True):
        look = {"textcoords": transform, "fontsize": 8, "color": colour, "arrowprops": lead}
        axes.annotate(name, (x, y), xytext=(1, height), annotation_clip=False, va="center", **look)
