"""Client of Prolific's API: submissions of a study, listed, approved and rejected.

All requests may safely be sent twice, so those that fail for now are tried again with growing waits. Source:
docs.prolific.com/api-reference, July 2026.
"""

import json
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from random import uniform
from typing import Any

import httpx2

from counterfoil.annotate.platforms.prolific import ProlificSubmission, Rejection
from counterfoil.errors import InputError
from counterfoil.models.chat.http_client import PASSING, error_words, retry_after

ADDRESS = "https://api.prolific.com/api/v1"
#: The first wait between tries and the longest one, in seconds; where Prolific asks for more than its
#: patience, the command ends. A request that is not answered for so long has failed.
_FIRST, _LONGEST, _PATIENCE, _TIMEOUT = 1.0, 60.0, 300.0, 30.0
#: Submissions and studies on a page, and ids in a request.
_PAGE, _MANY = 100, 200
#: More pages than any study has.
_PAGES = 10_000

#: What to look at where Prolific refuses, by the status of its answer.
_HINTS = {
    401: "is the token in PROLIFIC_TOKEN right?",
    403: "may this token do that?",
    404: "is the id right?",
}


class ProlificClient:
    """Prolific with a researcher's token, which is sent and never written or shown."""

    def __init__(
        self,
        token: str,
        address: str = ADDRESS,
        *,
        retries: int = 6,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        if not token.strip() or not token.isascii() or not token.isprintable():
            given = "(empty)" if not token.strip() else "a text that is no token"
            hint = "make one in Prolific's settings, and put it into the variable PROLIFIC_TOKEN"
            raise InputError("no token of Prolific", where="prolific", given=given, hint=hint)
        self._token, self._address, self._retries, self._sleep = token.strip(), address, retries, sleep
        self._http = httpx2.Client(
            headers={"Authorization": f"Token {self._token}"},
            timeout=_TIMEOUT,
            # Certificates take a fifth of a second to load, and a plain address has none.
            verify=address.startswith("https:"),
        )

    def __enter__(self) -> "ProlificClient":
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()

    def submissions(self, study: str) -> tuple[ProlificSubmission, ...]:
        """All submissions of a study, each once, whatever comes in while they are listed."""
        entries = map(ProlificSubmission.read, self._pages(f"studies/{_id(study)}/submissions/"))
        return tuple({submission.id: submission for submission in entries}.values())

    def approve(self, submissions: Sequence[str]) -> None:
        """Approve submissions, which pays them. One that is approved already stays so."""
        ids = [_id(submission) for submission in submissions]
        for start in range(0, len(ids), _MANY):
            self._ask("POST", "submissions/bulk-approve/", {"submission_ids": ids[start : start + _MANY]})

    def reject(self, rejections: Sequence[Rejection]) -> None:
        """Reject submissions, each with its message and category, all of which were checked when made."""
        for of in rejections:
            body = {"action": "REJECT", "message": of.message, "rejection_category": of.category}
            self._ask("POST", f"submissions/{_id(of.submission)}/transition/", body)

    def _pages(self, path: str) -> Iterator[Mapping[str, Any]]:
        """The entries of a list, page by page, until there are as many as it counts, or none more."""
        offset = 0
        for _ in range(_PAGES):
            reply = self._ask("GET", f"{path}?limit={_PAGE}&offset={offset}")
            results = reply.get("results")
            if not isinstance(results, list):
                raise self._failed("an answer that is no list", given=f"{path}: {json.dumps(reply)[:80]}")
            yield from results
            offset += len(results)
            count = (reply.get("meta") or {}).get("count")
            whole = offset >= count if isinstance(count, int) else len(results) < _PAGE
            if not results or whole:
                return

    def _ask(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        last = ""
        for tries in range(self._retries + 1):
            after = 0.0
            try:
                response = self._http.request(method, f"{self._address}/{path}", json=body)
            except httpx2.TransportError as error:
                last = f"{type(error).__name__}: {error}"
            else:
                status = response.status_code
                if status < 300:
                    # Bulk requests are answered without an object.
                    try:
                        content = json.loads(response.text or "{}")
                    except ValueError:
                        return {}
                    return content if isinstance(content, dict) else {"results": content}
                last = f"status {status}: {error_words(response.text)[:300]}"
                if status not in PASSING:
                    raise self._failed("Prolific refuses", given=last, hint=_HINTS.get(status))
                after = retry_after(response.headers)
            if after > _PATIENCE:
                raise self._failed("Prolific asks for a long wait", given=f"{after:,.0f} s")
            if tries < self._retries:
                wait = min(_LONGEST, _FIRST * 2**tries) * uniform(0.5, 1.0)
                self._sleep(max(after, wait))
        raise self._failed(f"no answer after {self._retries + 1} tries", given=last)

    def _failed(self, what: str, *, given: str, hint: str | None = None) -> InputError:
        # Some servers repeat the token in their words.
        return InputError(what, where="prolific", given=given.replace(self._token, "(token)"), hint=hint)


def _id(text: str) -> str:
    """An id that cannot leave its place in a path."""
    if not re.fullmatch(r"[A-Za-z0-9_-]{1,64}", text):
        raise InputError("not an id of Prolific", where="prolific", given=text or "(empty)")
    return text
