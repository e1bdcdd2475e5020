"""Signatures: one line of all that a number depends on besides the scorer and the questions."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from counterfoil.metrics.measures import find

if TYPE_CHECKING:
    from counterfoil.evaluation.result import Result


def signature(result: "Result", measure: str = "") -> str:
    """The signature of a measure of a result, from what the result says of its ties and its provenance.

    Without a measure, the line that all measures of the result share. What is not known is left out.
    docs/statistics.md says how to read one. Source: the signatures of sacreBLEU (M. Post, A call for clarity
    in reporting BLEU scores, 2018).

    >>> from counterfoil.evaluation.result import Result
    >>> interval = {"method": "bootstrap", "draws": 10000, "clusters": "image", "seed": 0}
    >>> made = {"interval": interval, "versions": {"counterfoil": "0.1.0"}}
    >>> ties = {"policy": "strict", "questions": 0}
    >>> signature(Result("pairs", "scorer", {}, ties=ties, provenance=made), "group")
    'group|ties:strict|ci:bootstrap|draws:10000|clusters:image|seed:0|v0.1.0'
    """
    provenance = result.provenance
    parts = [measure] if measure else []
    interval = provenance.get("interval", {})
    if result.ties and interval.get("ends") != "percentiles":
        # Of given outcomes the policy is not known; correlations have none.
        policy = "as-given" if result.ties.get("questions") is None else result.ties["policy"]
        parts.append(f"ties:{policy}")
    # Wilson's interval and folds know no groups: a mean over groups has a bootstrap over questions.
    bootstrap = list(_interval({**interval, "method": "bootstrap", "clusters": "question"}))
    without_groups = interval.get("method") in ("wilson", "folds")
    if without_groups and _of_groups(measure):
        parts += bootstrap
    else:
        parts += _interval(interval)
        if without_groups and not measure and any(map(_of_groups, result.measures)):
            parts += [f"macro-{bootstrap[0]}", *bootstrap[1:]]
    parts += _questions(provenance, measure)
    version = provenance.get("versions", {}).get("counterfoil")
    return "|".join([*parts, *([f"v{version}"] if version else [])])


def _interval(interval: Mapping[str, Any]) -> Iterator[str]:
    method, percentiles = interval.get("method"), interval.get("ends") == "percentiles"
    if not method:
        return
    yield f"ci:{method}{'-percentiles' if percentiles else ''}"
    drawn = method == "bootstrap" or percentiles
    if drawn and "draws" in interval:
        yield f"draws:{interval['draws']}"
    if method == "crossed":
        yield "clusters:image+caption"
    elif drawn and "clusters" in interval:
        yield f"clusters:{interval['clusters']}"
    if drawn and "seed" in interval:
        yield f"seed:{interval['seed']}"


def _questions(provenance: Mapping[str, Any], measure: str) -> Iterator[str]:
    """Where rankings end, and what became of questions that were left out or not answered."""
    for side, depth in ((provenance.get("gallery") or {}).get("cut") or {}).items():
        other = {"i2t": "t2i", "t2i": "i2t"}[side]
        if depth is not None and not measure.startswith(f"{other}_"):
            yield f"cut-{side}:{depth}"
    about = provenance.get("benchmark", {})
    if about.get("limit") is not None:
        yield f"limit:{about['limit']}"
    if about.get("unanswered"):
        yield f"unanswered:{about['unanswered']['policy']}"


def _of_groups(measure: str) -> bool:
    declared = find(measure) if measure else None
    return declared is not None and bool(declared.macro_of)
