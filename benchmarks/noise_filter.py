"""How much of what wrong negative images cost a learned filter brings back, beside as many rows at random.

    python benchmarks/noise_filter.py FOLDER [--seeds 2] [--whole] [--tiny]

BiVLC (section 5.2) estimates that 61 % of TROHN-Img's negative images are wrong and leaves filters to future
work. Here rows are drawn with that share of wrong images, positives in both styles in turn so that style does
not tell a negative image. A network that was trained on loose captions scores each negative image with its
own caption less with the other one; a verified sample says what the filter keeps at a threshold. Networks are
then trained from the same random weights, for as many steps, on rows without noise, with all of it, with what
a perfect filter leaves, with what the learned one leaves, and with as many rows drawn at random: the control
that tells what a filter chooses from how few rows it leaves.

Prints a table with intervals; networks are kept in FOLDER, so that a second run goes on where one stopped.
Three to ten minutes for each seed on one core; --whole takes the plan of the study, --tiny seconds, to see
that it works.
"""

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from time import perf_counter
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from counterfoil.benchmarks.answers import Scores
from counterfoil.benchmarks.training_rows import TrainingSet
from counterfoil.build.verification import Quality, Share, Verified, auroc, quality
from counterfoil.engine.session import Session, run, score_items
from counterfoil.metrics import contrast
from counterfoil.models import checkpoint
from counterfoil.models.base import Options
from counterfoil.stats.bootstrap import cluster_draws
from counterfoil.world.painting import STYLES
from counterfoil.world.sample import benchmark as questions_of, contrasts
from counterfoil.world.training import training
from small_trainings import SHORT, TINY, Plan, TrainingRuns

#: The share of wrong negative images in TROHN-Img (BiVLC, section 5.2).
NOISE = 0.61
#: Styles of the right and of the wrong item's image in each layout of the questions.
LAYOUTS: Mapping[str, tuple[str, str]] = {
    "both natural": ("natural", "natural"),
    "natural, synthetic": ("natural", "synthetic"),
    "synthetic, natural": ("synthetic", "natural"),
}


class FilterTrainings(TrainingRuns):
    """The trainings of the study: rows whose positives are drawn in both styles in turn."""

    @cached_property
    def contrasts(self) -> TrainingSet:
        """Rows without noise."""
        return self.rows(0.0)

    def rows(self, failure: float) -> TrainingSet:
        """Rows of which a share has a wrong negative image; at one share always the same."""
        plan = self.plan
        return training(plan.contrasts, kind="trohn-img", size=plan.size, styles=STYLES, failure=failure)


@dataclass(frozen=True, eq=False)
class FilterStudy:
    """What filters keep, and what networks get that learned from it.

    `right[layout][name]` is (seeds, questions): whether a network answers a question, the group measure.
    `kept[name]` is the share of rows that a training has, `filter` the learned filter on the verified sample,
    `area` the area under its curve, `true` its precision and recall over all rows.
    """

    right: Mapping[str, Mapping[str, NDArray[np.bool_]]]
    kept: Mapping[str, float]
    filter: Quality
    area: Share
    true: tuple[float, float]

    def group(self, layout: str, name: str) -> tuple[float, float, float]:
        """The share of questions answered, with its interval over questions."""
        return self._drawn(lambda means: means[name], layout)

    def gain(self, layout: str, name: str, *, over: str = "noisy") -> tuple[float, float, float]:
        """By how much more of the questions a network answers than another, that with all the noise."""
        return self._drawn(lambda means: means[name] - means[over], layout)

    def brought_back(self, layout: str, name: str) -> tuple[float, float, float]:
        """The share of the loss from noise that a filter brings back; wide where the loss is near 0."""

        def share(means: Mapping[str, NDArray[np.float64]]) -> NDArray[np.float64]:
            lost = means["clean"] - means["noisy"]
            return np.divide(
                means[name] - means["noisy"], lost, out=np.full(len(lost), np.nan), where=lost != 0
            )

        return self._drawn(share, layout)

    def _drawn(
        self, of: Callable[[Mapping[str, NDArray[np.float64]]], NDArray[np.float64]], layout: str
    ) -> tuple[float, float, float]:
        """A number of the means of all networks, and its percentiles over draws of questions."""
        right = {name: each.mean(axis=0) for name, each in self.right[layout].items()}
        n = len(next(iter(right.values())))
        weights = np.concatenate([np.ones((1, n), np.float32), *cluster_draws(n, 2000, seed=0)])
        means = {
            name: (weights @ each) / weights.sum(axis=1, dtype=np.float64) for name, each in right.items()
        }
        found = of(means)
        low, high = np.nanquantile(found[1:], (0.025, 0.975))
        return float(found[0]), float(low), float(high)

    def table(self) -> str:
        """All of it as text, in per cent, with 95 % intervals."""
        names = list(self.kept)
        lines = [
            f"the learned filter on the verified sample: area {_share(self.area)}, precision "
            f"{_share(self.filter.precision)}, recall {_share(self.filter.recall)}, kept "
            f"{_share(self.filter.kept)}",
            f"over all rows: precision {100 * self.true[0]:.1f}, recall {100 * self.true[1]:.1f}",
        ]
        for layout in self.right:
            lines += ["", f"{layout}: rows kept, group, gain over all the noise, share of the loss back"]
            for name in names:
                group, gain = self.group(layout, name), self.gain(layout, name)
                back = "" if name in ("clean", "noisy") else _ends(self.brought_back(layout, name))
                lines.append(
                    f"  {name:<16} {100 * self.kept[name]:5.1f}  {_ends(group)}  {_ends(gain)}  {back}"
                )
            chosen = self.gain(layout, "learned filter", over="rows at random")
            lines.append(f"  the learned filter over as many rows at random: {_ends(chosen)}")
        return "\n".join(lines)


def _share(of: Any) -> str:
    return _ends((of.value, of.low, of.high))


def _ends(three: Sequence[float]) -> str:
    value, low, high = (100 * each for each in three)
    return f"{value:.1f} [{low:.1f}, {high:.1f}]"


def noise_filter(folder: Path, plan: Plan, *, seeds: Sequence[int], verified: int = 500) -> FilterStudy:
    """Train, score, filter and train again; networks are kept in `folder`, and found there by a later call.

    The learned filter keeps as many rows as the verified sample says are right. The verified sample is of
    rows drawn at random, whose truth the world knows.
    """
    workshop = FilterTrainings(plan, folder)
    noisy = workshop.rows(NOISE)
    right = np.array([label == "yes" for label in noisy.groupings["faithful"]])
    workshop.pretrained(seeds[0])
    scores = _margins(noisy, workshop.place("pretrained", seeds[0]))
    rows = np.random.default_rng(0).permutation(len(noisy))[:verified]
    sample = Verified(scores[rows], right[rows])
    threshold = float(np.quantile(scores, 1 - sample.right.mean()))
    chosen = scores >= threshold
    data = {
        "clean": workshop.contrasts,
        "noisy": noisy,
        "perfect filter": noisy.select(np.flatnonzero(right)),
        "learned filter": noisy.select(np.flatnonzero(chosen)),
        "rows at random": noisy.select(_at_random(len(noisy), int(chosen.sum()))),
    }
    made = contrasts(plan.questions)
    found: dict[str, dict[str, list[NDArray[np.bool_]]]] = {layout: {} for layout in LAYOUTS}
    for name, learned in data.items():
        for seed in seeds:
            folder_name = name.replace(" ", "-")
            workshop.tuned(folder_name, seed, recipe="trohn-img", data=learned)
            for layout, styles in LAYOUTS.items():
                asked = questions_of(made, size=plan.size, styles=styles, lazy=True)
                given = run(asked, _model(workshop.place(folder_name, seed)), session=Session(batch_size=256))
                found[layout].setdefault(name, []).append(contrast.group(cast(Scores, given).values) > 0)
    return FilterStudy(
        {layout: {name: np.stack(each) for name, each in of.items()} for layout, of in found.items()},
        {name: len(each) / len(noisy) for name, each in data.items()},
        quality(sample, threshold),
        auroc(sample),
        (float(right[chosen].mean()), float(chosen[right].mean())),
    )


def _at_random(rows: int, kept: int) -> NDArray[np.int64]:
    """So many of the rows, drawn at random, ascending."""
    return np.sort(np.random.default_rng(1).permutation(rows)[:kept])


def small(plan: Plan) -> Plan:
    """The plan with fewer rows, questions and steps: minutes in place of tens of them."""
    return replace(plan, contrasts=6_000, loose=8_000, questions=1_400)


def _model(place: Path) -> Any:
    return checkpoint.load(str(place), Options(device="cpu"))


def _margins(data: TrainingSet, place: Path) -> NDArray[np.float64]:
    """How much better each negative image fits its own caption than the other one, by a network."""
    n = len(data)
    image = np.tile(data.rows["negative_image"], 2)
    caption = np.concatenate([data.rows["negative_caption"], data.rows["caption"]])
    session = Session(batch_size=256)
    found = score_items(
        _model(place),
        data.images,
        session.keys(data.images),
        data.captions,
        (caption, image),
        session=session,
    )
    return found[:n] - found[n:]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--whole", action="store_true")
    parser.add_argument("--tiny", action="store_true")
    given = parser.parse_args()
    began = perf_counter()
    plan = TINY if given.tiny else SHORT if given.whole else small(SHORT)
    study = noise_filter(given.folder, plan, seeds=tuple(range(given.seeds)))
    print(study.table())
    print(f"{perf_counter() - began:.0f} s", file=sys.stderr)
