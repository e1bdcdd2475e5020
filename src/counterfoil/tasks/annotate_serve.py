"""Serving of a campaign, and the links by which people come."""

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from counterfoil.annotate.campaign import Campaign, open_campaign
from counterfoil.errors import InputError

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
    from counterfoil.annotate.entry import make_links
    from counterfoil.annotate.server.security import check_public_url

    if not 1 <= n <= MOST_LINKS:
        raise InputError("no number of links", given=n, allowed=f"1 to {MOST_LINKS:,}")
    root = check_public_url(site)
    campaign = open_campaign(Path(folder))
    links = [f"{root}/enter/{link}" for link in make_links(campaign, n)]
    return pa.table({"number": list(range(1, n + 1)), "link": links})
