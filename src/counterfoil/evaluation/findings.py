"""BiVLC's findings tested on the runs at hand, each with a verdict and its evidence.

A finding is a claim in words and the differences that decide it. It *holds* where each of them lies above its
threshold with its whole 95 % interval and significantly (paired test, Holm's correction over the
finding's differences); it *does not hold* where one lies below with its whole interval; else it is
*undecided*. Nothing else enters: a finding that fails is reported like one that holds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal

from counterfoil.benchmarks.forms import Choice, Quad
from counterfoil.evaluation.compare import Comparison
from counterfoil.evaluation.evaluate import main_measures
from counterfoil.evaluation.evidence import (
    Evidence,
    Side,
    check_same,
    deciding,
    differences,
    independent_difference,
    percent,
    points,
)
from counterfoil.evaluation.result import Run

Verdict = Literal["holds", "does not hold", "undecided"]

#: The models that were trained, in the order in which they are shown, and the detectors.
TRAINED = ("pretrained", "coco", "trohn-text", "trohn-img")
DETECTORS = ("detectors", "trohn-img-detectors")


@dataclass(frozen=True)
class Finding:
    """A claim, its verdict from the runs, and the numbers behind it.

    `evidence` holds first the levels (a measure of each model), then the differences; those that `decide` are
    the family behind the verdict. `sentence` says it in words, with the numbers.
    """

    key: str
    claim: str
    verdict: Verdict
    evidence: tuple[Evidence, ...]
    sentence: str

    @property
    def levels(self) -> tuple[Evidence, ...]:
        """The measures of the models."""
        return tuple(number for number in self.evidence if number.kind == "level")

    @property
    def differences(self) -> tuple[Evidence, ...]:
        """The differences, deciding ones and others."""
        return tuple(number for number in self.evidence if number.kind == "difference")


@dataclass(frozen=True)
class Ordering:
    """Models by one measure, best first; `apart` is whether no two neighbours' intervals overlap."""

    measure: str
    levels: tuple[Evidence, ...]
    apart: bool
    sentence: str


def findings(runs: Sequence[Run], *, far: float = 0.1) -> tuple[Finding, ...]:
    """The four findings of BiVLC, each with its verdict, from the runs of every model.

    `runs` are those of "pretrained", "coco", "trohn-text", "trohn-img", "detectors" and "trohn-img-detectors"
    on quads and on choices, in any order, told apart by the form of their questions: one run per model and
    form. All models must have been asked the same quads, and the same choices. Other names are let pass. A
    finding whose models or benchmarks are not there is left out:

    * `direction`: images find their captions more often than captions their images (I2T minus T2I, over the
      mean of the trained models; each alone is told beside it);
    * `texts`: hard-negative texts raise the accuracy of choices, and group less (trohn-text minus coco on
      choices, and that gain minus the gain in group);
    * `images`: hard-negative images raise T2I and group most (trohn-img minus each other trained model);
    * `detectors`: telling natural from synthetic is far from enough (trohn-img minus detectors in group,
      against `far`).

    Source: BiVLC, sections 5.1 to 5.3.
    """
    quads, choices = _of_form(runs, Quad), _of_form(runs, Choice)
    tested = (_direction(quads), _texts(quads, choices), _images(quads), _detectors(quads, far))
    return tuple(finding for finding in tested if finding is not None)


def confirmed(
    tested: Sequence[Finding], control: Sequence[Finding], *, where: str, suffix: str
) -> tuple[Finding, ...]:
    """The same findings asked `where` an artefact could answer them as well, held to what the control says.

    A finding that the `control` could be asked too holds only where both say so: the differences that decide
    in the control decide here as well, in one family (Holm's correction is over all of them). One that it
    could not be asked stays as it is. Claims are said of `where`, keys end in `suffix`, but for those that
    the control has no finding of.
    """
    answers = {finding.key: finding for finding in control}
    held_to = []
    for finding in tested:
        if finding.key not in answers:
            held_to.append(finding)
            continue
        own = finding.differences
        known = {(number.label, number.value, number.low, number.high) for number in own}
        theirs = [
            replace(number, label=f"{number.label}, control")
            for number in answers[finding.key].differences
            # The same difference of the same questions counts once.
            if number.decides and (number.label, number.value, number.low, number.high) not in known
        ]
        family = iter(deciding([number for number in (*own, *theirs) if number.decides]))
        differences = tuple(next(family) if number.decides else number for number in (*own, *theirs))
        held, sentence = verdict(differences), finding.sentence
        if finding.verdict == "holds" and held != "holds":
            sentence += " By itself this would hold; the control does not bear it out."
        key, claim = f"{finding.key}-{suffix}", f"{where}, {finding.claim[0].lower()}{finding.claim[1:]}"
        held_to.append(Finding(key, claim, held, (*finding.levels, *differences), sentence))
    return tuple(held_to)


def ordering(runs: Sequence[Run]) -> Ordering | None:
    """The models trained on pairs by group on the quads, best first, and whether their intervals overlap.

    None where fewer than two of them were asked quads. Models with equal values stay in the order given.
    """
    quads = _of_form(runs, Quad)
    present = [quads[name] for name in TRAINED[1:] if name in quads]
    if len(present) < 2:
        return None
    check_same(present)
    levels = _levels(present, ("group",))
    levels.sort(key=lambda level: -level.value)
    clear = all(a.low > b.high for a, b in pairwise(levels))
    listed = "; ".join(f"{level.label} {percent(level)}" for level in levels)
    return Ordering(
        measure="group",
        levels=tuple(levels),
        apart=clear,
        sentence=f"Group, best first: {listed}. "
        + ("The intervals do not overlap." if clear else "Some of these intervals overlap."),
    )


def _of_form(runs: Sequence[Run], form: type[Quad] | type[Choice]) -> dict[str, Run]:
    """The run of each model on questions of one form, where it has one."""
    return {run.name: run for run in runs if isinstance(run.benchmark.questions, form)}


def verdict(evidence: Sequence[Evidence]) -> Verdict:
    """The verdict of the deciding differences.

    >>> def at(low, high):
    ...     return Evidence("a", "m", "difference", (low + high) / 2, low, high, 9, decides=True)
    >>> verdict([at(0.1, 0.2), at(0.3, 0.4)]), verdict([at(0.1, 0.2), at(-0.2, -0.1)])
    ('holds', 'does not hold')
    >>> verdict([at(0.1, 0.2), at(-0.1, 0.1)])
    'undecided'
    """
    family = [number for number in evidence if number.decides]
    if any(number.below for number in family):
        return "does not hold"
    return "holds" if family and all(number.above for number in family) else "undecided"


def _direction(quads: Mapping[str, Run]) -> Finding | None:
    present = [quads[name] for name in TRAINED if name in quads]
    if not present:
        return None
    comparisons: list[tuple[str, Side, Side]] = [("mean of all models", (present, "i2t"), (present, "t2i"))]
    comparisons += [(model.name, ([model], "i2t"), ([model], "t2i")) for model in present]
    overall, *singles = differences(comparisons)
    (overall,) = deciding([overall])
    own = sum(one.low > 0 for one in singles)
    trained = "one trained model" if len(present) == 1 else f"{len(present)} trained models"
    alone = "Each alone shows it." if own == len(singles) else f"{own} of {len(singles)} show it alone."
    mean_i2t, mean_t2i = (
        f"{100 * sum(model[measure].value for model in present) / len(present):.1f} %"
        for measure in ("i2t", "t2i")
    )
    return _tested(
        "direction",
        "Image-to-text is easier than text-to-image.",
        (*_levels(present, ("i2t", "t2i")), overall, *singles),
        f"Over {trained}, images find both their captions in {mean_i2t} of the questions, and captions both "
        f"their images in {mean_t2i}: {points(overall)}. {alone}",
    )


def _tested(key: str, claim: str, evidence: Sequence[Evidence], sentence: str) -> Finding:
    """The finding with the verdict of its evidence."""
    return Finding(key, claim, verdict(evidence), tuple(evidence), sentence)


def _texts(quads: Mapping[str, Run], choices: Mapping[str, Run]) -> Finding | None:
    names = ("coco", "trohn-text")
    if not all(name in form for form in (quads, choices) for name in names):
        return None

    def gain(form: Mapping[str, Run], measure: str, label: str) -> Evidence:
        one, other = ([form[name]] for name in ("trohn-text", "coco"))
        return differences([(label, (one, measure), (other, measure))])[0]

    choice = gain(choices, "accuracy", "choices: trohn-text − coco")
    group = gain(quads, "group", "group: trohn-text − coco")
    choice, more = deciding([choice, independent_difference("the first − the second", choice, group)])
    levels = _levels([choices[name] for name in names], ("accuracy",))
    levels += _levels([quads[name] for name in names], ("group",))
    return _tested(
        "texts",
        "Hard-negative texts raise image-to-text choice, but not group as much.",
        (*levels, choice, group, more),
        f"Hard-negative texts move the choice of the right caption by {points(choice)} and group by "
        f"{points(group)}; the first minus the second is {points(more)}.",
    )


def _images(quads: Mapping[str, Run]) -> Finding | None:
    others = [quads[name] for name in TRAINED if name in quads and name != "trohn-img"]
    if "trohn-img" not in quads or not others:
        return None
    ours = quads["trohn-img"]
    comparisons: list[tuple[str, Side, Side]] = [
        (f"{words}: trohn-img − {other.name}", ([ours], measure), ([other], measure))
        for measure, words in (("t2i", "T2I"), ("group", "group"))
        for other in others
    ]
    tested = deciding(differences(comparisons))
    t2i, group = (
        min((number for number in tested if number.measure == measure), key=lambda number: number.value)
        for measure in ("t2i", "group")
    )
    return _tested(
        "images",
        "Hard-negative images raise text-to-image and group most.",
        (*_levels((*others, ours), ("t2i", "group")), *tested),
        "Against the nearest other model each, hard-negative images move text-to-image by "
        f"{points(t2i)} and group by {points(group)}.",
    )


def _detectors(quads: Mapping[str, Run], far: float) -> Finding | None:
    present = [quads[name] for name in DETECTORS if name in quads]
    if "trohn-img" not in quads or not present:
        return None
    ours = quads["trohn-img"]
    comparisons: list[tuple[str, Side, Side]] = [
        (f"trohn-img − {model.name}", ([ours], "group"), ([model], "group")) for model in present
    ]
    tested = deciding(differences(comparisons, threshold=far))
    levels = _levels((*present, ours), ("group",))
    nearest = min(tested, key=lambda number: number.value)
    alone = max(levels[:-1], key=lambda number: number.value)
    return _tested(
        "detectors",
        "Detectors of what is synthetic, alone, stay far below.",
        (*levels, *tested),
        f"Knowing only what looks synthetic gets {percent(alone)} in group; trohn-img differs from "
        f"that by {points(nearest)}. Far means more than {100 * far:g} points.",
    )


def _levels(models: Sequence[Run], measures: Sequence[str]) -> list[Evidence]:
    """Each measure of each model, measure by measure."""
    return [Evidence.of(model.name, measure, model[measure]) for measure in measures for model in models]


@dataclass(frozen=True)
class Claim:
    """The claim that one metric agrees with the truth better than another."""

    key: str
    text: str
    ahead: str
    behind: str


_JUDGE = "is the better judge of captions."
CLAIMS = (
    Claim("looking", "Looking at the picture tells more than reading references.", "clip-s", "cider"),
    Claim("both", "Looking and reading together tell more than looking alone.", "ref-clip-s", "clip-s"),
    Claim(
        *("judge", f"A network that learned from hard-negative pictures {_JUDGE}", "clip-s", "clip-s, coco")
    ),
    Claim("generated", f"A network that learned from generated positives {_JUDGE}", "pac-s", "clip-s"),
)
#: The metric of videos in place of a metric of pictures.
MOVING = {"clip-s": "em-score", "ref-clip-s": "ref-em-score", "clip-s, coco": "em-score, coco"}
_WORDS = {"kendall_tau_b": "tau-b", "kendall_tau_c": "tau-c"}


def caption_findings(
    comparisons: Sequence[Comparison], claims: Sequence[Claim] = CLAIMS
) -> tuple[Finding, ...]:
    """Every claim that the comparisons can answer, with its verdict and the numbers behind it.

    The metrics are runs by their names, on rated captions and on preferences; one whose runs or tests are not
    there is left out.
    """
    tested = (_finding(claim, comparisons) for claim in claims)
    return tuple(finding for finding in tested if finding is not None)


def measure_of(comparison: Comparison) -> str:
    """What decides: of ratings the correlation that their card puts first, of preferences the accuracy."""
    return main_measures(comparison.runs[0].benchmark)[0]


def _finding(claim: Claim, comparisons: Sequence[Comparison]) -> Finding | None:
    levels: list[Evidence] = []
    still: list[Evidence] = []
    moving: list[Evidence] = []
    for comparison in comparisons:
        benchmark, measure = comparison.runs[0].benchmark, measure_of(comparison)
        on_videos = benchmark.card.shows == "video"
        ahead, behind = (MOVING.get(n, n) if on_videos else n for n in (claim.ahead, claim.behind))
        of_both = (d for d in comparison.differences if {d.a, d.b} == {ahead, behind})
        difference = next((d for d in of_both if d.measure == measure), None)
        if difference is None:
            continue
        value, low, high = difference.value, difference.low, difference.high
        if difference.a == behind:
            value, low, high = -value, -high, -low
        label = f"{ahead} − {behind} ({'clips' if on_videos else _WORDS.get(measure, measure)})"
        (moving if on_videos else still).append(
            Evidence(label, measure, "difference", value, low, high, len(benchmark), p=difference.p)
        )
        if not on_videos:
            for name in (ahead, behind):
                run = next(run for run in comparison.runs if run.name == name)
                levels.append(Evidence.of(name, measure, run.result.measures[measure]))
    if not still:
        return None
    still = deciding(still)
    sentence = f"{claim.ahead} differs from {claim.behind} by {_listed(still)}."
    if moving:
        ahead, behind = (MOVING.get(name, name) for name in (claim.ahead, claim.behind))
        sentence += f" On clips, {ahead} differs from {behind} by {_listed(moving)}."
    return Finding(claim.key, claim.text, verdict(still), (*levels, *still, *moving), sentence)


def _listed(differences: Sequence[Evidence]) -> str:
    return " and ".join(
        f"{points(number)} in {_WORDS.get(number.measure, number.measure)}" for number in differences
    )
