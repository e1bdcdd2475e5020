"""Routes of the researcher's page that speak JSON: what it shows, and the decisions that are taken on it."""

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal

import pyarrow as pa
import pyarrow.compute as pc
from fastapi import APIRouter, Depends, HTTPException
from fastapi.responses import Response
from pydantic import BaseModel, ConfigDict, Field

from counterfoil.annotate.adjudication import adjudicate
from counterfoil.annotate.answers import judgement_table
from counterfoil.annotate.campaign import Campaign
from counterfoil.annotate.database import Database
from counterfoil.annotate.judgement_table import write_judgement_table
from counterfoil.annotate.overview import CampaignOverview
from counterfoil.annotate.participants import person_id, readmit
from counterfoil.annotate.review import SHORT_ID, approve, reject
from counterfoil.annotate.server.research_access import CSRF_HEADER, ResearcherAccess
from counterfoil.annotate.server.research_cache import OverviewCache
from counterfoil.annotate.work import set_running

#: Whose decision one on the page is.
BY = "researcher's page"


class _Given(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class StateGiven(_Given):
    """Whether the campaign hands out work."""

    state: Literal["open", "paused", "stopped"]


class ReviewGiven(_Given):
    """A decision about a person's work."""

    person: Annotated[str, Field(min_length=1, max_length=64)]
    decision: Literal["approved", "rejected"]
    reason: Annotated[str, Field(max_length=2_000)] = ""
    category: Annotated[str, Field(max_length=40)] = ""


class AdjudicationGiven(_Given):
    """A decision about an item: the value of an option."""

    item: Annotated[str, Field(min_length=1, max_length=500)]
    answer: Annotated[str, Field(min_length=1, max_length=500)]
    question: Annotated[str, Field(max_length=200)] = ""
    note: Annotated[str, Field(max_length=2_000)] = ""


class ReadmissionGiven(_Given):
    """A person who may come with another browser, by the platform's id of them."""

    worker: Annotated[str, Field(min_length=1, max_length=200)]


class DoneView(BaseModel):
    """What was done, in a line."""

    done: str


class RefusedView(BaseModel):
    """Why nothing was done, in a line."""

    error: str


PROBLEMS: dict[int | str, dict[str, Any]] = {
    status: {"model": RefusedView, "description": description}
    for status, description in (
        (401, "without the researcher's token"),
        (403, f"a cookie without the header {CSRF_HEADER}"),
        (413, "too much was sent"),
        (422, "refused, with the reason"),
        (429, "too many wrong tokens from this address"),
        (503, "not ready, or the database cannot be written at this moment"),
        (507, "the disk is full; nothing was stored"),
    )
}


def routes(
    campaign: Campaign,
    database: Database,
    access: ResearcherAccess,
    cache: OverviewCache,
    clock: Callable[[], float],
) -> APIRouter:
    """The routes under /api/research; each asks for the token, and a post by cookie for its header."""
    router = APIRouter(prefix="/api/research", responses=PROBLEMS)
    reading, deciding = Depends(access.reading), Depends(access.deciding)

    @router.get("/overview", dependencies=[reading])
    def overview() -> dict[str, Any]:
        """Status, agreement, people and disputes."""
        return ready(cache).to_json()

    @router.post("/state", dependencies=[deciding])
    def state(given: StateGiven) -> DoneView:
        """Go on, pause or stop: paused and stopped campaigns hand out nothing; what is under way is taken."""
        set_running(database, given.state, clock())
        cache.outdate()
        return DoneView(done=f"the campaign is {given.state}")

    @router.post("/reviews", dependencies=[deciding])
    def review(given: ReviewGiven) -> DoneView:
        """Approve or reject a person's work."""
        if given.decision == "approved":
            new = approve(database, [given.person], by=BY, now=clock(), reason=given.reason)
            done = "approved" if new else "was approved before"
        else:
            aside = reject(
                database,
                campaign,
                given.person,
                reason=given.reason,
                category=given.category,
                by=BY,
                now=clock(),
            )
            done = f"rejected; {aside:,} answers set aside, their items are open again"
        cache.outdate()
        return DoneView(done=done)

    @router.post("/readmissions", dependencies=[deciding])
    def let_in(given: ReadmissionGiven) -> DoneView:
        """Let a person in from another browser; pages of theirs that are open elsewhere end."""
        worker = given.worker.strip()
        person = person_id(campaign, campaign.recipe.entry, worker)
        with database.writing() as connection:
            readmit(connection, person, clock(), named=worker)
        return DoneView(done=f"{person[:SHORT_ID]} may come with another browser, by the platform's link")

    @router.post("/adjudications", dependencies=[deciding])
    def decide(given: AdjudicationGiven) -> DoneView:
        """Decide an item that people disagree on."""
        decision = adjudicate(
            database,
            campaign,
            given.item,
            given.answer,
            question=given.question,
            note=given.note,
            by=BY,
            now=clock(),
        )
        cache.outdate()
        return DoneView(done=f"{decision.item}: {decision.answer}")

    @router.get("/judgements.csv", dependencies=[reading], response_class=Response)
    def export() -> Response:
        """The answers that count as CSV; people are numbered, and their ids are not in it."""
        table = without_ids(judgement_table(database, campaign))
        with tempfile.TemporaryDirectory(prefix="counterfoil-export-") as folder:
            path = Path(folder) / "judgements.csv"
            write_judgement_table(path, table)
            content = path.read_bytes()
        headers = {"content-disposition": 'attachment; filename="judgements.csv"'}
        return Response(content, 200, headers, "text/csv; charset=utf-8")

    return router


def ready(cache: OverviewCache) -> CampaignOverview:
    """The overview; raises a 503 where it takes too long to make the first one."""
    overview = cache.latest()
    if overview is None:
        raise HTTPException(
            503, "the overview is being made; try again in a few seconds", {"Retry-After": "3"}
        )
    return overview


def without_ids(table: pa.Table) -> pa.Table:
    """The judgements with numbers in place of the people's ids, in the order of appearance.

    >>> without_ids(pa.table({"person": ["b81c", "03fe", "b81c"]})).column("person").to_pylist()
    ['1', '2', '1']
    """
    codes = table.column("person").combine_chunks().dictionary_encode().indices
    numbers = pc.cast(pc.add(pc.cast(codes, pa.int64()), 1), pa.string())
    return table.set_column(table.column_names.index("person"), "person", numbers)
