"""The human studies of three papers, repeated in the world by simulated people whose accuracy is known.

    human_baseline()      BiVLC, section 4: 500 questions, 20 people, each direction by another person
    merged_positives()    ECCV Caption, section 3: models' pool, tasks of 20 pairs, golden items, merging
    preference_order()    ECCV Caption, appendix D.1: five rankings, two by two, by Bradley and Terry

Each runs a campaign on the code that real people use, and holds what comes out against the truth.
"""

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np
import pyarrow.compute as pc
from jaxtyping import Bool, Float, Int
from numpy import ndarray
from numpy.typing import NDArray

from counterfoil.annotate.agreement import fields_of
from counterfoil.annotate.benchmark_items import QUAD_KINDS, items_of_benchmark
from counterfoil.annotate.campaign import Campaign, CampaignRecipe, create_folder, form_of
from counterfoil.annotate.forms.base import WorkItem
from counterfoil.annotate.forms.match import FULLY, MOSTLY_NOT, NEGATIVE, NOT, PARTLY, POSITIVE
from counterfoil.annotate.pictures import Pictures
from counterfoil.annotate.simulated_people import SimulatedPerson, crowd
from counterfoil.annotate.simulation import Simulation, simulate
from counterfoil.data.judgements import Votes
from counterfoil.errors import InputError
from counterfoil.evaluation.preferences import Preferences, preferences
from counterfoil.metrics.annotators import pool, top_k
from counterfoil.stats.dawid_skene import dawid_skene
from counterfoil.stats.estimates import wilson
from counterfoil.stats.label_models import Labels
from counterfoil.stats.seeds import random_numbers
from counterfoil.world.benchmarks import described, truth
from counterfoil.world.sample import quads, stream

#: Pixels of pictures that no simulated person looks at.
_SIZE = 32
#: Which single directions a score needs right (BiVLC, section 4).
SCORES: Mapping[str, tuple[int, ...]] = {"I2T": (0, 1), "T2I": (2, 3), "group": (0, 1, 2, 3)}


@dataclass(frozen=True)
class StudyRow:
    """A number of a study: the truth, what came out, and its 95 % interval."""

    name: str
    truth: float
    value: float
    low: float
    high: float

    @property
    def covered(self) -> bool:
        """Whether the interval has the truth."""
        return self.low <= self.truth <= self.high


@dataclass(frozen=True, eq=False)
class HumanBaseline:
    """A human baseline: whether each single direction of each question was answered right, and by whom.

    `person[q, d]` is a place in `accuracy` (people, directions), the chances that these people have.
    """

    right: Bool[ndarray, "questions 4"]
    person: Int[ndarray, "questions 4"]
    accuracy: Float[ndarray, "people 4"]

    @property
    def rows(self) -> tuple[StudyRow, ...]:
        """I2T, T2I and group score with Wilson's interval over questions."""
        return _baseline_rows(self.right, self.person, self.accuracy)

    def coverage(self, repeats: int, *, seed: int = 0) -> dict[str, float]:
        """How often intervals have the truth, where other people answer by the same design.

        The truth is the score to be expected of the people who came. A score is a product of answers of
        different people, which err independently; of one person it would not be the product.
        """
        hits = dict.fromkeys(SCORES, 0)
        for at in range(repeats):
            rng = random_numbers(seed, "coverage", at)
            accuracy = _accuracies(len(self.accuracy), rng)
            chance = accuracy[self.person, np.arange(4)]
            for row in _baseline_rows(rng.random(chance.shape) < chance, self.person, accuracy):
                hits[row.name] += row.covered
        return {name: count / repeats for name, count in hits.items()}


def human_baseline(instances: int = 500, people: int = 20, *, seed: int = 0) -> HumanBaseline:
    """BiVLC's human baseline: each of `people` answers as many questions of each single direction.

    Raises `InputError` where the questions do not divide among the people.
    """
    if instances % people:
        raise InputError(
            "questions among people",
            given=f"{instances} among {people}",
            allowed="a multiple of the number of people",
        )
    each = 4 * instances // people
    recipe = CampaignRecipe(
        form="choose", title="Study", design="blocks", overlap=1, per_person=each, seed=seed
    )
    pictures = Pictures()
    asked = quads(instances, seed=seed, size=_SIZE, lazy=True)
    form = form_of(recipe, where="the study")
    items = items_of_benchmark(asked, form, pictures, rng=random_numbers(seed, "items")).items
    accuracy = _accuracies(people, random_numbers(seed, "people"))
    crowd = [
        SimulatedPerson(str(at), by_kind=dict(zip(QUAD_KINDS, row.tolist(), strict=True)), seconds=7.0)
        for at, row in enumerate(accuracy)
    ]
    _, found = _run(recipe, items, pictures, crowd, seed)
    right = np.zeros((instances, 4), dtype=bool)
    person = np.full((instances, 4), -1)
    places = {name: at for at, name in enumerate(asked.questions.ids)}
    of_item = {item.id: (places[item.instance], QUAD_KINDS.index(item.kind)) for item in items}
    for row in found.judgements.select(["item", "person", "answer"]).to_pylist():
        at = of_item[row["item"]]
        right[at] = row["answer"] == found.truth[row["item"]]
        person[at] = int(found.people[row["person"]].name)
    return HumanBaseline(right, person, accuracy)


def _accuracies(people: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """People better at captions than at images, and none like another."""
    return rng.beta((38.0, 38.0, 27.0, 27.0), (2.0, 2.0, 3.0, 3.0), size=(people, 4))


def _baseline_rows(
    right: NDArray[np.bool_], person: NDArray[np.int64], accuracy: NDArray[np.float64]
) -> tuple[StudyRow, ...]:
    chance = accuracy[person, np.arange(4)]
    rows = []
    for name, columns in SCORES.items():
        n, done = len(right), int(right[:, columns].all(axis=1).sum())
        low, high = wilson(done, n)
        truth = float(chance[:, columns].prod(axis=1).mean())
        rows.append(StudyRow(name, truth, done / n, low, high))
    return tuple(rows)


@dataclass(frozen=True, eq=False)
class MergedPositives:
    """What became of a pool of pairs: how it was merged, by threshold and by aggregation.

    `precision` and `recall` of the merged positives have 95 % intervals (Wilson); recall is among all true
    pairs of the gallery, and among those of the pool (`recall_of_pool`), of which a share of `true` is right.
    `rejected` is the share of submissions that golden items turned away, `wrong` the share of accepted ones
    that are of people who guess. All in [0, 1].
    """

    pairs: int
    tasks: int
    rejected: float
    wrong: float
    true: Mapping[str, float]
    precision: Mapping[str, tuple[float, float, float]]
    recall: Mapping[str, tuple[float, float, float]]
    recall_of_pool: Mapping[str, tuple[float, float, float]]


def merged_positives(
    images: int = 60, *, labels: int = 1, careless: float = 0.42, accuracy: float = 0.9, seed: int = 0
) -> MergedPositives:
    """ECCV Caption's verification: pairs that five models propose, in tasks of 18 + 1 true + 1 random pair.

    A wrong answer to a golden item turns a submission away, and others do the task. Of true pairs half are
    true in part only; of wrong ones those that models propose are mostly wrong. "strict" takes "100 % yes",
    "lenient" also "partly yes". With several `labels` per pair Dawid and Skene's model aggregates them.
    """
    rng = random_numbers(seed, "pairs")
    scenes, meanings, drawn = described(images, 2, stream("gallery", seed), "natural")
    true = truth(meanings, scenes)
    full = true & (rng.random(true.shape) < 0.5)
    models = [true * 3.0 + rng.normal(0, 1, true.shape) for _ in range(5)]
    pooled = pool([top_k(scores, 3) for scores in models])
    pairs = np.stack([pooled.query, pooled.item], axis=1)
    pictures = Pictures()
    names = [pictures.add(image) for image in drawn.images(_SIZE, lazy=True)]
    texts = [caption.text for caption in drawn.captions()]
    grades = np.where(full, FULLY, np.where(true, PARTLY, MOSTLY_NOT))

    def item(name: str, caption: int, image: int, role: str, golden: Sequence[str], right: str) -> WorkItem:
        cells = {"image": names[image], "caption": texts[caption]}
        return WorkItem(name, cells, role, {"match": golden} if golden else {}, truth=right)  # type: ignore[arg-type]

    work = [item(f"{at}", c, i, "work", (), str(grades[c, i])) for at, (c, i) in enumerate(pairs.tolist())]
    golden = []
    for at, c in enumerate(rng.permutation(len(meanings))[:40].tolist()):
        right = int(np.flatnonzero(true[c])[0])
        golden.append(item(f"true {at}", c, right, "golden", POSITIVE, FULLY))
        wrong = int(rng.choice(np.flatnonzero(~true[c])))
        golden.append(item(f"random {at}", c, wrong, "golden", NEGATIVE, NOT))
    recipe = CampaignRecipe(
        form="match",
        title="Study",
        design="blocks",
        overlap=labels,
        per_person=20,
        golden_per_block=2,
        golden_misses=1,
        settings={"rationale": False},
        seed=seed,
    )
    tasks = -(-len(work) * labels // 18)
    came = crowd(
        {"able": 1 - careless, "careless": careless}, 2 * tasks + 20, seconds=12.0, accuracy=accuracy
    )
    mixed = [came[at] for at in random_numbers(seed, "mixed").permutation(len(came))]
    campaign, found = _run(recipe, [*work, *golden], pictures, mixed, seed)
    rows = found.judgements.filter(
        pc.and_(pc.equal(found.judgements.column("role"), "work"), found.judgements.column("counted"))
    )
    values = fields_of(campaign)["match"].values
    people = {id: at for at, id in enumerate(found.people)}
    answered = rows.select(["item", "person", "answer"]).to_pylist()
    given = Labels.of(
        np.array([int(row["item"]) for row in answered]),
        np.array([people[row["person"]] for row in answered]),
        np.array([values.index(row["answer"]) for row in answered]),
        n_classes=4,
        n_items=len(work),
        n_people=len(people),
    )
    posterior = given.shares() if labels == 1 else dawid_skene(given).posterior
    started = set(found.judgements.column("person").to_pylist())
    out = {each for each in started if found.states[each] == "disqualified"}
    kept = started - out
    result: dict[str, list[tuple[float, float, float]]] = {"strict": [], "lenient": []}
    share = {}
    for name, so, classes in (("strict", full, (FULLY,)), ("lenient", true, POSITIVE)):
        taken = posterior[:, [values.index(each) for each in classes]].sum(axis=1) > 0.5
        really = so[pairs[:, 0], pairs[:, 1]]
        share[name] = float(really.mean())
        hits = float((taken & really).sum())
        for of in (taken.sum(), so.sum(), really.sum()):
            result[name].append((hits / float(of), *wilson(hits, float(of))))
    precision, recall, of_pool = ({name: each[at] for name, each in result.items()} for at in range(3))
    guessing = sum(found.people[each].kind == "careless" for each in kept)
    turned_away = len(out) / len(started)
    return MergedPositives(
        len(work), tasks, turned_away, guessing / len(kept), share, precision, recall, of_pool
    )


def preference_order(
    strengths: Sequence[float] = (35, 25, 20, 12, 8),
    *,
    captions: int = 60,
    accuracy: float = 0.9,
    people: int = 20,
    seed: int = 0,
) -> Preferences:
    """ECCV Caption's preference study: people choose between every two of several rankings per caption.

    Which ranking is better for a caption is drawn by Bradley and Terry's chances; a person errs with chance
    1 - `accuracy`, which draws all strengths together but keeps their order. Raises `InputError` for fewer
    than two strengths and for one that is not above 0.
    """
    if len(strengths) < 2 or not min(strengths) > 0:
        raise InputError("strengths of rankings", given=list(strengths), allowed="two or more above 0")
    rng = random_numbers(seed, "better")
    names = [f"ranking {at + 1}" for at in range(len(strengths))]
    items = []
    for caption in range(captions):
        for i, j in combinations(range(len(strengths)), 2):
            better = rng.random() < strengths[i] / (strengths[i] + strengths[j])
            cells = {
                "caption": f"Caption {caption}.",
                "first": names[i],
                "second": names[j],
                "first_captions": [f"{caption} by {i}"],
                "second_captions": [f"{caption} by {j}"],
            }
            items.append(WorkItem(f"{caption} {i} {j}", cells, truth="first" if better else "second"))
    recipe = CampaignRecipe(form="preference", title="Study", overlap=1, seed=seed)
    crowd = [SimulatedPerson(str(at), accuracy=accuracy, seconds=15.0) for at in range(people)]
    _, found = _run(recipe, items, {}, crowd, seed)
    by_id = {item.id: item for item in items}
    wins = np.zeros((len(names), len(names)), dtype=np.int64)
    for row in found.judgements.select(["item", "answer"]).to_pylist():
        own = by_id[row["item"]].cells
        first, second = names.index(own["first"]), names.index(own["second"])
        won = (first, second) if row["answer"] == "first" else (second, first)
        wins[won] += 1
    return preferences(Votes(tuple(names), wins), draws=500, seed=seed)


def _run(
    recipe: CampaignRecipe,
    items: Sequence[WorkItem],
    pictures: Mapping[str, bytes],
    people: Sequence[SimulatedPerson],
    seed: int,
) -> tuple[Campaign, Simulation]:
    with tempfile.TemporaryDirectory(prefix="counterfoil-") as folder:
        campaign = create_folder(Path(folder) / "campaign", recipe, items, pictures)
        return campaign, simulate(campaign, people, seed=seed)
