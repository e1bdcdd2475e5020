"""`positives`: right pairs that rows lack, proposed by models and judged, round after round."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from counterfoil.build.pooling import Judge, PoolingState, table_judge
from counterfoil.build.scorer_settings import settings_by_scorer
from counterfoil.build.step import REASON, Output, Work
from counterfoil.build.steps.assemble import pair_gallery
from counterfoil.data.benchmark import Benchmark, Card
from counterfoil.data.judgements import Direction
from counterfoil.engine.run import run
from counterfoil.engine.topk import of_rankings
from counterfoil.errors import DataError, InputError
from counterfoil.evaluation.pool_rounds import PoolRound
from counterfoil.evaluation.pooling import Tasks
from counterfoil.world.people import Annotator, annotate
from counterfoil.world.scenes import Scene
from counterfoil.world.truth import positives as true_pairs

#: Why a proposed pair is no row.
WRONG, UNJUDGED = "judged wrong", "not judged"


@dataclass(frozen=True)
class MissingPositives:
    """Every caption with every image that it fits: models propose pairs, people judge them.

    In each round every model proposes, for every image and every caption, the first k items of its list that
    were not judged. People's answers are a table of judgements (image, caption, answer); in the drawn world
    the truth is known, and people can be simulated who see it and err.
    """

    name: ClassVar[str] = "positives"
    summary: ClassVar[str] = "right pairs that rows lack, proposed by models and judged in rounds"
    version: ClassVar[int] = 1

    scorers: tuple[str, ...] = field(
        default=("pixels:colours", "blind:random"), metadata={"help": "The models that propose.", "model": ()}
    )
    set: tuple[str, ...] = field(
        default=(),
        metadata={
            "help": "Settings of the scorers: KEY=VALUE of all, KIND.KEY=VALUE of one kind (open-clip).",
            "model": (),
        },
    )
    rounds: int = field(default=3, metadata={"help": "How many rounds, at most."})
    k: int = field(default=5, metadata={"help": "New items of each model per query and round."})
    people: str | None = field(
        default=None, metadata={"help": "A table of judgements: image, caption, answer.", "file": True}
    )
    simulate: int = field(default=0, metadata={"help": "In the drawn world: so many simulated people."})
    accuracy: float = field(default=0.95, metadata={"help": "Of simulated people: how often they are right."})

    def __post_init__(self) -> None:
        for name, least in (("rounds", 1), ("k", 1), ("simulate", 0)):
            if getattr(self, name) < least:
                raise InputError(name, given=getattr(self, name), allowed=f"{least} or more")
        if not 0 <= self.accuracy <= 1:
            raise InputError("accuracy", given=self.accuracy, allowed="0 to 1")
        if not self.scorers:
            raise InputError("no models that propose", allowed="one or more scorers")
        settings_by_scorer(self.scorers, self.set)

    @property
    def reads(self) -> Sequence[str]:
        """Images and captions."""
        return ("image", "caption")

    @property
    def makes(self) -> Sequence[str]:
        """No column; rows are added."""
        return ()

    def run(self, rows: pa.Table, work: Work) -> Output:
        """The rows, then the pairs that were judged right; what was judged wrong is dropped.

        Facts hold what each round proposed, cost and found, and estimates of how many right pairs there are
        in all (`counterfoil.stats.capture`); of drawn rows also how many there are. Raises `DataError` where
        there is no judge, and what loading a scorer raises.
        """
        card = Card(name="rows", title="Rows of a build", form="gallery")
        gallery = pair_gallery(rows, card, work, source=f"step {work.step}")
        truth = self._truth(rows, gallery)
        judge = self._judge(rows, gallery, truth, work)
        models = []
        for name, settings in settings_by_scorer(self.scorers, self.set).items():
            answers = run(gallery, work.scorer(name, settings), session=work.session)
            models.append(of_rankings(name, gallery, answers))  # type: ignore[arg-type]
        chosen: dict[Direction, tuple[str, ...]] = {"i2t": models[0].image_ids, "t2i": models[0].caption_ids}
        tasks = Tasks()
        total = None if truth is None else int(truth.sum())
        state = PoolingState(models, chosen, self.k, lambda judged: tasks.of(judged) * tasks.price, total)
        done: list[PoolRound] = []
        for number in range(1, self.rounds + 1):
            work.progress("pooling", number - 1, self.rounds)
            made = state.round(number, judge)
            if made is None:
                break
            done.append(made)
        work.progress("pooling", self.rounds, self.rounds)
        return self._joined(rows, gallery, state, done)

    def _truth(self, rows: pa.Table, gallery: Benchmark) -> NDArray[np.bool_] | None:
        """(images, captions) what is so, of drawn rows."""
        if "scene" not in rows.column_names or self.people is not None:
            return None
        scene_of = dict(zip(rows["image"].to_pylist(), rows["scene"].to_pylist(), strict=True))
        scenes = [Scene.from_json(scene_of[image.id]) for image in gallery.images]
        said = [caption.text or "" for caption in gallery.captions]
        return np.ascontiguousarray(true_pairs(said, scenes).T)

    def _judge(
        self, rows: pa.Table, gallery: Benchmark, truth: NDArray[np.bool_] | None, work: Work
    ) -> Judge:
        image_of = {image.id: at for at, image in enumerate(gallery.images)}
        caption_of = {caption.id: at for at, caption in enumerate(gallery.captions)}
        if self.people is not None:
            named = {caption.text or caption.id: caption.id for caption in gallery.captions}
            return table_judge(Path(self.people), named)
        if truth is None:
            raise DataError(
                "the pairs that models propose have no judge",
                where=f"step {work.step}",
                hint="give a table of judgements with people = TABLE",
            )
        crowd = [Annotator(f"person {at + 1}", self.accuracy) for at in range(self.simulate)]

        def seen(table: pa.Table) -> NDArray[np.float64]:
            pairs = zip(table["image"].to_pylist(), table["caption"].to_pylist(), strict=True)
            places = [(image_of[image], caption_of[caption]) for image, caption in pairs]
            right = np.array([truth[place] for place in places], dtype=bool)
            if not crowd:
                return right.astype(np.float64)
            # A pair that both directions propose is judged once.
            distinct, at = np.unique(np.array(places), axis=0, return_inverse=True)
            asked = truth[distinct[:, 0], distinct[:, 1]]
            answers = annotate(asked, crowd, work.rng("people", len(distinct), int(distinct.sum())))
            votes: NDArray[np.float64] = (answers.said.mean(axis=0) > 0.5).astype(np.float64)
            return votes[at.reshape(-1)]

        return seen

    def _joined(
        self, rows: pa.Table, gallery: Benchmark, state: PoolingState, done: Sequence[PoolRound]
    ) -> Output:
        texts = {caption.id: caption.text for caption in gallery.captions}
        known = set(zip(rows["image"].to_pylist(), rows["caption"].to_pylist(), strict=True))
        first = {image: row for row, image in reversed(list(enumerate(rows["image"].to_pylist())))}
        added: list[tuple[str, str, str]] = []
        gone: list[tuple[str, str, str, str]] = []
        seen: set[tuple[str, str]] = set()
        table = state.table().to_pylist() if done else []
        for each in table:
            pair = each["image"], each["caption"]
            text = texts[each["caption"]] or ""
            if pair in seen or (each["image"], text) in known:
                continue
            seen.add(pair)
            name = f"{each['caption']}+{each['image']}"
            if each["gain"] is not None and each["gain"] > 0:
                added.append((name, each["image"], text))
            else:
                reason = UNJUDGED if each["gain"] is None or each["gain"] != each["gain"] else WRONG
                gone.append((name, each["image"], text, reason))
        # What is known of an image stands in each of its rows; everything else of a new row is empty.
        places = [first[image] for _, image, _ in added]
        new: dict[str, Any] = {
            "id": [name for name, _, _ in added],
            "image": [image for _, image, _ in added],
            "caption": [text for _, _, text in added],
        }
        if "scene" in rows.column_names:
            new["scene"] = rows["scene"].take(pa.array(places, pa.int64())).to_pylist()
        columns = [pa.array(new.get(each.name, [None] * len(added)), each.type) for each in rows.schema]
        dropped = {"id": 0, "image": 1, "caption": 2, REASON: 3}
        x = [each.all_judged for each in done]
        facts: dict[str, Any] = {
            "rounds": [each.to_json() for each in done],
            "found": len(added),
            "right pairs": len(known) + len(added),
            "cost curve": {
                "x": [0, *x],
                "y": [0, *(each.all_right for each in done)],
                "x_label": "pairs judged",
                "y_label": "right pairs found",
                "title": "What judging costs",
            },
        }
        return Output(
            pa.concat_tables([rows, pa.table(columns, schema=rows.schema)]),
            pa.table({key: pa.array([one[at] for one in gone], pa.string()) for key, at in dropped.items()}),
            facts,
        )
