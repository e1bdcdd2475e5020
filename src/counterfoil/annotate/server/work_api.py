"""Routes of the annotators' page that speak JSON; each is about the person whose token its path holds."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header, HTTPException, Path, Query, Response
from pydantic import BaseModel

from counterfoil.annotate import participants, work
from counterfoil.annotate.campaign import Campaign
from counterfoil.annotate.leases import find_lease
from counterfoil.annotate.server.group_commit import GroupCommit
from counterfoil.annotate.server.work_views import NothingGiven, ReceiptView, Views, WorkView, problems
from counterfoil.annotate.tables import sa

Token = Annotated[str, Path(max_length=200)]

#: What every route may answer besides what it is for.
PROBLEMS = problems(
    {
        403: "sent by a page of another site",
        404: "no such link",
        413: "too much was sent",
        415: "no JSON",
        422: "refused, with the reason",
        429: "too many wrong links from this address",
        503: "the database cannot be written at this moment; nothing was stored",
        507: "the disk is full; nothing was stored",
    }
)


@dataclass(frozen=True)
class Caller:
    """Whose page asks, by its token, with the platform's signed visit and the languages of the browser."""

    token: str
    visit: str
    accepted: str


async def caller(
    token: Token,
    visit: Annotated[str, Query(max_length=2_000)] = "",
    accepted: Annotated[str, Header(alias="accept-language", max_length=2_000)] = "",
) -> Caller:
    """Who asks; it waits for nothing, so that no thread has to be found for it."""
    return Caller(token, visit, accepted)


CallerDep = Annotated[Caller, Depends(caller)]
#: What a route does about a person within a writing transaction.
Act = Callable[[sa.Connection, participants.Person, float], participants.Person]


def routes(campaign: Campaign, commits: GroupCommit, views: Views, clock: Callable[[], float]) -> APIRouter:
    """The routes under /api/work: each is one transaction, and its reply is sent when that is on the disk."""
    router = APIRouter(prefix="/api", responses=PROBLEMS)

    async def reply(caller: Caller, act: Act = lambda db, person, now: person) -> Response:
        def transaction(db: sa.Connection) -> work.WorkState | None:
            person, now = participants.person_of(db, caller.token), clock()
            return None if person is None else work.work_state(db, campaign, act(db, person, now), now)

        return await reply_after(caller, transaction, views.work)

    async def reply_after(
        caller: Caller, transaction: Callable[[sa.Connection], Any], view: Callable[..., BaseModel]
    ) -> Response:
        done = await commits.write(transaction)
        if done is None:
            raise HTTPException(404, participants.UNKNOWN_TOKEN)
        shown = view(done, views.visit(caller.visit, caller.token), views.language(caller.accepted))
        # Written here: FastAPI would check the view once more.
        return Response(shown.model_dump_json(), media_type="application/json")

    @router.get("/work/{token}", response_model=WorkView)
    async def get_work(caller: CallerDep) -> Response:
        """Where the person stands, with the items to do now and next."""
        return await reply(caller)

    @router.post("/work/{token}/consent", response_model=WorkView)
    async def consent(caller: CallerDep, given: NothingGiven) -> Response:
        """Store that the person agrees to take part."""
        text = campaign.consent_in(views.language(caller.accepted))
        return await reply(caller, partial(participants.consent, text=text))

    @router.post("/work/{token}/answers", response_model=ReceiptView)
    async def post_answer(caller: CallerDep, sent: work.AnswerIn) -> Response:
        """Store an answer, or change the last one; sent again with the same key it is stored once."""

        def record(db: sa.Connection) -> work.Receipt | None:
            person = participants.person_of(db, caller.token)
            if person is None:
                return None
            lease = find_lease(db, person.id, sent.lease)
            return work.record_answer(db, campaign, person, lease, sent, clock())

        return await reply_after(caller, record, views.receipt)

    @router.post("/work/{token}/end", response_model=WorkView)
    async def end(caller: CallerDep, given: NothingGiven) -> Response:
        """End with what the person did: it counts, and others get the rest."""
        return await reply(caller, work.end_work)

    @router.post("/work/{token}/withdraw", response_model=WorkView)
    async def withdraw(caller: CallerDep, given: NothingGiven) -> Response:
        """Delete the person's answers for good."""
        return await reply(caller, lambda db, person, now: participants.withdraw(db, campaign, person, now))

    @router.get("/preview")
    def preview(accepted: Annotated[str, Header(alias="accept-language", max_length=2_000)] = "") -> WorkView:
        """An example for people of a platform who look before they accept."""
        if views.platform is None or not views.platform.frames:
            raise HTTPException(404, "this campaign has no preview")
        return views.preview(views.language(accepted))

    return router
