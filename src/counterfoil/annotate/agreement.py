"""Agreement between the people of a campaign, per question and kind of item, as answered and more coarsely.

It reads a table of judgements (`annotate.judgement_table`), wherever that came from, and looks at answers
that count: those to golden items and to the test before the work are left out. How answers are compared
depends on the question:

* one option: as answered, on the question's own scale, and in the coarser readings that the form names;
* several options: each option as a question of its own, marked or not;
* spans: each label as a question of its own, whether the answer has a span of it;
* a text: not at all.

Sources: BiVLC, appendix H.3 (Cohen's kappa of pairs of people; any image or none); ECCV Caption, B.1.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from counterfoil.annotate.campaign import Campaign
from counterfoil.annotate.forms.base import NOT_VISIBLE, AnswerOption, FormField
from counterfoil.annotate.judgement_table import answer_value, encoded
from counterfoil.errors import InputError
from counterfoil.evaluation.agreement import PeopleAgreement, pair_agreements, people_agreement
from counterfoil.evaluation.result import Estimate
from counterfoil.metrics.agreement import ReliabilityData, Scale, pair_kappas

#: The fewest shared items that give two people a kappa of their own.
LEAST_SHARED = 10
#: Reweightings behind an interval: its width is then known to about 4 %.
DRAWS = 400
#: With more people than these no table of all pairs is made.
_MOST_PAIRED = 2_000
#: Pairs of people are listed where there are no more than these.
MOST_LISTED = 60
#: Kinds of item that are one of the two of a direction, such as "i2t-0" and "i2t-1".
_OF_DIRECTION = re.compile(r"(i2t|t2i)-\d+")


@dataclass(frozen=True)
class PairwiseKappa:
    """Cohen's kappa of pairs of people who share enough items; `each` where they are few enough."""

    mean: float
    lowest: float
    highest: float
    pairs: int
    each: tuple[tuple[str, str, Estimate], ...] = ()

    def to_json(self) -> dict[str, Any]:
        pairs = []
        for *who, kappa in self.each:
            ends = {"value": kappa.value, "low": kappa.low, "high": kappa.high}
            bounds = {name: None if end != end else end for name, end in ends.items()}
            pairs.append({"people": who, "items": kappa.n, **bounds})
        return {**vars(self), "each": pairs}


@dataclass(frozen=True)
class QuestionAgreement:
    """Agreement about one question: in one reading ("" as answered), of one kind of item ("" all)."""

    question: str
    reading: str
    kind: str
    people: PeopleAgreement
    cohen: PairwiseKappa | None

    def to_json(self) -> dict[str, Any]:
        cohen = None if self.cohen is None else self.cohen.to_json()
        names = {"question": self.question, "reading": self.reading, "kind": self.kind}
        return {**names, **self.people.to_json(), "cohen": cohen}


@dataclass(frozen=True)
class CampaignAgreement:
    """Agreement of all questions, and questions that cannot be compared with the reason."""

    questions: tuple[QuestionAgreement, ...]
    left_out: Mapping[str, str]

    def to_json(self) -> dict[str, Any]:
        return {"questions": [of.to_json() for of in self.questions], "left_out": dict(self.left_out)}


def fields_of(campaign: Campaign) -> dict[str, FormField]:
    """The fields of a campaign by name, with the options of all its items, those that stand last last."""
    fields: dict[str, FormField] = {}
    alike: dict[str, dict[str, int]] = {}
    for item in campaign.items:
        for field in campaign.form.page(item).fields:
            first = fields.setdefault(field.name, field)
            alike.setdefault(field.name, {})[item.id] = len(field.exchangeable_values)
            if first.values != field.values:
                parts: dict[bool, dict[str, AnswerOption]] = {False: {}, True: {}}
                for one in (first, field):
                    for i, option in enumerate(one.options):
                        parts[i >= len(one.options) - one.last][option.value] = option
                joined = {
                    name: {**first.coarser.get(name, {}), **their} for name, their in field.coarser.items()
                }
                options = (*parts[False].values(), *parts[True].values())
                fields[field.name] = replace(first, options=options, last=len(parts[True]), coarser=joined)
    for name, numbers in alike.items():
        if len(set(numbers.values())) > 1:
            fields[name] = replace(fields[name], alike_in=numbers)
    return fields


def campaign_agreement(
    table: pa.Table,
    fields: Mapping[str, FormField] | None = None,
    *,
    scale: Scale | None = None,
    by_kind: bool = True,
    draws: int = DRAWS,
    seed: int = 0,
) -> CampaignAgreement:
    """Agreement per question, with 95 % intervals over items and people; NaN where undefined.

    Of a question that is not among `fields` answers are compared by equality.
    """
    table = counted(table)
    if not len(table):
        raise InputError("no answers that count", hint="golden items and the test before the work do not")
    parts: list[QuestionAgreement] = []
    left_out: dict[str, str] = {}
    for question in pc.unique(table.column("question")).to_pylist():
        rows = table.filter(pc.equal(table.column("question"), question))
        field = (fields or {}).get(question)
        if field is not None and field.kind == "text":
            left_out[question] = "texts are not compared"
            continue
        kinds: set[str] = set()
        if by_kind and "kind" in rows.column_names:
            kinds = {kind for kind in pc.unique(rows.column("kind")).to_pylist() if kind}
            # Each direction as a whole stands before its two kinds.
            ways = {match[1] for kind in kinds if (match := _OF_DIRECTION.fullmatch(kind))}
            kinds |= ways if len(ways) > 1 else set()
        _, item = encoded(rows.column("item"))
        names, person = encoded(rows.column("person"))
        for reading, values, level in _readings(rows, question, field, scale):
            alike = None
            if not reading and field is not None and level == Scale.NOMINAL and field.exchangeable_values:
                # How many exchangeable options each answer is one of, 0 where it is none.
                chosen = pc.is_in(rows.column("answer"), pa.array(field.exchangeable_values, pa.string()))
                alike = np.where(chosen.to_numpy(), field.alike(rows.column("item").to_pylist()), 0)
            for kind in ["", *(sorted(kinds) if len(kinds) > 1 else ())]:
                here = np.ones(len(rows), dtype=np.bool_)
                if kind:
                    of_kind = [kind, *(f"{kind}-{k}" for k in (0, 1) if kind in ("i2t", "t2i"))]
                    here = pc.is_in(rows.column("kind"), pa.array(of_kind)).to_numpy()
                if here.any():
                    answers = item[here], person[here], values[here]
                    their_alike = None if alike is None else alike[here]
                    drawn: Any = {"alike": their_alike, "draws": draws, "seed": seed}
                    agreement = people_agreement(*answers, scale=level, **drawn)
                    cohen = _pairwise(*answers, names, **drawn)
                    parts.append(QuestionAgreement(question, reading, kind, agreement, cohen))
    return CampaignAgreement(tuple(parts), left_out)


def counted(table: pa.Table) -> pa.Table:
    """The judgements of work that count: not set aside, not golden, not of what could not be seen."""
    if "counted" in table.column_names:
        table = table.filter(pc.fill_null(table.column("counted"), True))
    if "answer" in table.column_names:
        table = table.filter(pc.not_equal(table.column("answer"), NOT_VISIBLE))
    if "role" in table.column_names:
        # A missing role is that of work.
        role = pc.fill_null(table.column("role"), "")
        return table.filter(pc.is_in(role, value_set=pa.array(["", "work"])))
    return table.filter(pc.is_null(table.column("golden"))) if "golden" in table.column_names else table


def _readings(
    rows: pa.Table, question: str, field: FormField | None, scale: Scale | None
) -> Iterator[tuple[str, NDArray[Any], Scale]]:
    """The name of each reading, its values by row, and the scale that it is on."""
    words, of_row = encoded(rows.column("answer"))
    if field is not None and field.kind in ("many", "spans"):
        marks = [answer_value(word, field.kind, where=f"question '{field.name}'") for word in words]
        marked = [{mark["label"] if isinstance(mark, dict) else mark for mark in of} for of in marks]
        options = field.values or tuple(sorted(set().union(*marked)))
        for option in options:
            has = np.array([option in chosen for chosen in marked], dtype=np.int64)
            yield option, has[of_row], Scale.NOMINAL
        return
    level = scale or Scale(field.level if field is not None else "nominal")
    answers: NDArray[Any] = np.array(words)
    if level != Scale.NOMINAL:
        # Numbers where all are, else the places of a form's options.
        positions = {} if field is None else {value: i for i, value in enumerate(field.values)}
        odd = next((word for word in words if word not in positions), None)
        try:
            answers = np.array([float(word) for word in words])
        except ValueError:
            if odd is not None:
                what = f"has no place on a scale that is {level.value}"
                hint = "compare by equality with --scale nominal"
                allowed, where = "numbers, or the options of a form in their order", f"question '{question}'"
                raise InputError(what, where=where, given=odd, allowed=allowed, hint=hint) from None
            answers = np.array([positions[word] for word in words], dtype=np.float64)
    yield "", answers[of_row], level
    for name, joined in ({} if field is None else field.coarser).items():
        yield name, np.array([joined.get(word, word) for word in words])[of_row], Scale.NOMINAL


def _pairwise(
    items: NDArray[np.int64],
    people: NDArray[np.int64],
    values: NDArray[Any],
    names: Sequence[str],
    alike: NDArray[np.int64] | None,
    draws: int,
    seed: int,
) -> PairwiseKappa | None:
    """Over pairs of people with `LEAST_SHARED` items or more; people with fewer answers have no such pair."""
    enough = np.bincount(people)[people] >= LEAST_SHARED
    if not enough.any() or len(np.unique(people[enough])) > _MOST_PAIRED:
        return None
    own_alike = None if alike is None else alike[enough]
    data = ReliabilityData.of(items[enough], people[enough], values[enough], own_alike)
    kappas, shared = pair_kappas(data)
    upper = np.triu(shared >= LEAST_SHARED, k=1)
    defined = kappas[upper & ~np.isnan(kappas)]
    if not len(defined):
        return None
    who = np.unique(people[enough])
    pairs = [(int(who[i]), int(who[j])) for i, j in np.argwhere(upper)]
    listed: tuple[tuple[str, str, Estimate], ...] = ()
    if len(pairs) <= MOST_LISTED:
        agreement = pair_agreements(items, people, values, pairs, alike=alike, draws=draws, seed=seed)
        listed = tuple((names[i], names[j], kappa) for (i, j), kappa in zip(pairs, agreement, strict=True))
    mean, lowest, highest = map(float, (defined.mean(), defined.min(), defined.max()))
    return PairwiseKappa(mean, lowest, highest, len(defined), listed)
