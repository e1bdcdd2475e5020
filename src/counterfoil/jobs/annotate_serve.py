"""Serving of a campaign, the links by which people come, and where it stands."""

import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, Unpack

import pyarrow as pa

from counterfoil import terminal
from counterfoil.annotate.campaign import Campaign, open_campaign
from counterfoil.annotate.status import CampaignStatus, facts_of
from counterfoil.errors import InputError
from counterfoil.inputs.options import Option
from counterfoil.jobs.annotate_agreement import CAMPAIGN, Change, StoredAnswers, opened, schema_of
from counterfoil.jobs.arguments import OVERWRITE, Reporting, feedback_of
from counterfoil.jobs.job import job
from counterfoil.jobs.outputs import guarded
from counterfoil.jobs.results import Tabular
from counterfoil.report.tables import Table
from counterfoil.store import write_csv


@dataclass(frozen=True)
class Addresses:
    """Where a campaign is served: `site` is the address of the server as people see it.

    `people` is the address for annotators, or of personal links, `researcher` that of the researcher's page,
    and `token` what that page asks for.
    """

    site: str
    people: str
    researcher: str
    token: str
    tables = ()

    @property
    def notes(self) -> list[str]:
        """A line each."""
        return [f"{name:<12}{getattr(self, name)}" for name in ("people", "researcher", "token")]


@job(
    examples="""Examples:
  counterfoil annotate serve campaign/
  counterfoil annotate serve campaign/ --public-url https://study.example
  counterfoil annotate serve campaign/ --host 0.0.0.0 --certificate cert.pem --key key.pem

Ctrl-C stops it; answers that were acknowledged are stored. Behind a server that ends https, name the address
that people see with --public-url, and its own with --proxy.""",
)
def serve_campaign(
    campaign: Annotated[Path, CAMPAIGN],
    *,
    host: Annotated[str, Option("Where to listen; 0.0.0.0 is every network.")] = "127.0.0.1",
    port: Annotated[int, Option("0 takes any that is free.", low=0, high=65_535)] = 8750,
    public_url: Annotated[
        str | None,
        Option("The address that people see, where it is another than this one's.", metavar="URL"),
    ] = None,
    proxies: Annotated[
        Sequence[str],
        Option(
            "A server before this one, or a network: what it says of visitors is believed.",
            flag="--proxy",
            metavar="ADDRESS",
        ),
    ] = (),
    certificate: Annotated[Path | None, Option("For https: the certificate, with --key.")] = None,
    key: Annotated[Path | None, Option("For https: the certificate's private key.")] = None,
    **options: Unpack[StoredAnswers],
) -> None:
    """Serve a campaign: a page for those who annotate, one for the researcher.

    Prints both addresses and the token that the researcher's page asks for. Requests are listed with
    --verbose, without the tokens in them.

    The `Addresses` go to the feedback's `result` once the server listens, and to its `note` why a database
    fails. It serves until the process is stopped. Raises `DataError` for a folder without a campaign,
    `InputError` for a campaign that is served already, a port that is taken, an address that is none and a
    certificate that cannot be used.
    """
    if (certificate is None) != (key is None):
        raise InputError(
            "a certificate and its key belong together",
            where="--certificate" if key is None else "--key",
            hint="give both or neither",
        )
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

        def listening(own: str) -> None:
            served = addresses(source, public_url or own)
            feedback.result(served)
            if served.people.endswith("..."):
                feedback.note(
                    f"personal links: counterfoil annotate links {campaign} --public-url {served.site}"
                )
            feedback.note("Ctrl-C stops the server.")

        run(app, host=host, port=port, certificate=certificate, key=key, ready=listening)


def addresses(campaign: Campaign, site: str) -> Addresses:
    """The addresses of a campaign that is served at `site`."""
    from counterfoil.annotate.platforms.registry import OWN_ENTRIES, campaign_platform

    site = site.rstrip("/")
    way = campaign.recipe.entry
    if way not in OWN_ENTRIES:
        try:
            people = campaign_platform(way, campaign.recipe.completion).entry(f"{site}/enter")
        except InputError:
            # Some platforms take only addresses over https, which this one is not yet.
            people = f"{site}/enter"
    else:
        people = f"{site}/open" if way == "open" else f"{site}/enter/..."
    return Addresses(site, people, f"{site}/research", campaign.secrets["token"])


@job(
    examples="""Examples:
  counterfoil annotate links campaign/ --n 20 --out links.csv --public-url https://study.example
  counterfoil annotate links campaign/ --n 3

Each link is one person's. The first 20 of 30 links are those of 20, so more can be made later."""
)
def campaign_links(
    campaign: Annotated[str | Path, CAMPAIGN],
    n: Annotated[int, Option("How many.", low=1, high=1_000_000, flag="--n")] = 20,
    *,
    out: Annotated[str | Path | None, Option("Write a table number, link here (CSV).")] = None,
    public_url: Annotated[
        str, Option("The address under which people reach the server.", metavar="URL")
    ] = "http://127.0.0.1:8750",
    overwrite: Annotated[bool, OVERWRITE] = False,
    **reporting: Unpack[Reporting],
) -> Change:
    """Personal links that cannot be guessed, one for each person.

    They are the `value`. Who opens one takes part as that person. Raises `DataError` for a folder without a
    campaign and `InputError` for an address that is none.
    """
    from counterfoil.annotate.participants import make_links
    from counterfoil.annotate.server.security import check_public_url

    root = check_public_url(public_url)
    links = [f"{root}/enter/{link}" for link in make_links(open_campaign(Path(campaign)), n)]
    if out is None:
        return Change(tuple(links), links)
    with guarded("annotate links", overwrite=overwrite, reads=[campaign]) as outputs:
        outputs.file(Path(out))
        write_csv(out, pa.table({"number": range(1, n + 1), "link": links}))
    feedback_of(reporting).note(f"{n:,} links written to {out}")
    return Change((), links)


#: Characters of a person's id that are printed.
SHORT = 10


@dataclass(frozen=True, eq=False, repr=False)
class CampaignProgress(Tabular):
    """Where a campaign stands, and each of its people.

    Rows by "person" are one per person: `person` (a hash), `state`, `review` (approved, rejected or empty),
    `items`, `golden_right` of `golden`, median `seconds` per item and `pay` per hour, null where not known.
    """

    status: CampaignStatus

    rows_by = ("person",)

    def _rows(self, by: str) -> pa.Table:
        schema = schema_of(
            "person state review items:int64 golden_right:int64 golden:int64 seconds:float64 pay:float64"
        )
        return pa.Table.from_pylist([asdict(person) for person in self.status.persons], schema)

    @property
    def facts(self) -> dict[str, str]:
        """The figures of the campaign in words."""
        of = self.status
        return {"Campaign": f"{of.title} ({of.form}, {of.design}), {of.state}", **facts_of(of)}

    @property
    def tables(self) -> tuple[Table, ...]:
        """The people, in the order in which they came."""
        status = self.status
        heads = ("state", "items", "s each", f"{status.currency}/h", "golden")
        rows = [
            (
                person.person[:SHORT],
                person.review or person.state,
                f"{person.items:,}",
                "–" if person.seconds is None else f"{person.seconds:.1f}",
                "–" if person.pay is None else f"{person.pay:.2f}",
                f"{person.golden_right} of {person.golden}" if person.golden else "–",
            )
            for person in status.persons
        ]
        return (Table.of("People", "person", heads, rows),) if rows else ()

    @property
    def notes(self) -> list[str]:
        """The facts, a line each."""
        return [f"{name}: {value}" for name, value in self.facts.items()]

    def __repr__(self) -> str:
        return f"<CampaignProgress: {self.status.finished} of {self.status.items} items finished>"

    def to_json(self) -> dict[str, Any]:
        """All of it as plain values, as `annotate status --json` writes it."""
        return asdict(self.status)


@job(
    outputs="json",
    examples="""Examples:
  counterfoil annotate status campaign/
  counterfoil annotate status campaign/ --people
  counterfoil annotate status campaign/ --database postgresql://ann@localhost/study --json -""",
)
def annotate_status(
    campaign: Annotated[str | Path, CAMPAIGN], *, now: float | None = None, **options: Unpack[StoredAnswers]
) -> CampaignProgress:
    """Where a campaign stands: people, answers, what is needed, expected end, time, pay, golden items.

    It reads the database, also while the campaign is served, and changes nothing.

    `now` is the present by default. Raises `DataError` for a folder without a campaign.
    """
    feedback = feedback_of(options)
    with opened(campaign, options["database"]) as (source, connected):
        from counterfoil.annotate.overview import read_status

        status = read_status(connected, source, now=time.time() if now is None else now)
    if status.overdue:
        feedback.warn(
            f"answers were to be kept until {status.keep_until}: "
            "delete them with 'counterfoil annotate delete-after'"
        )
    if status.pay_warning:
        feedback.warn(status.pay_warning)
    return CampaignProgress(status)
