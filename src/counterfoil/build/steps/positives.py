"""`positives`: right pairs that rows lack, proposed by models and judged, round after round."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from counterfoil.benchmarks.benchmark import Benchmark, Card
from counterfoil.benchmarks.judgements import Direction
from counterfoil.build.pooling import Judge, PoolingState, table_judge
from counterfoil.build.step import REASON, BuiltStep, Output, StepContext
from counterfoil.build.steps.assemble import pair_gallery
from counterfoil.engine.session import run
from counterfoil.engine.topk import of_rankings
from counterfoil.errors import DataError
from counterfoil.evaluation.pooling import PoolRound
from counterfoil.inputs.fields import setting
from counterfoil.world.people import Annotator, annotate
from counterfoil.world.scenes import Scene
from counterfoil.world.truth import positives as true_pairs

#: Why a proposed pair is no row.
JUDGED_WRONG, UNJUDGED = "judged wrong", "not judged"


@dataclass(frozen=True)
class MissingPositives(BuiltStep):
    """Every caption with every image that it fits: models propose pairs, people judge them, in rounds."""

    name: ClassVar[str] = "positives"
    required: ClassVar[Sequence[str]] = ("image", "caption")

    models: tuple[str, ...] = setting(
        ("pixels:colours", "blind:random"), "Models that propose pairs.", model=(), least=1
    )
    set: tuple[str, ...] = setting(
        (), "Settings of the models: KEY=VALUE of all, KIND.KEY=VALUE of one kind (open-clip).", model=()
    )
    rounds: int = setting(3, "Most rounds.", low=1)
    k: int = setting(5, "New items of each model per query and round.", low=1)
    people: str | None = setting(None, "Table of judgements: image, caption, answer.", file=True)
    simulate: int = setting(0, "Drawn world: number of simulated people.", low=0)
    accuracy: float = setting(0.95, "Simulated people: accuracy.", low=0, high=1)

    def run(self, rows: pa.Table, context: StepContext) -> Output:
        """The rows and the pairs judged right; the other pairs are dropped, and facts hold the rounds."""
        card = Card(name="rows", title="Rows of a build", form="gallery")
        gallery = pair_gallery(rows, card, context, source=f"step {context.step}")
        # What is so of images and captions, of drawn rows.
        truth: NDArray[np.bool_] | None = None
        if "scene" in rows.column_names and self.people is None:
            scene_of = dict(zip(rows["image"].to_pylist(), rows["scene"].to_pylist(), strict=True))
            scenes = [Scene.from_json(scene_of[image.id]) for image in gallery.images]
            captions = [caption.text or "" for caption in gallery.captions]
            truth = np.ascontiguousarray(true_pairs(captions, scenes).T)
        judge = self._judge(rows, gallery, truth, context)
        models = []
        for name, settings in self.model_settings().items():
            answers = run(gallery, context.model(name, settings), session=context.session)
            models.append(of_rankings(name, gallery, answers))  # type: ignore[arg-type]
        chosen: dict[Direction, tuple[str, ...]] = {"i2t": models[0].image_ids, "t2i": models[0].caption_ids}
        state = PoolingState(models, chosen, self.k, None if truth is None else int(truth.sum()))
        done: list[PoolRound] = []
        for number in range(1, self.rounds + 1):
            context.progress("pooling", number - 1, self.rounds)
            outcome = state.round(number, judge)
            if outcome is None:
                break
            done.append(outcome)
        context.progress("pooling", self.rounds, self.rounds)
        return self._joined(rows, gallery, state, done)

    def _judge(
        self, rows: pa.Table, gallery: Benchmark, truth: NDArray[np.bool_] | None, context: StepContext
    ) -> Judge:
        image_of = {image.id: i for i, image in enumerate(gallery.images)}
        caption_of = {caption.id: i for i, caption in enumerate(gallery.captions)}
        if self.people is not None:
            named = {caption.text or caption.id: caption.id for caption in gallery.captions}
            return table_judge(Path(self.people), named)
        if truth is None:
            where, hint = f"step {context.step}", "give a table of judgements with people = TABLE"
            raise DataError("the pairs that models propose have no judge", where=where, hint=hint)
        crowd = [Annotator(f"person {i + 1}", self.accuracy) for i in range(self.simulate)]

        def seen(table: pa.Table) -> NDArray[np.float64]:
            pairs = zip(table["image"].to_pylist(), table["caption"].to_pylist(), strict=True)
            positions = [(image_of[image], caption_of[caption]) for image, caption in pairs]
            right = np.array([truth[place] for place in positions], dtype=bool)
            if not crowd:
                return right.astype(np.float64)
            # A pair that both directions propose is judged once.
            distinct, inverse = np.unique(np.array(positions), axis=0, return_inverse=True)
            sound = truth[distinct[:, 0], distinct[:, 1]]
            answers = annotate(sound, crowd, context.rng("people", len(distinct), int(distinct.sum())))
            votes: NDArray[np.float64] = (answers.votes.mean(axis=0) > 0.5).astype(np.float64)
            return votes[inverse.reshape(-1)]

        return seen

    def _joined(
        self, rows: pa.Table, gallery: Benchmark, state: PoolingState, done: Sequence[PoolRound]
    ) -> Output:
        texts = {caption.id: caption.text or "" for caption in gallery.captions}
        pairs = set(zip(rows["image"].to_pylist(), rows["caption"].to_pylist(), strict=True))
        # What is known of an image stands in each of its rows; everything else of a new row is empty.
        scene_of: dict[str, Any] = {}
        if "scene" in rows.column_names:
            scene_of = dict(zip(rows["image"].to_pylist(), rows["scene"].to_pylist(), strict=True))
        added: dict[str, dict[str, Any]] = {}
        gone: dict[str, dict[str, Any]] = {}
        for judged in state.table().to_pylist() if done else []:
            image, text = judged["image"], texts[judged["caption"]]
            name, gain = f"{judged['caption']}+{image}", judged["gain"]
            row = {"id": name, "image": image, "caption": text}
            if name in added or name in gone or (image, text) in pairs:
                continue
            if gain is not None and gain > 0:
                added[name] = {**row, "scene": scene_of.get(image)}
            else:
                gone[name] = {**row, REASON: UNJUDGED if gain is None else JUDGED_WRONG}
        dropped = pa.schema([(name, pa.string()) for name in ("id", "image", "caption", REASON)])
        facts: dict[str, Any] = {
            "rounds": [one.to_json() for one in done],
            "found": len(added),
            "right pairs": len(pairs) + len(added),
            "cost curve": {
                "x": [0, *(one.all_judged for one in done)],
                "y": [0, *(one.all_right for one in done)],
                "x_label": "pairs judged",
                "y_label": "right pairs found",
                "title": "What judging costs",
            },
        }
        new = pa.Table.from_pylist(list(added.values()), schema=rows.schema)
        lost = pa.Table.from_pylist(list(gone.values()), schema=dropped)
        return Output(pa.concat_tables([rows, new]), lost, facts)
