"""Jobs on a campaign: serving, where it stands, decisions about people and items, its end."""

import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Unpack

import pyarrow as pa

from counterfoil import terminal
from counterfoil.annotate.agreement import fields_of
from counterfoil.annotate.campaign import Campaign, open_campaign
from counterfoil.annotate.platforms.registry import OWN_ENTRIES, campaign_platform
from counterfoil.errors import InputError
from counterfoil.inputs.options import Option
from counterfoil.jobs.annotate_judgements import CAMPAIGN, Change, StoredAnswers, opened
from counterfoil.jobs.job import feedback_of, job, option
from counterfoil.jobs.results import SavedTable, Tabular, declared, lines
from counterfoil.jobs.shared_options import OVERWRITE, Reporting
from counterfoil.outputs import guarded
from counterfoil.report.tables import Column, Table, amount
from counterfoil.store import write_csv

if TYPE_CHECKING:
    from counterfoil.annotate.database import Database
    from counterfoil.annotate.quality import PersonQuality
    from counterfoil.annotate.review import DisputedItem, Review
    from counterfoil.annotate.status import CampaignStatus

BY = Option("Name of who decides, kept with the decision.")
PERSON = Option("The id of the person here, or how it begins.")


@dataclass(frozen=True)
class Addresses:
    """Where a campaign is served, and the researcher's token."""

    site: str
    people: str
    researcher: str
    token: str
    tables = ()

    @property
    def notes(self) -> list[str]:
        return [f"{name:<12}{getattr(self, name)}" for name in ("people", "researcher", "token")]


@job(
    examples="""Examples:
  counterfoil annotate serve campaign/
  counterfoil annotate serve campaign/ --public-url https://study.example

Ctrl-C stops the server; acknowledged answers are stored. Behind a reverse proxy for https give the URL
that people see with --public-url and the proxy's address with --proxy."""
)
def serve_campaign(
    campaign: Annotated[Path, CAMPAIGN],
    *,
    host: str = "127.0.0.1",
    port: Annotated[int, option(low=0, high=65_535)] = 8750,
    public_url: Annotated[str | None, option(metavar="URL")] = None,
    proxies: Annotated[Sequence[str], option(flag="--proxy", metavar="ADDRESS")] = (),
    **options: Unpack[StoredAnswers],
) -> None:
    """Serve a campaign: a page for those who annotate, one for the researcher.

    Prints both URLs and the token for the researcher's page. --verbose lists requests, without their tokens.

    The `Addresses` go to the feedback's `result` once the server listens, and to its `note` why a database
    fails.

    Arguments:
        host: Address to listen on; 0.0.0.0 is every network.
        port: Port; 0 takes a free one.
        public_url: URL that people see, if it is not this server's.
        proxies: Address or network of a trusted reverse proxy.
    """
    from counterfoil.annotate.database import open_database
    from counterfoil.annotate.server.app import make_app, run
    from counterfoil.annotate.server.security import check_proxy, check_public_url

    if public_url is not None:
        public_url = check_public_url(public_url)
    proxies = [check_proxy(proxy) for proxy in proxies]
    source, feedback = open_campaign(campaign), feedback_of(options)
    log = terminal.note if terminal.verbose else None
    with closing(open_database(source, options["database"], serve=True)) as database:
        app = make_app(
            source, database, public_url=public_url, proxies=proxies, log=log, trouble=feedback.note
        )

        def listening(address: str) -> None:
            served = addresses(source, public_url or address)
            feedback.result(served)
            if served.people.endswith("..."):
                feedback.note(
                    f"personal links: counterfoil annotate links {campaign} --public-url {served.site}"
                )
            feedback.note("Ctrl-C stops the server.")

        run(app, host=host, port=port, ready=listening)


def addresses(campaign: Campaign, site: str) -> Addresses:
    site, way = site.rstrip("/"), campaign.recipe.entry
    people = f"{site}/open" if way == "open" else f"{site}/enter/..."
    if way not in OWN_ENTRIES:
        people = f"{site}/enter"
        # Some platforms take only addresses over https, which this one is not yet.
        with suppress(InputError):
            people = campaign_platform(way, campaign.recipe.completion).entry(people)
    return Addresses(site, people, f"{site}/research", campaign.secrets["token"])


@job(
    examples="""Examples:
  counterfoil annotate links campaign/ --n 20 --out links.csv --public-url https://study.example
  counterfoil annotate links campaign/ --n 3

Each link is for one person. You can make more later: the first 20 of 30 links are the same 20."""
)
def campaign_links(
    campaign: Annotated[str | Path, CAMPAIGN],
    n: Annotated[int, option(low=1, high=1_000_000, flag="--n")] = 20,
    *,
    out: str | Path | None = None,
    public_url: Annotated[str, option(metavar="URL")] = "http://127.0.0.1:8750",
    overwrite: Annotated[bool, OVERWRITE] = False,
    **reporting: Unpack[Reporting],
) -> Change:
    """Make personal links that cannot be guessed, one per person.

    They are the `value`. Who opens one takes part as that person.

    Arguments:
        n: Number of links.
        out: Write the links here (CSV: number, link).
        public_url: URL under which people reach the server.
    """
    from counterfoil.annotate.participants import make_links
    from counterfoil.annotate.server.security import check_public_url

    root = check_public_url(public_url)
    links = [f"{root}/enter/{link}" for link in make_links(open_campaign(Path(campaign)), n)]
    if out is None:
        return Change(links, tuple(links))
    with guarded("annotate links", overwrite=overwrite, reads=[campaign]) as outputs:
        outputs.file(Path(out))
        write_csv(out, pa.table({"number": range(1, n + 1), "link": links}))
    feedback_of(reporting).note(f"{n:,} links to {root} (see --public-url) written to {out}")
    return Change(links)


class CampaignProgress(Tabular):
    """Where a campaign stands, and each of its people."""

    status: "CampaignStatus"

    rows_by = declared(
        person="`person` (a hash), `state`, `review` (approved, rejected or empty), `items: int`, "
        "`golden_right: int` of `golden: int`, median `seconds: float` per item and `pay: float` per hour, "
        "null where not known"
    )

    def _rows(self, by: str) -> Iterable[Any]:
        return self.status.persons

    @property
    def facts(self) -> dict[str, str]:
        from counterfoil.annotate.status import facts_of

        of = self.status
        return {"Campaign": f"{of.title} ({of.form}, {of.design}), {of.state}", **facts_of(of)}

    @property
    def tables(self) -> tuple[Table, ...]:
        return self.table(
            "People",
            {
                "person": "{person:.10}",
                "state": lambda row: row["review"] or row["state"],
                "items": "{items:,}",
                "s each": "{seconds:.1f}",
                f"{self.status.currency}/h": "{pay:.2f}",
                "golden": lambda row: f"{row['golden_right']} of {row['golden']}" if row["golden"] else "–",
            },
        )

    @property
    def notes(self) -> list[str]:
        return [f"{name}: {value}" for name, value in self.facts.items()]

    def to_json(self) -> dict[str, Any]:
        return asdict(self.status)


@job(
    outputs="json",
    examples="""Examples:
  counterfoil annotate status campaign/
  counterfoil annotate status campaign/ --by-person
  counterfoil annotate status campaign/ --database postgresql://ann@localhost/study --json -""",
)
def annotate_status(
    campaign: Annotated[str | Path, CAMPAIGN], *, now: float | None = None, **options: Unpack[StoredAnswers]
) -> CampaignProgress:
    """Show a campaign's progress: people, answers, what is missing, expected end, time, pay, golden items.

    It only reads the database, also while the campaign is served.
    """
    feedback = feedback_of(options)
    with opened(campaign, options["database"]) as (source, connected):
        from counterfoil.annotate.status import read_status

        status = read_status(connected, source, now=time.time() if now is None else now)
    if status.overdue:
        feedback.warn(
            f"answers were to be kept until {status.keep_until}: "
            "delete them with 'counterfoil annotate delete-after'"
        )
    if status.pay_warning:
        feedback.warn(status.pay_warning)
    return CampaignProgress(status)


class PeopleReview(SavedTable):
    """Everyone who answered, the signs of careless work, and what was decided."""

    command = "annotate review"
    quality: "tuple[PersonQuality, ...]"
    reviews: "dict[str, Review]"
    #: Platform and parameters by person.
    entered: dict[str, tuple[str, dict[str, str]]]

    rows_by = declared(
        person="`person` (a hash), `items: int`, `not_visible: int` (items that they could not see); "
        "`platform`, and `study` and `submission` where the platform named them; `decision`, `category`, "
        "`reason`, `by`, empty before there is a decision; `suggestion` (approve, look, reject), `signs`; "
        "`at: float` (of the decision, in seconds since the epoch)",
        reason="one per sign of a person: `person`, `sign`, `sentence`, `value: float`, `pool: float`, "
        "`p: float` (adjusted over all people and signs)",
    )

    def _rows(self, by: str) -> Iterator[Any]:
        for quality in self.quality:
            if by == "reason":
                yield from ((quality, reason) for reason in quality.reasons)
                continue
            platform, parameters = self.entered.get(quality.person, ("", {}))
            facts = {"platform": platform, "study": "", "submission": "", **parameters}
            facts["signs"] = " ".join(reason.sign for reason in quality.reasons)
            yield quality, self.reviews.get(quality.person), facts

    @property
    def tables(self) -> tuple[Table, ...]:
        """Those with most signs and no decision first."""
        return self.table(
            "People",
            {
                "person": "{person:.10}",
                "items": "{items:,}",
                "signs": lambda row: row["signs"].replace(" ", ", ") or "–",
                "suggested": "{suggestion}",
                "decided": "{decision}",
            },
            sort=lambda row: (row["decision"] != "", -len(row["signs"].split())),
        )

    @property
    def notes(self) -> list[str]:
        signs = [
            f"{quality.person:.10}: {reason.sentence} "
            f"(p {'< 0.001' if reason.p < 0.001 else f'= {reason.p:.3f}'})"
            for quality in self.quality
            for reason in quality.reasons
        ]
        return signs or ["no signs of careless answers" if self.quality else "no one has answered so far"]

    def to_json(self) -> dict[str, Any]:
        reviews = {person: asdict(review) for person, review in self.reviews.items()}
        return {"people": [{**of.to_json(), "review": reviews.get(of.person)} for of in self.quality]}


@job(
    outputs="save json",
    examples="""Examples:
  counterfoil annotate review campaign/
  counterfoil annotate review campaign/ --out reviews.csv

Signs: fast, straight (always the same answer), golden (wrong gold answers), disagree (with others). Any
careful person is flagged with a probability of 5 %.""",
)
def annotate_review(campaign: Annotated[Path, CAMPAIGN], **options: Unpack[StoredAnswers]) -> PeopleReview:
    """List people whose answers look careless, with reasons and a suggested decision.

    This approves and rejects nothing: 'counterfoil annotate approve' and 'reject' do. The researcher's page
    shows each person's answers with the images.
    """
    with opened(campaign, options["database"]) as (source, connected):
        from counterfoil.annotate.answers import judgement_table
        from counterfoil.annotate.quality import people_quality
        from counterfoil.annotate.review import reviews
        from counterfoil.annotate.tables import people, sa

        with connected.reading() as connection:
            rows = connection.execute(sa.select(people.c.id, people.c.platform, people.c.parameters)).all()
        entered = {row.id: (row.platform, json.loads(row.parameters)) for row in rows}
        table = judgement_table(connected, source, everything=True)
        return PeopleReview(people_quality(table, source), reviews(connected), entered)


@job(
    examples="""Examples:
  counterfoil annotate approve campaign/ 3fa9c1 b81c77
  counterfoil annotate approve campaign/ --suggested"""
)
def annotate_approve(
    campaign: Annotated[Path, CAMPAIGN],
    people: Sequence[str] = (),
    *,
    suggested: bool = False,
    reason: str = "",
    by: Annotated[str, BY] = "",
    **options: Unpack[StoredAnswers],
) -> Change:
    """Approve work, so that it is paid.

    Arguments:
        people: Ids of people, or how they begin; see 'annotate review'.
        suggested: Everyone who is done, not flagged and not decided.
        reason: A note, kept with the decision.
    """
    if not people and not suggested:
        raise InputError("no one to approve", hint="name people, or use --suggested")
    with opened(campaign, options["database"]) as (source, connected):
        from counterfoil.annotate.review import approve, person_like, reviews
        from counterfoil.annotate.status import workers

        chosen = [person_like(connected, person) for person in people]
        if suggested:
            from counterfoil.annotate.answers import judgement_table
            from counterfoil.annotate.quality import people_quality

            decisions = reviews(connected)
            done = {person.person for person in workers(connected, decisions) if person.state == "done"}
            quality = people_quality(judgement_table(connected, source, everything=True), source)
            chosen += [
                person.person
                for person in quality
                if person.suggestion == "approve" and person.person in done and person.person not in decisions
            ]
        approved = approve(connected, chosen, by=by, now=time.time(), reason=reason)
    return Change(approved, (f"{approved:,} approved",))


@job(
    examples="""Examples:
  counterfoil annotate reject campaign/ 3fa9c1 --reason "Nine of ten items of known answer were wrong."

On Prolific a reason has 100 characters or more and a category, such as --category LOW_EFFORT."""
)
def annotate_reject(
    campaign: Annotated[Path, CAMPAIGN],
    person: str,
    *,
    reason: str,
    category: str = "",
    by: Annotated[str, BY] = "",
    **options: Unpack[StoredAnswers],
) -> Change:
    """Reject a person's work: their answers leave the labels, and their items are open to others again.

    Arguments:
        person: The id of a person, or how it begins.
        reason: What was wrong, with examples: the person reads it.
        category: The platform's category of the reason.
    """
    with opened(campaign, options["database"]) as (source, connected):
        from counterfoil.annotate.review import person_like, reject

        decision: Any = {"reason": reason, "category": category, "by": by, "now": time.time()}
        aside = reject(connected, source, person_like(connected, person), **decision)
    return Change(aside, (f"rejected; {aside:,} answers set aside, their items are open again",))


@job(
    examples="""Examples:
  counterfoil annotate withdraw campaign/ --worker 5f8a60b1c2
  counterfoil annotate withdraw campaign/ --person 3fa9c1"""
)
def annotate_withdraw(
    campaign: Annotated[Path, CAMPAIGN],
    *,
    worker: str = "",
    platform: str = "",
    person: Annotated[str, PERSON] = "",
    **options: Unpack[StoredAnswers],
) -> Change:
    """Delete all answers of a person who asks for it; others get the items. It cannot be undone.

    Arguments:
        worker: The platform's id of the person, or their personal link.
        platform: With --worker: how the person entered. Default: the campaign's way.
    """
    with opened(campaign, options["database"]) as (source, connected):
        from counterfoil.annotate.privacy import withdraw_person

        entered = _who(source, connected, worker, person, platform)
        count = withdraw_person(connected, source, entered, time.time(), named=worker)
    return Change(count, (f"withdrawn; {count:,} answers deleted",))


@job(
    examples="""Examples:
  counterfoil annotate readmit campaign/ --worker 5f8a60b1c2
  counterfoil annotate readmit campaign/ --person 3fa9c1"""
)
def annotate_readmit(
    campaign: Annotated[Path, CAMPAIGN],
    *,
    worker: str = "",
    person: Annotated[str, PERSON] = "",
    **options: Unpack[StoredAnswers],
) -> Change:
    """Let a person in from another browser or device; pages of theirs that are open elsewhere end.

    Anybody can type an id, so a person from a platform stays in the first browser. After this command the
    next browser with the id is accepted: check first that the person asked.

    Arguments:
        worker: The platform's id of the person.
    """
    with opened(campaign, options["database"]) as (source, connected):
        from counterfoil.annotate.participants import readmit

        entered = _who(source, connected, worker, person)
        with connected.writing() as connection:
            readmit(connection, entered, time.time(), named=worker)
    return Change(entered, (f"person {entered:.10} may come with another browser, by the platform's link",))


def _who(campaign: Campaign, db: "Database", worker: str, person: str, platform: str = "") -> str:
    from counterfoil.annotate.participants import person_id
    from counterfoil.annotate.review import person_like

    if bool(worker) == bool(person):
        given = "both" if worker else "no one"
        raise InputError("who it is", given=given, allowed="--worker or --person")
    if person:
        return person_like(db, person)
    return person_id(campaign, platform or campaign.recipe.entry, worker)


@job(
    examples="""Examples:
  counterfoil annotate export campaign/ --no-person-ids --out labels/
  counterfoil annotate delete-after campaign/ --yes

The date is 'keep_until' in campaign.toml. An export in the campaign's folder goes, too; files that were
exported elsewhere are not touched: delete those with answers."""
)
def annotate_delete(
    campaign: Annotated[Path, CAMPAIGN],
    *,
    now: bool = False,
    yes: bool = False,
    **options: Unpack[StoredAnswers],
) -> Change:
    """Delete all answers and people of a campaign whose date has passed. It cannot be undone.

    Items and decisions about them are kept, and with 'keep_labels' in campaign.toml the labels of items that
    two or more people answered.

    Arguments:
        now: Delete before the date, or without one.
        yes: Do not ask for confirmation.
    """
    if not yes and not terminal.confirmed(f"all answers and people of {campaign}"):
        return Change(None)
    with opened(campaign, options["database"]) as (source, connected):
        from counterfoil.annotate.privacy import delete_people

        deletion = delete_people(connected, source, time.time(), early=now)
    alone = f"; {deletion.single:,} left out that one person alone answered" if deletion.single else ""
    notes = lines(
        f"{deletion.people:,} people and {deletion.answers:,} answers deleted",
        (deletion.labels or deletion.single)
        and f"labels of {deletion.labels:,} items kept in {campaign / 'kept_labels.csv'}{alone}",
    )
    return Change(deletion, tuple(notes))


class Disputes(Tabular):
    """Items that people disagree on, most undecided first, those decided last."""

    disputes: "tuple[DisputedItem, ...]"
    #: What options show, by item, where they have no label.
    shown: Mapping[str, str]

    rows_by = declared(
        item="`item`, `kind`, `votes` (2 for yes, 1 for no), `label` (the likeliest); `decision` and `note` "
        "of a researcher; `chance: float` of the label and `entropy: float` in bits by the one-coin model"
    )

    def _rows(self, by: str) -> Iterator[Any]:
        for item in self.disputes:
            votes = ", ".join(f"{n} for {value}" for value, n in item.votes.items())
            label = max(item.posterior, key=lambda value: item.posterior[value])
            facts = {"votes": votes, "label": label, "chance": item.posterior[label]}
            yield facts | {"decision": getattr(item.decided, "answer", "")}, item, item.decided

    @property
    def tables(self) -> tuple[Table, ...]:
        options: dict[str | Column, Any] = {}
        if any(self.shown.values()):
            options[Column("options", align="left")] = lambda row: self.shown[row["item"]]
        return self.table(
            "Disagreements",
            {
                "item": "{item}",
                **options,
                "votes": "{votes}",
                "likeliest": lambda row: f"{row['label']} ({100 * row['chance']:.0f} %)",
                "decided": "{decision}",
            },
        )

    @property
    def notes(self) -> list[str]:
        left = sum(item.decided is None for item in self.disputes)
        return lines(
            f"{amount(len(self.disputes), 'item')} with different answers, {left:,} without a decision",
            left and "decide one with: counterfoil annotate adjudicate CAMPAIGN ITEM ANSWER",
        )

    def to_json(self) -> dict[str, Any]:
        return {"items": [asdict(item) for item in self.disputes]}


@job(
    outputs="json",
    examples="""Examples:
  counterfoil annotate adjudicate campaign/
  counterfoil annotate adjudicate campaign/ 17 yes --note "The dog is behind the tree."

The researcher's page shows the images and takes decisions by keyboard.""",
)
def annotate_adjudicate(
    campaign: Annotated[Path, CAMPAIGN],
    item: str | None = None,
    answer: str | None = None,
    *,
    why: Annotated[str, option(flag="--note")] = "",
    by: Annotated[str, BY] = "",
    **options: Unpack[StoredAnswers],
) -> Disputes | Change:
    """List items that people disagree on, the most undecided first, or decide one.

    The decision is kept beside the answers and becomes the item's label.

    Arguments:
        item: The id of an item to decide.
        answer: The value of an option.
        why: Why, kept with the decision.
    """
    from counterfoil.annotate.review import adjudicate, adjudicated, disputed_items

    if item is not None:
        if answer is None:
            raise InputError("no answer", where=f"item '{item}'", hint="give the value of an option after it")
        from counterfoil.annotate.database import open_database

        source = open_campaign(campaign)
        with closing(open_database(source, options["database"])) as database:
            decisions = adjudicate(database, source, item, answer, note=why, by=by, now=time.time())
        return Change(
            asdict(decisions), (f"item {decisions.item}, {decisions.question}: {decisions.answer}",)
        )
    with opened(campaign, options["database"]) as (source, connected):
        from counterfoil.annotate.answers import judgement_table

        field = fields_of(source)[source.form.main]
        done = adjudicated(connected, source)
        disputes = disputed_items(judgement_table(connected, source), field, done)
        shown = {}
        for dispute in disputes:
            page = source.form.page(source.items[source.positions[dispute.item]])
            choices = next(question for question in page.fields if question.name == field.name).options
            texts = (f"{choice.value}: {', '.join((*choice.texts, *choice.images))}" for choice in choices)
            shown[dispute.item] = "" if any(choice.label for choice in choices) else "\n".join(texts)
        return Disputes(disputes, shown)
