"""Pages of the researcher: log in, the campaign at a glance, and items on which people disagree."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any
from urllib.parse import parse_qs

from fastapi import APIRouter, Depends, HTTPException, Request
from fastapi.responses import FileResponse, HTMLResponse, RedirectResponse, Response

from counterfoil.annotate.answers import answers_of
from counterfoil.annotate.campaign import Campaign
from counterfoil.annotate.database import Database
from counterfoil.annotate.overview import CampaignOverview, read_overview
from counterfoil.annotate.platforms.prolific_submissions import CATEGORIES, SHORTEST
from counterfoil.annotate.review import SHORT_ID
from counterfoil.annotate.server import research_api
from counterfoil.annotate.server.research_access import COOKIE, ResearcherAccess
from counterfoil.annotate.server.research_cache import OverviewCache
from counterfoil.annotate.server.security import FORM_PAGE
from counterfoil.annotate.server.work_pages import environment
from counterfoil.annotate.server.work_views import OWN_ENTRIES
from counterfoil.annotate.status import TIME_BINS, facts_of, moment
from counterfoil.errors import InputError

#: Reweightings behind the intervals of agreement on the page.
DRAWS = 200
#: People and disputed items of the page; the command line lists all.
MOST_SHOWN = 200


@dataclass(frozen=True)
class ResearchPages:
    """The templates of one campaign, filled in."""

    campaign: Campaign
    access: ResearcherAccess
    cache: OverviewCache

    def login(self, *, problem: str = "") -> Response:
        """The page that asks for the token; 401, since nothing else is there without it."""
        return self._page("research_login.html", status=401, problem=problem)

    def overview(self, request: Request) -> Response:
        """The campaign at a glance."""
        latest = self.cache.latest()
        if latest is None:
            return self._page("research_wait.html", status=503)
        return self._page(
            "research.html",
            csrf=self.access.csrf(request),
            found=latest,
            status_of=latest.status,
            facts=facts_of(latest.status),
            bars=time_bars(latest.status.times),
            persons=_persons(latest),
            more=max(0, len(latest.status.persons) - MOST_SHOWN),
            disputes=latest.disputes[:20],
            undecided=sum(dispute.decided is None for dispute in latest.disputes),
            categories=CATEGORIES,
            shortest=SHORTEST,
            platform=self.campaign.recipe.entry not in OWN_ENTRIES,
            when=moment(latest.at),
            behind=self.cache.behind,
            moment=moment,
        )

    def dispute(self, request: Request, item: str) -> Response:
        """One item that people disagree on; by default the most undecided one without a decision."""
        disputes = research_api.ready(self.cache).disputes
        places = {dispute.item: at for at, dispute in enumerate(disputes)}
        if item and item not in places:
            raise HTTPException(404, "no such item among those that people disagree on")
        if not disputes:
            return self._page("research_none.html")
        at = places[item] if item else 0
        shown = disputes[at]
        work = self.campaign.items[self.campaign.places[shown.item]]
        page = self.campaign.form.page(work)
        field = next(field for field in page.fields if field.name == self.campaign.form.main)
        return self._page(
            "research_dispute.html",
            csrf=self.access.csrf(request),
            dispute=shown,
            shown=page.shown,
            field=field,
            at=at,
            of=len(disputes),
            undecided=sum(listed.decided is None for listed in disputes),
            before=disputes[at - 1].item if at else "",
            after=disputes[at + 1].item if at + 1 < len(disputes) else "",
            moment=moment,
        )

    def person(self, database: Database, person: str) -> Response:
        """What one person answered, beside the images that they saw."""
        answers = answers_of(database, self.campaign, person)
        known = [answer.right for answer in answers if answer.right is not None]
        return self._page(
            "research_person.html",
            status=200 if answers else 404,
            person=person,
            answers=answers,
            main=self.campaign.form.main,
            golden=len(known),
            wrong=known.count(False),
        )

    def _page(self, template: str, *, status: int = 200, **values: Any) -> Response:
        page = environment().get_template(template)
        text = page.render(title=self.campaign.recipe.title, short=SHORT_ID, **values)
        return HTMLResponse(text, status, FORM_PAGE)


def routes(campaign: Campaign, database: Database, clock: Callable[[], float]) -> APIRouter:
    """All routes of the researcher, pages and JSON."""
    access = ResearcherAccess(campaign, clock)
    cache = OverviewCache(lambda: read_overview(database, campaign, now=clock(), draws=DRAWS))
    pages = ResearchPages(campaign, access, cache)
    router = APIRouter()
    router.include_router(research_api.routes(campaign, database, access, cache, clock))
    of_pages = APIRouter(prefix="/research", include_in_schema=False)
    reading, deciding = Depends(access.reading), Depends(access.deciding)

    @of_pages.get("")
    def overview(request: Request) -> Response:
        return pages.overview(request) if access.may_read(request) else pages.login()

    @of_pages.post("/login")
    async def log_in(request: Request) -> Response:
        token = parse_qs((await request.body()).decode("utf-8", "replace")).get("token", [""])[0]
        if not access.is_token(token):
            return pages.login(problem="This is not the token of this campaign.")
        response = RedirectResponse("/research", 303)
        access.log_in(request, response)
        return response

    @of_pages.post("/logout", dependencies=[deciding])
    def log_out() -> Response:
        response = Response(status_code=204)
        response.delete_cookie(COOKIE, path="/")
        return response

    @of_pages.get("/disputes", dependencies=[reading])
    def dispute(request: Request, item: str = "") -> Response:
        return pages.dispute(request, item)

    @of_pages.get("/people/{person}", dependencies=[reading])
    def answers(person: str) -> Response:
        return pages.person(database, person)

    @of_pages.get("/image/{name}", dependencies=[reading])
    def image(name: str) -> Response:
        try:
            path = campaign.image(name)
        except InputError as error:
            raise HTTPException(404, str(error)) from None
        # Whatever the file is, it may do nothing.
        policy = {"content-security-policy": "default-src 'none'; sandbox"}
        return FileResponse(path, 200, policy)

    router.include_router(of_pages)
    return router


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


def _persons(overview: CampaignOverview) -> list[dict[str, Any]]:
    """People with what is suspected of them; those with most reasons and no decision first."""
    quality = {person.person: person for person in overview.quality}
    rows = [
        {
            "row": person,
            "quality": quality.get(person.person),
            "review": overview.reviews.get(person.person),
            "may_be_reviewed": person.review == "" and person.items > 0,
        }
        for person in overview.status.persons
    ]

    def order(row: Mapping[str, Any]) -> tuple[bool, int]:
        reasons = 0 if row["quality"] is None else len(row["quality"].reasons)
        return (row["review"] is not None, -reasons)

    return sorted(rows, key=order)[:MOST_SHOWN]
