"""A server on loopback that keeps the rules of Prolific's API: studies, submissions, faults.

Tests play the participants by calling `join`, `finish` and the like. Rules are those of the API reference of
July 2026.
"""

import json
import threading
from contextlib import contextmanager
from itertools import count
from urllib.parse import parse_qs, urlsplit

from loopback import Handler, loopback

TOKEN = "a-token-of-the-tests"
HOLDS_A_PLACE = {"RESERVED", "ACTIVE", "AWAITING REVIEW", "APPROVED"}


class RefusedError(Exception):
    """A request that the rules refuse."""

    def __init__(self, status, detail):
        super().__init__(detail)
        self.status, self.detail = status, detail


class FakeProlific:
    """The state behind the server; `faults` befall the next requests, one each, in order.

    "429" and other numbers are answered in place of doing anything; "lost" does what was asked and cuts the
    connection before the answer; "cut" does nothing and cuts it; "" is no fault.
    """

    def __init__(self):
        self.lock = threading.RLock()
        self.numbers = count(1)
        self.studies = {}
        self.submissions = {}
        self.faults = []
        self.log = []
        self.largest_page = 100
        self.busy_every = 0
        self.address = ""

    # What researchers do on Prolific's pages, and participants.

    def study(self, places=3):
        number = f"60{next(self.numbers):022x}"
        self.studies[number] = {"id": number, "status": "ACTIVE", "total_available_places": places}
        return number

    def join(self, study, person):
        with self.lock:
            result = self.studies[study]
            assert result["status"] == "ACTIVE", result["status"]
            assert self.taken(study) < result["total_available_places"], "the study is full"
            mine = [own for own in self.of(study) if own["participant_id"] == person]
            assert not mine, "a person takes part once"
            number = f"5b{next(self.numbers):022x}"
            own = {"id": number, "study_id": study, "participant_id": person, "status": "ACTIVE"}
            self.submissions[number] = {**own, "study_code": None, "time_taken": None}
            return number

    def finish(self, submission, code):
        with self.lock:
            result = self.submissions[submission]
            assert result["status"] == "ACTIVE"
            result |= {"status": "AWAITING REVIEW", "study_code": code, "time_taken": 312.5}

    def end(self, submission, status):
        """RETURNED or TIMED-OUT: the place is free again."""
        with self.lock:
            assert self.submissions[submission]["status"] in ("ACTIVE", "AWAITING REVIEW")
            self.submissions[submission]["status"] = status

    def of(self, study):
        return [item for item in self.submissions.values() if item["study_id"] == study]

    def taken(self, study):
        return sum(item["status"] in HOLDS_A_PLACE for item in self.of(study))

    def status(self, submission):
        return str(self.submissions[submission]["status"])

    # What researchers ask for.

    def reply(self, method, address, authorization, body):
        """Status and body of a reply; None where the connection is cut in its place."""
        parts = urlsplit(address)
        path = parts.path.removeprefix("/api/v1")
        with self.lock:
            self.log.append((method, path))
            fault = self.faults.pop(0) if self.faults else ""
            if not fault and self.busy_every and len(self.log) % self.busy_every == 0:
                fault = "429"
            if fault == "cut":
                return None
            try:
                if fault.isdigit():
                    raise RefusedError(int(fault), f"fault {TOKEN}")
                if authorization != f"Token {TOKEN}":
                    raise RefusedError(401, "Authentication credentials were not provided.")
                status, answer = self.answer(method, path, parse_qs(parts.query), body)
            except RefusedError as refused:
                status = refused.status
                answer = {"error": {"status": status, "title": "Bad request", "detail": refused.detail}}
            return None if fault == "lost" else (status, answer)

    def answer(self, method, path, query, body):
        parts = path.strip("/").split("/")
        assert path.endswith("/"), path
        match (method, parts):
            case ("GET", ["studies", study, "submissions"]):
                if study not in self.studies:
                    raise RefusedError(404, "Not found.")
                return 200, self._page(self.of(study), query)
            case ("POST", ["submissions", "bulk-approve"]):
                for item in body["submission_ids"]:
                    self._judged(item, {"action": "APPROVE"})
                return 202, "Bulk approve in progress"
            case ("POST", ["submissions", submission, "transition"]):
                return 200, self._judged(submission, body)
        raise AssertionError(path)

    def _page(self, entries, query):
        limit = min(int(query.get("limit", ["20"])[0]), self.largest_page)
        offset = int(query.get("offset", ["0"])[0])
        return {"results": entries[offset : offset + limit], "meta": {"count": len(entries)}, "_links": {}}

    def _judged(self, submission, body):
        result = self.submissions[submission]
        after = {"APPROVE": "APPROVED", "REJECT": "REJECTED"}[body["action"]]
        assert result["status"] in ("AWAITING REVIEW", after), result["status"]
        result["status"] = after
        return result


@contextmanager
def running():
    """A server in a thread; `address` is where it is."""
    state = FakeProlific()

    class FakeHandler(Handler):
        def do_GET(self):
            body = json.loads(self.body() or b"null")
            reply = state.reply(self.command, self.path, self.headers.get("Authorization"), body)
            if reply is None:
                self.cut()
            else:
                self.send(reply[0], json.dumps(reply[1]), {"Retry-After": "0"})

        do_POST = do_GET  # noqa: N815

    with loopback(FakeHandler) as address:
        state.address = f"{address}/api/v1"
        yield state
