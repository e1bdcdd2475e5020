"""Results of an evaluation: estimates with intervals, effects of ties, provenance and signatures; runs."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from math import isfinite
from typing import Any, cast

import numpy as np

from counterfoil.benchmarks.answers import Answers
from counterfoil.benchmarks.benchmark import Benchmark
from counterfoil.errors import UnknownNameError
from counterfoil.inputs.options import checked
from counterfoil.metrics.measures import find
from counterfoil.stats import Reals


@dataclass(frozen=True)
class Estimate:
    """A value with its interval, number of questions, and chance (None where undefined); ratios are in [0,
    1]. `effective` is how many questions that share nothing would tell as much, None where the interval does
    not say.
    """

    value: float
    low: float
    high: float
    n: int
    chance: float | None
    effective: float | None = None

    def __str__(self) -> str:
        return f"{self.value:.4f} [{self.low:.4f}, {self.high:.4f}]"


@dataclass(frozen=True)
class Result:
    """All measures of one model on one benchmark, and of its groups; `ties` names the policy and its
    effect, `provenance` weights, data, seeds and versions.
    """

    benchmark: str
    model: str
    measures: Mapping[str, Estimate]
    groups: Mapping[str, Mapping[str, Estimate]] = field(default_factory=dict)
    ties: Mapping[str, Any] = field(default_factory=dict)
    provenance: Mapping[str, Any] = field(default_factory=dict)

    def __getitem__(self, measure: str) -> Estimate:
        """The estimate of a measure over all questions; raises `UnknownNameError`."""
        if not isinstance(measure, str) or measure not in self.measures:
            raise UnknownNameError("measure", measure, self.measures, where=self.benchmark)
        return self.measures[measure]

    def __contains__(self, measure: object) -> bool:
        return measure in self.measures

    def __iter__(self) -> Iterator[str]:
        return iter(self.measures)

    @property
    def undefined(self) -> dict[str, str]:
        """Measures without a value, and why."""
        return {str(name): str(why) for name, why in (self.provenance.get("undefined") or {}).items()}

    def signature(self, measure: str = "") -> str:
        """One line of all that a measure depends on, from ties and provenance (docs/statistics.md); without
        a measure, what all measures share. Source: the signatures of sacreBLEU (M. Post, 2018).

        >>> interval = {"method": "clusters", "clusters": "image"}
        >>> made = {"interval": interval, "versions": {"counterfoil": "0.1.0"}}
        >>> ties = {"policy": "strict", "questions": 0}
        >>> Result("pairs", "model", {}, ties=ties, provenance=made).signature("group")
        'group|ties:strict|ci:clusters|clusters:image|v0.1.0'
        """
        provenance = self.provenance
        parts = [measure] if measure else []
        interval = provenance.get("interval", {})
        if self.ties and "ends" not in interval:
            # Of given outcomes the policy is not known; correlations have none.
            policy = "as-given" if self.ties.get("questions") is None else self.ties["policy"]
            parts.append(f"ties:{policy}")
        # Wilson's interval and folds know no groups: a mean over groups has one of questions as clusters.
        of_groups = list(_interval({**interval, "method": "clusters", "clusters": "question"}))
        without_groups = interval.get("method") in ("wilson", "folds")
        if without_groups and _of_groups(measure):
            parts += of_groups
        else:
            parts += _interval(interval)
            if without_groups and not measure and any(map(_of_groups, self.measures)):
                parts += [f"macro-{of_groups[0]}", *of_groups[1:]]
        # Where rankings end, and what became of questions that were left out or not answered.
        for side, depth in ((provenance.get("gallery") or {}).get("cut") or {}).items():
            other = {"i2t": "t2i", "t2i": "i2t"}[side]
            if depth is not None and not measure.startswith(f"{other}_"):
                parts.append(f"cut-{side}:{depth}")
        about = provenance.get("benchmark", {})
        if about.get("limit") is not None:
            parts.append(f"limit:{about['limit']}")
        if about.get("unanswered"):
            parts.append(f"unanswered:{about['unanswered']['policy']}")
        version = provenance.get("versions", {}).get("counterfoil")
        return "|".join([*parts, *([f"v{version}"] if version else [])])

    def to_json(self) -> dict[str, Any]:
        """Plain values, as `--json` and `result.json` hold them; `signature` is that of all measures."""
        fields = asdict(self)
        provenance = fields.pop("provenance")
        return {**fields, "signature": self.signature(), "provenance": provenance}

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> "Result":
        """The result that `to_json` wrote."""
        return cls(
            benchmark=fields["benchmark"],
            # Files of counterfoil 0.1 before 2026-12 say "scorer".
            model=fields["model"] if "model" in fields else fields["scorer"],
            measures={name: Estimate(**e) for name, e in fields["measures"].items()},
            groups={
                label: {name: Estimate(**e) for name, e in measures.items()}
                for label, measures in fields.get("groups", {}).items()
            },
            ties=fields.get("ties", {}),
            provenance=fields.get("provenance", {}),
        )


def or_none(value: object) -> object:
    """A value as JSON can hold it, lists and tables too: None in place of NaN and infinities."""
    if isinstance(value, dict):
        return {name: or_none(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [or_none(inner) for inner in value]
    if not isinstance(value, float):
        return value
    return float(value) if isfinite(value) else None


class Plain:
    """Dataclasses whose fields are all that JSON says of them."""

    def to_json(self) -> dict[str, Any]:
        """Plain values, None in place of NaN."""
        return cast(dict[str, Any], or_none(asdict(self)))  # type: ignore[call-overload]


@dataclass(frozen=True, eq=False)
class Run:
    """One model on one benchmark: questions (perhaps without pixels), answers, values, result."""

    name: str
    benchmark: Benchmark
    answers: Answers
    items: Mapping[str, Reals]
    result: Result
    manifest: Mapping[str, Any]

    def __getitem__(self, measure: str) -> Estimate:
        """The estimate of a measure over all questions, as `Result` gives it."""
        return self.result[measure]

    @checked
    def with_benchmark(self, benchmark: Benchmark) -> "Run":
        """The same run over `benchmark` with its pictures, if that asks all its questions; else itself."""
        place = {name: i for i, name in enumerate(benchmark.questions.ids)}
        positions = [place.get(name, -1) for name in self.benchmark.questions.ids]
        if min(positions) < 0:
            return self
        if positions != list(range(len(benchmark))):
            benchmark = benchmark.select(np.asarray(positions, dtype=np.int64))
        return replace(self, benchmark=benchmark) if benchmark.digest == self.benchmark.digest else self


def difference_signature(first: Result, other: Result, measure: str, interval: Mapping[str, Any]) -> str:
    """The signature of a difference; what the two results were made with differently stands twice."""
    results = (
        replace(result, provenance={**result.provenance, "interval": interval}) for result in (first, other)
    )
    lines = [result.signature(measure).split("|") for result in results]
    parts = dict.fromkeys(part for line in lines for part in line)
    return "|".join(sorted(parts, key=lambda part: max(line.index(part) for line in lines if part in line)))


def _interval(interval: Mapping[str, Any]) -> Iterator[str]:
    method, percentiles = interval.get("method"), interval.get("ends") == "percentiles"
    if not method:
        return
    yield f"ci:{method}{'-percentiles' if percentiles else ''}"
    if "draws" in interval:
        yield f"draws:{interval['draws']}"
    if method == "crossed":
        yield "clusters:image+caption"
    elif method not in ("wilson", "folds") and "clusters" in interval:
        yield f"clusters:{interval['clusters']}"
    if "seed" in interval:
        yield f"seed:{interval['seed']}"


def _of_groups(measure: str) -> bool:
    declared = find(measure) if measure else None
    return declared is not None and bool(declared.macro_of)


def tenths(value: float, *, signed: bool = False) -> str:
    """A ratio or difference times a hundred, with one decimal; what rounds to nothing has no sign.

    >>> tenths(-0.0412), tenths(0.5), tenths(0.069, signed=True), tenths(-0.0002, signed=True)
    ('−4.1', '50.0', '+6.9', '0.0')
    """
    text = f"{100 * value:{'+' if signed else ''}.1f}"
    return text.replace("-", "−") if float(text) else text.lstrip("+-")
