"""Claims about caption metrics against known truth, decided as `findings` decides.

A claim names two metrics. It is decided on pictures: by the first correlation of the card and by the
accuracy of preferences, a difference each; what moving pictures say is told beside it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from counterfoil.data.benchmark import Benchmark
from counterfoil.evaluation.compare import Comparison, Difference
from counterfoil.evaluation.evaluate import main_measures
from counterfoil.evaluation.studies.evidence import Evidence, deciding, points
from counterfoil.evaluation.studies.findings import Finding, verdict


@dataclass(frozen=True)
class Claim:
    """That one metric goes with the truth better than another."""

    key: str
    text: str
    ahead: str
    behind: str


CLAIMS = (
    Claim("looking", "Looking at the picture tells more than reading references.", "clip-s", "cider"),
    Claim("both", "Looking and reading together tell more than looking alone.", "ref-clip-s", "clip-s"),
    Claim(
        "judge",
        "A network that learned from hard-negative pictures is the better judge of captions.",
        "clip-s",
        "clip-s, coco",
    ),
    Claim(
        "generated",
        "A network that learned from generated positives is the better judge of captions.",
        "pac-s",
        "clip-s",
    ),
)
#: What stands for a metric of pictures where they move.
MOVING: Mapping[str, str] = {
    "clip-s": "em-score",
    "ref-clip-s": "ref-em-score",
    "clip-s, coco": "em-score, coco",
}
_WORDS = {"kendall_tau_b": "tau-b", "kendall_tau_c": "tau-c"}


def findings(comparisons: Sequence[Comparison], claims: Sequence[Claim] = CLAIMS) -> tuple[Finding, ...]:
    """Every claim that the comparisons can answer, with its verdict and the numbers behind it.

    The metrics are runs by their names, on rated captions and on preferences; one whose runs or tests are not
    there is left out.
    """
    found = (_finding(claim, comparisons) for claim in claims)
    return tuple(each for each in found if each is not None)


def measure_of(comparison: Comparison) -> str:
    """What decides: of ratings the correlation that their card puts first, of preferences the accuracy."""
    return main_measures(comparison.runs[0].benchmark)[0]


def _finding(claim: Claim, comparisons: Sequence[Comparison]) -> Finding | None:
    levels: list[Evidence] = []
    still: list[Evidence] = []
    moving: list[Evidence] = []
    for comparison in comparisons:
        on_videos = comparison.runs[0].benchmark.card.shows == "video"
        names = [MOVING.get(n, n) if on_videos else n for n in (claim.ahead, claim.behind)]
        difference = _difference(comparison, *names)
        if difference is None:
            continue
        (moving if on_videos else still).append(difference)
        if not on_videos:
            levels += [_level(comparison, name) for name in names]
    if not still:
        return None
    still = deciding(still)
    sentence = f"{claim.ahead} differs from {claim.behind} by {_listed(still)}."
    if moving:
        ahead, behind = (MOVING.get(name, name) for name in (claim.ahead, claim.behind))
        sentence += f" On clips, {ahead} differs from {behind} by {_listed(moving)}."
    return Finding(claim.key, claim.text, verdict(still), (*levels, *still, *moving), sentence)


def _level(comparison: Comparison, name: str) -> Evidence:
    measure = measure_of(comparison)
    e = next(run for run in comparison.runs if run.name == name).result.measures[measure]
    return Evidence(name, measure, "level", e.value, e.low, e.high, e.n, chance=e.chance)


def _difference(comparison: Comparison, ahead: str, behind: str) -> Evidence | None:
    measure = measure_of(comparison)
    for d in comparison.differences:
        if d.measure == measure and {d.a, d.b} == {ahead, behind}:
            return _evidence(d, comparison.runs[0].benchmark, turned=d.a == behind)
    return None


def _evidence(d: Difference, benchmark: Benchmark, *, turned: bool) -> Evidence:
    ahead, behind = (d.b, d.a) if turned else (d.a, d.b)
    value, low, high = (-d.value, -d.high, -d.low) if turned else (d.value, d.low, d.high)
    where = "clips" if benchmark.card.shows == "video" else _WORDS.get(d.measure, d.measure)
    label = f"{ahead} − {behind} ({where})"
    return Evidence(label, d.measure, "difference", value, low, high, len(benchmark), p=d.p)


def _listed(differences: Sequence[Evidence]) -> str:
    return " and ".join(f"{points(each)} in {_WORDS.get(each.measure, each.measure)}" for each in differences)
