"""Benchmarks and training sets of the drawn world, in folders."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, Unpack

from counterfoil.benchmarks import folder as benchmark_folders
from counterfoil.benchmarks.benchmark import Benchmark
from counterfoil.errors import InputError
from counterfoil.inputs.limits import most
from counterfoil.inputs.options import Option, with_default
from counterfoil.jobs.job import feedback_of, job, option
from counterfoil.jobs.shared_options import SEED, Reporting
from counterfoil.outputs import Folder, guarded
from counterfoil.report.forms.gallery import right_answers
from counterfoil.report.tables import amount
from counterfoil.store import check_writable
from counterfoil.world import benchmarks, ratings, sample
from counterfoil.world.training import TRAIN, VALIDATION, save_training, training


class _Kind(NamedTuple):
    """What can be built: its default size, how it is drawn in one style, and how a summary counts it."""

    number: int
    draw: Callable[..., Benchmark] | None = None
    noun: str = "question"
    rated: str = ""
    model: str = "pixels:colours"
    #: How many captions an image has, where they may be chosen.
    captions_each: int | None = None


_KINDS = {
    "quads": _Kind(500),
    "choices": _Kind(500, sample.choices),
    "statements": _Kind(500, sample.statements, "statement"),
    "gallery": _Kind(300, benchmarks.gallery, "query", captions_each=2),
    "rated": _Kind(400, ratings.rated, "caption", " rated", "metric:cider"),
    "preferences": _Kind(400, ratings.preferences, model="metric:cider"),
    "training": _Kind(2000),
}
_What = Literal["quads", "choices", "statements", "gallery", "rated", "preferences", "training"]
#: Default pixels to a side: for people to look at, and for small models to learn from.
_SIZE, _TRAINING_SIZE = 192, 48
_SAME = with_default(SEED, 0, help="Same seed, same bytes.", panel="")
_PIXELS = Option("", None, low=sample.SMALLEST, high=most("size"))


@dataclass(frozen=True)
class Drawn:
    """What was drawn: the folder, and what it holds in lines."""

    path: Path
    lines: tuple[str, ...]


@job(
    examples="""Examples:
  counterfoil world build quads --n 2000 --out world
  counterfoil world build gallery --n 300 --captions-each 5 --out world-gallery
  counterfoil world build training --kind trohn-img --n 20000 --failure 0.61 --out noisy"""
)
def build_world(
    what: Annotated[_What, option(metavar="WHAT")],
    out: Annotated[Path, option(flag="--out")],
    *,
    n: Annotated[int | None, option(low=1, high=most("items"))] = None,
    seed: Annotated[int, _SAME] = 0,
    size: Annotated[
        int | None, with_default(_PIXELS, None, help="Side of an image in pixels: 192, in training sets 48.")
    ] = None,
    style: Annotated[str | None, option(metavar="natural|synthetic|mixed")] = None,
    captions_each: Annotated[int | None, option(low=1, high=most("captions of each image"))] = None,
    kind: Literal["loose", "coco", "trohn-text", "trohn-img", "pac"] | None = None,
    failure: Annotated[float | None, option(low=0, high=1)] = None,
    overwrite: bool = False,
    **reporting: Unpack[Reporting],
) -> Drawn:
    """Draw a benchmark, or a training set, and save it in a folder.

    quads: two captions and two images that differ in one thing. choices: an image, its caption and a changed
    one. statements: the same captions, each true or false of its image. gallery: images and captions with
    every right pair known. For caption metrics: rated, captions that are right by degrees; preferences, two
    of them per image. training: Parquet files in TROHN's layout, a fifth of the rows for validation. Training
    sets and benchmarks share no scene, whatever the seeds.

    Raises `InputError` for an argument that is of something else to build, and where `out` holds files.

    Arguments:
        what: quads, choices, statements, gallery, rated, preferences or training.
        out: The folder to write; one built before is replaced.
        n: Number of questions (500; rated and preferences 400), images of a gallery (300) or training
            rows (2000).

    Benchmarks:
        style: Style of the images; mixed (quads only) makes the second image of a question synthetic.
        captions_each: Captions per image of a gallery (2).

    Training sets:
        kind: loose and coco: images and captions; trohn-text: negative captions too; trohn-img (the default):
            negative images too; pac: images and captions made by a machine too.
        failure: Share of negative images that do not show their caption (of SDXL's, about 0.61).
    """
    of_training = {"--kind": kind, "--failure": failure}
    foreign: dict[str, Any] = {"--style": style} if what == "training" else of_training
    kind_of = _KINDS[what]
    foreign |= {} if kind_of.captions_each else {"--captions-each": captions_each}
    for flag, value in foreign.items():
        if value is not None:
            raise InputError(f"{flag} does not go with '{what}'", hint="see 'counterfoil world build --help'")
    number = kind_of.number if n is None else n
    guard = guarded("world build", overwrite=overwrite)
    with guard as outputs, feedback_of(reporting).progress() as progress:
        check_writable(out, folder=True)
        names = (TRAIN, VALIDATION) if what == "training" else benchmark_folders.FILES
        outputs.folder(Folder(out, names, alone=True))
        if what == "training":
            drawing: dict[str, Any] = {"seed": seed, "size": size or _TRAINING_SIZE, "progress": progress}
            rows = training(number, kind=kind or "trohn-img", failure=failure or 0.0, **drawing)
            learn, held = save_training(rows, out, progress=progress)
            columns = ", ".join(rows.rows)
            lines = [f"{learn:,} rows to learn from and {held:,} for validation ({columns}): {out}"]
            if kind in (None, "trohn-img"):
                right = len(rows) - rows.groupings["faithful"].count("no")
                lines.append(f"{right:,} of {len(rows):,} negative images show what their captions say")
            return Drawn(out, tuple(lines))
        style = style or "natural"
        drawing = {"seed": seed, "size": size or _SIZE, "progress": progress}
        if what == "quads":
            # Positives natural and negatives synthetic, as in BiVLC.
            both = ("natural", "synthetic") if style == "mixed" else (style, style)
            benchmark = sample.quads(number, styles=both, **drawing)
        else:
            assert kind_of.draw is not None
            if kind_of.captions_each:
                drawing["captions_each"] = captions_each or kind_of.captions_each
            benchmark = kind_of.draw(number, style=style, **drawing)
        benchmark_folders.save(benchmark, out, progress=progress)
    counts = [amount(len(benchmark), kind_of.noun) + kind_of.rated, amount(len(benchmark.images), "picture")]
    counts.append(amount(len(benchmark.captions), "caption"))
    if benchmark.questions.directed:
        counts.append(amount(int(right_answers(benchmark.gallery.t2i).sum()), "true pair"))
    measured = f"measure a model on it: counterfoil evaluate {kind_of.model} {out}"
    return Drawn(out, (f"{', '.join(counts)}: {out}", measured))
