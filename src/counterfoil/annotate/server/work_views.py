"""Views of a campaign for a browser: what is shown of an item, and nothing that gives its answer away.

Options are places in the order of the page, images are numbers of their own, and neither roles, kinds, ids of
items nor file names are in a view. The models are the schema of the routes.
"""

import hashlib
import hmac
import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from counterfoil.annotate.campaign import Campaign
from counterfoil.annotate.forms.base import Shown, WorkPage
from counterfoil.annotate.languages import language_for, page_in, phrase_in
from counterfoil.annotate.platforms.base import Leave, Outcome, Platform, Visit
from counterfoil.annotate.platforms.registry import campaign_platform
from counterfoil.annotate.work import Receipt, State, WorkState, shown_page

#: Ways into a campaign that are no platform's.
OWN_ENTRIES = ("link", "open")


class _View(BaseModel):
    model_config = ConfigDict(from_attributes=True)


class OptionView(_View):
    """An option: its label, addresses of its images, its texts."""

    label: str
    images: list[str]
    texts: list[str]


class FieldView(_View):
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


class LeaveView(_View):
    """Where a person goes at the end, by GET or with a form."""

    address: str
    method: Literal["GET", "POST"]
    fields: dict[str, str]


class WorkView(BaseModel):
    """Where a person stands, and the items to do now and next."""

    state: State | Literal["preview"]
    done: int
    of: int
    notice: str
    code: str
    leave: LeaveView | None
    items: list[ItemView]


class ReceiptView(BaseModel):
    """What became of an answer: `accepted` means that it is on the disk."""

    accepted: bool
    repeated: bool
    notice: str
    work: WorkView


class NothingGiven(BaseModel):
    """An empty object."""

    model_config = ConfigDict(extra="forbid")


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
        """The platform that people come from; None where they come by links of ours.

        Raises `InputError` for an unknown one.
        """
        recipe = self.campaign.recipe
        return None if recipe.entry in OWN_ENTRIES else campaign_platform(recipe.entry, recipe.completion)

    @cached_property
    def pictures(self) -> Mapping[str, str]:
        """File names of all images by the number that addresses have in their place."""
        return {self._keyed("picture", name).hex()[:40]: name for name in self.campaign.image_names}

    @cached_property
    def _addresses(self) -> Mapping[str, str]:
        """Addresses of all images by file name: to make one takes longer than a page."""
        return {name: f"/media/{number}" for number, name in self.pictures.items()}

    def _keyed(self, purpose: str, text: str) -> bytes:
        key = self.campaign.secrets["salt"].encode()
        return hmac.digest(key, f"{purpose}\0{text}".encode(), hashlib.sha256)

    def figure_number(self, name: str) -> str:
        """The number of an image of the instructions in addresses."""
        return self._keyed("figure", name).hex()[:40]

    def signed(self, visit: Visit, token: str) -> str:
        """A visit as text that only this person can use, so that ids of a platform need not be stored."""
        body = urlsafe_b64encode(json.dumps(asdict(visit)).encode()).decode().rstrip("=")
        return f"{body}.{self._keyed(f'visit {token}', body).hex()[:40]}"

    def visit(self, text: str, token: str) -> Visit | None:
        """The visit in a signed text; None for any other text."""
        if not text:
            return None
        body, _, mark = text.partition(".")
        expected = self._keyed(f"visit {token}", body).hex()[:40]
        if not hmac.compare_digest(mark.encode(), expected.encode()):
            return None
        return Visit(**json.loads(urlsafe_b64decode(body + "=" * (-len(body) % 4))))

    def language(self, accepted: str) -> str:
        """The language of a browser that accepts these (`Accept-Language`)."""
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
            leave=LeaveView.model_validate(leave) if leave.address else None,
            items=[
                self._page(
                    page_in(language, assignment.page),
                    lease=assignment.lease,
                    position=assignment.position,
                    practice=assignment.role == "onboarding",
                )
                for assignment in state.assignments
            ],
        )

    def receipt(self, receipt: Receipt, visit: Visit | None, language: str) -> ReceiptView:
        """A receipt in a language, with what is next."""
        return ReceiptView(
            accepted=receipt.accepted,
            repeated=receipt.repeated,
            notice=phrase_in(language, receipt.notice),
            work=self.work(receipt.work, visit, language),
        )

    def preview(self, language: str) -> WorkView:
        """An example for people who only look: an item of the test before the work, else of the work."""
        items = self.campaign.items
        roles = ("onboarding", "work", "golden")
        item = min(items, key=lambda candidate: roles.index(candidate.role))
        page = page_in(language, shown_page(self.campaign, "preview", item))
        view = self._page(page, lease="preview", position=1, practice=False)
        return WorkView(state="preview", done=0, of=1, notice="", code="", leave=None, items=[view])

    def _page(self, page: WorkPage, *, lease: str, position: int, practice: bool) -> ItemView:
        shown = [
            replace(block, content=self._addresses[block.content]) if block.kind == "image" else block
            for block in page.shown
        ]
        by_name = {field.name: field for field in page.fields}
        fields = []
        for field in page.fields:
            when = {
                name: [at for at, value in enumerate(by_name[name].values) if value in allowed]
                for name, allowed in field.when.items()
            }
            options = [
                replace(option, images=tuple(self._addresses[image] for image in option.images))
                for option in field.options
            ]
            fields.append(FieldView.model_validate({**vars(field), "options": options, "when": when}))
        return ItemView(lease=lease, position=position, practice=practice, shown=shown, fields=fields)
