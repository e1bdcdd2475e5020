"""The trainings and evaluations of a study."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from counterfoil.benchmarks.answers import Answers
from counterfoil.benchmarks.benchmark import Benchmark
from counterfoil.benchmarks.training_rows import TrainingSet
from counterfoil.engine.deduplicate import Progress, silent
from counterfoil.engine.run import run
from counterfoil.engine.session import Session
from counterfoil.evaluation.evaluate import evaluate
from counterfoil.evaluation.run import Run, save_run
from counterfoil.models import checkpoint
from counterfoil.models.base import Options, abilities
from counterfoil.report.study_page import TrainingSummary
from counterfoil.studies.plan import Plan
from counterfoil.world.benchmarks import gallery
from counterfoil.world.painting import STYLES
from counterfoil.world.sample import benchmark as questions_of
from counterfoil.world.sample import choices, contrasts, quads
from counterfoil.world.training import training

if TYPE_CHECKING:
    from counterfoil.models.networks import Backbone

#: The benchmarks of questions, by name.
QUADS, CHOICES = "world-quads", "world-choices"
#: The control: the same quads with both pictures in one style, so that style carries no information.
ALIKE = "world-quads-alike"

#: Draws of the bootstrap behind the intervals of single runs; findings draw more.
DRAWS = 2_000


@dataclass(frozen=True, eq=False)
class EvaluationRuns:
    """The benchmarks of a study, and the folder in which its runs are kept as RUNS/MODEL-SEED/BENCHMARK."""

    benchmarks: tuple[Benchmark, ...]
    runs: Path
    #: How a run came about, from its benchmark and its scorer: what the manifest of every run says.
    facts: Callable[[Benchmark, Any], Mapping[str, Any]]
    progress: Progress = silent

    def measure(self, name: str, folder: Path, *, only: Collection[str] = ()) -> list[Run]:
        """The runs of one checkpoint on the benchmarks, or on those that are named.

        A detector of styles is not asked the control, in which there is nothing to detect.
        """
        scorer = checkpoint.load(str(folder), Options(device="cpu"))
        runs = []
        for benchmark in self.benchmarks:
            unasked = benchmark.name == ALIKE and "classifies" in abilities(scorer)
            if not unasked and (not only or benchmark.name in only):
                given = run(benchmark, scorer, session=Session(batch_size=256, progress=self.progress))
                out = self.runs / folder.name / benchmark.name
                runs.append(keep_run(out, name, benchmark, given, self.facts(benchmark, scorer)))
        return runs


def keep_run(
    folder: Path,
    name: str,
    benchmark: Benchmark,
    answers: Answers,
    facts: Mapping[str, Any],
    *,
    draws: int = DRAWS,
) -> Run:
    """Evaluate the answers of the model `name`, and keep the run in `folder` with the `facts` about it."""
    provenance = {key: facts[key] for key in ("benchmark", "scorer", "versions") if key in facts}
    result = evaluate(benchmark, answers, scorer=name, draws=draws, provenance=provenance)
    return save_run(folder, benchmark, answers, result, dict(facts))


def world(plan: Plan) -> tuple[Benchmark, ...]:
    """Quads in both styles and in one, choices and a gallery, drawn when read, as the networks see them."""
    questions, size = contrasts(plan.questions), plan.size
    control = questions_of(questions, size=size, styles=("natural", "natural"), lazy=True)
    card = control.card.model_copy(update={"name": ALIKE, "title": "World, quads in one style"})
    return (
        questions_of(questions, size=size, styles=("natural", "synthetic"), lazy=True),
        replace(control, card=card),
        choices(plan.questions, size=size, lazy=True),
        gallery(plan.images, size=size, lazy=True),
    )


#: The trainings with a curriculum, over the same rows, and what each learns from.
TUNED = ("coco", "trohn-text", "trohn-img")
LEARNED = {
    "pretrained": "loose captions",
    "coco": "pictures and captions",
    "trohn-text": "the same, and hard-negative captions",
    "trohn-img": "the same, and the pictures that those describe",
    "pac": "pictures and captions, and generated ones",
}
#: Kinds of edit that change relations or swap things or attributes: a training begins with those.
FIRST = ("replace_rel", "swap_obj", "swap_att")
#: A stream of questions that no benchmark takes its own from.
_WATCHED = 1_000_003


@dataclass(frozen=True, eq=False)
class TrainingRuns:
    """Where the networks of one study are made: `folder/NAME-SEED` is the checkpoint of each."""

    plan: Plan
    folder: Path
    progress: Progress = silent

    @cached_property
    def loose(self) -> TrainingSet:
        """Pictures in either style, and captions that say something true of them."""
        return training(
            self.plan.loose, kind="loose", size=self.plan.size, styles=STYLES, progress=self.progress
        )

    @cached_property
    def contrasts(self) -> TrainingSet:
        """Qrels, hard-negative captions and hard-negative pictures, all as they should be."""
        return training(self.plan.contrasts, kind="trohn-img", size=self.plan.size, progress=self.progress)

    @cached_property
    def watched(self) -> Benchmark:
        """Questions that are asked during training, for its curves; none of them is asked later."""
        return quads(self.plan.watched, seed=_WATCHED, size=self.plan.size, styles=("natural", "synthetic"))

    def place(self, name: str, seed: int) -> Path:
        """The checkpoint's folder of one network."""
        return self.folder / f"{name}-{seed}"

    @cached_property
    def captions(self) -> list[str]:
        """What the vocabulary of every network is made of."""
        return [caption.text or "" for data in (self.loose, self.contrasts) for caption in data.captions]

    def untrained(self, seed: int) -> "Backbone":
        """The random weights at which all trainings of that seed begin."""
        from counterfoil.models import small

        return small.backbone(self.captions, sizes=small.Sizes(picture=self.plan.size), seed=seed)

    def pretrained(self, seed: int) -> TrainingSummary:
        """A network from scratch, trained on loose captions alone."""
        return self._fit(self.untrained(seed), "pretrained", "pretrained", self.loose, seed)

    @cached_property
    def generated(self) -> TrainingSet:
        """Loose captions, and what machines make of them."""
        return training(
            self.plan.generated, kind="pac", size=self.plan.size, styles=STYLES, progress=self.progress
        )

    def tuned(self, name: str, seed: int) -> TrainingSummary:
        """A network from scratch, trained as the recipe `name` says, with a curriculum.

        First on the rows of relations and swaps, then on all: among all edits those are learned last, and
        hardly at all in few steps.
        """
        data, backbone = self.contrasts, self.untrained(seed)
        rows = np.flatnonzero(np.isin(data.groupings["subset"], FIRST))
        before = self._fit(backbone, f"{name}-first", name, data.select(rows), seed, first=True)
        after = self._fit(backbone, name, name, data, seed)
        later = tuple({**line, "step": line["step"] + before.steps} for line in after.history)
        return replace(
            after,
            steps=before.steps + after.steps,
            seconds=before.seconds + after.seconds,
            history=(*before.history, *later),
        )

    def augmented(self, name: str, seed: int, *, on: str) -> TrainingSummary:
        """The network `on` of that seed with its projections trained on generated positives (PAC-S)."""
        return self._fit(checkpoint.read(self.place(on, seed)), name, "pac", self.generated, seed)

    def detectors(self, name: str, seed: int, *, on: str) -> Path:
        """Detectors of what is synthetic on the frozen network `on`, from the same rows."""
        from counterfoil.train import detectors
        from counterfoil.train.recipes import Detection

        # The released code's learning rate (the paper's would take a hundred times as long).
        recipe = Detection(lr=1e-3, seed=seed)
        backbone = checkpoint.read(self.place(on, seed))
        detectors.fit(backbone, recipe, self.contrasts, out=self.place(name, seed))
        return self.place(name, seed)

    def _fit(
        self,
        backbone: "Backbone",
        name: str,
        recipe: str,
        data: TrainingSet,
        seed: int,
        *,
        first: bool = False,
    ) -> TrainingSummary:
        from counterfoil.train.loop import fit
        from counterfoil.train.saving import Monitors
        from counterfoil.train.validation import accuracy

        fitted = fit(
            backbone,
            (self.plan.first if first else self.plan.recipe)(recipe, seed=seed),
            data,
            monitors=Monitors(validate=lambda network: {"group": accuracy(network, self.watched)}),
            out=self.place(name, seed),
            progress=lambda stage, done, total: self.progress(f"{stage} {name}", done, total),
        )
        summary = name, LEARNED[recipe], len(data), fitted.step, fitted.seconds
        return TrainingSummary(*summary, history=fitted.history)
