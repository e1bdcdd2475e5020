"""Campaigns before people come, tried by simulated people."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Unpack

import pyarrow as pa
import pyarrow.compute as pc

from counterfoil.annotate.agreement import fields_of
from counterfoil.annotate.campaign import DATABASE, FILES, READING, Campaign, budget_of, open_campaign
from counterfoil.annotate.judgement_table import Submissions, check_table_kind, write_judgement_table
from counterfoil.annotate.labels import LabelOutcome, label_outcomes
from counterfoil.annotate.quality import people_quality
from counterfoil.errors import InputError
from counterfoil.inputs.options import Argument, key_values
from counterfoil.jobs.annotate_judgements import CAMPAIGN
from counterfoil.jobs.job import feedback_of, job, option, path_of
from counterfoil.jobs.results import Tabular, declared, lines
from counterfoil.jobs.shared_options import OVERWRITE, SEED, Reporting
from counterfoil.outputs import Folder, guarded
from counterfoil.report.tables import Column, Table, amount, duration
from counterfoil.store import check_writable

if TYPE_CHECKING:
    from counterfoil.annotate.simulation import Simulation

#: Shares of kinds of people, or texts KIND=SHARE,....
Mix = Mapping[str, float] | Sequence[str]
_SHARE = Argument("share", float, option(low=0, high=1_000_000))
#: Kinds of people whose work is as it should be: to flag one of them is a false alarm.
CAREFUL = ("able",)


@dataclass(frozen=True)
class KindOutcome:
    """What came of the people of one kind; `right` is a share of their answers, NaN without answers."""

    kind: str
    people: int
    worked: int
    disqualified: int
    flagged: int
    right: float


class SimulatedCampaign(Tabular):
    """A simulated campaign: hours and pay beside the budget, labels against the truth, people by kind."""

    campaign: Campaign
    simulation: "Simulation"
    labels: tuple[LabelOutcome, ...]
    kinds: tuple[KindOutcome, ...]

    rows_by = declared(
        model="one per way to make labels: `model`, `items: int`, `right: float`, `low: float`, "
        "`high: float`, `promised: float`",
        kind="one per kind of people: `kind`, `people: int`, `worked: int`, `disqualified: int`, "
        "`flagged: int`, `right: float`",
    )
    save_help = "Write the simulated judgements, .csv or .parquet."
    check_kind = staticmethod(check_table_kind)

    def _rows(self, by: str) -> Iterable[Any]:
        return self.labels if by == "model" else self.kinds

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
    def tables(self) -> tuple[Table, ...]:
        counts, recipe = self.simulation.counts, self.campaign.recipe
        wanted = counts.items * recipe.overlap
        work = [
            ("answers that count", f"{wanted:,}", f"{counts.answers:,}"),
            ("hours of work", *(f"{hours:,.1f}" for hours in self.hours)),
            (f"pay, {recipe.currency}", *(f"{pay:,.2f}" for pay in self.pay)),
        ]
        caption = f"{recipe.title}: {amount(counts.items, 'item')}"
        return (
            Table.of(caption, "", ("planned", "came out"), work),
            *self.table(
                "Labels against the truth",
                {
                    "label model": "{model}",
                    Column("right, %"): lambda row: (row["right"], row["low"], row["high"]),
                    Column("expected, %"): "promised",
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
        simulation, counts, recipe = self.simulation, self.simulation.counts, self.campaign.recipe
        over = [outcome.model for outcome in self.labels if outcome.calibrated is False]
        came, caught = Counter[bool](), Counter[bool]()
        for outcome in self.kinds:
            careful = outcome.kind in CAREFUL
            came[careful] += outcome.people
            caught[careful] += outcome.flagged + outcome.disqualified
        per_item = counts.complete_answers / max(1, counts.complete)
        saved = recipe.most * counts.complete - counts.complete_answers
        return lines(
            counts.wanted
            and f"not finished: {amount(counts.wanted, 'answer')} lacking of {amount(counts.items, 'item')}; "
            "let more people come with --people",
            simulation.drawn
            and f"{amount(simulation.drawn, 'item')} without a known truth got one drawn at random",
            self.labels and "expected: the share of right labels, estimated from the answers alone",
            self.labels and "one-coin: one accuracy per person; dawid-skene: one per person and option",
            over and f"{', '.join(over)}: more or fewer labels are right than expected; mistrust the chances",
            f"flagged or disqualified by mistake: {caught[True]:,} of {came[True]:,} able people",
            came[False] and f"flagged or disqualified: {caught[False]:,} of {came[False]:,} others",
            (recipe.design == "adaptive" and counts.complete)
            and f"adaptive: {per_item:.2f} answers per item in place of up to {recipe.most}, {saved:,} saved",
            f"{duration(simulation.seconds)} from first arrival to last answer; hours and pay are of all "
            "answers, also of those that do not count",
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
    """Run a campaign with simulated people, from entry to the last answer, and compare with the truth.

    The campaign's database is not touched. Simulated people know the right answers and give them with the
    accuracy of their kind; items of unknown truth get a random one.

    What is in `keep` is for all commands that take a campaign; a folder with answers is never written over.

    Arguments:
        people: Number of people.
        mix: Kinds of people and their shares.
        accuracy: Accuracy of able people. Default: 0.95.
        keep: Keep a copy of the campaign with its simulated answers here.
    """
    from counterfoil.annotate.simulation import crowd, simulate

    feedback = feedback_of(reporting)
    source, place = open_campaign(Path(campaign)), path_of(keep)
    written: Mapping[str, Any] = mix if isinstance(mix, Mapping) else {}
    if not isinstance(mix, Mapping):
        texts = mix if isinstance(mix, str) else ",".join(mix)
        written = key_values(texts.split(","), "--mix", "able=0.8,careless=0.2")
    shares = {str(kind).strip(): _SHARE.converted(share, f"--mix, {kind}") for kind, share in written.items()}
    came = crowd(shares, people, seconds=source.form.seconds, accuracy=accuracy)
    with guarded("annotate simulate", overwrite=overwrite, reads=[campaign]) as outputs:
        if place is not None:
            if (place / DATABASE).exists():
                raise InputError("a campaign with answers is there", where=place, hint="name another folder")
            check_writable(place, folder=True)
            outputs.folder(Folder(place, FILES))
        with feedback.progress() as report:
            simulation = simulate(source, came, seed=seed, progress=partial(report, "answers"), keep=place)
    if keep is not None:
        feedback.note(f"kept: {keep}; look at it with: counterfoil annotate agreement {keep}")
    with feedback.busy("comparing with the truth"):
        main = fields_of(source)[source.form.main]
        rows = simulation.judgements.filter(simulation.judgements.column("counted"))
        labels = label_outcomes(rows, main, simulation.truth) if main.kind == "one" else ()
        return SimulatedCampaign(source, simulation, labels, _kinds(source, simulation))


def _kinds(campaign: Campaign, simulation: "Simulation") -> tuple[KindOutcome, ...]:
    """What came of each kind of people, in the order of their first appearance."""
    table = simulation.judgements
    flagged = {quality.person for quality in people_quality(table, campaign) if quality.reasons}
    work = table.filter((pc.field("role") == "work") & (pc.field("question") == campaign.form.main))
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
