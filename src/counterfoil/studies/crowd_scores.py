"""Winoground's human row as a campaign of simulated people, by two rules of how many answers a pair gets.

    crowd_scores("first")    a pair is asked about until one answer was given ten times (see `stopping_rule`)
    crowd_scores("fixed")    ten answers of every pair, as the paper is read at first (section 4.3)

Every pair of a caption and an image of a question is asked about by itself, "yes" or "no", and no person sees
two of one question. Before the work stands the test of appendix E: ten pairs, a first error is pointed out, a
second one ends it. The answers are written to a table and measured by `people:`, as those of any campaign.
"""

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import ceil
from pathlib import Path

import numpy as np
from jaxtyping import Float
from numpy import ndarray
from scipy.special import expit, logit

from counterfoil.annotate import people_scorer
from counterfoil.annotate.benchmark_items import items_of_benchmark
from counterfoil.annotate.campaign import CampaignRecipe, create_folder, form_of
from counterfoil.annotate.forms.base import WorkItem
from counterfoil.annotate.judgement_table import write_judgement_table
from counterfoil.annotate.pictures import Pictures
from counterfoil.annotate.simulated_people import SimulatedPerson
from counterfoil.annotate.simulation import simulate
from counterfoil.engine.run import run
from counterfoil.engine.session import Session
from counterfoil.evaluation.evaluate import evaluate
from counterfoil.scorers.base import Options
from counterfoil.stats.estimates import wilson
from counterfoil.stats.seeds import random_numbers
from counterfoil.studies.annotation import StudyRow
from counterfoil.studies.stopping_rule import ExpectedScores, Rule, expected_scores
from counterfoil.world.sample import quads

#: Winoground's scores as measures of quads: the text score asks each image for its caption.
MEASURES: Mapping[str, str] = {"text": "i2t", "image": "t2i", "group": "group"}
#: The chance of a yes of pairs that belong together and of others: the beta distributions of the largest
#: likelihood for the votes behind the shares that Winoground released (`stopping_rule.fitted_chances`).
_YES = {True: (6.69, 1.00), False: (1.54, 3.28)}
#: How far people differ: the standard deviation of what is added to the log-odds that they are right.
_SKILL = 0.4
#: How likely an able person is right in the test before the work, and its pairs.
_EASY, _TEST = 0.99, 10
#: Items of one person, at most; pixels of pictures that no simulated person looks at.
_PER_PERSON, _SIZE = 40, 32
#: Questions behind the scores that are to be expected of a crowd.
_MANY = 4000


@dataclass(frozen=True, eq=False)
class CrowdScores:
    """What a crowd's answers came to under a rule.

    `rows` are text, image and group score as measured, beside the truth: the score of endlessly many answers
    of these people to these pairs. `expected` is what so few answers come to on average, exactly. `votes` is
    the mean number of answers of a pair, `stopped` the share of pairs whose more frequent answer has as many
    as the rule says, `out` how many were disqualified of how many came, by kind of people; `lacking` is
    the number of answers that were never given.
    """

    rule: Rule
    rows: tuple[StudyRow, ...]
    expected: ExpectedScores
    votes: float
    stopped: float
    out: Mapping[str, tuple[int, int]]
    lacking: int


def crowd_scores(
    rule: Rule, questions: int = 100, *, votes: int = 10, careless: float = 0.2, seed: int = 0
) -> CrowdScores:
    """The campaign by a rule, with a share of `careless` people who answer at random.

    Equal seeds give the same pairs and people under both rules.
    """
    asked = quads(questions, seed=seed, size=_SIZE, lazy=True)
    recipe = CampaignRecipe(
        form="yes-no",
        title="Study",
        design="adaptive" if rule == "first" else "queue",
        overlap=votes,
        first_to=votes if rule == "first" else 0,
        most=2 * votes - 1,
        per_person=min(_PER_PERSON, questions),
        onboarding=_TEST,
        onboarding_warnings=1,
        seed=seed,
    )
    pictures = Pictures()
    form = form_of(recipe, where="the study")
    pairs = items_of_benchmark(asked, form, pictures, rng=random_numbers(seed, "items")).items
    yes = drawn_chances(questions, random_numbers(seed, "chances")).round(2).clip(0.01, 0.99)
    # A pair's kind is the chance that a person of no particular skill is right about it.
    right = [
        float(p) if pair.truth == "yes" else 1 - float(p) for p, pair in zip(yes.ravel(), pairs, strict=True)
    ]
    work = [replace(pair, kind=f"{each:.2f}") for pair, each in zip(pairs, right, strict=True)]
    people = _people(recipe, len(work), careless, {item.kind for item in work}, seed)
    skills = [each.by_kind for each in people if each.kind == "able"]
    known = np.array([np.mean([skill[item.kind] for skill in skills]) for item in work])
    belongs = np.array([item.truth == "yes" for item in work])
    chances = np.where(belongs, known, 1 - known).reshape(yes.shape)
    with tempfile.TemporaryDirectory(prefix="counterfoil-") as folder:
        place = Path(folder)
        campaign = create_folder(place / "campaign", recipe, [*work, *_test_items(work)], pictures)
        found = simulate(campaign, people, seed=seed)
        write_judgement_table(place / "judgements.csv", found.judgements)
        settings = {"campaign": str(campaign.folder)}
        scorer = people_scorer.load(str(place / "judgements.csv"), Options(settings=settings))
        answers = run(asked, scorer, session=Session())
    result = evaluate(asked, answers, draws=2000, seed=seed, measures=tuple(MEASURES.values()))
    truth = expected_scores(chances, None)
    rows = []
    for name, measure in MEASURES.items():
        came = result.measures[measure]
        rows.append(StudyRow(name, getattr(truth, name), came.value, came.low, came.high))
    given = found.judgements.filter(found.judgements["counted"]).to_pylist()
    ayes = {item.id: [0, 0] for item in work}
    for row in given:
        if row["role"] == "work":
            ayes[row["item"]][row["answer"] == "yes"] += 1
    out = {
        kind: (
            sum(found.states[id] == "disqualified" for id, each in found.people.items() if each.kind == kind),
            sum(each.kind == kind for each in found.people.values()),
        )
        for kind in ("able", "careless")
    }
    return CrowdScores(
        rule,
        tuple(rows),
        expected_scores(chances, rule, votes),
        float(np.mean([sum(each) for each in ayes.values()])),
        float(np.mean([(max(each) if rule == "first" else sum(each)) == votes for each in ayes.values()])),
        out,
        found.counts.wanted,
    )


def coverage(
    rule: Rule, questions: int = 100, *, votes: int = 10, repeats: int = 1000, seed: int = 0
) -> dict[str, tuple[float, float]]:
    """How often the interval of a score has the score to be expected, of such answers and of endlessly many.

    Pairs and answers are drawn anew each time, by the same chances; intervals are Wilson's over questions.
    What is to be expected is that of many drawn questions, so that an interval is off only by chance or by
    what a rule does to scores.
    """
    many = drawn_chances(_MANY, random_numbers(seed, "many"))
    such, endless = expected_scores(many, rule, votes), expected_scores(many, None)
    hits = {name: [0, 0] for name in MEASURES}
    for at in range(repeats):
        rng = random_numbers(seed, "coverage", at)
        came = expected_scores(_shares(drawn_chances(questions, rng), rule, votes, rng), None)
        for name in MEASURES:
            low, high = wilson(round(getattr(came, name) * questions), questions)
            for of, truth in enumerate((such, endless)):
                hits[name][of] += low <= getattr(truth, name) <= high
    return {name: (such / repeats, endless / repeats) for name, (such, endless) in hits.items()}


def drawn_chances(questions: int, rng: np.random.Generator) -> Float[ndarray, "questions 2 2"]:
    """The chance of a yes of caption c with image i of each question."""
    drawn = {kind: rng.beta(*of, size=(questions, 2)) for kind, of in _YES.items()}
    found = np.empty((questions, 2, 2))
    found[:, [0, 1], [0, 1]], found[:, [0, 1], [1, 0]] = drawn[True], drawn[False]
    return found


def _shares(
    p: Float[ndarray, "questions 2 2"], rule: Rule, m: int, rng: np.random.Generator
) -> Float[ndarray, "questions 2 2"]:
    """Shares of yes of answers that come one by one until the rule is met."""
    if rule == "fixed":
        return rng.binomial(m, p) / m
    ayes = (rng.random((*p.shape, 2 * m - 1)) < p[..., None]).cumsum(axis=-1)
    asked = np.arange(1, 2 * m)
    last = np.argmax((ayes == m) | (asked - ayes == m), axis=-1)
    return np.take_along_axis(ayes, last[..., None], axis=-1)[..., 0] / (last + 1)


def _people(
    recipe: CampaignRecipe, items: int, careless: float, kinds: set[str], seed: int
) -> list[SimulatedPerson]:
    """More people than the work takes, careless ones among them, in no order."""
    needed = 1.5 * items * recipe.overlap / recipe.per_person / (1 - careless)
    n = ceil(needed) + 2 * recipe.overlap
    guessing = round(careless * n)
    people = [
        SimulatedPerson(f"careless-{at}", "careless", guesses=1.0, seconds=2.0) for at in range(guessing)
    ]
    rng = random_numbers(seed, "people")
    for at, skill in enumerate(rng.normal(0, _SKILL, n - guessing).tolist()):
        by_kind = {kind: float(expit(logit(float(kind)) + skill)) for kind in sorted(kinds)}
        people.append(SimulatedPerson(f"able-{at}", by_kind=by_kind, accuracy=_EASY, seconds=4.0))
    return [people[at] for at in rng.permutation(n)]


def _test_items(work: list[WorkItem]) -> list[WorkItem]:
    """Pairs of the test, right and wrong in turn; they show what other pairs show, which no one looks at."""
    found = []
    for at in range(_TEST):
        truth = ("yes", "no")[at % 2]
        found.append(WorkItem(f"test {at}", work[0].cells, "onboarding", {"match": (truth,)}, truth=truth))
    return found
