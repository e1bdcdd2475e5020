"""A plan of labelling: how right labels will be, how wide intervals, how many hours and what cost."""

from dataclasses import asdict, dataclass, replace
from typing import Any

import pyarrow as pa

from counterfoil.annotate.forms.base import FormField, WorkItem
from counterfoil.annotate.forms.registry import WORK_FORMS, WorkFormEntry
from counterfoil.errors import InputError
from counterfoil.jobs.results import Tabular
from counterfoil.report.labels import amount
from counterfoil.report.tables import Column, Table, text_table
from counterfoil.stats.label_planning import (
    LabelDesign,
    LabelPlan,
    PlannedEstimate,
    accuracy_needed,
    labelling_cost,
    labelling_hours,
    labels_needed,
    noise_half_width,
    plan_labels,
)

#: What is estimated, by the name of the plan's number.
_ESTIMATES = {
    "score": "items whose label is right",
    "positive": "items of one class",
    "answers": "answers that are right",
    "agreement": "pairs of answers that agree",
    "alpha": "Krippendorff's alpha",
    "noise": "wrong labels, told from answers alone",
}
#: Labels per item for which noise can be told without the truth, of two classes.
_NOISE = range(3, 11)


@dataclass(frozen=True, eq=False, repr=False)
class AnnotationPlan(Tabular):
    """What to expect of a campaign, how long it takes, and what it costs.

    Rows by "estimate" are one per number that will be estimated: `estimate`, its expected `value`, the
    `half_width` of its 95 % interval, `low` and `high`. Alpha is at most 1, all others in [0, 1]; null where
    not defined.
    """

    form: str
    plan: LabelPlan
    noise: PlannedEstimate | None
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

    rows_by = ("estimate",)

    @property
    def estimates(self) -> dict[str, PlannedEstimate]:
        """What will be estimated, by name."""
        left_out = {"noise", *(["positive"] if self.exchangeable else [])}
        by_name = {name: getattr(self.plan, name) for name in _ESTIMATES if name not in left_out}
        if self.noise is not None:
            by_name["noise"] = self.noise
        return {name: estimate for name, estimate in by_name.items() if estimate.value == estimate.value}

    def _rows(self, by: str) -> pa.Table:
        return pa.Table.from_pylist(
            [
                {
                    "estimate": name,
                    "value": estimate.value,
                    "half_width": estimate.half_width,
                    "low": estimate.value - estimate.half_width,
                    "high": estimate.value + estimate.half_width,
                }
                for name, estimate in self.estimates.items()
            ]
        )

    @property
    def tables(self) -> tuple[Table]:
        """What to expect, each with the half-width of its interval."""
        rows = []
        for name, estimate in self.estimates.items():
            if name == "alpha":
                rows.append((_ESTIMATES[name], f"{estimate.value:.3f}", f"± {estimate.half_width:.3f}"))
            else:
                rows.append(
                    (_ESTIMATES[name], f"{100 * estimate.value:.1f} %", f"± {100 * estimate.half_width:.1f}")
                )
        design = self.plan.design
        caption = f"{self.form}: {design.items:,} items, {amount(design.labels, 'label')} of each"
        return (text_table(caption, "estimate", (Column("expected"), Column("95 % interval")), rows),)

    @property
    def notes(self) -> list[str]:
        """Time and cost, and what the plan supposes."""
        design = self.plan.design
        answers = design.items * design.labels
        fee = f", with a fee of {100 * self.fee:.4g} %" if self.fee else ""
        at = f"{self.pay:.2f} per hour"
        if self.pay_per_item is not None:
            at = f"{self.pay_per_item:.4g} per item, which is {at}"
        lines = [
            f"work: {answers:,} answers of {self.seconds:g} s are {self.hours:,.1f} hours",
            f"cost: {self.currency} {self.cost:,.2f} at {at}{fee}",
            "golden items, a test before the work and reading come on top: 'annotate create' counts them",
        ]
        if self.noise is not None:
            lines.append(
                "wrong labels can be told from answers alone if no item is harder than others, which answers "
                "do not show: with people guessing on a tenth of items such intervals held in 28 % of cases"
            )
        if self.plan.tied > 0.0005:
            lines.append(f"{100 * self.plan.tied:.1f} % of items will be tied and decided by a coin")
        rates = design.accuracy if isinstance(design.accuracy, tuple) else (design.accuracy,)
        right = " and ".join(f"{100 * rate:g} %" for rate in rates)
        lines.append(f"supposes answers that are right in {right} of cases, of {design.n_classes} classes")
        return lines

    def __repr__(self) -> str:
        return f"<AnnotationPlan: {self.plan.design.labels} labels, {self.currency} {self.cost:,.2f}>"

    def to_json(self) -> dict[str, Any]:
        """All of it as plain values, as `annotate plan --json` writes it."""
        design = asdict(self.plan.design)
        return {
            "form": self.form,
            "design": design,
            "labels": self.plan.design.labels,
            "label_accuracy": self.plan.label_accuracy,
            "tied": self.plan.tied,
            "estimates": {name: asdict(estimate) for name, estimate in self.estimates.items()},
            "seconds": self.seconds,
            "hours": self.hours,
            "cost": self.cost,
            "pay_per_hour": self.pay,
            "pay_per_item": self.pay_per_item,
            "fee": self.fee,
            "currency": self.currency,
        }


@dataclass(frozen=True, kw_only=True)
class PlanOptions:
    """What is planned and what it costs; None and 0 stand for the form's own and for what is worked out.

    `accuracy` is one rate, or two of two classes (no where no is right, yes where yes is). Labels per item
    are given, or worked out for the `half_width` of an estimate `of`, or for a `label_accuracy`. With
    `pay_per_item` the `pay` per hour follows from it.
    """

    items: int
    labels: int = 0
    accuracy: tuple[float, ...] = (0.85,)
    classes: int = 0
    share: float | None = None
    people: int | None = None
    spread: float = 0.0
    seconds: float | None = None
    pay: float = 12.0
    pay_per_item: float | None = None
    currency: str = "USD"
    fee: float = 0.0
    half_width: float | None = None
    of: str = "score"
    label_accuracy: float | None = None
    seed: int = 0


def annotate_plan(form: str, options: PlanOptions) -> AnnotationPlan:
    """The plan of a campaign of a form of work.

    Raises `InputError` for an unknown form, numbers outside their range, and an aim that no number of labels
    reaches.

    >>> found = annotate_plan("best-of-k", PlanOptions(items=3000, labels=3, accuracy=(0.85,)))
    >>> found.plan.design.n_classes, found.hours
    (5, 20.0)
    """
    entry = WORK_FORMS.find(form)
    aims = [options.half_width is not None, options.label_accuracy is not None, bool(options.labels)]
    if sum(aims) > 1:
        raise InputError(
            "labels per item are given or worked out",
            allowed="one of --labels, --half-width, --label-accuracy",
        )
    rates, main = options.accuracy, usual_question(entry)
    if not 1 <= len(rates) <= 2:
        raise InputError("accuracy", given=rates, allowed="one rate, or two of two classes")
    exchangeable = () if main is None else main.exchangeable_values
    every = main is not None and len(exchangeable) == len(main.options)
    if exchangeable:
        for name, given in (
            ("--share", options.share),
            ("--accuracy of two classes", rates if len(rates) > 1 else None),
            ("--of", "positive" if options.of == "positive" and every else None),
        ):
            if given is not None:
                raise InputError(
                    "options of this form are not the same thing from item to item, so none is more frequent "
                    "or easier",
                    where=f"{name}, {form}",
                    given=given,
                )
    design = LabelDesign(
        items=options.items,
        labels=options.labels or 3,
        accuracy=rates[0] if len(rates) == 1 else (rates[0], rates[1]),
        n_classes=options.classes or usual_classes(entry),
        share=options.share,
        people=options.people,
        spread=options.spread,
    )
    if options.half_width is not None:
        plan = labels_needed(replace(design, labels=1), options.half_width, of=options.of, seed=options.seed)
    elif options.label_accuracy is not None:
        plan = accuracy_needed(replace(design, labels=1), options.label_accuracy, seed=options.seed)
    else:
        plan = plan_labels(design, seed=options.seed)
    planned = plan.design
    tellable = planned.n_classes == 2 and planned.labels in _NOISE and not exchangeable
    seconds = entry.kind.seconds if options.seconds is None else options.seconds
    hours = labelling_hours(planned.items, planned.labels, seconds)
    pay = 3600 * options.pay_per_item / seconds if options.pay_per_item is not None else options.pay
    return AnnotationPlan(
        form,
        plan,
        noise_half_width(planned, seed=options.seed) if tellable else None,
        seconds,
        hours,
        labelling_cost(hours, pay, fee=options.fee),
        pay,
        options.pay_per_item,
        options.fee,
        options.currency,
        exchangeable=every,
    )


def usual_classes(entry: WorkFormEntry) -> int:
    """How many answers the main question of a form has, with its default settings and four images or texts.

    >>> usual_classes(WORK_FORMS["yes-no"]), usual_classes(WORK_FORMS["match"])
    (2, 4)
    """
    main = usual_question(entry)
    return 2 if main is None else max(2, len(main.options))


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
