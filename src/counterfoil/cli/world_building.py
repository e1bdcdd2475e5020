"""Jobs of `world build`: a benchmark or a training set drawn, saved and summarised."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from counterfoil.outputs.guard import Folder
from counterfoil.report.labels import amount

if TYPE_CHECKING:
    from counterfoil.data.benchmark import Benchmark
    from counterfoil.engine.plan import Progress
    from counterfoil.world.training import Filter

#: Benchmarks of captions that were judged.
JUDGED = ("rated", "preferences", "clips")

#: What questions are called in what was built, and what is said of them.
_ASKED = {"gallery": ("query", ""), "rated": ("caption", " rated"), "clips": ("caption", " rated")}
#: Positives natural and negatives synthetic, as in BiVLC.
_MIXED = "mixed"


def folder(out: Path, what: str) -> Folder:
    """The folder of a benchmark or a training set, to be declared."""
    from counterfoil.data import folder as benchmarks
    from counterfoil.world import training as training_files

    if what == "training":
        return Folder(
            out, (training_files.TRAIN, training_files.VALIDATION), training_files.why_foreign, alone=True
        )
    return Folder(out, benchmarks.FILES, partial(benchmarks.why_foreign, name=f"world-{what}"), alone=True)


def benchmark(
    out: Path,
    what: str,
    n: int,
    seed: int,
    size: int,
    style: str | None,
    captions_each: int | None,
    report: "Progress",
) -> list[str]:
    """Draw a benchmark and save it; what came of it, in lines."""
    from counterfoil.data.folder import check_target, save
    from counterfoil.report.forms.recall_curves import right_answers

    check_target(out)
    made = _drawn(
        what, n, seed, size, style or "natural", 2 if captions_each is None else captions_each, report
    )
    save(made, out, progress=report)
    asked, more = _ASKED.get(what, ("question", ""))
    right = ""
    if made.questions.directed:
        right = f", {amount(int(right_answers(made.gallery.t2i).sum()), 'true pair')}"
    shown = amount(len(made.images), "clip" if what == "clips" else "picture")
    scorer = "metric:cider" if what in JUDGED else "pixels:colours"
    return [
        f"{amount(len(made), asked)}{more}, {shown}, {amount(len(made.captions), 'caption')}{right}: {out}",
        f"measure a scorer on it: counterfoil evaluate {scorer} {out}",
    ]


def _drawn(
    what: str, n: int, seed: int, size: int, style: str, captions_each: int, report: "Progress"
) -> "Benchmark":
    from counterfoil.errors import UnknownNameError
    from counterfoil.world import galleries, ratings, sample, video_benchmark
    from counterfoil.world.render import STYLES

    styles = (*STYLES, _MIXED) if what == "quads" else STYLES
    if style not in styles:
        raise UnknownNameError("style", style, styles, where=what)
    if what == "quads":
        both = ("natural", "synthetic") if style == _MIXED else (style, style)
        return sample.quads(n, seed=seed, size=size, styles=both, progress=report)
    if what == "choices":
        return sample.choices(n, seed=seed, size=size, style=style, progress=report)
    judged = {"rated": ratings.rated, "preferences": ratings.preferences, "clips": video_benchmark.clips}
    if what in judged:
        return judged[what](n, seed=seed, size=size, style=style, progress=report)
    return galleries.gallery(
        n, seed=seed, size=size, captions_each=captions_each, style=style, progress=report
    )


def filter_of(precision: float | None, recall: float | None) -> "Filter | None":
    """The filter of these rates, None where neither is given; one that is not given is perfect."""
    from counterfoil.world.training import Filter

    if precision is None and recall is None:
        return None
    return Filter(1.0 if precision is None else precision, 1.0 if recall is None else recall)


def training(
    out: Path,
    n: int,
    kind: str,
    seed: int,
    size: int,
    failure: float,
    rows: "Filter | None",
    report: "Progress",
) -> list[str]:
    """Draw a training set and save it; what came of it, in lines."""
    from counterfoil.world.training import check_folder, save_training, training

    check_folder(out)
    made = training(n, kind=kind, seed=seed, size=size, failure=failure, keep=rows, progress=report)
    for_training, for_validation = save_training(made, out, progress=report)
    said = [
        f"{for_training:,} rows to learn from and {for_validation:,} for validation "
        f"({', '.join(made.rows)}): {out}"
    ]
    if kind == "trohn-img":
        wrong = made.groupings["faithful"].count("no")
        said.append(f"{wrong:,} of {len(made):,} negative images do not show their captions")
    if len(made) < n:
        said.append(f"the filter kept {len(made):,} of {n:,} rows")
    return said
