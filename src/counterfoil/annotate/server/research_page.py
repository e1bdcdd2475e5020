"""Pages of the researcher: log in, the campaign at a glance, and decisions about people and items."""

import tempfile
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import parse_qs

import pyarrow as pa
import pyarrow.compute as pc
from fastapi import APIRouter, Depends, HTTPException, Request
from fastapi.responses import FileResponse, HTMLResponse, RedirectResponse, Response
from pydantic import BaseModel, ConfigDict, Field

from counterfoil.annotate.adjudication import adjudicate
from counterfoil.annotate.answers import answers_of, judgement_table
from counterfoil.annotate.campaign import Campaign
from counterfoil.annotate.database import Database
from counterfoil.annotate.judgement_table import encoded, write_judgement_table
from counterfoil.annotate.overview import CampaignOverview, read_overview
from counterfoil.annotate.participants import person_id, readmit
from counterfoil.annotate.platforms.prolific_study import CATEGORIES, SHORTEST
from counterfoil.annotate.platforms.registry import OWN_ENTRIES
from counterfoil.annotate.review import SHORT_ID, approve, reject
from counterfoil.annotate.server.research_access import COOKIE, CSRF_HEADER, ResearcherAccess
from counterfoil.annotate.server.research_cache import OverviewCache
from counterfoil.annotate.server.security import FORM_PAGE
from counterfoil.annotate.server.work_api import problems
from counterfoil.annotate.server.work_pages import NOTHING_ALLOWED, environment
from counterfoil.annotate.status import TIME_BINS, facts_of, moment
from counterfoil.annotate.work import Running, set_running
from counterfoil.errors import InputError

#: Reweightings behind the intervals of agreement on the page.
DRAWS = 200
#: People and disputed items of the page; the command line lists all.
MOST_SHOWN = 200
#: Whose decision one on the page is.
BY = "researcher's page"


class _Given(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class StateGiven(_Given):
    """Whether the campaign hands out work."""

    state: Running


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


PROBLEMS = problems(
    {
        401: "without the researcher's token",
        403: f"a cookie without the header {CSRF_HEADER}",
        413: "too much was sent",
        422: "refused, with the reason",
        429: "too many wrong tokens from this address",
        503: "not ready, or the database cannot be written at this moment",
        507: "the disk is full; nothing was stored",
    }
)


def routes(campaign: Campaign, database: Database, clock: Callable[[], float]) -> APIRouter:
    """All routes of the researcher, pages and JSON."""
    access = ResearcherAccess(campaign, clock)
    cache = OverviewCache(lambda: read_overview(database, campaign, now=clock(), draws=DRAWS))
    of_pages = APIRouter(prefix="/research", include_in_schema=False)
    # Each of these asks for the token, and a post by cookie for its header.
    of_scripts = APIRouter(prefix="/api/research", responses=PROBLEMS)
    reading, deciding = Depends(access.reading), Depends(access.deciding)

    def page(template: str, *, status: int = 200, **values: Any) -> Response:
        values |= {"title": campaign.recipe.title, "short": SHORT_ID, "moment": moment}
        return HTMLResponse(environment().get_template(template).render(values), status, FORM_PAGE)

    def login(problem: str = "") -> Response:
        """The page that asks for the token; 401, since nothing else is there without it."""
        return page("research_login.html", status=401, problem=problem)

    @of_pages.get("")
    def front_page(request: Request) -> Response:
        """The campaign at a glance."""
        if not access.may_read(request):
            return login()
        latest = cache.latest()
        if latest is None:
            return page("research_wait.html", status=503)
        quality = {person.person: person for person in latest.quality}
        rows = [
            {"row": row, "quality": quality.get(row.person), "review": latest.reviews.get(row.person)}
            for row in latest.status.persons
        ]
        # Those with most reasons and no decision first.
        rows.sort(key=lambda row: (row["review"] is not None, -len(getattr(row["quality"], "reasons", ()))))
        return page(
            "research.html",
            csrf=access.csrf(request),
            found=latest,
            status_of=latest.status,
            facts=facts_of(latest.status),
            bars=time_bars(latest.status.times),
            persons=rows[:MOST_SHOWN],
            more=max(0, len(rows) - MOST_SHOWN),
            disputes=latest.disputes[:20],
            undecided=sum(dispute.decided is None for dispute in latest.disputes),
            categories=CATEGORIES,
            shortest=SHORTEST,
            platform=campaign.recipe.entry not in OWN_ENTRIES,
            behind=cache.behind,
        )

    @of_pages.get("/disputes", dependencies=[reading])
    def dispute(request: Request, item: str = "") -> Response:
        """One item that people disagree on; by default the most undecided one without a decision."""
        disputes = _ready(cache).disputes
        places = {dispute.item: at for at, dispute in enumerate(disputes)}
        if item and item not in places:
            raise HTTPException(404, "no such item among those that people disagree on")
        if not disputes:
            return page("research_none.html")
        at = places[item] if item else 0
        shown = campaign.form.page(campaign.items[campaign.places[disputes[at].item]])
        return page(
            "research_dispute.html",
            csrf=access.csrf(request),
            dispute=disputes[at],
            shown=shown.shown,
            field=next(field for field in shown.fields if field.name == campaign.form.main),
            at=at,
            of=len(disputes),
            undecided=sum(listed.decided is None for listed in disputes),
            before=disputes[at - 1].item if at else "",
            after=disputes[at + 1].item if at + 1 < len(disputes) else "",
        )

    @of_pages.get("/people/{person}", dependencies=[reading])
    def answers(person: str) -> Response:
        """What one person answered, beside the images that they saw."""
        answers = answers_of(database, campaign, person)
        known = [answer.right for answer in answers if answer.right is not None]
        facts = {"person": person, "golden": len(known), "wrong": known.count(False)}
        status = 200 if answers else 404
        return page("research_person.html", status=status, answers=answers, main=campaign.form.main, **facts)

    @of_pages.post("/login")
    async def log_in(request: Request) -> Response:
        token = parse_qs((await request.body()).decode("utf-8", "replace")).get("token", [""])[0]
        if not access.is_token(token):
            return login("This is not the token of this campaign.")
        response = RedirectResponse("/research", 303)
        access.log_in(request, response)
        return response

    @of_pages.post("/logout", dependencies=[deciding])
    def log_out() -> Response:
        response = Response(status_code=204)
        response.delete_cookie(COOKIE, path="/")
        return response

    @of_pages.get("/image/{name}", dependencies=[reading])
    def image(name: str) -> Response:
        try:
            path = campaign.image(name)
        except InputError as error:
            raise HTTPException(404, str(error)) from None
        return FileResponse(path, 200, NOTHING_ALLOWED)

    @of_scripts.get("/overview", dependencies=[reading])
    def overview() -> dict[str, Any]:
        """Status, agreement, people and disputes."""
        return _ready(cache).to_json()

    @of_scripts.post("/state", dependencies=[deciding])
    def state(given: StateGiven) -> DoneView:
        """Go on, pause or stop: paused and stopped campaigns hand out nothing; what is under way is taken."""
        set_running(database, given.state, clock())
        cache.outdate()
        return DoneView(done=f"the campaign is {given.state}")

    @of_scripts.post("/reviews", dependencies=[deciding])
    def review(given: ReviewGiven) -> DoneView:
        """Approve or reject a person's work."""
        if given.decision == "approved":
            new = approve(database, [given.person], by=BY, now=clock(), reason=given.reason)
            done = "approved" if new else "was approved before"
        else:
            why = {"reason": given.reason, "category": given.category}
            aside = reject(database, campaign, given.person, **why, by=BY, now=clock())
            done = f"rejected; {aside:,} answers set aside, their items are open again"
        cache.outdate()
        return DoneView(done=done)

    @of_scripts.post("/readmissions", dependencies=[deciding])
    def let_in(given: ReadmissionGiven) -> DoneView:
        """Let a person in from another browser; pages of theirs that are open elsewhere end."""
        worker = given.worker.strip()
        person = person_id(campaign, campaign.recipe.entry, worker)
        with database.writing() as connection:
            readmit(connection, person, clock(), named=worker)
        return DoneView(done=f"{person[:SHORT_ID]} may come with another browser, by the platform's link")

    @of_scripts.post("/adjudications", dependencies=[deciding])
    def decide(given: AdjudicationGiven) -> DoneView:
        """Decide an item that people disagree on."""
        decision = adjudicate(database, campaign, **given.model_dump(), by=BY, now=clock())
        cache.outdate()
        return DoneView(done=f"{decision.item}: {decision.answer}")

    @of_scripts.get("/judgements.csv", dependencies=[reading], response_class=Response)
    def export() -> Response:
        """The answers that count as CSV; people are numbered, and their ids are not in it."""
        table = without_ids(judgement_table(database, campaign))
        with tempfile.TemporaryDirectory(prefix="counterfoil-export-") as folder:
            path = Path(folder) / "judgements.csv"
            write_judgement_table(path, table)
            content = path.read_bytes()
        headers = {"content-disposition": 'attachment; filename="judgements.csv"'}
        return Response(content, 200, headers, "text/csv; charset=utf-8")

    router = APIRouter()
    router.include_router(of_scripts)
    router.include_router(of_pages)
    return router


def _ready(cache: OverviewCache) -> CampaignOverview:
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
    _, codes = encoded(table.column("person"))
    numbers = pc.cast(pa.array(codes + 1), pa.string())
    return table.set_column(table.column_names.index("person"), "person", numbers)


def time_bars(times: Sequence[int]) -> list[dict[str, Any]]:
    """Bars of the histogram of time per item: label, number of items, and height in [0, 100].

    >>> bars = time_bars((0, 3, 1, *([0] * 11)))
    >>> len(bars), bars[1]
    (14, {'label': '1–2', 'count': 3, 'height': 100.0})
    """
    most = max(times, default=0) or 1
    ends = ["0", *map(str, TIME_BINS)]
    labels = [f"{low}–{high}" for low, high in pairwise(ends)] + [f"{ends[-1]}+"]
    return [
        {"label": label, "count": count, "height": round(100 * count / most, 1)}
        for label, count in zip(labels, times, strict=True)
    ]
