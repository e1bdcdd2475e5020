"""A campaign run by simulated people, and what came of it beside what was promised."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import fmean, pstdev
from typing import Annotated, Any, Unpack

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from counterfoil.annotate.agreement import CampaignAgreement, campaign_agreement, fields_of
from counterfoil.annotate.budget import READING, BudgetPart, budget_of
from counterfoil.annotate.campaign import DATABASE, FILES, Campaign, open_campaign
from counterfoil.annotate.judgement_table import Submissions, check_table_kind, write_judgement_table
from counterfoil.annotate.labels import LabelOutcome, label_outcomes
from counterfoil.annotate.quality import people_quality
from counterfoil.annotate.simulated_people import SimulatedPerson, crowd
from counterfoil.annotate.simulation import Simulation, direct_client, http_client, simulate
from counterfoil.errors import InputError
from counterfoil.evaluation.result import Estimate
from counterfoil.inputs.options import Option, key_values
from counterfoil.jobs.annotate_agreement import CAMPAIGN, ends_of
from counterfoil.jobs.arguments import OVERWRITE, SEED, Reporting, feedback_of, path_of
from counterfoil.jobs.job import job
from counterfoil.jobs.outputs import guarded
from counterfoil.jobs.results import Tabular
from counterfoil.outputs import Folder
from counterfoil.report.labels import amount
from counterfoil.report.tables import Column, Table
from counterfoil.stats.label_planning import MOST_LABELS, LabelDesign, LabelPlan, plan_labels
from counterfoil.store import check_writable

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
    """A simulated campaign: what was promised, what came out, labels, and people by kind.

    Rows by "estimate" are one per number: `estimate`, `promised` with `promised_low` and `promised_high`, and
    what `came` out with `low` and `high` where there are intervals (95 %). Rows by "model" are one per way
    to make labels: `model`, `items`, `right`, `low`, `high`, `promised`. Rows by "kind" are one per kind of
    people: `kind`, `people`, `worked`, `disqualified`, `flagged`, `right`.
    """

    campaign: Campaign
    simulation: Simulation
    plan: LabelPlan | None
    agreement: CampaignAgreement | None
    labels: tuple[LabelOutcome, ...]
    kinds: tuple[KindOutcome, ...]
    http: bool

    rows_by = ("estimate", "model", "kind")
    save_help = "Write the simulated judgements, .csv or .parquet."
    check_kind = staticmethod(check_table_kind)

    def _rows(self, by: str) -> pa.Table:
        if by == "estimate":
            rows = [
                {"estimate": name, **ends_of(promised, "promised"), **_came(came)}
                for name, (promised, came) in self.estimates.items()
            ]
        elif by == "model":
            rows = [{**vars(outcome), "promised": _number(outcome.promised)} for outcome in self.labels]
        else:
            rows = [{**vars(outcome), "right": _number(outcome.right)} for outcome in self.kinds]
        return pa.Table.from_pylist(rows)

    @property
    def hours(self) -> tuple[float, float]:
        """Hours of work, as the form's usual time promises for the answers asked for, and as they were."""
        return sum(part.hours for part in self._budget), self.simulation.hours_worked

    @property
    def pay(self) -> tuple[float, float]:
        """Pay in the campaign's currency: for the promised hours, and of all that was answered by item."""
        done = len(Submissions.of(self.simulation.judgements))
        return sum(part.cost for part in self._budget), done * self.campaign.pay.per_item

    @property
    def _budget(self) -> list[BudgetPart]:
        """What was promised by role; simulated people read nothing."""
        parts = budget_of(self.campaign, len(self.simulation.people)).parts
        return [part for role, part in parts.items() if role != READING]

    @property
    def estimates(self) -> dict[str, tuple[Estimate | None, Estimate | None]]:
        """Numbers that were promised beside what came out, by name; shares in [0, 1], alpha at most 1."""
        plan = self.plan
        by_name: dict[str, tuple[Estimate | None, Estimate | None]] = {}
        label = next((outcome for outcome in self.labels if outcome.model == "majority"), None)
        if label is not None:
            promised = None if plan is None else _planned(plan.score.value, plan.score.half_width)
            came = Estimate(label.right, label.low, label.high, label.items, None)
            by_name["items whose label is right"] = (promised, came)
        form = self.campaign.form.main
        parts = () if self.agreement is None else self.agreement.questions
        main = next((q.people for q in parts if q.question == form and not q.reading and not q.kind), None)
        for name, key in (("pairs of answers that agree", "raw"), ("Krippendorff's alpha", "alpha")):
            if main is not None:
                planned = None
                if plan is not None and not (key == "alpha" and main.scale.value != "nominal"):
                    of = plan.agreement if key == "raw" else plan.alpha
                    planned = _planned(of.value, of.half_width) if of.value == of.value else None
                by_name[name] = (planned, getattr(main, key))
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
        all_tables = [Table.of(caption, "", ("promised", "came out"), work)]
        if self.labels:
            columns = Column("right, %"), Column("promised, %")
            labels = [(by.model, (by.right, by.low, by.high), by.promised) for by in self.labels]
            all_tables.append(Table.of("Labels against the truth", "model", columns, labels))
        people = [
            (
                outcome.kind,
                *(f"{n:,}" for n in (outcome.people, outcome.worked, outcome.disqualified, outcome.flagged)),
                "–" if outcome.right != outcome.right else f"{100 * outcome.right:.1f}",
            )
            for outcome in self.kinds
        ]
        heads = ("came", "worked", "disqualified", "flagged", "right, %")
        return (*all_tables, Table.of("People", "kind", heads, people))

    @property
    def notes(self) -> list[str]:
        """How far it got, what was drawn, whom the signs found, and what an adaptive design saved."""
        simulation, counts, recipe = self.simulation, self.simulation.counts, self.campaign.recipe
        lines = []
        if counts.wanted:
            lines.append(
                f"not finished: {amount(counts.wanted, 'answer')} lacking of {amount(counts.items, 'item')}; "
                "let more people come with --people"
            )
        if simulation.drawn:
            lines.append(f"{amount(simulation.drawn, 'item')} without a known truth got one drawn at random")
        over = [outcome.model for outcome in self.labels if outcome.calibrated is False]
        if over:
            lines.append(
                f"promised accuracy outside the interval of what is right: {', '.join(over)}; "
                "take these chances with care"
            )
        came, caught = Counter[bool](), Counter[bool]()
        for outcome in self.kinds:
            careful = outcome.kind in CAREFUL
            came[careful] += outcome.people
            caught[careful] += outcome.flagged + outcome.disqualified
        if came[False]:
            lines.append(
                f"flagged or disqualified: {caught[False]:,} of {came[False]:,} people who are not able ones"
            )
        lines.append(f"false alarms: {caught[True]:,} of {came[True]:,} able people")
        if recipe.design == "adaptive" and counts.complete:
            per_item = counts.complete_answers / counts.complete
            saved = recipe.most * counts.complete - counts.complete_answers
            lines.append(
                f"adaptive: {per_item:.2f} answers per item in place of up to {recipe.most}, {saved:,} saved"
            )
        lines.append(
            f"from the first arrival to the last answer {simulation.seconds / 3600:,.1f} hours; answers set "
            "aside are in hours and pay, not in what was promised"
        )
        if self.plan is not None:
            accuracy = float(np.mean(self.plan.design.accuracy))
            lines.append(f"promised as by annotate plan for answers right in {100 * accuracy:.1f} % of cases")
        return lines

    def __repr__(self) -> str:
        return f"<SimulatedCampaign {self.campaign.recipe.title}: {self.simulation.counts.answers:,} answers>"

    def to_json(self) -> dict[str, Any]:
        """All of it as plain values, as `annotate simulate --json` writes it."""
        counts = self.simulation.counts
        return {
            "title": self.campaign.recipe.title,
            "form": self.campaign.form.name,
            "http": self.http,
            "counts": {**vars(counts), "people": dict(counts.people)},
            "drawn_truths": self.simulation.drawn,
            "hours": dict(zip(("promised", "came"), self.hours, strict=True)),
            "pay": dict(zip(("promised", "came"), self.pay, strict=True)),
            **{f"{by}s": self.to_arrow(by=by).to_pylist() for by in self.rows_by},
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
  counterfoil annotate simulate campaign/ --http --keep simulated/ --out simulated.parquet

Kinds of people: able, hasty (fast, right in 80 %), one-sided (half of the answers are what is shown first),
careless (guesses), adversarial (wrong on purpose), bot (first option, in no time).""",
)
def annotate_simulate(
    campaign: Annotated[str | Path, CAMPAIGN],
    *,
    people: Annotated[int, Option("How many people come.", low=1, high=100_000)] = 50,
    mix: Annotated[
        Mapping[str, float] | Sequence[str],
        Option("Kinds of people and their shares.", shown="able=1", metavar="KIND=SHARE,..."),
    ] = ("able=1",),
    accuracy: Annotated[
        float | None, Option("How often able people are right. Default: 0.95.", low=0, high=1)
    ] = None,
    http: Annotated[bool, Option("Send every request to the campaign's server, in this process.")] = False,
    keep: Annotated[
        str | Path | None,
        Option("Keep a copy of the campaign with all that was answered here.", metavar="FOLDER"),
    ] = None,
    seed: Annotated[int, SEED] = 0,
    overwrite: Annotated[bool, OVERWRITE] = False,
    **reporting: Unpack[Reporting],
) -> SimulatedCampaign:
    """Run a campaign by simulated people, from entry to the last answer, and hold it against the plan.

    The campaign's own database is not touched. People know the right answers of items and give them as often
    as their kind does; items whose truth is not known get one at random.

    What is in `keep` is for all commands that take a campaign; a folder with answers is never written over.
    Kinds of people are `annotate.simulated_people.KINDS`. Raises `DataError` for a folder without a campaign,
    `InputError` for unknown kinds and shares that are none.
    """
    feedback = feedback_of(reporting)
    usual = crowd(_shares(mix), people, accuracy=accuracy)
    source, place = open_campaign(Path(campaign)), path_of(keep)
    came = tuple(replace(person, seconds=person.seconds * source.form.seconds) for person in usual)
    with guarded("annotate simulate", overwrite=overwrite, reads=[campaign]) as outputs:
        if place is not None:
            if (place / DATABASE).exists():
                raise InputError("a campaign with answers is there", where=place, hint="name another folder")
            check_writable(place, folder=True)
            outputs.folder(Folder(place, FILES))
        with feedback.progress() as report:
            simulation = simulate(
                source,
                came,
                seed=seed,
                client=http_client if http else direct_client,
                progress=partial(report, "answers"),
                keep=place,
            )
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
            http,
        )


def _shares(mix: Mapping[str, float] | Sequence[str]) -> Mapping[str, float]:
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
    campaign: Campaign, simulation: Simulation, people: tuple[SimulatedPerson, ...], options: int, seed: int
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


def _kinds(campaign: Campaign, simulation: Simulation) -> tuple[KindOutcome, ...]:
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


def _planned(value: float, half_width: float) -> Estimate:
    return Estimate(value, value - half_width, min(value + half_width, 1.0), 0, None)


def _number(value: float) -> float | None:
    return None if value != value else value


def _came(estimate: Estimate | None) -> dict[str, float | None]:
    return dict(zip(("came", "low", "high"), ends_of(estimate, "").values(), strict=True))


def _said(estimate: Estimate | None, name: str) -> str:
    """An estimate with its interval: per cent, or alpha as it is."""
    value, *ends = ends_of(estimate, "").values()
    if value is None:
        return "–"
    scale, digits, unit = (1, 3, "") if "alpha" in name else (100, 1, " %")
    low, high = (None if end is None else f"{scale * end:.{digits}f}" for end in ends)
    text = f"{scale * value:.{digits}f}{unit}"
    return text if low is None or high is None else f"{text} [{low}, {high}]"
