"""The researcher's page: log in, the campaign at a glance, and decisions about people and items.

Access is by the campaign's token, by a signed cookie, and by a header against forged posts. The cookie holds
no secret but a signature of its own end, keyed by the token, so that no session is stored and a new token
ends all of them. A script sends the token itself (`Authorization: Bearer ...`).

Agreement of a hundred thousand answers takes seconds, so the overview is never made twice at once, and at
most for a twentieth of the time.
"""

import hashlib
import hmac
import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, HTTPException, Request
from fastapi.responses import FileResponse, HTMLResponse, RedirectResponse, Response
from pydantic import BaseModel, Field

from counterfoil.annotate.answering import Running, set_running
from counterfoil.annotate.answers import answers_of
from counterfoil.annotate.campaign import SHORT_ID, Campaign
from counterfoil.annotate.database import Database
from counterfoil.annotate.platforms.prolific import CATEGORIES, SHORTEST
from counterfoil.annotate.review import adjudicate, approve, reject
from counterfoil.annotate.server.security import FORM_PAGE
from counterfoil.annotate.server.work_api import problems
from counterfoil.annotate.server.work_pages import NOTHING_ALLOWED, environment, posted
from counterfoil.annotate.status import CampaignOverview, facts_of, moment, read_overview
from counterfoil.errors import InputError

COOKIE = "counterfoil_researcher"
#: The header that a page must send with every post, as the page itself has it.
CSRF_HEADER = "X-Counterfoil-Form"
#: Seconds after which one has to log in again.
SESSION = 12 * 3600.0


#: Seconds between two overviews, at least, and how many times as long as one took.
_LEAST, _TIMES = 5.0, 20.0


@dataclass(eq=False)
class OverviewCache:
    """The latest overview; `make` makes one, in the request that asks when it is due."""

    make: Callable[[], CampaignOverview]
    _latest: CampaignOverview | None = None
    _next: float = 0.0
    _outdated: bool = False
    _making: threading.Lock = field(default_factory=threading.Lock)

    def latest(self) -> CampaignOverview:
        """An overview that knows of every decision."""
        with self._making:
            if self._latest is None or time.monotonic() >= self._next or self._outdated:
                # A decision that comes while one is made outdates it.
                begun, self._outdated, self._latest = time.monotonic(), False, None
                self._latest, ended = self.make(), time.monotonic()
                self._next = ended + max(_LEAST, _TIMES * (ended - begun))
            return self._latest

    def outdate(self) -> None:
        """Something was decided: the next reader gets an overview that knows of it."""
        self._outdated = True


#: Reweightings behind the intervals of agreement on the page.
DRAWS = 200
#: People and disputed items of the page; the command line lists all.
MOST_SHOWN = 200
#: Whose decision one on the page is.
BY = "researcher's page"


class _Given(BaseModel, extra="forbid", strict=True):
    """The base of what a script sends."""


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
    note: Annotated[str, Field(max_length=2_000)] = ""


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
        503: "the database cannot be written at this moment",
        507: "the disk is full; nothing was stored",
    }
)


@dataclass(frozen=True)
class ResearcherPages:
    """The endpoints of the researcher: pages that a browser shows, and decisions that are posted as JSON.

    Holders of the campaign's token may see and decide, or of a cookie that was signed with it.
    """

    campaign: Campaign
    clock: Callable[[], float]
    database: Database

    @property
    def _token(self) -> bytes:
        return self.campaign.secrets["token"].encode()

    def is_token(self, given: str) -> bool:
        """Whether this is the campaign's token; takes equally long for any other."""
        return hmac.compare_digest(given.strip().encode(), self._token)

    def set_cookie(self, request: Request, response: Response) -> None:
        """Give the browser a cookie that it sends to this site alone."""
        ends = str(math.ceil(self.clock() + SESSION))
        safe: Any = {"httponly": True, "samesite": "strict", "secure": request.url.scheme == "https"}
        cookie = f"{ends}.{self._signature('session', ends)}"
        response.set_cookie(COOKIE, cookie, max_age=int(SESSION), path="/", **safe)

    def csrf(self, request: Request) -> str:
        """What the header of a post must hold in this session."""
        return self._signature("form", request.cookies.get(COOKIE, ""))

    def may_read(self, request: Request) -> bool:
        """Whether the request comes with the token, or with a cookie that has not ended."""
        ends, _, signature = request.cookies.get(COOKIE, "").partition(".")
        valid = hmac.compare_digest(signature.encode(), self._signature("session", ends).encode())
        in_time = ends.isascii() and ends.isdigit() and self.clock() < int(ends)
        return self._bears_token(request) or (valid and in_time)

    def reading(self, request: Request) -> None:
        """Raise a 401 for a request that may not read."""
        if not self.may_read(request):
            raise HTTPException(401, "the researcher's token is needed", {"WWW-Authenticate": "Bearer"})

    def deciding(self, request: Request) -> None:
        """Raise a 401 as `reading`, and a 403 for a post with a cookie that no page of ours sent."""
        self.reading(request)
        given, expected = request.headers.get(CSRF_HEADER, "").encode(), self.csrf(request).encode()
        if not self._bears_token(request) and not hmac.compare_digest(given, expected):
            raise HTTPException(403, f"the header {CSRF_HEADER} is missing or of another session")

    def _bears_token(self, request: Request) -> bool:
        kind, _, token = request.headers.get("authorization", "").partition(" ")
        return kind.lower() == "bearer" and self.is_token(token)

    def _signature(self, use: str, text: str) -> str:
        return hmac.new(self._token, f"{use}\n{text}".encode(), hashlib.sha256).hexdigest()

    @cached_property
    def cache(self) -> OverviewCache:
        """The latest overview."""
        return OverviewCache(
            lambda: read_overview(self.database, self.campaign, now=self.clock(), draws=DRAWS)
        )

    def front_page(self, request: Request) -> Response:
        """The campaign at a glance."""
        if not self.may_read(request):
            return self._login()
        latest = self.cache.latest()
        quality = {person.person: person for person in latest.quality}
        rows = [
            {"row": row, "quality": quality.get(row.person), "review": latest.reviews.get(row.person)}
            for row in latest.status.persons
        ]
        # Those with most reasons and no decision first.
        rows.sort(key=lambda row: (row["review"] is not None, -len(getattr(row["quality"], "reasons", ()))))
        return self._page(
            "research.html",
            csrf=self.csrf(request),
            found=latest,
            status_of=latest.status,
            facts=facts_of(latest.status),
            persons=rows[:MOST_SHOWN],
            more=max(0, len(rows) - MOST_SHOWN),
            disputes=latest.disputes[:20],
            undecided=sum(dispute.decided is None for dispute in latest.disputes),
            categories=CATEGORIES,
            shortest=SHORTEST,
        )

    def dispute(self, request: Request, item: str = "") -> Response:
        """One item that people disagree on; by default the most undecided one without a decision."""
        disputes, campaign = self.cache.latest().disputes, self.campaign
        positions = {dispute.item: position for position, dispute in enumerate(disputes)}
        if item and item not in positions:
            raise HTTPException(404, "no such item among those that people disagree on")
        if not disputes:
            return self._page("research_none.html")
        position = positions[item] if item else 0
        shown = campaign.form.page(campaign.items[campaign.positions[disputes[position].item]])
        return self._page(
            "research_dispute.html",
            csrf=self.csrf(request),
            dispute=disputes[position],
            shown=shown.shown,
            field=next(field for field in shown.fields if field.name == campaign.form.main),
            at=position,
            of=len(disputes),
            undecided=sum(listed.decided is None for listed in disputes),
            before=disputes[position - 1].item if position else "",
            after=disputes[position + 1].item if position + 1 < len(disputes) else "",
        )

    def answers(self, person: str) -> Response:
        """What one person answered, beside the images that they saw."""
        answers, main = answers_of(self.database, self.campaign, person), self.campaign.form.main
        judged = [answer.right for answer in answers if answer.right is not None]
        facts = {"person": person, "golden": len(judged), "wrong": judged.count(False), "main": main}
        return self._page("research_person.html", status=200 if answers else 404, answers=answers, **facts)

    async def log_in(self, request: Request) -> Response:
        """Give the cookie to who has the token."""
        if not self.is_token(await posted(request, "token")):
            return self._login("This is not the token of this campaign.")
        response = RedirectResponse("/research", 303)
        self.set_cookie(request, response)
        return response

    def log_out(self) -> Response:
        response = Response(status_code=204)
        response.delete_cookie(COOKIE, path="/")
        return response

    def image(self, name: str) -> Response:
        try:
            return FileResponse(self.campaign.image(name), 200, NOTHING_ALLOWED)
        except InputError as error:
            raise HTTPException(404, str(error)) from None

    def state(self, given: StateGiven) -> DoneView:
        """Go on, pause or stop: paused and stopped campaigns hand out nothing; what is under way is taken."""
        set_running(self.database, given.state, self.clock())
        return self._done(f"the campaign is {given.state}")

    def review(self, given: ReviewGiven) -> DoneView:
        """Approve or reject a person's work."""
        how: Any = {"by": BY, "now": self.clock(), "reason": given.reason}
        if given.decision == "approved":
            new = approve(self.database, [given.person], **how)
            return self._done("approved" if new else "was approved before")
        aside = reject(self.database, self.campaign, given.person, category=given.category, **how)
        return self._done(f"rejected; {aside:,} answers set aside, their items are open again")

    def decide(self, given: AdjudicationGiven) -> DoneView:
        """Decide an item that people disagree on."""
        decision = adjudicate(self.database, self.campaign, **given.model_dump(), by=BY, now=self.clock())
        return self._done(f"{decision.item}: {decision.answer}")

    def _page(self, template: str, *, status: int = 200, **values: Any) -> Response:
        values |= {"title": self.campaign.recipe.title, "short": SHORT_ID, "moment": moment}
        return HTMLResponse(environment().get_template(template).render(values), status, FORM_PAGE)

    def _login(self, problem: str = "") -> Response:
        """The page that asks for the token; 401, since nothing else is there without it."""
        return self._page("research_login.html", status=401, problem=problem)

    def _done(self, done: str) -> DoneView:
        self.cache.outdate()
        return DoneView(done=done)


def routes(pages: ResearcherPages) -> tuple[APIRouter, APIRouter]:
    """All routes of the researcher: reading asks for the token or a session, deciding also for the header."""
    reading, deciding = [Depends(pages.reading)], [Depends(pages.deciding)]
    scripts = APIRouter(prefix="/api/research", responses=PROBLEMS, dependencies=deciding)
    scripts.post("/state")(pages.state)
    scripts.post("/reviews")(pages.review)
    scripts.post("/adjudications")(pages.decide)
    html = APIRouter(prefix="/research", include_in_schema=False)
    html.get("")(pages.front_page)
    html.post("/login")(pages.log_in)
    html.post("/logout", dependencies=deciding)(pages.log_out)
    html.get("/disputes", dependencies=reading)(pages.dispute)
    html.get("/people/{person}", dependencies=reading)(pages.answers)
    html.get("/image/{name}", dependencies=reading)(pages.image)
    return scripts, html
