"""The tour of `counterfoil demo`; its page prints the command of every part."""

from collections.abc import Iterator, Mapping
from contextlib import chdir, contextmanager
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter
from typing import Annotated, Any, NamedTuple, Unpack, cast

import numpy as np
import pyarrow as pa

from counterfoil import __version__
from counterfoil.benchmarks import folder as benchmarks
from counterfoil.benchmarks.answers import Scores
from counterfoil.benchmarks.records import FileSource
from counterfoil.errors import InputError, MissingExtraError
from counterfoil.inputs.files import read_json
from counterfoil.inputs.options import with_default
from counterfoil.jobs.build import build_benchmark
from counterfoil.jobs.compare import RunComparison, compare
from counterfoil.jobs.evaluate import evaluate
from counterfoil.jobs.explain import explain
from counterfoil.jobs.job import SILENT, Feedback, feedback_of, ignore, job, option
from counterfoil.jobs.shared_options import OVERWRITE, SEED, Reporting
from counterfoil.jobs.training import train_model
from counterfoil.outputs import each_guarded, guarded, guarded_file
from counterfoil.report import tour_page
from counterfoil.report.build_page import StepSection
from counterfoil.store import check_writable, write_csv, write_json, write_text
from counterfoil.studies.example_files import write_example_files
from counterfoil.world.sample import choices
from counterfoil.world.training import save_training, training

#: The page, and the file that makes a folder that of a tour.
REPORT, MARK = "report.html", "tour.json"
#: What the models are called, and what each is.
MODELS = {
    "pairs": "a network that learned from pictures and captions",
    "negatives": "a network that also learned from wrong captions",
    "blind": "learns from the other questions' captions and sees no picture",
    "people": "simulated people, three answers to each question",
}
_BENCHMARK, _TRAINING, _CAMPAIGN = "benchmark", "training", "campaign"
_ANSWERS, _CAPTIONS = "answers.parquet", "captions.csv"
#: The recipe, the captions of a step, and the folder of each network.
_NETWORKS = {"pairs": ("coco", 64), "negatives": ("trohn-text", 32)}
_MIX = {"able": 0.8, "careless": 0.2}
_LR = 1.5e-3


@dataclass(frozen=True)
class TourSizes:
    """How large the parts of a tour are, which takes about a minute."""

    questions: int = 280
    rows: int = 3000
    steps: int = 200
    people: int = 20
    captions: int = 60
    pixels: int = 128


SIZES = TourSizes()


@dataclass(frozen=True, eq=False)
class Tour:
    """A finished tour: its page, the comparison on it, and what took how many seconds."""

    path: Path
    comparison: RunComparison
    #: By part, in order.
    parts: Mapping[str, float]
    seconds: float


class ExampleFiles(NamedTuple):
    """Small files of every kind that commands read: their folder, and their names in it."""

    folder: Path
    names: tuple[str, ...]


@job(
    examples="""Examples:
  counterfoil demo
  counterfoil demo --seed 3 --out another
  counterfoil demo --files first                 # small files to try every command on, as README does
"""
)
def demo(
    out: Annotated[str | Path, option(flag="--out")] = "demo-report",
    *,
    seed: Annotated[int, with_default(SEED, 0, help="Seed of the networks.", panel="")] = 0,
    files: str | Path | None = None,
    overwrite: Annotated[bool, OVERWRITE] = False,
    **reporting: Unpack[Reporting],
) -> Tour | ExampleFiles:
    """Take a minute's tour of measuring, building, asking, explaining and comparing on a small drawn world.

    The page has a picture, what follows from it and the commands of each; the files of all stay in the
    folder, where the commands run as they are printed. Nothing is downloaded. The last line is the path of
    the page. A demo that was stopped goes on where it was. Raises what `tour` raises.

    Arguments:
        out: The folder.
        files: Only write small example files of every kind to this folder.
    """
    feedback = feedback_of(reporting)
    if files is not None:
        if out != "demo-report":
            raise InputError("--files only writes files: it goes without --out")
        with guarded("demo", overwrite=overwrite):
            return ExampleFiles(Path(files), write_example_files(Path(files), seed=seed))
    return tour(out, seed=seed, overwrite=overwrite, feedback=feedback)


def commands(sizes: TourSizes, seed: int, question: str) -> dict[str, tuple[str, ...]]:
    """The commands of each part, to be run in the tour's folder; `question` is the one that is explained."""
    seeded = f" --seed {seed}" if seed else ""
    mix = ",".join(f"{kind}={share}" for kind, share in _MIX.items())
    measure = [
        f"world build choices --n {sizes.questions} --size {sizes.pixels} --out {_BENCHMARK} --overwrite",
        f"world build training --kind trohn-text --n {sizes.rows} --out {_TRAINING} --overwrite",
    ]
    for name, (recipe, batch) in _NETWORKS.items():
        measure.append(
            f"train {recipe} --model small --data {_TRAINING} --steps {sizes.steps} "
            f"--batch-size {batch} --lr {_LR}{seeded} --out models/{name}"
        )
    for name, (model, more) in _MODELS.items():
        given = "".join(f" --set {key}={value}" for key, value in more.items())
        measure.append(f"evaluate {model} {_BENCHMARK}{given} --out runs/{name}")
    parts = {
        "measure": measure,
        "build": [f"build sugarcrepe --from {_CAPTIONS} --images {_BENCHMARK}/images --out built"],
        "ask": [
            f"annotate create choose --from {_BENCHMARK} --out {_CAMPAIGN} --overwrite",
            f"annotate simulate {_CAMPAIGN} --people {sizes.people} --mix {mix} --out {_ANSWERS} --overwrite",
            f"annotate agreement {_ANSWERS} --campaign {_CAMPAIGN}",
        ],
        "explain": [
            f"explain models/pairs {_BENCHMARK} --questions {question} --html explain.html --overwrite"
        ],
        "compare": ["compare runs/* --html compare.html --overwrite"],
    }
    return {part: tuple(f"counterfoil {line}" for line in lines) for part, lines in parts.items()}


#: The model of each run, and its settings.
_MODELS: Mapping[str, tuple[str, Mapping[str, str]]] = {
    **{name: (f"models/{name}", {}) for name in _NETWORKS},
    "blind": ("blind:learned", {}),
    "people": (f"people:{_ANSWERS}", {"campaign": _CAMPAIGN}),
}


def tour(out: str | Path, *, seed: int = 0, overwrite: bool = False, feedback: Feedback = SILENT) -> Tour:
    """The tour in the folder `out`; one that was stopped begins again but for its trainings, which go on.

    Raises `MissingExtraError` without the extra `demo`, `InputError` where `out` holds something else.
    """
    out = Path(out)
    check_writable(out, folder=True)
    for library in ("torch", "lightning_fabric", "safetensors", "matplotlib", "sqlalchemy", "HanTa"):
        if find_spec(library) is None:
            raise MissingExtraError(library, "demo")
    expected = {"tour": __version__, "seed": seed}
    mark = out / MARK
    previous = read_json(mark) if mark.is_file() else None
    if previous != expected and not overwrite and out.is_dir() and any(out.iterdir()):
        what = "files that are not of a demo" if previous is None else "the demo of another seed or version"
        raise InputError(f"the folder holds {what}", where=out, hint="name a new folder with --out")
    write_json(mark, expected)
    parts = _Making(SIZES, seed, feedback)
    began = perf_counter()
    # As the commands that the page prints are run: names in runs and manifests are the same.
    with chdir(out), each_guarded():
        for part in ("world", "ask", "learn", "measure", "build", "compare", "explain"):
            getattr(parts, part)()
        with feedback.busy("writing the page"):
            page = tour_page.page(
                parts.compared.comparisons[0],
                called=MODELS,
                commands=commands(parts.sizes, seed, parts.question),
                seconds=parts.seconds,
                **parts.shown,
            )
            write_text(Path(REPORT), page)
    return Tour(out / REPORT, parts.compared, parts.seconds, perf_counter() - began)


@dataclass(eq=False)
class _Making:
    """A tour while it is made: each method is a part, and leaves what the page shows of it."""

    sizes: TourSizes
    seed: int
    feedback: Feedback
    seconds: dict[str, float] = field(default_factory=dict)
    #: What the page has of each part.
    shown: dict[str, Any] = field(default_factory=dict)

    @property
    def _alone(self) -> dict[str, Any]:
        """Here and now, with progress alone: what a job notes about itself would say little here."""
        return {"workers": 0, "cache": None, "feedback": replace(self.feedback, note=ignore, remark=ignore)}

    @contextmanager
    def _timed(self, part: str, message: str) -> Iterator[None]:
        began = perf_counter()
        yield
        spent = perf_counter() - began
        self.seconds[part] = self.seconds.get(part, 0.0) + spent
        self.feedback.note(f"{message} ({spent:.0f} s)")

    def world(self) -> None:
        """A benchmark, rows to learn from, and a table of captions."""
        sizes, message = self.sizes, "drew a benchmark and rows to learn from"
        with self._timed("drawing", message), self.feedback.progress() as progress:
            benchmarks.save(
                choices(sizes.questions, size=sizes.pixels, progress=progress), _BENCHMARK, progress=progress
            )
            rows = training(sizes.rows, kind="trohn-text", progress=progress)
            save_training(rows, Path(_TRAINING), progress=progress)
        self.benchmark = benchmarks.load(_BENCHMARK)
        captions, images = self.benchmark.listed.slots()
        shown = [self.benchmark.images[progress].source for progress in images[: sizes.captions, 0]]
        files = [source.path.name for source in shown if isinstance(source, FileSource)]
        texts = [self.benchmark.captions[progress].text for progress in captions[: sizes.captions, 0]]
        write_csv(_CAPTIONS, pa.table({"image": files, "caption": texts}))

    def ask(self) -> None:
        """A campaign about every question, answered by simulated people."""
        from counterfoil.jobs.annotate_create import create_campaign
        from counterfoil.jobs.annotate_judgements import annotate_agreement
        from counterfoil.jobs.annotate_simulate import annotate_simulate

        people = self.sizes.people
        with self._timed("asking", f"asked {people} simulated people"):
            create_campaign("choose", _BENCHMARK, _CAMPAIGN, overwrite=True, feedback=SILENT)
            simulated = annotate_simulate(_CAMPAIGN, people=people, mix=_MIX, feedback=self.feedback)
            with guarded_file(_ANSWERS, command="annotate simulate", overwrite=True):
                simulated.save(_ANSWERS)
            agreement = annotate_agreement(_ANSWERS, campaign=_CAMPAIGN, feedback=SILENT)
            agreed = agreement.to_arrow().to_pylist()[0]
        self.shown["people"] = {
            "people": people,
            "answers": simulated.simulation.counts.answers,
            "labels": [(of.model, of.right, of.low, of.high, of.items) for of in simulated.labels],
            "kinds": [(of.kind, of.worked, of.right, of.flagged) for of in simulated.kinds],
            "raw": agreed["raw"],
            "alpha": (agreed["alpha"], agreed["alpha_low"], agreed["alpha_high"]),
        }

    def learn(self) -> None:
        for name, (recipe, batch) in _NETWORKS.items():
            with self._timed("training", f"trained the network '{name}'"):
                how: dict[str, Any] = {"out": Path("models", name), "seed": self.seed, "batch_size": batch}
                how |= {"steps": self.sizes.steps, "lr": _LR}
                train_model(recipe, "small", Path(_TRAINING), **how, **self._alone)

    def measure(self) -> None:
        with self._timed("measuring", f"measured {len(MODELS)} models"):
            for name, (model, settings) in _MODELS.items():
                evaluate(model, _BENCHMARK, out=Path("runs", name), settings=settings, **self._alone)

    def build(self) -> None:
        """Negatives for the captions of a table."""
        settings = {"read.source": _CAPTIONS, "read.images": f"{_BENCHMARK}/images"}
        with self._timed("building", "built negatives for captions"):
            built = build_benchmark("sugarcrepe", Path("built"), settings=settings, **self._alone)
        folders = built.build.folders
        steps = [
            StepSection(record.label, "", record.rows_in, record.rows_out, record.dropped, {}, record.facts)
            for record in built.build.records
        ]
        self.shown |= {
            "n_captions": self.sizes.captions,
            "steps": steps,
            "kept_rows": folders[-1].rows().slice(0, 200).to_pylist(),
            "dropped_rows": [r for folder in folders for r in folder.dropped().slice(0, 200).to_pylist()],
        }

    def compare(self) -> None:
        with self._timed("comparing", "compared them"):
            runs = [Path("runs", name) for name in sorted(MODELS)]
            comparison = compare(runs, feedback=self._alone["feedback"])
            self.compared = comparison.with_images(data=Path(_BENCHMARK))
            self.compared.to_html("compare.html", overwrite=True)

    def explain(self) -> None:
        """Of what the network gets wrong and people right the widest margin, first where words differ."""
        runs = {run.name: run for run in self.compared.comparisons[0].runs}
        scores = cast(Scores, runs["pairs"].answers).scores
        lead = scores[:, 1] - scores[:, 0]
        wanted = (lead > 0) & (runs["people"].items[self.benchmark.card.measures[0]] > 0.5)
        captions, _ = self.benchmark.listed.slots()
        words = [sorted((self.benchmark.captions[i].text or "").split()) for i in captions.ravel()]
        differ = np.array([one != other for one, other in zip(words[::2], words[1::2], strict=True)])
        self.question = self.benchmark.questions.ids[int(np.lexsort((lead, differ, wanted))[-1])]
        with self._timed("explaining", "explained one wrong answer"):
            explanation = explain("models/pairs", _BENCHMARK, questions=[self.question], **self._alone)
            explanation.to_html("explain.html", overwrite=True)
        self.shown["explained"] = explanation.questions[0]
