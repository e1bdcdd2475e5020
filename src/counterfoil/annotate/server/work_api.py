"""JSON of the annotators' page: views of a campaign, and the routes that send them.

Nothing in a view gives an answer away: options are places on the page, images are numbers, and neither roles,
kinds, ids of items nor file names are in it.
"""

import hashlib
import hmac
import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property, partial
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Header, HTTPException, Path, Query, Response
from pydantic import BaseModel

from counterfoil.annotate import answering, participants
from counterfoil.annotate.answering import Assignment, Receipt, State, WorkState
from counterfoil.annotate.campaign import Campaign
from counterfoil.annotate.forms.base import Shown
from counterfoil.annotate.languages import language_for, phrase_in
from counterfoil.annotate.platforms.base import Leave, Outcome, Platform, Visit
from counterfoil.annotate.platforms.registry import OWN_ENTRIES, campaign_platform
from counterfoil.annotate.server.group_commit import GroupCommit
from counterfoil.annotate.tables import Connection


class OptionView(BaseModel, from_attributes=True):
    """An option: its label, addresses of its images, its texts."""

    label: str
    images: list[str]
    texts: list[str]


class FieldView(BaseModel, from_attributes=True):
    """A field; `when` names the fields, and places of their options, with which it is open."""

    name: str
    prompt: str
    kind: Literal["one", "many", "text", "spans"]
    options: list[OptionView]
    required: bool
    when: dict[str, list[int]]
    longest: int
    text: str


class ItemView(BaseModel):
    """An item under its lease; `practice` is the test before the work."""

    lease: str
    position: int
    practice: bool
    shown: list[Shown]
    fields: list[FieldView]


class WorkView(BaseModel):
    """Where a person stands, and the items to do now and next."""

    state: State
    done: int
    of: int
    notice: str
    code: str
    leave: dict[Literal["address"], str] | None
    items: list[ItemView]


class ReceiptView(BaseModel):
    """What became of an answer: `accepted` means that it is on the disk."""

    accepted: bool
    repeated: bool
    notice: str
    work: WorkView


class NothingGiven(BaseModel, extra="forbid"):
    """An empty object."""


class ProblemView(BaseModel):
    """What is wrong, in one line."""

    error: str


def problems(reasons: Mapping[int, str]) -> dict[int | str, dict[str, Any]]:
    """What routes may answer besides what they are for, by status, for the schema."""
    return {status: {"model": ProblemView, "description": reason} for status, reason in reasons.items()}


@dataclass(frozen=True)
class Views:
    """Views of one campaign."""

    campaign: Campaign

    @cached_property
    def platform(self) -> Platform | None:
        """The platform that people come from; None where they come by links of ours."""
        recipe = self.campaign.recipe
        return None if recipe.entry in OWN_ENTRIES else campaign_platform(recipe.entry, recipe.completion)

    @cached_property
    def pictures(self) -> Mapping[str, str]:
        """File names of all images by their numbers."""
        return {self._keyed("picture", name): name for name in self.campaign.image_names}

    @cached_property
    def _addresses(self) -> Mapping[str, str]:
        """Addresses of all images by file name: to make one takes longer than a page."""
        return {name: f"/media/{number}" for number, name in self.pictures.items()}

    def _keyed(self, purpose: str, text: str) -> str:
        key = self.campaign.secrets["salt"].encode()
        return hmac.digest(key, f"{purpose}\0{text}".encode(), hashlib.sha256).hex()[:40]

    def signed_visit(self, visit: Visit, token: str) -> str:
        """A visit as text that only this person can use, so that ids of a platform need not be stored."""
        body = urlsafe_b64encode(json.dumps(asdict(visit)).encode()).decode().rstrip("=")
        return f"{body}.{self._keyed(f'visit {token}', body)}"

    def visit(self, text: str, token: str) -> Visit | None:
        """The visit in a signed text; None for any other text."""
        if not text:
            return None
        body, _, mark = text.partition(".")
        expected = self._keyed(f"visit {token}", body)
        if not hmac.compare_digest(mark.encode(), expected.encode()):
            return None
        given = json.loads(urlsafe_b64decode(body + "=" * (-len(body) % 4)))
        # Earlier versions signed more than this.
        return Visit(given["person"], given["study"], given["submission"])

    def language(self, accepted: str) -> str:
        return language_for(accepted, self.campaign.recipe.languages)

    def work(self, state: WorkState, visit: Visit | None, language: str) -> WorkView:
        """Where a person stands, in a language."""
        outcomes: dict[str, Outcome] = {
            "done": "completed",
            "consent": "no_consent",
            "withdrawn": "no_consent",
            "ended": "screened_out",
            "disqualified": "failed_checks" if state.done else "screened_out",
            "full": "completed" if state.done else "screened_out",
        }
        leave = Leave()
        if self.platform is not None and visit is not None and state.state in outcomes:
            leave = self.platform.leave(visit, outcomes[state.state])
        return WorkView(
            state=state.state,
            done=state.done,
            of=state.of,
            notice=phrase_in(language, state.notice),
            code=(leave.code or state.code) if state.state in ("done", "ended") else "",
            leave={"address": leave.address} if leave.address else None,
            items=[self._item(assignment, language) for assignment in state.assignments],
        )

    def receipt(self, receipt: Receipt, visit: Visit | None, language: str) -> ReceiptView:
        """A receipt in a language, with what is next."""
        shown: Any = {"notice": phrase_in(language, receipt.notice)}
        return ReceiptView(**{**vars(receipt), **shown, "work": self.work(receipt.work, visit, language)})

    def _item(self, assignment: Assignment, language: str) -> ItemView:
        page, phrase = assignment.page, partial(phrase_in, language)
        shown = []
        for block in page.shown:
            content = self._addresses[block.content] if block.kind == "image" else block.content
            shown.append(replace(block, label=phrase(block.label), content=content))
        by_name = {field.name: field for field in page.fields}
        fields = []
        for field in page.fields:
            when = {
                name: [i for i, value in enumerate(by_name[name].values) if value in allowed]
                for name, allowed in field.when.items()
            }
            options = [
                replace(one, label=phrase(one.label), images=tuple(self._addresses[i] for i in one.images))
                for one in field.options
            ]
            words = {"prompt": phrase(field.prompt), "text": phrase(field.text), "options": options}
            fields.append(FieldView.model_validate({**vars(field), **words, "when": when}))
        about: Any = {"lease": assignment.lease, "position": assignment.position}
        return ItemView(**about, practice=assignment.role == "onboarding", shown=shown, fields=fields)


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
Act = Callable[[Connection, participants.Person, float], Any]


def routes(campaign: Campaign, commits: GroupCommit, views: Views, clock: Callable[[], float]) -> APIRouter:
    """The routes under /api/work: each is one transaction, and its reply is sent when that is on the disk."""
    router = APIRouter(prefix="/api", responses=PROBLEMS)

    def work_after(change: Callable[..., participants.Person]) -> Act:
        """Change the person, and reply with their state of work then."""
        return lambda db, person, now: answering.work_state(db, campaign, change(db, person, now), now)

    async def reply(caller: Caller, act: Act, view: Callable[..., BaseModel] = views.work) -> Response:
        def transaction(db: Connection) -> Any:
            person = participants.person_of(db, caller.token)
            return None if person is None else act(db, person, clock())

        done = await commits.write(transaction)
        if done is None:
            raise HTTPException(404, participants.UNKNOWN_TOKEN)
        shown = view(done, views.visit(caller.visit, caller.token), views.language(caller.accepted))
        # Written here: FastAPI would check the view once more.
        return Response(shown.model_dump_json(), media_type="application/json")

    @router.get("/work/{token}", response_model=WorkView)
    async def get_work(caller: CallerDep) -> Response:
        """Where the person stands, with the items to do now and next."""
        return await reply(caller, work_after(lambda db, person, now: person))

    @router.post("/work/{token}/consent", response_model=WorkView)
    async def consent(caller: CallerDep, given: NothingGiven) -> Response:
        """Store that the person agrees to take part."""
        text = campaign.consent_in(views.language(caller.accepted))
        return await reply(caller, work_after(partial(participants.consent, text=text)))

    @router.post("/work/{token}/answers", response_model=ReceiptView)
    async def post_answer(caller: CallerDep, sent: answering.AnswerIn) -> Response:
        """Store an answer, or change the last one; sent again with the same key it is stored once."""

        def record(db: Connection, person: participants.Person, now: float) -> Receipt:
            return answering.record_answer(db, campaign, person, sent, now)

        return await reply(caller, record, views.receipt)

    @router.post("/work/{token}/end", response_model=WorkView)
    async def end(caller: CallerDep, given: NothingGiven) -> Response:
        """End with what the person did: it counts, and others get the rest."""
        return await reply(caller, work_after(answering.end_work))

    @router.post("/work/{token}/withdraw", response_model=WorkView)
    async def withdraw(caller: CallerDep, given: NothingGiven) -> Response:
        """Delete the person's answers for good."""
        return await reply(
            caller, work_after(lambda db, person, now: answering.withdraw(db, campaign, person, now))
        )

    return router
