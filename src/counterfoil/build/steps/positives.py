"""`positives`: right pairs that rows lack, proposed by models and judged, round after round.

`merge`: right pairs of several sources become one set, with what each source is worth.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import compress
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from counterfoil.benchmarks.benchmark import Benchmark, Card
from counterfoil.benchmarks.judgements import Direction
from counterfoil.benchmarks.tables import DataTable, booleans, floats, labels, read_table
from counterfoil.build.calibration import share
from counterfoil.build.pooling import Judge, PoolingState, table_judge
from counterfoil.build.rating import settings_by_scorer
from counterfoil.build.step import REASON, BuiltStep, Output, StepContext, split_rows
from counterfoil.build.steps.assemble import pair_gallery
from counterfoil.build.verification import Rule, answer_gains
from counterfoil.engine.run import run
from counterfoil.engine.topk import of_rankings
from counterfoil.errors import DataError, InputError
from counterfoil.evaluation.judged_pairs import right_pairs
from counterfoil.evaluation.pooling import PoolRound
from counterfoil.inputs.fields import setting
from counterfoil.world.people import Annotator, annotate
from counterfoil.world.scenes import Scene
from counterfoil.world.truth import positives as true_pairs

#: Why a proposed pair is no row.
JUDGED_WRONG, UNJUDGED = "judged wrong", "not judged"


@dataclass(frozen=True)
class MissingPositives(BuiltStep):
    """Every caption with every image that it fits: models propose pairs, people judge them.

    In each round every model proposes, for every image and every caption, the first k items of its list that
    were not judged. People's answers are a table of judgements (image, caption, answer); in the drawn world
    the truth is known, and people can be simulated who see it and err.
    """

    name: ClassVar[str] = "positives"
    required: ClassVar[Sequence[str]] = ("image", "caption")

    scorers: tuple[str, ...] = setting(
        ("pixels:colours", "blind:random"), "The models that propose.", model=(), least=1
    )
    set: tuple[str, ...] = setting(
        (), "Settings of the scorers: KEY=VALUE of all, KIND.KEY=VALUE of one kind (open-clip).", model=()
    )
    rounds: int = setting(3, "How many rounds, at most.", low=1)
    k: int = setting(5, "New items of each model per query and round.", low=1)
    people: str | None = setting(None, "A table of judgements: image, caption, answer.", file=True)
    simulate: int = setting(0, "In the drawn world: so many simulated people.", low=0)
    accuracy: float = setting(0.95, "Of simulated people: how often they are right.", low=0, high=1)

    def __post_init__(self) -> None:
        super().__post_init__()
        settings_by_scorer(self.scorers, self.set)

    def run(self, rows: pa.Table, context: StepContext) -> Output:
        """The rows, then the pairs that were judged right; what was judged wrong is dropped.

        Facts hold what each round proposed, cost and found, and estimates of how many right pairs there are
        in all (`counterfoil.stats.capture_recapture`); of drawn rows also how many there are. Raises
        `DataError` where there is no judge, and what loading a scorer raises.
        """
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
        for name, settings in settings_by_scorer(self.scorers, self.set).items():
            answers = run(gallery, context.scorer(name, settings), session=context.session)
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
        image_of = {image.id: at for at, image in enumerate(gallery.images)}
        caption_of = {caption.id: at for at, caption in enumerate(gallery.captions)}
        if self.people is not None:
            named = {caption.text or caption.id: caption.id for caption in gallery.captions}
            return table_judge(Path(self.people), named)
        if truth is None:
            raise DataError(
                "the pairs that models propose have no judge",
                where=f"step {context.step}",
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
            sound = truth[distinct[:, 0], distinct[:, 1]]
            answers = annotate(sound, crowd, context.rng("people", len(distinct), int(distinct.sum())))
            votes: NDArray[np.float64] = (answers.said.mean(axis=0) > 0.5).astype(np.float64)
            return votes[at.reshape(-1)]

        return seen

    def _joined(
        self, rows: pa.Table, gallery: Benchmark, state: PoolingState, done: Sequence[PoolRound]
    ) -> Output:
        texts = {caption.id: caption.text or "" for caption in gallery.captions}
        known = set(zip(rows["image"].to_pylist(), rows["caption"].to_pylist(), strict=True))
        # What is known of an image stands in each of its rows; everything else of a new row is empty.
        scene_of: dict[str, Any] = {}
        if "scene" in rows.column_names:
            for image, scene in zip(rows["image"].to_pylist(), rows["scene"].to_pylist(), strict=True):
                scene_of.setdefault(image, scene)
        added: dict[str, dict[str, Any]] = {}
        gone: dict[str, dict[str, Any]] = {}
        for judged in state.table().to_pylist() if done else []:
            image, text = judged["image"], texts[judged["caption"]]
            name, gain = f"{judged['caption']}+{image}", judged["gain"]
            row = {"id": name, "image": image, "caption": text}
            if name in added or name in gone or (image, text) in known:
                continue
            if gain is not None and gain > 0:
                added[name] = {**row, "scene": scene_of.get(image)}
            else:
                gone[name] = {**row, REASON: UNJUDGED if gain is None else JUDGED_WRONG}
        dropped = pa.schema([(name, pa.string()) for name in ("id", "image", "caption", REASON)])
        x = [one.all_judged for one in done]
        facts: dict[str, Any] = {
            "rounds": [one.to_json() for one in done],
            "found": len(added),
            "right pairs": len(known) + len(added),
            "cost curve": {
                "x": [0, *x],
                "y": [0, *(one.all_right for one in done)],
                "x_label": "pairs judged",
                "y_label": "right pairs found",
                "title": "What judging costs",
            },
        }
        new = pa.Table.from_pylist(list(added.values()), schema=rows.schema)
        lost = pa.Table.from_pylist(list(gone.values()), schema=dropped)
        return Output(pa.concat_tables([rows, new]), lost, facts)


#: Why a pair goes.
WRONG, OUTVOTED = "wrong by the verified pairs", "not right by the rule"
#: Columns that say how right a pair is; the first there is counts.
_GAINS = ("gain", "answer", "right", "rating", "agg_score")

Pair = tuple[str, str]


@dataclass(frozen=True)
class Merge(BuiltStep):
    """Pairs of an image and a caption that sources call right become one row each, with their sources.

    The rows themselves are a source where they have pairs with a `gain` (or `answer`, `right`, `rating`), or
    no such column: then all are right. `any` source that calls a pair right is enough; under `majority` more
    of the sources that know the pair, under `all` every source there is. Verified pairs decide on their own.
    """

    name: ClassVar[str] = "merge"
    required: ClassVar[Sequence[str]] = ("image", "caption")
    produced: ClassVar[Sequence[str]] = ("gain", "sources")
    opens: ClassVar[bool] = False

    tables: tuple[str, ...] = setting(
        (), "Tables of pairs: image, caption and gain, answer, right or rating.", file=True
    )
    benchmarks: tuple[str, ...] = setting((), "Galleries whose right pairs are a source, such as eccv, cxc.")
    data: str | None = setting(None, "The folder with the benchmarks' files.", file=True)
    verified: str | None = setting(None, "A table of pairs that people verified.", file=True)
    rating: float = setting(3.0, "Pairs rated at least so high are right.")
    rule: Rule = setting("any", "Of sources: any, majority, all.")

    def run(self, rows: pa.Table, context: StepContext) -> Output:
        """A row per pair that is right, in the order of the sources; pairs that are not, with the reason.

        Facts hold of every source its pairs, how many of them are right by each other source (`also_in`) and,
        with verified pairs, its precision (of its pairs that were verified) and its recall (of all that were
        verified right). Raises `DataError` for tables that hold no pairs and benchmarks that are no gallery.
        """
        sources: dict[str, dict[Pair, float]] = {}
        if len(rows):
            columns = {name: rows[name].to_pylist() for name in rows.column_names}
            sources["rows"] = self._pairs(DataTable(columns, "the rows"))
        for path in self.tables:
            sources[_new(Path(path).stem, sources)] = self._pairs(read_table(path))
        data = None if self.data is None else Path(self.data)
        if data is not None and not self.benchmarks:
            raise InputError(
                "unsupported option", given="--data", hint="name the --benchmarks that lie there"
            )
        for name in self.benchmarks:
            gallery = context.benchmark(name, data, None)
            images = [image.id for image in gallery.images]
            captions = [caption.id for caption in gallery.captions]
            pairs_of = right_pairs(gallery, "i2t", images, captions).tolist()
            pairs_of += [pair[::-1] for pair in right_pairs(gallery, "t2i", captions, images).tolist()]
            sources[_new(name, sources)] = {(images[i], captions[c]): 1.0 for i, c in pairs_of}
        verified = {} if self.verified is None else self._pairs(read_table(self.verified))
        pairs = list(dict.fromkeys(pair for of in [*sources.values(), verified] for pair in of))
        if not pairs:
            raise InputError(
                "no pairs to merge", where=f"step {context.step}", hint="name tables or benchmarks"
            )
        gains = np.array([[of.get(pair, np.nan) for of in sources.values()] for pair in pairs])
        truth = np.array([verified.get(pair, np.nan) for pair in pairs])
        right, known = np.nan_to_num(gains) > 0, ~np.isnan(gains)
        yes = right.sum(axis=1)
        by_rule = {"any": yes > 0, "majority": 2 * yes > known.sum(axis=1), "all": right.all(axis=1)}
        accepted = np.where(np.isnan(truth), by_rule[self.rule], truth > 0)
        mean = np.nansum(gains, axis=1) / np.maximum(known.sum(axis=1), 1)
        names = list(sources)
        table = pa.table(
            {
                "id": [f"{image}/{caption}" for image, caption in pairs],
                "image": [image for image, _ in pairs],
                "caption": [caption for _, caption in pairs],
                "gain": np.where(np.isnan(truth), mean, truth),
                "sources": ["+".join(compress(names, row)) for row in right],
            }
        )
        why = np.where(np.isnan(truth), OUTVOTED, WRONG).tolist()
        facts = {
            "pairs": len(pairs),
            "right": int(accepted.sum()),
            "sources": _statement(names, right, truth),
        }
        return Output(*split_rows(table, accepted, why), facts)

    def _pairs(self, table: DataTable) -> dict[Pair, float]:
        """The gain of every pair of a table; of several rows of one pair the mean."""
        images, captions = labels(table, "image"), labels(table, "caption")
        column = next((name for name in _GAINS if name in table), None)
        if column is None:
            gains = np.ones(len(table))
        elif column == "answer":
            gains = answer_gains(table)
        elif column == "right":
            gains = booleans(table, column).astype(np.float64)
        else:
            gains = floats(table, column)
            gains = gains if column == "gain" else (gains >= self.rating).astype(np.float64)
        sums: dict[Pair, list[float]] = {}
        for row, pair in enumerate(zip(images, captions, strict=True)):
            if not all(pair):
                raise DataError("a pair without an image or a caption", where=table.where(row))
            if not np.isnan(gains[row]):
                sums.setdefault(pair, []).append(float(gains[row]))
        return {pair: float(np.mean(of)) for pair, of in sums.items()}


def _new(name: str, known: dict[str, Any]) -> str:
    if name in known:
        raise InputError("two sources have one name", given=name, hint="rename a file")
    return name


def _statement(names: list[str], right: NDArray[np.bool_], truth: NDArray[np.float64]) -> dict[str, Any]:
    """Of each source its right pairs, how many are right in each other, and its precision and recall."""
    ones, seen = np.ones(len(right)), ~np.isnan(truth)
    facts: dict[str, Any] = {}
    for at, name in enumerate(names):
        own = right[:, at]
        facts[name] = {
            "right": int(own.sum()),
            "alone": int((own & (right.sum(axis=1) == 1)).sum()),
            "also_in": {
                other: share(right[:, to], own, ones).to_json() for to, other in enumerate(names) if to != at
            },
        }
        if seen.any():
            true = truth > 0
            facts[name]["precision"] = share(true, own & seen, ones).to_json()
            facts[name]["recall"] = share(own, true, ones).to_json()
    return facts
