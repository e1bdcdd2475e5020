"""Serving of a campaign, the links by which people come, and where it stands."""

import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from counterfoil.annotate.campaign import Campaign, open_campaign
from counterfoil.annotate.status import CampaignStatus, facts_of
from counterfoil.errors import InputError
from counterfoil.jobs.annotate_agreement import opened
from counterfoil.jobs.results import Tabular
from counterfoil.report.tables import Column, Table, text_table

#: Links that are made at once, at most.
MOST_LINKS = 1_000_000


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


def serve_campaign(
    folder: str | Path,
    *,
    host: str = "127.0.0.1",
    port: int = 8750,
    database: str | None = None,
    public_url: str | None = None,
    proxies: Sequence[str] = (),
    certificate: str | Path | None = None,
    key: str | Path | None = None,
    ready: Callable[[Addresses], None] | None = None,
    log: Callable[[str], None] | None = None,
    trouble: Callable[[str], None] | None = None,
) -> None:
    """Serve a campaign until the process is stopped.

    `ready` is called once the server listens, `log` with a line for each request, in which there is no
    token, and `trouble` with why a database fails; `proxies` are servers before this one, by address or
    network. Raises `DataError` for a folder without a campaign, `InputError` for a campaign that is served
    already, a port that is taken, an address that is none and a certificate that cannot be used.
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
    campaign = open_campaign(Path(folder))
    with closing(open_database(campaign, database, serve=True)) as opened:
        app = make_app(campaign, opened, public_url=public_url, proxies=proxies, log=log, trouble=trouble)

        def listening(own: str) -> None:
            if ready is not None:
                ready(addresses(campaign, public_url or own))

        run(
            app,
            host=host,
            port=port,
            certificate=None if certificate is None else Path(certificate),
            key=None if key is None else Path(key),
            ready=listening,
        )


def addresses(campaign: Campaign, site: str) -> Addresses:
    """The addresses of a campaign that is served at `site`."""
    from counterfoil.annotate.platforms.registry import campaign_platform
    from counterfoil.annotate.server.work_views import OWN_ENTRIES

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


def campaign_links(folder: str | Path, n: int = 20, *, site: str = "http://127.0.0.1:8750") -> pa.Table:
    """The first n personal links of a campaign as a table `number`, `link`; the same ones each time.

    Each is for one person: who opens it takes part as that person. Raises `DataError` for a folder
    without a campaign and `InputError` for an address that is none.
    """
    from counterfoil.annotate.participants import make_links
    from counterfoil.annotate.server.security import check_public_url

    if not 1 <= n <= MOST_LINKS:
        raise InputError("no number of links", given=n, allowed=f"1 to {MOST_LINKS:,}")
    root = check_public_url(site)
    campaign = open_campaign(Path(folder))
    links = [f"{root}/enter/{link}" for link in make_links(campaign, n)]
    return pa.table({"number": list(range(1, n + 1)), "link": links})


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
        kinds = {
            "person": pa.string(),
            "state": pa.string(),
            "review": pa.string(),
            "items": pa.int64(),
            "golden_right": pa.int64(),
            "golden": pa.int64(),
            "seconds": pa.float64(),
            "pay": pa.float64(),
        }
        rows = [asdict(person) for person in self.status.persons]
        return pa.Table.from_pylist(rows, pa.schema(list(kinds.items())))

    @property
    def facts(self) -> dict[str, str]:
        """The figures of the campaign in words."""
        status = self.status
        return {
            "Campaign": f"{status.title} ({status.form}, {status.design}), {status.state}",
            **facts_of(status),
        }

    @property
    def tables(self) -> tuple[Table, ...]:
        """The people, in the order in which they came."""
        status = self.status
        columns = [Column(name) for name in ("state", "items", "s each", f"{status.currency}/h", "golden")]
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
        return (text_table("People", "person", columns, rows),) if rows else ()

    @property
    def notes(self) -> list[str]:
        """The facts, a line each."""
        return [f"{name}: {value}" for name, value in self.facts.items()]

    def __repr__(self) -> str:
        return f"<CampaignProgress: {self.status.finished} of {self.status.items} items finished>"

    def to_json(self) -> dict[str, Any]:
        """All of it as plain values, as `annotate status --json` writes it."""
        return self.status.to_json()


def annotate_status(
    campaign: str | Path, *, database: str | None = None, now: float | None = None
) -> CampaignProgress:
    """The status of the campaign in a folder, also while it is served; `now` is the present by default.

    Raises `DataError` for a folder without a campaign, and as `open_database`.
    """
    with opened(campaign, database) as (source, connected):
        from counterfoil.annotate.overview import read_status

        moment = time.time() if now is None else now
        return CampaignProgress(read_status(connected, source, now=moment))
