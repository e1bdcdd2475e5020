"""Retraining of the models of a pool on the pairs that were found right, by a recipe or by a command.

    retrained/ROUND-KEY/       what came after a round: KEY names the pairs, and the recipe or the command
      positives.csv            the pairs, as a command gets them
      1-NAME/                  the checkpoint of the first model by a recipe, and its run in 1-NAME/run
      lists/                   the lists that a command wrote; `done` beside them says that it ended well

Equal pairs trained in the same way are in the same folder: a pooling that is run again goes on in it, and
takes what was finished there.
"""

import re
import shlex
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from counterfoil import catalog
from counterfoil.data.benchmark import Benchmark
from counterfoil.data.training_files import split
from counterfoil.data.training_rows import TrainingSet
from counterfoil.engine.retrieve import rank_galleries
from counterfoil.errors import DataError, InputError
from counterfoil.evaluation.evaluate import evaluate
from counterfoil.evaluation.result import Run
from counterfoil.evaluation.run import save_run
from counterfoil.scorers.base import Options, identity_of
from counterfoil.scorers.registry import KINDS
from counterfoil.store import digest_value, write_csv, write_text
from counterfoil.tasks import training_inputs as inputs
from counterfoil.tasks.evaluation_inputs import whereabouts, whole_benchmark
from counterfoil.tasks.feedback import SILENT, Feedback
from counterfoil.tasks.model_lists import gallery_runs, list_files
from counterfoil.tasks.pool_judges import RoundOptions
from counterfoil.tasks.training import Training
from counterfoil.train.recipes import Detection, Recipe, read_file

#: The folder beside the rounds' tables.
RETRAINED = "retrained"
#: How the folders in it are called: a round and a key.
_PLACE = re.compile(r"\d+-[0-9a-f]{12}")
#: Draws behind the intervals of the runs of retrained models.
_DRAWS = 1_000
#: Columns that judged pairs have.
_GIVEN = ("image", "caption")

_Source = Run | str | Path


@dataclass(frozen=True, eq=False, kw_only=True)
class RecipeRetraining:
    """The models that can be trained, each from its own weights by a recipe; the others keep their lists.

    Called with the right pairs so far it gives a run of each trained model over the same gallery, as deep as
    its first list, and the other sources as they were. Every training starts from the weights that the run
    was made with, on all pairs so far that match fully (a gain of 1), a fifth of which decide which weights
    are kept, as in `train`.
    """

    recipe: Recipe
    #: By the model's name: the run that it had at first, and what it starts from.
    trained: Mapping[str, tuple[Run, str]]
    others: Sequence[_Source]
    gallery: Benchmark
    folder: Path
    options: RoundOptions = field(default_factory=RoundOptions)
    feedback: Feedback = SILENT

    @classmethod
    def of(
        cls,
        sources: Sequence[_Source],
        recipe: str | Path | Recipe,
        folder: Path,
        *,
        settings: Sequence[str] = (),
        start: Mapping[str, str] | None = None,
        options: RoundOptions | None = None,
        feedback: Feedback = SILENT,
    ) -> "RecipeRetraining":
        """The retraining of the runs among `sources`, checked before anything is judged.

        A run starts from the model that it names, or from that of `start` by its name. `settings` are fields
        of the recipe as KEY=VALUE; trainings go to a part of `folder`.

        Raises `InputError` where no model can be trained, and for recipes that need more than pairs;
        `DataError` where weights are not those of the run, and where pictures are not at hand.
        """
        options = options or RoundOptions()
        chosen = inputs.recipe_with(
            recipe if isinstance(recipe, Recipe) else read_file(recipe).recipe, {}, settings
        )
        lacking = [role for stage in chosen.staged() for role in stage.needs if role not in _GIVEN]
        if lacking or isinstance(chosen, Detection):
            raise InputError(
                "the recipe cannot train on judged pairs",
                where="--retrain",
                given=f"{chosen.name}, which needs {', '.join(dict.fromkeys(lacking)) or 'negative pairs'}",
                allowed="a recipe of images and captions alone, such as coco or pcme",
            )
        runs = gallery_runs(sources, widest=True)
        asked = dict(start or {})
        unknown = [name for name in asked if name not in {run.name for run in runs}]
        if unknown:
            raise InputError(
                "no such run", where="--start", given=unknown[0], allowed=[run.name for run in runs]
            )
        first = {run.name: asked.get(run.name) or _model_of(run) for run in runs}
        trained = {run.name: (run, model) for run in runs if (model := first[run.name])}
        if not trained:
            raise InputError(
                "no model can be trained",
                where="--retrain",
                given=", ".join([*first, *(path.stem for path in list_files(sources))]),
                allowed="runs of a checkpoint's folder, open-clip:... or hf:...",
                hint="name what a run starts from with --start NAME=MODEL, or train with --retrain-command",
            )
        for run, model in trained.values():
            if run.name not in asked:
                _check_weights(run, model)
            elif model not in inputs.SCRATCH:
                inputs.network(model, allowed=inputs.MISSING["model"].removeprefix("name "))
        others: list[_Source] = [run for run in runs if run.name not in trained]
        return cls(
            recipe=chosen,
            trained=trained,
            others=[*others, *list_files(sources)],
            gallery=gallery_of([run for run, _ in trained.values()], options.data, options.images),
            folder=folder / RETRAINED,
            options=options,
            feedback=feedback,
        )

    def __call__(self, positives: pa.Table) -> Sequence[_Source]:
        """New runs of the trained models, and the other sources; raises `InputError` for too few pairs."""
        rows = self._rows(positives)
        least = max(stage.batch_size * stage.accumulate for stage in self.recipe.staged())
        training, held = split(rows) if len(rows) > 1 else (rows, None)
        if len(training) < least:
            raise InputError(
                "too few pairs were found to train on",
                where=f"--retrain {self.recipe.name}",
                given=f"{len(rows):,} right pairs, of which {len(training):,} train",
                allowed=f"{least:,}, the rows of one step",
                hint="choose a smaller batch with --set batch_size=N, or judge more with a larger --k",
            )
        models = {name: model for name, (_, model) in self.trained.items()}
        made_by = {"recipe": asdict(self.recipe), "models": models, "gallery": self.gallery.digest}
        place = _place(self.folder, positives, made_by)
        found = []
        for at, (name, (run, model)) in enumerate(self.trained.items(), 1):
            self.feedback.note(f"{name}: trained again from {model} on {len(rows):,} right pairs")
            own = place / f"{at}-{re.sub(r'[^A-Za-z0-9_.-]+', '-', name)}"
            data = inputs.Data(training, held, "")
            options = inputs.TrainOptions(
                model=model, out=own, device=self.options.device, workers=self.options.workers
            )
            backbone = inputs.model(model, training, self.recipe)
            stages = inputs.stages(self.recipe, backbone, len(training))
            Training(self.recipe, options, data, backbone, stages, None).run(feedback=self.feedback)
            with self.feedback.busy(f"ranking the gallery by {name}"):
                found.append(self._ranked(run, own))
        return [*found, *self.others]

    def _rows(self, positives: pa.Table) -> TrainingSet:
        image = {each.id: at for at, each in enumerate(self.gallery.images)}
        caption = {each.id: at for at, each in enumerate(self.gallery.captions)}
        found = positives.select(["image", "caption", "gain"]).to_pylist()
        pairs = sorted((image[p["image"]], caption[p["caption"]]) for p in found if p["gain"] >= 1)
        both = np.array(pairs, dtype=np.int64).reshape(-1, 2)
        rows = {"image": both[:, 0], "caption": both[:, 1]}
        return TrainingSet("pairs found right", self.gallery.images, self.gallery.captions, rows)

    def _ranked(self, run: Run, checkpoint: Path) -> Run:
        asked = run.answers.rankings
        depth = max(asked.i2t.top.shape[1], asked.t2i.top.shape[1])
        scorer = catalog.scorer(f"ckpt:{checkpoint}", Options(device=self.options.device))
        session = self.options.session(self.feedback)
        answers = rank_galleries([self.gallery], scorer, top=depth, session=session)[0]
        result = evaluate(self.gallery, answers, scorer=run.name, draws=_DRAWS)
        facts = {"asked": run.name, "named": True}
        return save_run(checkpoint / "run", self.gallery, answers, result, facts)


@dataclass(frozen=True)
class CommandRetraining:
    """A command of one's own, run after each round; it writes new lists of the models into a folder.

    In the command `{positives}` stands for a table of the right pairs so far (image, caption, gain, round)
    and `{out}` for the folder, which gets run folders, embeddings (.npz) or similarities (.npy) called as the
    models are. A model of which nothing is written keeps its list. It is no line of a shell; one is
    `sh -c '...'`.
    """

    command: str
    sources: Sequence[_Source]
    folder: Path
    feedback: Feedback = SILENT

    def __post_init__(self) -> None:
        if "{out}" not in self.command:
            raise InputError(
                "the command does not say where it writes new lists",
                where="--retrain-command",
                given=self.command,
                allowed="a command with {out}, and {positives} for the table of right pairs",
            )
        try:
            shlex.split(self.command)
        except ValueError as error:
            raise InputError(
                "not a command", where="--retrain-command", given=f"{self.command} ({error})"
            ) from None

    def __call__(self, positives: pa.Table) -> Sequence[_Source]:
        """The lists that the command wrote, and the sources of the models that it left out.

        Raises `InputError` where the command cannot be run, fails or writes no list.
        """
        place = _place(self.folder / RETRAINED, positives, {"command": self.command})
        lists, done = place / "lists", place / "done"
        if done.exists():
            self.feedback.note(f"{lists}: finished by this command on these pairs before, and read again")
        else:
            self._run(place / "positives.csv", lists, positives)
        made: list[_Source] = [*sorted(lists.glob("*.np[yz]"))]
        if any(lists.rglob("members.parquet")):
            made += gallery_runs([lists], widest=True)
        if not made:
            raise InputError(
                "the command wrote no list",
                where=lists,
                given=", ".join(sorted(each.name for each in lists.iterdir())[:3]),
                allowed="run folders, embeddings (.npz) or similarities (.npy)",
            )
        write_text(done, "")
        new = {_name(each) for each in made}
        kept: list[_Source] = [*gallery_runs(self.sources, widest=True), *list_files(self.sources)]
        return [*made, *(each for each in kept if _name(each) not in new)]

    def _run(self, table: Path, lists: Path, positives: pa.Table) -> None:
        write_csv(table, positives)
        lists.mkdir(parents=True, exist_ok=True)
        stands = {"{positives}": str(table), "{out}": str(lists)}
        words = [
            re.sub(r"\{positives\}|\{out\}", lambda found: stands[found[0]], word)
            for word in shlex.split(self.command)
        ]
        self.feedback.note(f"running {shlex.join(words)}")
        try:
            # What it prints is no result of ours.
            ended = subprocess.run(words, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
        except OSError as error:
            wrong = f"the command cannot be run: {error.strerror or error}"
        else:
            if not ended.returncode and any(lists.iterdir()):
                return
            wrong = f"the command failed with exit code {ended.returncode}"
            wrong = wrong if ended.returncode else "the command wrote no list"
        _emptied(table, lists)
        raise InputError(
            wrong,
            where="--retrain-command",
            given=self.command,
            allowed="one that writes run folders, embeddings (.npz) or similarities (.npy) into {out}",
        )


def _emptied(table: Path, lists: Path) -> None:
    """Take away what was made for a command that failed; what it wrote itself stays."""
    table.unlink()
    with suppress(OSError):
        for folder in (lists, *list(lists.parents)[:3]):
            folder.rmdir()


def is_retrained(folder: Path) -> bool:
    """Whether all that lies in the folder's part for retrained models was put there between rounds."""
    place = folder / RETRAINED
    return place.is_dir() and all(_PLACE.fullmatch(each.name) for each in place.iterdir())


def gallery_of(runs: Sequence[Run], data: Path | None, images: Path | None) -> Benchmark:
    """The gallery that runs were asked, with its pictures, from `data` or from where the runs say it lies.

    Raises `DataError` where it is another one, and where it or its pictures are not at hand.
    """
    asked = runs[0].benchmark
    place, folder = whereabouts(runs[0])
    found = whole_benchmark(asked.name, data or place, images or folder)
    if found is None or not found.images_at_hand:
        raise DataError(
            "the pictures of the gallery are not at hand",
            where=asked.name,
            hint="name the folder of the benchmark with --data, and that of its images with --images",
        )
    other = next((run for run in runs if run.benchmark.digest != found.digest), None)
    if other is not None:
        raise DataError(
            "not the gallery that the run was asked",
            where=other.name,
            given=str(found.path or found.name),
            hint="name the right one with --data",
        )
    return found


def _model_of(run: Run) -> str | None:
    """What names the model behind a run where it can be trained, else None."""
    name = str((run.manifest.get("scorer") or {}).get("name", ""))
    kind = name.partition(":")[0]
    return name if kind in ("ckpt", *KINDS) else None


def _check_weights(run: Run, model: str) -> None:
    known = run.manifest["scorer"].get("weights")
    now = identity_of(catalog.scorer(model, Options(device="cpu"))).weights
    if known and now and known != now:
        raise DataError(
            "the model has other weights than the run was made with",
            where=run.name,
            given=model,
            hint=f"evaluate it again, or name what to start from with --start {run.name}=MODEL",
        )


def _name(source: _Source) -> str:
    return source.name if isinstance(source, Run) else Path(source).stem


def _place(folder: Path, positives: pa.Table, made_by: Mapping[str, Any]) -> Path:
    """The folder of what is trained on these pairs in this way."""
    if not len(positives):
        raise InputError("no pair was found right, so that nothing can be trained on", where="--retrain")
    pairs = sorted(zip(positives["image"].to_pylist(), positives["caption"].to_pylist(), strict=True))
    key = digest_value([pairs, positives["gain"].to_pylist(), made_by])[:12]
    return folder / f"{max(positives['round'].to_pylist())}-{key}"
