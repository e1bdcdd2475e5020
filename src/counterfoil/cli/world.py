"""`counterfoil world build | sheet`: benchmarks, training sets and a contact sheet of the drawn world."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from counterfoil.cli.options import Overwrite, Quiet

if TYPE_CHECKING:
    from counterfoil.benchmarks.benchmark import Benchmark
    from counterfoil.engine.deduplicate import Progress
    from counterfoil.outputs import Folder
    from counterfoil.world.training import Filter

app = typer.Typer(
    help="A small world of paper shapes in which everything is known: build benchmarks and training sets.",
    no_args_is_help=True,
    epilog="Example: counterfoil world build quads --out world",
)

#: What can be built, and its default size.
_NUMBERS = {
    "quads": 500,
    "choices": 500,
    "statements": 500,
    "gallery": 300,
    "rated": 400,
    "preferences": 400,
    "clips": 399,
    "training": 2000,
}
#: What images may have several captions in.
_WITH_CAPTIONS_EACH = {"gallery"}
#: Default pixels to a side: for people to look at, and for small models to learn from.
_SIZE, _TRAINING_SIZE = 192, 48

Seed = Annotated[int, typer.Option(help="Same seed, same bytes.")]


@app.command(
    epilog="""Examples:
  counterfoil world build quads --n 2000 --out world
  counterfoil world build gallery --n 300 --captions-each 5 --out world-gallery
  counterfoil world build clips --n 90 --size 96 --out world-clips
  counterfoil world build training --kind trohn-img --n 20000 --failure 0.61 --out noisy
  counterfoil world build training --failure 0.61 --precision 0.9 --recall 0.8 --out filtered"""
)
def build(
    what: Annotated[
        str,
        typer.Argument(
            metavar="WHAT", help="quads, choices, statements, gallery, rated, preferences, clips or training."
        ),
    ],
    out: Annotated[Path, typer.Option(help="The folder to write; one built before is replaced.")],
    n: Annotated[
        int | None,
        typer.Option(
            "--n",
            help="How many questions (500, of rated and preferences 400, of clips 399), images of a gallery "
            "(300) or rows to learn from (2000).",
        ),
    ] = None,
    seed: Seed = 0,
    size: Annotated[
        int | None, typer.Option(help="Pixels to a side: 192, of training sets 48.", show_default=False)
    ] = None,
    style: Annotated[
        str | None,
        typer.Option(
            metavar="natural|synthetic|mixed",
            help="How pictures are drawn; mixed, of quads only: the second image of a question synthetic.",
            rich_help_panel="Benchmarks",
        ),
    ] = None,
    captions_each: Annotated[
        int | None,
        typer.Option(help="Captions for each image of a gallery (2).", rich_help_panel="Benchmarks"),
    ] = None,
    kind: Annotated[
        str | None,
        typer.Option(
            metavar="loose|coco|trohn-text|trohn-img|pac",
            help="What a row holds: an image and something true of it; half a contrast; its negative "
            "caption too; and its negative image, as is the default. pac: generated positives.",
            rich_help_panel="Training sets",
        ),
    ] = None,
    failure: Annotated[
        float | None,
        typer.Option(
            help="How often a negative image does not show its caption (of SDXL's, about 0.61 do not).",
            rich_help_panel="Training sets",
        ),
    ] = None,
    precision: Annotated[
        float | None,
        typer.Option(
            help="Filter the rows: how much of what is kept is right.", rich_help_panel="Training sets"
        ),
    ] = None,
    recall: Annotated[
        float | None,
        typer.Option(
            help="Filter the rows: how much of what is right is kept.", rich_help_panel="Training sets"
        ),
    ] = None,
    overwrite: Overwrite = False,
    quiet: Quiet = False,
) -> None:
    """Draw a benchmark, or a training set, and save it in a folder.

    quads: two captions and two images that differ in one thing. choices: an image, its caption and a changed
    one. statements: the same captions, each true or false of its image. gallery: images with captions of
    which it is known exactly which are true of which. For metrics of captions: rated, captions that are right
    by degrees; preferences, two of them for one image; clips, of moving scenes and true of all of it, of a
    part or of nothing. training: Parquet files in the layout of TROHN, a fifth of the rows for validation.
    Training sets and benchmarks share no scene, whatever the
    seeds.
    """
    from counterfoil import terminal
    from counterfoil.cli import paths
    from counterfoil.errors import UnknownNameError
    from counterfoil.world.sample import check_number, check_size

    # A folder that is called like what is built is written, not read.
    paths.not_read(what)
    if what not in _NUMBERS:
        raise UnknownNameError("thing to build", what, _NUMBERS)
    of_training = {"--kind": kind, "--failure": failure, "--precision": precision, "--recall": recall}
    of_benchmarks = {"--style": style, "--captions-each": captions_each}
    _check_options(what, of_benchmarks if what == "training" else of_training)
    if what not in _WITH_CAPTIONS_EACH:
        _check_options(what, {"--captions-each": captions_each})
    amount = _NUMBERS[what] if n is None else n
    check_number(amount, {"gallery": "images", "training": "rows"}.get(what, "questions"))
    pixels = size if size is not None else _TRAINING_SIZE if what == "training" else _SIZE
    check_size(pixels)
    paths.check(folders=[_folder(out, what)])
    with terminal.progress() as report:
        if what == "training":
            rows = _filter_of(precision, recall)
            message = _training(out, amount, kind or "trohn-img", seed, pixels, failure or 0.0, rows, report)
        else:
            message = _benchmark(out, what, amount, seed, pixels, style, captions_each, report)
    if not quiet:
        for line in message:
            terminal.out().print(line, soft_wrap=True)


def _check_options(what: str, options: Mapping[str, object]) -> None:
    """That none of the options is given: they are for something else."""
    from counterfoil.errors import InputError

    given = next((name for name, value in options.items() if value is not None), None)
    if given is not None:
        raise InputError(f"{given} does not go with '{what}'", hint="see 'counterfoil world build --help'")


#: Benchmarks of captions that were judged.
JUDGED = ("rated", "preferences", "clips")

#: The noun for the questions of what was built, and a summary of them.
_ASKED = {
    "gallery": ("query", ""),
    "statements": ("statement", ""),
    "rated": ("caption", " rated"),
    "clips": ("caption", " rated"),
}
#: Positives natural and negatives synthetic, as in BiVLC.
_MIXED = "mixed"


def _folder(out: Path, what: str) -> "Folder":
    """The folder of a benchmark or a training set, to be declared."""
    from counterfoil.benchmarks import folder as benchmarks
    from counterfoil.outputs import Folder
    from counterfoil.world import training as training_files

    if what == "training":
        return Folder(out, (training_files.TRAIN, training_files.VALIDATION), alone=True)
    return Folder(out, benchmarks.FILES, alone=True)


def _benchmark(
    out: Path,
    what: str,
    n: int,
    seed: int,
    size: int,
    style: str | None,
    captions_each: int | None,
    report: "Progress",
) -> list[str]:
    """Draw a benchmark and save it; returns a summary in lines."""
    from counterfoil.benchmarks.folder import save
    from counterfoil.report.forms.recall_curves import right_answers
    from counterfoil.report.labels import amount

    benchmark = _drawn(
        what, n, seed, size, style or "natural", 2 if captions_each is None else captions_each, report
    )
    save(benchmark, out, progress=report)
    unit, more = _ASKED.get(what, ("question", ""))
    right = ""
    if benchmark.questions.directed:
        right = f", {amount(int(right_answers(benchmark.gallery.t2i).sum()), 'true pair')}"
    shown = amount(len(benchmark.images), "clip" if what == "clips" else "picture")
    scorer = "metric:cider" if what in JUDGED else "pixels:colours"
    return [
        f"{amount(len(benchmark), unit)}{more}, {shown}, {amount(len(benchmark.captions), 'caption')}"
        f"{right}: {out}",
        f"measure a scorer on it: counterfoil evaluate {scorer} {out}",
    ]


def _drawn(
    what: str, n: int, seed: int, size: int, style: str, captions_each: int, report: "Progress"
) -> "Benchmark":
    from counterfoil.errors import UnknownNameError
    from counterfoil.world import benchmarks, ratings, sample
    from counterfoil.world.painting import STYLES

    styles = (*STYLES, _MIXED) if what == "quads" else STYLES
    if style not in styles:
        raise UnknownNameError("style", style, styles, where=what)
    if what == "quads":
        both = ("natural", "synthetic") if style == _MIXED else (style, style)
        return sample.quads(n, seed=seed, size=size, styles=both, progress=report)
    if what == "statements":
        return sample.statements(n, seed=seed, size=size, style=style, progress=report)
    if what == "choices":
        return sample.choices(n, seed=seed, size=size, style=style, progress=report)
    judged = {"rated": ratings.rated, "preferences": ratings.preferences, "clips": benchmarks.clips}
    if what in judged:
        return judged[what](n, seed=seed, size=size, style=style, progress=report)
    return benchmarks.gallery(
        n, seed=seed, size=size, captions_each=captions_each, style=style, progress=report
    )


def _filter_of(precision: float | None, recall: float | None) -> "Filter | None":
    """The filter of these rates, None where neither is given; one that is not given is perfect."""
    from counterfoil.world.training import Filter

    if precision is None and recall is None:
        return None
    return Filter(1.0 if precision is None else precision, 1.0 if recall is None else recall)


def _training(
    out: Path,
    n: int,
    kind: str,
    seed: int,
    size: int,
    failure: float,
    rows: "Filter | None",
    report: "Progress",
) -> list[str]:
    """Draw a training set and save it; returns a summary in lines."""
    from counterfoil.world.training import save_training, training

    rows_made = training(n, kind=kind, seed=seed, size=size, failure=failure, keep=rows, progress=report)
    for_training, for_validation = save_training(rows_made, out, progress=report)
    lines = [
        f"{for_training:,} rows to learn from and {for_validation:,} for validation "
        f"({', '.join(rows_made.rows)}): {out}"
    ]
    if kind == "trohn-img":
        wrong = rows_made.groupings["faithful"].count("no")
        lines.append(f"{wrong:,} of {len(rows_made):,} negative images do not show their captions")
    if len(rows_made) < n:
        lines.append(f"the filter kept {len(rows_made):,} of {n:,} rows")
    return lines


#: Kinds of picture a sheet may be, by suffix.
_PICTURES = {".png": "PNG", ".jpg": "JPEG", ".jpeg": "JPEG"}


@app.command(
    epilog="""Examples:
  counterfoil world sheet --out sheet.png
  counterfoil world sheet --each 3 --style natural --size 256 --seed 5 --out sheet.jpg"""
)
def sheet(
    out: Annotated[Path, typer.Option(help="The picture to write: png or jpg.")],
    each: Annotated[int, typer.Option(help="How many pairs of each of the seven kinds of edit.")] = 1,
    seed: Seed = 0,
    size: Annotated[int, typer.Option(help="Pixels to the side of each picture.")] = _SIZE,
    style: Annotated[
        str | None,
        typer.Option(metavar="natural|synthetic", help="Only this one; default: both, side by side."),
    ] = None,
    overwrite: Overwrite = False,
    quiet: Quiet = False,
) -> None:
    """Draw a contact sheet: pairs of pictures with the captions that tell them apart.

    The pairs are the first questions of 'world build quads' under the same seed.
    """
    from io import BytesIO

    from counterfoil import terminal
    from counterfoil.cli import paths
    from counterfoil.errors import InputError, UnknownNameError
    from counterfoil.store import write_bytes
    from counterfoil.world.drawings import contact_sheet
    from counterfoil.world.edits import SUBSETS
    from counterfoil.world.painting import STYLES
    from counterfoil.world.sample import check_number, check_size, contrasts

    kind = _PICTURES.get(out.suffix.lower())
    if kind is None:
        raise InputError(
            "unknown kind of picture", where=out, given=out.suffix or "(no suffix)", allowed=_PICTURES
        )
    if style is not None and style not in STYLES:
        raise UnknownNameError("style", style, STYLES)
    check_number(each, "pairs of each kind")
    check_size(size)
    paths.check(picture=out)
    # The kinds take turns, so as many sevens have as many of each.
    pairs = sorted(contrasts(each * len(SUBSETS), seed=seed), key=lambda pair: SUBSETS.index(pair.subset))
    picture = contact_sheet(pairs, size=size, styles=STYLES if style is None else (style,))
    encoded = BytesIO()
    picture.save(encoded, format=kind)
    write_bytes(out, encoded.getvalue())
    if not quiet:
        terminal.out().print(
            f"{len(pairs)} pairs, {picture.width} x {picture.height} pixels: {out}", soft_wrap=True
        )
