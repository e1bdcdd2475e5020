"""Routes of the annotators' page that speak JSON; each is about the person whose token its path holds."""

from collections.abc import Callable
from typing import Annotated, Any

from fastapi import APIRouter, Header, HTTPException, Path, Query, Response
from pydantic import BaseModel

from counterfoil.annotate import entry, work
from counterfoil.annotate.campaign import Campaign
from counterfoil.annotate.database import Database
from counterfoil.annotate.languages import phrase_in
from counterfoil.annotate.platforms.base import Visit
from counterfoil.annotate.server.work_views import (
    AnswerGiven,
    NothingGiven,
    ProblemView,
    ReceiptView,
    Views,
    WorkView,
)
from counterfoil.errors import DataError, InputError

Token = Annotated[str, Path(max_length=200)]
SignedVisit = Annotated[str, Query(max_length=2_000)]
#: Languages that a browser accepts, as it says with every request.
Accepted = Annotated[str, Header(alias="accept-language", max_length=2_000)]

#: What every route may answer besides what it is for.
PROBLEMS: dict[int | str, dict[str, Any]] = {
    status: {"model": ProblemView, "description": description}
    for status, description in (
        (403, "sent by a page of another site"),
        (404, "no such link"),
        (413, "too much was sent"),
        (415, "no JSON"),
        (422, "refused, with the reason"),
        (429, "too many wrong links from this address"),
        (503, "the database cannot be written at this moment; nothing was stored"),
        (507, "the disk is full; nothing was stored"),
    )
}


def person_named(database: Database, token: str) -> entry.Person:
    """Who a token belongs to; raises a 404 where no one has it."""
    try:
        return entry.person_of(database, token)
    except DataError:
        raise
    except InputError as error:
        raise HTTPException(404, str(error)) from None


def receipt_view(views: Views, receipt: work.Receipt, visit: Visit | None, language: str) -> ReceiptView:
    """A receipt in a language, with what is next."""
    return ReceiptView(
        accepted=receipt.accepted,
        repeated=receipt.repeated,
        notice=phrase_in(language, receipt.notice),
        work=views.work(receipt.standing, visit, language),
    )


def _reply(view: BaseModel) -> Response:
    # Written here, within the thread: FastAPI would check the view once more, in another turn of a thread.
    return Response(view.model_dump_json(), media_type="application/json")


def routes(campaign: Campaign, database: Database, views: Views, clock: Callable[[], float]) -> APIRouter:
    """The routes under /api/work, each in a thread of its own, since the database waits for the disk."""
    router = APIRouter(prefix="/api", responses=PROBLEMS)

    def standing(token: str, visit: str, accepted: str) -> Response:
        person = person_named(database, token)
        found = work.standing(database, campaign, person, clock())
        return _reply(views.work(found, views.visit(visit, token), views.language(accepted)))

    @router.get("/work/{token}", response_model=WorkView)
    def stand(token: Token, visit: SignedVisit = "", accepted: Accepted = "") -> Response:
        """Where the person stands, with the items to do now and next."""
        return standing(token, visit, accepted)

    @router.post("/work/{token}/consent", response_model=WorkView)
    def consent(
        token: Token, given: NothingGiven, visit: SignedVisit = "", accepted: Accepted = ""
    ) -> Response:
        """Store that the person agrees to take part."""
        entry.consent(
            database,
            person_named(database, token),
            clock(),
            text=campaign.consent_in(views.language(accepted)),
        )
        return standing(token, visit, accepted)

    @router.post("/work/{token}/answers", response_model=ReceiptView)
    def submit(
        token: Token, given: AnswerGiven, visit: SignedVisit = "", accepted: Accepted = ""
    ) -> Response:
        """Store an answer, or change the last one; sent again with the same key it is stored once."""
        person = person_named(database, token)
        receipt = work.submit(database, campaign, person, given.submission(), clock())
        language = views.language(accepted)
        return _reply(receipt_view(views, receipt, views.visit(visit, token), language))

    @router.post("/work/{token}/end", response_model=WorkView)
    def end(token: Token, given: NothingGiven, visit: SignedVisit = "", accepted: Accepted = "") -> Response:
        """End with what the person did: it counts, and others get the rest."""
        work.end_here(database, person_named(database, token), clock())
        return standing(token, visit, accepted)

    @router.post("/work/{token}/withdraw", response_model=WorkView)
    def withdraw(
        token: Token, given: NothingGiven, visit: SignedVisit = "", accepted: Accepted = ""
    ) -> Response:
        """Delete the person's answers for good."""
        entry.withdraw(database, campaign, person_named(database, token), clock())
        return standing(token, visit, accepted)

    @router.get("/preview")
    def preview(accepted: Accepted = "") -> WorkView:
        """An example for people of a platform who look before they accept."""
        if views.platform is None or not views.platform.framed:
            raise HTTPException(404, "this campaign has no preview")
        return views.preview(views.language(accepted))

    return router
