"""Status of a campaign for the command line and the researcher's page, and the overview of that page."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa

from counterfoil.annotate.agreement import CampaignAgreement, campaign_agreement, counted, fields_of
from counterfoil.annotate.answering import running
from counterfoil.annotate.answers import Counts, counts, judgement_table
from counterfoil.annotate.campaign import Campaign
from counterfoil.annotate.database import Database
from counterfoil.annotate.judgement_table import Submissions
from counterfoil.annotate.quality import PersonQuality, people_quality
from counterfoil.annotate.review import DisputedItem, Review, adjudicated, disputed_items, reviews
from counterfoil.annotate.tables import run

#: The present pace is that of this long, in seconds: the shortest in which there are answers.
_PACES = (3600.0, 24 * 3600.0, 7 * 24 * 3600.0)


@dataclass(frozen=True)
class PersonProgress:
    """A person's id and state, the decision about their work ("" for none), and their figures."""

    person: str
    state: str
    review: str = ""
    items: int = 0
    golden_right: int = 0
    golden: int = 0
    seconds: float | None = None
    pay: float | None = None


@dataclass(frozen=True)
class CampaignStatus:
    """Where a campaign stands at one moment.

    `needed` answers are the least of an adaptive campaign, and `saved` is by how many its finished items stay
    below the most. `pace` is answers per hour, `ends` when the work is expected to be done (seconds since the
    epoch), `seconds` the median time per item. `pay`, `pay_least` and `pay_aim` are per hour.
    """

    title: str
    form: str
    design: str
    state: str
    people: Mapping[str, int]
    items: int
    finished: int
    answers: int
    needed: int
    saved: int | None
    pace: float | None
    ends: float | None
    seconds: float | None
    golden_right: int
    golden: int
    pay: float | None
    pay_least: float | None
    pay_aim: float
    pay_item: float | None
    pay_warning: str
    currency: str
    database: str
    keep_until: str
    overdue: bool
    persons: tuple[PersonProgress, ...]


def campaign_status(
    campaign: Campaign,
    table: pa.Table,
    entered: Sequence[PersonProgress],
    far: Counts,
    *,
    now: float,
    state: str = "open",
    database: str,
) -> CampaignStatus:
    """The status at `now`, from all judgements, all people who `entered`, and how far the campaign is."""
    recipe, done = campaign.recipe, Submissions.of(table)
    most = recipe.most * far.complete
    # Answers that count per hour: of the last hour, else the last day, else the last week.
    hourly, when = None, done.submitted[done.counts & ~np.isnan(done.submitted)]
    recent = next((part for length in _PACES if len(part := when[when > now - length])), ())
    if len(recent):
        # Since the first of them, so that a campaign that began a minute ago has a pace.
        hourly = 3600 * len(recent) / max(now - float(np.min(recent)), 60.0)
    columns = done.per_person, *done.golden_of, done.median_seconds, done.hourly(campaign.pay.per_item)
    figures = {
        name: [None if np.isnan(cell) else cell.item() for cell in cells]
        for name, *cells in zip(done.people, *columns, strict=True)
    }
    entered_people = {worker.person for worker in entered}
    others = (PersonProgress(name, "") for name in done.people if name not in entered_people)
    persons = [
        PersonProgress(worker.person, worker.state, worker.review, *figures.get(worker.person, ()))
        for worker in (*entered, *others)
    ]
    times = done.seconds[done.counts & ~np.isnan(done.seconds)]
    paid = np.array([person.pay for person in persons if person.pay is not None])
    pay, median = campaign.pay, float(np.median(paid)) if len(paid) else None
    ends = now + 3600 * far.wanted / hourly if hourly and far.wanted else None
    names = ("title", "form", "design", "currency", "keep_until")
    about: dict[str, Any] = {name: getattr(recipe, name) for name in names}
    about |= {"state": state, "database": database, "overdue": kept_too_long(recipe.keep_until, now)}
    about |= {"items": far.items, "finished": far.complete, "answers": far.answers, "needed": far.wanted}
    about["saved"] = most - far.complete_answers if recipe.design == "adaptive" else None
    about |= {"pace": hourly, "ends": ends, "seconds": float(np.median(times)) if len(times) else None}
    about |= {"golden_right": int((done.right == 1).sum()), "golden": int((done.right >= 0).sum())}
    about |= {"pay": median, "pay_least": float(paid.min()) if len(paid) else None, "pay_aim": pay.per_hour}
    about |= {"pay_item": pay.per_item if pay.by_item else None, "pay_warning": pay.below_least(median)}
    by_state = dict(Counter(person.state for person in entered))
    return CampaignStatus(people=by_state, persons=tuple(persons), **about)


@dataclass(frozen=True)
class CampaignOverview:
    """What a researcher sees at one moment; `agreement` is None where nothing counts yet."""

    at: float
    status: CampaignStatus
    agreement: CampaignAgreement | None
    quality: tuple[PersonQuality, ...]
    reviews: dict[str, Review]
    disputes: tuple[DisputedItem, ...]


def read_overview(db: Database, campaign: Campaign, *, now: float, draws: int) -> CampaignOverview:
    """The overview at `now`; `draws` are the reweightings behind intervals of agreement."""
    table = judgement_table(db, campaign, everything=True)
    status = read_status(db, campaign, now=now, table=table)
    rows, fields = table.filter(table.column("counted")), fields_of(campaign)
    agreement = campaign_agreement(rows, fields, draws=draws) if len(counted(rows)) else None
    disputes = disputed_items(rows, fields[campaign.form.main], adjudicated(db, campaign))
    return CampaignOverview(now, status, agreement, people_quality(table, campaign), reviews(db), disputes)


def read_status(
    db: Database, campaign: Campaign, *, now: float, table: pa.Table | None = None
) -> CampaignStatus:
    """The status alone; `table` are all judgements, where they were read before."""
    url: Any = db.engine.url
    name = url.database.rpartition("/")[2] if db.is_sqlite else url.render_as_string(hide_password=True)
    table = judgement_table(db, campaign, everything=True) if table is None else table
    context: Any = {"now": now, "state": running(db), "database": name}
    return campaign_status(campaign, table, workers(db, reviews(db)), counts(db), **context)


def workers(db: Database, decisions: dict[str, Review]) -> tuple[PersonProgress, ...]:
    """Everyone who entered, in the order in which they came; who finished the work is "done"."""
    query = (
        "SELECT id, CASE WHEN state = 'work' AND finished IS NOT NULL THEN 'done' ELSE state END FROM people "
        "ORDER BY entered, id"
    )
    with db.reading() as connection:
        rows = run(connection, query).all()
    decision_of = {person: review.decision for person, review in decisions.items()}
    return tuple(PersonProgress(person, state, decision_of.get(person, "")) for person, state in rows)


def facts_of(status: CampaignStatus) -> Mapping[str, str]:
    """The figures of a campaign in words, by what they are."""
    end = "all items are finished" if not status.needed else "not known: no answers in the last week"
    if status.pace is not None and status.ends is not None:
        end = f"{moment(status.ends)} at {status.pace:,.0f} answers per hour"
    facts = {"Items finished": f"{status.finished:,} of {status.items:,}"}
    facts["Answers"] = f"{status.answers:,}, {status.needed:,} still needed"
    facts["Expected end"] = end
    if status.saved is not None:
        facts["Saved by the adaptive design"] = f"{status.saved:,} answers"
    facts["People"] = ", ".join(f"{n:,} {state}" for state, n in status.people.items()) or "none yet"
    if status.seconds is not None:
        facts["Time per item"] = f"{status.seconds:.1f} s (median)"
    if status.pay is not None and status.pay_least is not None:
        facts["Pay per hour"] = (
            f"{status.currency} {status.pay:.2f} in the median, {status.pay_least:.2f} the least; "
            f"aim {status.pay_aim:.2f}"
        )
    if status.pay_item is not None:
        facts["Pay per item"] = f"{status.currency} {status.pay_item:.4g}"
    if status.pay_warning:
        facts["Too low"] = status.pay_warning
    if status.golden:
        wrong = status.golden - status.golden_right
        facts["Golden items"] = f"{wrong:,} of {status.golden:,} answered wrong"
    facts["Database"] = status.database
    if status.keep_until:
        over = ", which has passed: delete them with counterfoil annotate delete-after"
        facts["Answers kept until"] = status.keep_until + (over if status.overdue else "")
    return facts


def kept_too_long(keep_until: str, now: float) -> bool:
    """Whether the date up to which answers may be kept has passed, in UTC.

    >>> kept_too_long("1970-01-02", 86_400.0), kept_too_long("1970-01-02", 172_800.0), kept_too_long("", 1e12)
    (False, True, False)
    """
    return bool(keep_until) and datetime.fromtimestamp(now, UTC).date().isoformat() > keep_until


def moment(seconds: float) -> str:
    """A time in words, to the minute, in UTC."""
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M} UTC"
