"""Access to the researcher's page: the campaign's token, a signed cookie, and a header against forged posts.

The cookie holds no secret but a signature of its own end, keyed by the token, so that no session is stored
and a new token ends all of them. A script sends the token itself (`Authorization: Bearer ...`).
"""

import hashlib
import hmac
import math
from collections.abc import Callable
from dataclasses import dataclass

from fastapi import HTTPException, Request, Response

from counterfoil.annotate.campaign import Campaign

COOKIE = "counterfoil_researcher"
#: The header that a page must send with every post, as the page itself has it.
CSRF_HEADER = "X-Counterfoil-Form"
#: Seconds after which one has to log in again.
SESSION = 12 * 3600.0


@dataclass(frozen=True)
class ResearcherAccess:
    """Who may see and decide: holders of the campaign's token, or of a cookie that was signed with it."""

    campaign: Campaign
    clock: Callable[[], float]

    def is_token(self, given: str) -> bool:
        """Whether this is the campaign's token; takes equally long for any other."""
        return hmac.compare_digest(given.strip().encode(), self._token)

    def log_in(self, request: Request, response: Response) -> None:
        """Give the browser a cookie that it sends to this site alone."""
        ends = str(math.ceil(self.clock() + SESSION))
        response.set_cookie(
            COOKIE,
            f"{ends}.{self._signed('session', ends)}",
            max_age=int(SESSION),
            httponly=True,
            samesite="strict",
            secure=request.url.scheme == "https",
            path="/",
        )

    def csrf(self, request: Request) -> str:
        """What the header of a post must hold in this session."""
        return self._signed("form", request.cookies.get(COOKIE, ""))

    def may_read(self, request: Request) -> bool:
        """Whether the request comes with the token, or with a cookie that has not ended."""
        ends, _, signature = request.cookies.get(COOKIE, "").partition(".")
        signed = hmac.compare_digest(signature.encode(), self._signed("session", ends).encode())
        in_time = ends.isascii() and ends.isdigit() and self.clock() < int(ends)
        return self._bears_token(request) or (signed and in_time)

    def reading(self, request: Request) -> None:
        """Raise a 401 for a request that may not read."""
        if not self.may_read(request):
            raise HTTPException(401, "the researcher's token is needed", {"WWW-Authenticate": "Bearer"})

    def deciding(self, request: Request) -> None:
        """Raise a 401 as `reading`, and a 403 for a post with a cookie that no page of ours sent."""
        self.reading(request)
        given = request.headers.get(CSRF_HEADER, "")
        if not self._bears_token(request) and not hmac.compare_digest(
            given.encode(), self.csrf(request).encode()
        ):
            raise HTTPException(403, f"the header {CSRF_HEADER} is missing or of another session")

    def _bears_token(self, request: Request) -> bool:
        kind, _, token = request.headers.get("authorization", "").partition(" ")
        return kind.lower() == "bearer" and self.is_token(token)

    @property
    def _token(self) -> bytes:
        return self.campaign.secrets["token"].encode()

    def _signed(self, use: str, text: str) -> str:
        return hmac.new(self._token, f"{use}\n{text}".encode(), hashlib.sha256).hexdigest()
