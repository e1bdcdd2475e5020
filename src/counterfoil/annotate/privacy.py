"""Withdrawal asked of the researcher, and the end of the time for which answers are kept."""

from dataclasses import dataclass, replace

import pyarrow.compute as pc

from counterfoil.annotate.answering import set_running, withdraw
from counterfoil.annotate.answers import judgement_table
from counterfoil.annotate.campaign import ITEMS, SOURCE, Campaign, items_table
from counterfoil.annotate.database import Database
from counterfoil.annotate.export import ABOUT, DATA_SHEET, JudgedCampaign, data_sheet
from counterfoil.annotate.participants import person_by_id
from counterfoil.annotate.review import decided_answers
from counterfoil.annotate.status import kept_too_long
from counterfoil.annotate.tables import ROUND, log_event, run
from counterfoil.errors import InputError
from counterfoil.store import write_csv, write_parquet, write_text

#: The file of labels that stay, in the campaign's folder.
KEPT_LABELS = "kept_labels.csv"


@dataclass(frozen=True)
class Deletion:
    """People and answers that were deleted, `labels` that are kept, and `single` ones, of one answer, that
    are not.
    """

    people: int
    answers: int
    labels: int = 0
    single: int = 0


def withdraw_person(db: Database, campaign: Campaign, person: str, now: float, *, named: str = "") -> int:
    """Withdraw a person as they could do themselves; returns how many answers were deleted."""
    query = "SELECT count(*) FROM answers WHERE person = :person"
    with db.writing() as connection:
        count = run(connection, query, person=person).scalar_one()
        if run(connection, "SELECT id FROM people WHERE id = :person", person=person).first() is None:
            raise InputError("no such person in this campaign", given=named or person)
        withdraw(connection, campaign, person_by_id(connection, person), now)
    return int(count)


def delete_people(db: Database, campaign: Campaign, now: float, *, early: bool = False) -> Deletion:
    """Delete all answers, all people, the export and the authors of items, and stop the campaign.

    What SQLite has deleted is overwritten in its file; PostgreSQL's tables are written anew, while its log is
    the server's. Items, decisions, and with `keep_labels` the labels and the data sheet stay.
    """
    until = campaign.recipe.keep_until
    if not early and not kept_too_long(until, now):
        what = "no date after which answers are to be deleted"
        what = "answers are not to be deleted yet" if until else what
        where, hint = f"{campaign.folder}, key 'keep_until'", "delete them all the same with --now"
        raise InputError(what, where=where, given=until or None, hint=hint)
    set_running(db, "stopped", now)
    labelled = single = 0
    # Where there are no answers, what an earlier deletion left stays.
    if campaign.recipe.keep_labels and len(judgements := judgement_table(db, campaign)):
        lines = "".join(f"* {line}\n" for line in data_sheet(campaign, judgements))
        write_text(campaign.folder / DATA_SHEET, lines)
        labels = JudgedCampaign.of(campaign, judgements, adjudicated=decided_answers(db, campaign)).labels
        if labels is not None:
            several = labels.table.filter(pc.greater_equal(labels.table.column("answers"), 2))
            write_csv(campaign.folder / KEPT_LABELS, several)
            labelled, single = len(several), len(labels.table) - len(several)
    with db.writing() as connection:
        came, given = (
            run(connection, f"SELECT count(*) FROM {table}").scalar_one() for table in ("people", "answers")
        )
        count = Deletion(came, given, labelled, single)
        for change in (
            "DELETE FROM answers",
            "UPDATE blocks SET person = NULL, expires = NULL, done = false",
            "DELETE FROM leases",
            f"UPDATE items SET answered = 0, leased = 0, author = NULL, rank = rank % {ROUND}",
            "DELETE FROM tokens",
            "DELETE FROM events WHERE person IS NOT NULL",
            "DELETE FROM people",
        ):
            run(connection, change)
        log_event(connection, now, "deleted", detail=f"{count.people} people, {count.answers} answers")
    # The export in the campaign's folder goes, too, and who wrote its items.
    export = campaign.folder / "export"
    if (export / ABOUT).is_file():
        for path in [*export.glob("*.csv"), *export.glob("*.parquet"), export / DATA_SHEET, export / ABOUT]:
            path.unlink(missing_ok=True)
    if any(item.cells.get("author") for item in campaign.items):
        bare = [replace(item, cells={**item.cells, "author": None}) for item in campaign.items]
        write_parquet(campaign.folder / ITEMS, items_table(bare, campaign.form))
    if campaign.source is not None and "author" in campaign.source.column_names:
        write_parquet(campaign.folder / SOURCE, campaign.source.drop_columns(["author"]))
    if db.is_sqlite:
        # Deleted rows were overwritten where they lay; what they left in the log goes with it.
        with db.engine.connect() as connection:
            raw = connection.connection.driver_connection
            assert raw is not None
            raw.execute("VACUUM")
            raw.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    else:
        with db.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            for table in ("answers", "leases", "tokens", "events", "blocks", "items", "people"):
                connection.exec_driver_sql(f"VACUUM FULL {table}")
    return count
