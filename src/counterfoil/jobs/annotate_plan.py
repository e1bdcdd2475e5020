"""Campaigns before people come: planned by numbers, and tried by simulated people."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from statistics import fmean, pstdev
from typing import TYPE_CHECKING, Annotated, Any, Literal, Unpack

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from counterfoil.annotate.agreement import CampaignAgreement, campaign_agreement, fields_of
from counterfoil.annotate.budget import READING, budget_of
from counterfoil.annotate.campaign import DATABASE, FILES, Campaign, open_campaign
from counterfoil.annotate.forms.base import FormField, WorkItem
from counterfoil.annotate.forms.registry import WORK_FORMS, WorkFormEntry
from counterfoil.annotate.judgement_table import Submissions, check_table_kind, write_judgement_table
from counterfoil.annotate.labels import LabelOutcome, label_outcomes
from counterfoil.annotate.quality import people_quality
from counterfoil.errors import InputError
from counterfoil.evaluation.result import Estimate
from counterfoil.inputs.limits import most
from counterfoil.inputs.options import key_values
from counterfoil.jobs.annotate_judgements import CAMPAIGN
from counterfoil.jobs.arguments import OVERWRITE, SEED, Reporting, feedback_of, path_of
from counterfoil.jobs.job import job, option
from counterfoil.jobs.outputs import guarded
from counterfoil.jobs.results import Tabular, declared, lines
from counterfoil.outputs import Folder
from counterfoil.report.labels import amount
from counterfoil.report.tables import Column, Table
from counterfoil.stats.label_planning import (
    MOST_LABELS,
    LabelDesign,
    LabelPlan,
    PlannedEstimate,
    accuracy_needed,
    labelling_cost,
    labelling_hours,
    labels_needed,
    plan_labels,
)
from counterfoil.store import check_writable

if TYPE_CHECKING:
    from counterfoil.annotate.simulation import SimulatedPerson, Simulation

#: What is estimated, by the name of the plan's number.
_ESTIMATES = {
    "score": "items whose label is right",
    "positive": "items of one class",
    "answers": "answers that are right",
    "agreement": "pairs of answers that agree",
    "alpha": "Krippendorff's alpha",
}
#: Shares of kinds of people, or texts KIND=SHARE,....
Mix = Mapping[str, float] | Sequence[str]


@dataclass(frozen=True, eq=False, repr=False)
class AnnotationPlan(Tabular):
    """What to expect of a campaign, how long it takes, and what it costs."""

    form: str
    plan: LabelPlan
    seconds: float
    hours: float
    cost: float
    pay: float
    #: The price of an item, None where pay goes by the hour.
    pay_per_item: float | None
    fee: float
    currency: str
    #: Whether every option is exchangeable, so that there is no class to count.
    exchangeable: bool = False

    rows_by = declared(
        estimate="one per number that will be estimated: `estimate`, its expected `value: float`, the "
        "`half_width: float` of its 95 % interval, `low: float` and `high: float`; alpha is at most 1, all "
        "others in [0, 1]"
    )

    @property
    def estimates(self) -> dict[str, PlannedEstimate]:
        """What will be estimated, by name."""
        named = [(name, getattr(self.plan, name)) for name in _ESTIMATES]
        left_out = ["positive"] if self.exchangeable else []
        return {name: of for name, of in named if name not in left_out and of.value == of.value}

    def _rows(self, by: str) -> Iterator[Any]:
        for name, number in self.estimates.items():
            ends = {"low": number.value - number.half_width, "high": number.value + number.half_width}
            yield {"estimate": name, **ends}, number

    @property
    def tables(self) -> tuple[Table]:
        """What to expect, each with the half-width of its interval."""
        rows = []
        for name, estimate in self.estimates.items():
            scale, digits, unit = (1, 3, "") if name == "alpha" else (100, 1, " %")
            value, half_width = scale * estimate.value, scale * estimate.half_width
            rows.append((_ESTIMATES[name], f"{value:.{digits}f}{unit}", f"± {half_width:.{digits}f}"))
        design = self.plan.design
        caption = f"{self.form}: {design.items:,} items, {amount(design.labels, 'label')} of each"
        return (Table.of(caption, "estimate", ("expected", "95 % interval"), rows),)

    @property
    def notes(self) -> list[str]:
        """Time and cost, and what the plan supposes."""
        design, tied = self.plan.design, self.plan.tied
        answers = design.items * design.labels
        fee = f", with a fee of {100 * self.fee:.4g} %" if self.fee else ""
        at = f"{self.pay:.2f} per hour"
        if self.pay_per_item is not None:
            at = f"{self.pay_per_item:.4g} per item, which is {at}"
        rates = design.accuracy if isinstance(design.accuracy, tuple) else (design.accuracy,)
        right = " and ".join(f"{100 * rate:g} %" for rate in rates)
        return lines(
            f"work: {answers:,} answers of {self.seconds:g} s are {self.hours:,.1f} hours",
            f"cost: {self.currency} {self.cost:,.2f} at {at}{fee}",
            "golden items, a test before the work and reading come on top: 'annotate create' counts them",
            tied > 0.0005 and f"{100 * tied:.1f} % of items will be tied and decided by a coin",
            f"supposes answers that are right in {right} of cases, of {design.n_classes} classes",
        )

    def to_json(self) -> dict[str, Any]:
        plan = self.plan
        return {
            "form": self.form,
            "design": asdict(plan.design),
            "labels": plan.design.labels,
            "label_accuracy": plan.label_accuracy,
            "tied": plan.tied,
            "estimates": {name: asdict(estimate) for name, estimate in self.estimates.items()},
            **{name: getattr(self, name) for name in ("seconds", "hours", "cost")},
            "pay_per_hour": self.pay,
            **{name: getattr(self, name) for name in ("pay_per_item", "fee", "currency")},
        }


@job(
    outputs="json",
    examples="""Examples:
  counterfoil annotate plan best-of-k --items 3000 --labels 3 --accuracy 0.85
  counterfoil annotate plan match --items 2000 --half-width 0.02 --of agreement --pay 15 --fee 0.333
  counterfoil annotate plan yes-no --items 800 --label-accuracy 0.97 --accuracy 0.9,0.85 --share 0.25""",
)
def annotate_plan(
    form: Annotated[str, option(metavar="FORM")],
    *,
    items: Annotated[int, option(low=2, high=most("items"))],
    labels: Annotated[int | None, option(low=1, high=MOST_LABELS)] = None,
    accuracy: Annotated[float | Sequence[float], option(low=0, high=1, commas=True)] = 0.85,
    half_width: Annotated[float | None, option(low=0, high=1)] = None,
    of: Literal["score", "positive", "answers", "agreement", "alpha"] = "score",
    label_accuracy: Annotated[float | None, option(low=0, high=1)] = None,
    classes: Annotated[int | None, option(low=2, high=1000)] = None,
    share: Annotated[float | None, option(low=0, high=1)] = None,
    people: Annotated[int | None, option(low=1, high=most("people"))] = None,
    spread: Annotated[float, option(low=0, high=1)] = 0.0,
    seconds: Annotated[float | None, option(low=0, high=86_400)] = None,
    pay: Annotated[float, option(low=0, high=most("price"))] = 12.0,
    pay_per_item: Annotated[float | None, option(low=0, high=most("price"))] = None,
    currency: Annotated[str, option(pattern="[A-Z]{3}")] = "USD",
    fee: Annotated[float, option(low=0, high=10)] = 0.0,
    seed: Annotated[int, SEED] = 0,
    **reporting: Unpack[Reporting],
) -> AnnotationPlan:
    """Plan a campaign: from labels per item to intervals, hours and cost, or from an aim to labels per item.

    Labels are those of most people, ties decided by a coin; people err independently of each other.

    Raises `InputError` for an unknown form, numbers outside their range, and an aim that no number of labels
    reaches.

    Arguments:
        form: A form of work, see 'counterfoil annotate forms'.
        items: Items to label.
        labels: Labels per item. Default: 3, or what the aim needs.
        accuracy: How often an answer is right; of two classes also two rates, of no and of yes.
        half_width: Aim: half of the width of the 95 % interval of --of.
        of: What --half-width is of.
        label_accuracy: Aim: how often an item's label is right.
        classes: Answers to choose from. Default: the form's.
        share: Of two classes: the share of yes. Default: one half.
        people: People in all, who may differ by --spread.
        spread: Standard deviation of accuracy from person to person; needs --people.
        seconds: Seconds per answer. Default: what the form usually takes.
        pay: Pay per hour.
        pay_per_item: Pay of an item, in place of --pay.
        currency: Currency of the pay.
        fee: Share that a platform takes on top, such as 0.333.

    >>> planned = annotate_plan("best-of-k", items=3000, labels=3, accuracy=0.85)
    >>> planned.plan.design.n_classes, planned.hours
    (5, 20.0)
    """
    entry = WORK_FORMS.find(form)
    if sum(aim is not None for aim in (half_width, label_accuracy, labels)) > 1:
        raise InputError(
            "labels per item are given or worked out",
            allowed="one of --labels, --half-width, --label-accuracy",
        )
    rates, main = (accuracy,) if isinstance(accuracy, float) else tuple(accuracy), usual_question(entry)
    if not 1 <= len(rates) <= 2:
        raise InputError("accuracy", given=rates, allowed="one rate, or two of two classes")
    exchangeable = () if main is None else main.exchangeable_values
    every = main is not None and len(exchangeable) == len(main.options)
    if exchangeable:
        for name, given in (
            ("--share", share),
            ("--accuracy of two classes", rates if len(rates) > 1 else None),
            ("--of", "positive" if of == "positive" and every else None),
        ):
            if given is not None:
                raise InputError(
                    "options of this form are not the same thing from item to item, so none is more frequent "
                    "or easier",
                    where=f"{name}, {form}",
                    given=given,
                )
    design = LabelDesign(
        items=items,
        labels=labels or 3,
        accuracy=rates[0] if len(rates) == 1 else (rates[0], rates[1]),
        n_classes=classes or max(2, 0 if main is None else len(main.options)),
        share=share,
        people=people,
        spread=spread,
    )
    if half_width is not None:
        plan = labels_needed(replace(design, labels=1), half_width, of=of, seed=seed)
    elif label_accuracy is not None:
        plan = accuracy_needed(replace(design, labels=1), label_accuracy, seed=seed)
    else:
        plan = plan_labels(design, seed=seed)
    seconds = entry.kind.seconds if seconds is None else seconds
    hours = labelling_hours(items, plan.design.labels, seconds)
    pay = pay if pay_per_item is None else 3600 * pay_per_item / seconds
    return AnnotationPlan(
        form,
        plan,
        seconds,
        hours,
        labelling_cost(hours, pay, fee=fee),
        pay,
        pay_per_item,
        fee,
        currency,
        exchangeable=every,
    )


def usual_question(entry: WorkFormEntry) -> FormField | None:
    """The main question of a form with its default settings; None of a form that wants other samples.

    >>> usual_question(WORK_FORMS["choose"]).exchangeable_values
    ('0', '1')
    """
    form = entry.form({}, where=entry.name)
    # Four of everything, one image and two texts, or images alone.
    for images, texts in (("abcd", "abcd"), ("a", "ab"), ("a", "")):
        cells = {
            name: {"image": "a", "text": name, "images": [*images], "texts": [*texts]}[kind]
            for name, kind in form.columns.items()
        }
        try:
            page = form.page(WorkItem("1", cells))
        except InputError:
            continue
        return next((question for question in page.fields if question.name == form.main), None)
    return None


#: Reweightings behind the intervals of agreement.
_DRAWS = 200
#: Kinds of people whose work is as it should be: to flag one of them is a false alarm.
CAREFUL = ("able",)


@dataclass(frozen=True)
class KindOutcome:
    """What came of the people of one kind: how many came, who was disqualified, who was flagged.

    `flagged` are those of whom `annotate review` says that they show a sign of careless work; `right` is the
    share of their answers to items of work that were right, NaN where they gave none.
    """

    kind: str
    people: int
    worked: int
    disqualified: int
    flagged: int
    right: float


@dataclass(frozen=True, eq=False, repr=False)
class SimulatedCampaign(Tabular):
    """A simulated campaign: what was promised, what came out, labels, and people by kind."""

    campaign: Campaign
    simulation: "Simulation"
    plan: LabelPlan | None
    agreement: CampaignAgreement | None
    labels: tuple[LabelOutcome, ...]
    kinds: tuple[KindOutcome, ...]

    rows_by = declared(
        estimate="one per number: `estimate`, `promised: interval`, and what `came: float` out with "
        "`low: float` and `high: float` where there are intervals (95 %)",
        model="one per way to make labels: `model`, `items: int`, `right: float`, `low: float`, "
        "`high: float`, `promised: float`",
        kind="one per kind of people: `kind`, `people: int`, `worked: int`, `disqualified: int`, "
        "`flagged: int`, `right: float`",
    )
    save_help = "Write the simulated judgements, .csv or .parquet."
    check_kind = staticmethod(check_table_kind)

    def _rows(self, by: str) -> Iterable[Any]:
        if by != "estimate":
            return self.labels if by == "model" else self.kinds
        return [
            ({"estimate": name, "promised": promised, "came": came and came.value}, came)
            for name, (promised, came) in self.estimates.items()
        ]

    @property
    def hours(self) -> tuple[float, float]:
        """Hours of work, as the form's usual time promises for the answers asked for, and as they were."""
        return self._promised("hours"), self.simulation.hours_worked

    @property
    def pay(self) -> tuple[float, float]:
        """Pay in the campaign's currency: for the promised hours, and of all that was answered by item."""
        done = len(Submissions.of(self.simulation.judgements))
        return self._promised("cost"), done * self.campaign.pay.per_item

    def _promised(self, name: Literal["hours", "cost"]) -> float:
        """What the budget promises over all roles; simulated people read nothing."""
        parts = budget_of(self.campaign, len(self.simulation.people)).parts
        return sum(getattr(part, name) for role, part in parts.items() if role != READING)

    @property
    def estimates(self) -> dict[str, tuple[Estimate | None, Estimate | None]]:
        """Numbers that were promised beside what came out, by name; shares in [0, 1], alpha at most 1."""
        plan, by_name = self.plan, dict[str, tuple[Estimate | None, Estimate | None]]()
        label = next((outcome for outcome in self.labels if outcome.model == "majority"), None)
        if label is not None:
            came = Estimate(label.right, label.low, label.high, label.items, None)
            by_name[_ESTIMATES["score"]] = (_planned(plan.score if plan else None), came)
        form = self.campaign.form.main
        parts = () if self.agreement is None else self.agreement.questions
        main = next((q.people for q in parts if q.question == form and not q.reading and not q.kind), None)
        if main is not None:
            by_name[_ESTIMATES["agreement"]] = (_planned(plan.agreement if plan else None), main.raw)
            alpha = plan.alpha if plan and main.scale.value == "nominal" else None
            by_name[_ESTIMATES["alpha"]] = (_planned(alpha), main.alpha)
        return by_name

    @property
    def tables(self) -> tuple[Table, ...]:
        """Promises and what came out, labels by model, people by kind."""
        counts, recipe = self.simulation.counts, self.campaign.recipe
        wanted = counts.items * recipe.overlap
        work = [
            ("answers that count", f"{wanted:,}", f"{counts.answers:,}"),
            ("hours of work", *(f"{hours:,.1f}" for hours in self.hours)),
            (f"pay, {recipe.currency}", *(f"{pay:,.2f}" for pay in self.pay)),
        ]
        work += [
            (name, _said(promised, name), _said(came, name))
            for name, (promised, came) in self.estimates.items()
        ]
        caption = f"{recipe.title}: {amount(counts.items, 'item')}"
        return (
            Table.of(caption, "", ("promised", "came out"), work),
            *self.table(
                "Labels against the truth",
                {
                    "model": "{model}",
                    Column("right, %"): lambda row: (row["right"], row["low"], row["high"]),
                    Column("promised, %"): "promised",
                },
                by="model",
            ),
            *self.table(
                "People",
                {
                    "kind": "{kind}",
                    "came": "{people:,}",
                    "worked": "{worked:,}",
                    "disqualified": "{disqualified:,}",
                    "flagged": "{flagged:,}",
                    "right, %": lambda row: "–" if row["right"] is None else f"{100 * row['right']:.1f}",
                },
                by="kind",
            ),
        )

    @property
    def notes(self) -> list[str]:
        """How far it got, what was drawn, whom the signs found, and what an adaptive design saved."""
        simulation, counts, recipe = self.simulation, self.simulation.counts, self.campaign.recipe
        over = [outcome.model for outcome in self.labels if outcome.calibrated is False]
        came, caught = Counter[bool](), Counter[bool]()
        for outcome in self.kinds:
            careful = outcome.kind in CAREFUL
            came[careful] += outcome.people
            caught[careful] += outcome.flagged + outcome.disqualified
        per_item = counts.complete_answers / max(1, counts.complete)
        saved = recipe.most * counts.complete - counts.complete_answers
        accuracy = 0.0 if self.plan is None else float(np.mean(self.plan.design.accuracy))
        return lines(
            counts.wanted
            and f"not finished: {amount(counts.wanted, 'answer')} lacking of {amount(counts.items, 'item')}; "
            "let more people come with --people",
            simulation.drawn
            and f"{amount(simulation.drawn, 'item')} without a known truth got one drawn at random",
            over
            and f"promised accuracy outside the interval of what is right: {', '.join(over)}; "
            "take these chances with care",
            came[False]
            and f"flagged or disqualified: {caught[False]:,} of {came[False]:,} people who are not able ones",
            f"false alarms: {caught[True]:,} of {came[True]:,} able people",
            (recipe.design == "adaptive" and counts.complete)
            and f"adaptive: {per_item:.2f} answers per item in place of up to {recipe.most}, {saved:,} saved",
            f"from the first arrival to the last answer {simulation.seconds / 3600:,.1f} hours; answers set "
            "aside are in hours and pay, not in what was promised",
            self.plan
            and f"promised as by annotate plan for answers right in {100 * accuracy:.1f} % of cases",
        )

    def to_json(self) -> dict[str, Any]:
        counts = self.simulation.counts
        return {
            "title": self.campaign.recipe.title,
            "form": self.campaign.form.name,
            "counts": {**vars(counts), "people": dict(counts.people)},
            "drawn_truths": self.simulation.drawn,
            "hours": dict(zip(("promised", "came"), self.hours, strict=True)),
            "pay": dict(zip(("promised", "came"), self.pay, strict=True)),
            **super().to_json(),
            "calibrated": {outcome.model: outcome.calibrated for outcome in self.labels},
        }

    @property
    def judgements(self) -> pa.Table:
        """All answers with the `truth` of the item and the simulated `person_kind`, for other commands."""
        table, simulation = self.simulation.judgements, self.simulation
        truth = [simulation.truth.get(item) for item in table.column("item").to_pylist()]
        kinds = [simulation.people[person].kind for person in table.column("person").to_pylist()]
        table = table.append_column("truth", pa.array(truth, pa.string()))
        return table.append_column("person_kind", pa.array(kinds, pa.string()))

    def save(self, path: str | Path) -> None:
        """Write the judgements as CSV or Parquet, by the suffix."""
        write_judgement_table(path, self.judgements)


@job(
    outputs="save json",
    examples="""Examples:
  counterfoil annotate simulate campaign/ --people 50
  counterfoil annotate simulate campaign/ --mix able=0.8,hasty=0.1,careless=0.1 --accuracy 0.9
  counterfoil annotate simulate campaign/ --keep simulated/ --out simulated.parquet

Kinds of people: able, hasty (fast, right in 80 %), one-sided (half of the answers are what is shown first),
careless (guesses), adversarial (wrong on purpose), bot (first option, in no time).""",
)
def annotate_simulate(
    campaign: Annotated[str | Path, CAMPAIGN],
    *,
    people: Annotated[int, option(low=1, high=100_000)] = 50,
    mix: Annotated[Mix, option(shown="able=1", metavar="KIND=SHARE,...")] = ("able=1",),
    accuracy: Annotated[float | None, option(low=0, high=1)] = None,
    keep: Annotated[str | Path | None, option(metavar="FOLDER")] = None,
    seed: Annotated[int, SEED] = 0,
    overwrite: Annotated[bool, OVERWRITE] = False,
    **reporting: Unpack[Reporting],
) -> SimulatedCampaign:
    """Run a campaign by simulated people, from entry to the last answer, and hold it against the plan.

    The campaign's own database is not touched. People know the right answers of items and give them as often
    as their kind does; items whose truth is not known get one at random.

    What is in `keep` is for all commands that take a campaign; a folder with answers is never written over.
    Kinds of people are `annotate.simulation.KINDS`. Raises `DataError` for a folder without a campaign,
    `InputError` for unknown kinds and shares that are none.

    Arguments:
        people: How many people come.
        mix: Kinds of people and their shares.
        accuracy: How often able people are right. Default: 0.95.
        keep: Keep a copy of the campaign with all that was answered here.
    """
    from counterfoil.annotate.simulation import crowd, simulate

    feedback = feedback_of(reporting)
    source, place = open_campaign(Path(campaign)), path_of(keep)
    came = crowd(_shares(mix), people, seconds=source.form.seconds, accuracy=accuracy)
    with guarded("annotate simulate", overwrite=overwrite, reads=[campaign]) as outputs:
        if place is not None:
            if (place / DATABASE).exists():
                raise InputError("a campaign with answers is there", where=place, hint="name another folder")
            check_writable(place, folder=True)
            outputs.folder(Folder(place, FILES))
        with feedback.progress() as report:
            simulation = simulate(source, came, seed=seed, progress=partial(report, "answers"), keep=place)
    if keep is not None:
        feedback.note(f"kept: {keep}; look at it with: counterfoil annotate status {keep}")
    with feedback.busy("comparing with the plan and the truth"):
        fields = fields_of(source)
        main = fields[source.form.main]
        rows = simulation.judgements.filter(simulation.judgements.column("counted"))
        agreement = None
        if pc.any(pc.equal(rows.column("role"), "work")).as_py():
            agreement = campaign_agreement(rows, fields, by_kind=False, draws=_DRAWS, seed=seed)
        one = main.kind == "one"
        return SimulatedCampaign(
            source,
            simulation,
            _plan(source, simulation, came, len(main.values), seed) if one else None,
            agreement,
            label_outcomes(rows, main, simulation.truth) if one else (),
            _kinds(source, simulation),
        )


def _shares(mix: Mix) -> Mapping[str, float]:
    """Shares of kinds of people, from texts KIND=SHARE,... where they are given so."""
    if isinstance(mix, Mapping):
        return mix
    example, shares = "able=0.8,careless=0.2", {}
    texts = mix if isinstance(mix, str) else ",".join(mix)
    for kind, share in key_values(texts.split(","), "--mix", example).items():
        try:
            shares[kind.strip()] = float(share)
        except ValueError:
            raise InputError(
                "no share", where=f"--mix, {kind}", given=share, allowed=f"such as {example}"
            ) from None
    return shares


def _plan(
    campaign: Campaign,
    simulation: "Simulation",
    people: "tuple[SimulatedPerson, ...]",
    options: int,
    seed: int,
) -> LabelPlan | None:
    """The plan for people who are as able as these; None where no plan is for such a campaign."""
    recipe = campaign.recipe
    if simulation.counts.items < 2 or recipe.overlap > min(MOST_LABELS, len(people)) or options < 2:
        return None
    rates = [person.chance_right(options) for person in people]
    truths, share = Counter(simulation.truth.values()), None
    main = fields_of(campaign)[campaign.form.main]
    if options == 2 and len(truths) == 2 and not main.exchangeable_values:
        # The plan's last class is the form's second option.
        share = truths[main.values[-1]] / simulation.counts.items
    design = LabelDesign(
        items=simulation.counts.items,
        labels=recipe.overlap,
        accuracy=fmean(rates),
        n_classes=options,
        share=share,
        people=len(people),
        spread=min(pstdev(rates), 0.49),
    )
    return plan_labels(design, seed=seed)


def _kinds(campaign: Campaign, simulation: "Simulation") -> tuple[KindOutcome, ...]:
    """What came of each kind of people, in the order of their first appearance."""
    table = simulation.judgements
    flagged = {quality.person for quality in people_quality(table, campaign) if quality.reasons}
    work = table.filter(
        pc.and_(
            pc.equal(table.column("role"), "work"), pc.equal(table.column("question"), campaign.form.main)
        )
    )
    right, given = Counter[str](), Counter[str]()
    for row in work.select(["item", "person", "answer"]).to_pylist():
        kind = simulation.people[row["person"]].kind
        given[kind] += 1
        right[kind] += row["answer"] == simulation.truth[row["item"]]
    worked = set(work.column("person").to_pylist())
    outcomes = []
    for kind in dict.fromkeys(person.kind for person in simulation.people.values()):
        ids = {id for id, person in simulation.people.items() if person.kind == kind}
        out = {id for id in ids if simulation.states[id] == "disqualified"}
        share = right[kind] / given[kind] if given[kind] else float("nan")
        outcomes.append(
            KindOutcome(kind, len(ids), len(ids & worked), len(out), len((ids & flagged) - out), share)
        )
    return tuple(outcomes)


def _planned(of: PlannedEstimate | None) -> Estimate | None:
    if of is None or of.value != of.value:
        return None
    return Estimate(of.value, of.value - of.half_width, min(of.value + of.half_width, 1.0), 0, None)


def _said(estimate: Estimate | None, name: str) -> str:
    """An estimate with its interval: per cent, or alpha as it is."""
    if estimate is None or estimate.value != estimate.value:
        return "–"
    scale, digits, unit = (1, 3, "") if "alpha" in name else (100, 1, " %")
    ends = [
        f"{scale * end:.{digits}f}" for end in (estimate.low, estimate.high) if end is not None and end == end
    ]
    text = f"{scale * estimate.value:.{digits}f}{unit}"
    return f"{text} [{', '.join(ends)}]" if len(ends) == 2 else text
