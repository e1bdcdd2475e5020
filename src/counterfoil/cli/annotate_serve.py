"""`counterfoil annotate serve | links`: the pages of a campaign, and the links by which people come."""

from pathlib import Path
from typing import Annotated

import typer

from counterfoil.cli import usage
from counterfoil.cli.annotate_agreement import Database
from counterfoil.cli.options import Overwrite, Quiet

SERVE_EPILOG = """Examples:

  counterfoil annotate serve campaign/

  counterfoil annotate serve campaign/ --public-url https://study.example

  counterfoil annotate serve campaign/ --host 0.0.0.0 --certificate cert.pem --key key.pem

Ctrl-C stops it; answers that were acknowledged are stored. Behind a server that ends https, name the address
that people see with --public-url, and its own with --proxy."""

LINKS_EPILOG = """Examples:

  counterfoil annotate links campaign/ --n 20 --out links.csv --public-url https://study.example

  counterfoil annotate links campaign/ --n 3

Each link is one person's. The first 20 of 30 links are those of 20, so more can be made later."""

Folder = Annotated[Path, typer.Argument(metavar="CAMPAIGN", help="A campaign's folder.")]


def serve(
    campaign: Folder,
    host: Annotated[str, typer.Option(help="Where to listen; 0.0.0.0 is every network.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65_535, help="0 takes any that is free.")] = 8750,
    database: Database = None,
    public_url: Annotated[
        str | None,
        typer.Option(metavar="URL", help="The address that people see, where it is another than this one's."),
    ] = None,
    proxy: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ADDRESS",
            help="A server before this one, or a network: what it says of visitors is believed.",
        ),
    ] = None,
    certificate: Annotated[Path | None, typer.Option(help="For https: the certificate, with --key.")] = None,
    key: Annotated[Path | None, typer.Option(help="For https: the certificate's private key.")] = None,
    quiet: Quiet = False,
) -> None:
    """Serve a campaign: a page for those who annotate, one for the researcher.

    Prints both addresses and the token that the researcher's page asks for. Requests are listed with
    --verbose, without the tokens in them.
    """
    from counterfoil.cli import interrupts, terminal
    from counterfoil.tasks.annotate_serve import Addresses, serve_campaign

    def ready(addresses: Addresses) -> None:
        print(f"people      {addresses.people}")
        print(f"researcher  {addresses.researcher}")
        print(f"token       {addresses.token}", flush=True)
        if not quiet:
            if addresses.people.endswith("..."):
                terminal.note(
                    f"personal links: counterfoil annotate links {campaign} --public-url {addresses.site}"
                )
            terminal.note("Ctrl-C stops the server.")

    with interrupts.left_to_server():
        serve_campaign(
            campaign,
            host=host,
            port=port,
            database=database,
            public_url=public_url,
            proxies=proxy or (),
            certificate=certificate,
            key=key,
            ready=ready,
            log=terminal.note if usage.verbose else None,
            trouble=terminal.note,
        )


def links(
    campaign: Folder,
    n: Annotated[int, typer.Option(help="How many.")] = 20,
    out: Annotated[Path | None, typer.Option(help="Write a table number, link here (CSV).")] = None,
    public_url: Annotated[
        str, typer.Option(metavar="URL", help="The address under which people reach the server.")
    ] = "http://127.0.0.1:8750",
    overwrite: Overwrite = False,
    quiet: Quiet = False,
) -> None:
    """Personal links that cannot be guessed, one for each person."""
    from counterfoil.cli import paths, terminal
    from counterfoil.store import write_csv
    from counterfoil.tasks.annotate_serve import campaign_links

    paths.check(csv=out)
    table = campaign_links(campaign, n, site=public_url)
    if out is None:
        for link in table["link"].to_pylist():
            print(link)
        return
    write_csv(out, table)
    if not quiet:
        terminal.note(f"{n:,} links written to {out}")
