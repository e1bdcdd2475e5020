"""A plan of labelling: how right labels will be, how wide intervals, how many hours and what cost."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Annotated, Any, Literal, Unpack

from counterfoil.annotate.forms.base import FormField, WorkItem
from counterfoil.annotate.forms.registry import WORK_FORMS, WorkFormEntry
from counterfoil.errors import InputError
from counterfoil.inputs.limits import most
from counterfoil.inputs.options import Option
from counterfoil.jobs.arguments import SEED, Reporting
from counterfoil.jobs.job import job
from counterfoil.jobs.results import Tabular, declared
from counterfoil.report.labels import amount
from counterfoil.report.tables import Table
from counterfoil.stats.label_planning import (
    MOST_LABELS,
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
    """What to expect of a campaign, how long it takes, and what it costs."""

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

    rows_by = declared(
        estimate="one per number that will be estimated: `estimate`, its expected `value: float`, the "
        "`half_width: float` of its 95 % interval, `low: float` and `high: float`; alpha is at most 1, all "
        "others in [0, 1]"
    )

    @property
    def estimates(self) -> dict[str, PlannedEstimate]:
        """What will be estimated, by name."""
        left_out = {"noise", *(["positive"] if self.exchangeable else [])}
        by_name = {name: getattr(self.plan, name) for name in _ESTIMATES if name not in left_out}
        if self.noise is not None:
            by_name["noise"] = self.noise
        return {name: estimate for name, estimate in by_name.items() if estimate.value == estimate.value}

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
    form: Annotated[str, Option("A form of work, see 'counterfoil annotate forms'.", metavar="FORM")],
    *,
    items: Annotated[int, Option("Items to label.", low=2, high=most("items"))],
    labels: Annotated[
        int | None, Option("Labels per item. Default: 3, or what the aim needs.", low=1, high=MOST_LABELS)
    ] = None,
    accuracy: Annotated[
        float | Sequence[float],
        Option(
            "How often an answer is right; of two classes also two rates, of no and of yes.",
            low=0,
            high=1,
            commas=True,
        ),
    ] = 0.85,
    half_width: Annotated[
        float | None, Option("Aim: half of the width of the 95 % interval of --of.", low=0, high=1)
    ] = None,
    of: Annotated[
        Literal["score", "positive", "answers", "agreement", "alpha"], Option("What --half-width is of.")
    ] = "score",
    label_accuracy: Annotated[
        float | None, Option("Aim: how often an item's label is right.", low=0, high=1)
    ] = None,
    classes: Annotated[
        int | None, Option("Answers to choose from. Default: the form's.", low=2, high=1000)
    ] = None,
    share: Annotated[
        float | None, Option("Of two classes: the share of yes. Default: one half.", low=0, high=1)
    ] = None,
    people: Annotated[
        int | None, Option("People in all, who may differ by --spread.", low=1, high=most("people"))
    ] = None,
    spread: Annotated[
        float,
        Option("Standard deviation of accuracy from person to person; needs --people.", low=0, high=1),
    ] = 0.0,
    seconds: Annotated[
        float | None,
        Option("Seconds per answer. Default: what the form usually takes.", low=0, high=86_400),
    ] = None,
    pay: Annotated[float, Option("Pay per hour.", low=0, high=most("price"))] = 12.0,
    pay_per_item: Annotated[
        float | None, Option("Pay of an item, in place of --pay.", low=0, high=most("price"))
    ] = None,
    currency: Annotated[str, Option("Currency of the pay.")] = "USD",
    fee: Annotated[float, Option("Share that a platform takes on top, such as 0.333.", low=0, high=10)] = 0.0,
    seed: Annotated[int, SEED] = 0,
    **reporting: Unpack[Reporting],
) -> AnnotationPlan:
    """Plan a campaign: from labels per item to intervals, hours and cost, or from an aim to labels per item.

    Labels are those of most people, ties decided by a coin; people err independently of each other.

    Raises `InputError` for an unknown form, numbers outside their range, and an aim that no number of labels
    reaches.

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
        n_classes=classes or usual_classes(entry),
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
    planned = plan.design
    tellable = planned.n_classes == 2 and planned.labels in _NOISE and not exchangeable
    seconds = entry.kind.seconds if seconds is None else seconds
    hours = labelling_hours(planned.items, planned.labels, seconds)
    pay = pay if pay_per_item is None else 3600 * pay_per_item / seconds
    return AnnotationPlan(
        form,
        plan,
        noise_half_width(planned, seed=seed) if tellable else None,
        seconds,
        hours,
        labelling_cost(hours, pay, fee=fee),
        pay,
        pay_per_item,
        fee,
        currency,
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
