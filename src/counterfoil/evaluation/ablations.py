"""Studies with a dial: one setting is changed from model to model, and the measures are compared.

Of noise: how many negative images show something else than their captions say, and what filtering them
brings back. Of mining: which negatives a triplet loss counts, judged by R@1 and by mAP@R (ECCV Caption Figure
5a)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from counterfoil.errors import InputError
from counterfoil.evaluation.replicates import (
    Evidence,
    Replicates,
    Side,
    deciding,
    differences,
    percent,
    points,
)
from counterfoil.evaluation.result import Run

#: The measures of the study of noise.
NOISE = "What do wrong negative images cost, and what does filtering bring back?"


@dataclass(frozen=True, eq=False)
class Trial:
    """One setting of the dial: its runs, one per seed; `x` if it is a number, `series` what it is one of."""

    label: str
    runs: Sequence[Run]
    x: float | None = None
    series: str = ""


@dataclass(frozen=True)
class Setting:
    """The levels of a trial that a page draws, one per measure."""

    label: str
    x: float | None
    series: str
    levels: Mapping[str, Evidence]


@dataclass(frozen=True)
class Sweep:
    """A study with a dial: its settings, the differences that were asked, and a sentence with the numbers.

    `axis` says what the dial is; `measures` are those of every setting.
    """

    key: str
    question: str
    axis: str
    measures: tuple[str, ...]
    settings: tuple[Setting, ...]
    differences: tuple[Evidence, ...]
    sentence: str


def noise(trials: Sequence[Trial]) -> Sweep:
    """T2I and group of quads as more of the negative images in training are wrong, and with filtering.

    `x` is the share of wrong negative images in [0, 1], `series` what was done about them ("as generated",
    "filtered"). Differences are against the first trial, and of every other series against the trial of the
    first series with the same `x`; Holm's correction is over all of them. Raises `InputError` for fewer than
    two trials, or one without `x`.
    """
    models = _models(trials)
    for trial in trials:
        if trial.x is None:
            raise InputError("a trial of the noise study has no rate", where=trial.label)
    measures = ("t2i", "group")
    first = trials[0].series
    pairs = [(at, 0) for at in range(1, len(trials)) if trials[at].series == first]
    pairs += [
        (at, other)
        for at, trial in enumerate(trials)
        if trial.series != first
        for other, raw in enumerate(trials)
        if raw.series == first and raw.x == trial.x
    ]
    comparisons: list[tuple[str, Side, Side]] = [
        (f"{trials[a].label} against {trials[b].label}", ([models[a]], measure), ([models[b]], measure))
        for a, b in pairs
        for measure in measures
    ]
    evidence = deciding(differences(comparisons))
    of_group = [difference for difference in evidence if difference.measure == "group"]
    return Sweep(
        key="noise",
        question=NOISE,
        axis="share of wrong negative images",
        measures=measures,
        settings=_settings(trials, dict.fromkeys(measures, models)),
        differences=tuple(evidence),
        sentence=f"In group: {'; '.join(f'{one.label}, {points(one)}' for one in of_group)}.",
    )


def mining(trials: Sequence[Trial], *, own: Sequence[Trial] = ()) -> Sweep:
    """Two measures of a gallery, by which negatives the loss counted: does the stricter one agree?

    `own` are the same trials, where only the pairs that captions were written for count as right: the first
    measure, R@1, is taken from those where they are given, as COCO has it. Differences are of every later
    trial against every earlier one. The sentence names the best trial under each measure, and says of the
    pairs of trials which either measure tells apart. Raises `InputError` for fewer than two trials, and where
    `own` are others.
    """
    if own and [trial.label for trial in own] != [trial.label for trial in trials]:
        raise InputError(
            "the trials under their own pairs are others",
            given=", ".join(trial.label for trial in own),
            allowed=", ".join(trial.label for trial in trials),
        )
    measures, names = ("mean_recall_at_1", "mean_map_at_r"), ("R@1", "mAP@R")
    all_pairs = _models(trials)
    of_measure = {measures[0]: _models(own) if own else all_pairs, measures[1]: all_pairs}
    settings = _settings(trials, of_measure)
    pairs = [(later, earlier) for later in range(len(trials)) for earlier in range(later)]
    pairs.sort(key=lambda pair: (pair[1], pair[0]))
    evidence = {}
    for measure, of in of_measure.items():
        sides = [
            (f"{of[a].name} against {of[b].name}", ([of[a]], measure), ([of[b]], measure)) for a, b in pairs
        ]
        evidence[measure] = differences(sides)
    orders = [
        sorted(range(len(settings)), key=lambda at: -settings[at].levels[measure].value)
        for measure in measures
    ]
    best = [settings[order[0]] for order in orders]
    sentences = [
        f"{words} puts {one.label} first, at {percent(one.levels[measure])}"
        for words, measure, one in zip(names, measures, best, strict=True)
    ]
    # Whether the measures order trials alike, by their values and as far as intervals tell them apart.
    alike = "They order all of them alike" if orders[0] == orders[1] else "They do not order them alike"
    signs = [
        [(difference.low > 0) - (difference.high < 0) for difference in evidence[measure]]
        for measure in measures
    ]
    separated = [sum(map(bool, of)) for of in signs]
    against = [d.label for d, a, b in zip(evidence[measures[0]], *signs, strict=True) if a * b < 0]
    clash = "and no pair is told apart by both"
    if against:
        clash = f"and they contradict each other on {'; '.join(against)}"
    elif any(a * b for a, b in zip(*signs, strict=True)):
        clash = "and nowhere does one contradict the other"
    all_of = "the one pair" if len(pairs) == 1 else f"the {len(pairs)} pairs"
    agreement = (
        f"{alike} by their values. Of {all_of} of ways, {names[0]} tells {separated[0]} apart "
        f"with its whole interval and {names[1]} {separated[1]}, {clash}."
    )
    counted = "As in COCO, R@1 counts only what a caption was written for; mAP@R counts all that is true. "
    return Sweep(
        key="mining",
        question="Which negatives should a triplet loss count?",
        axis="mining of negatives",
        measures=measures,
        settings=settings,
        differences=tuple(difference for measure in measures for difference in evidence[measure]),
        sentence=f"{counted if own else ''}{sentences[0]}; {sentences[1]}. {agreement}",
    )


def _settings(trials: Sequence[Trial], of_measure: Mapping[str, Sequence[Replicates]]) -> tuple[Setting, ...]:
    """The levels of every trial, by the models of each measure."""
    return tuple(
        Setting(
            trial.label, trial.x, trial.series, {name: of[at].level(name) for name, of in of_measure.items()}
        )
        for at, trial in enumerate(trials)
    )


def _models(trials: Sequence[Trial]) -> list[Replicates]:
    if len(trials) < 2:
        raise InputError("a study with a dial needs two trials", given=len(trials))
    return [Replicates(trial.label, tuple(trial.runs)) for trial in trials]
