"""Guard of the server: what may ask, how much may be sent, and what browsers may do with an answer.

A plain ASGI middleware counts a body as it arrives and leaves no route out.
"""

import ipaddress
import re
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from counterfoil.errors import InputError

#: Bytes of a request's body: the longest answer is a few thousand characters.
LARGEST_BODY = 64 * 1024
_TOO_MUCH = f"too much was sent; at most {LARGEST_BODY:,} bytes"
#: Characters of a path with its parameters.
LONGEST_PATH = 4_096
#: Wrong tokens, links or codes within a window, from one address or with one beginning; further ones are
#: answered by a wait. Tokens and links are too long to be guessed, so a right one always passes.
MOST_WRONG, WINDOW = 30, 60.0
#: Addresses of which wrong attempts are remembered; the oldest are forgotten first.
_MOST_ADDRESSES = 10_000
#: Paths that hold a token or a link, and what stands after them where they do.
_TOKEN = re.compile(r"/(?:api/work|work|enter)(?:/([^/]*)|$)")
#: A name that a proxy has for this server, and no site of the internet.
_NO_SITE = re.compile(r"[a-z0-9_-]+")
#: Characters of a token that make its beginning.
_BEGINNING = 4
#: Paths whose errors are read by scripts.
_FOR_SCRIPTS = ("/api/", "/static/", "/media/", "/openapi.json")
_TRIED = frozenset({401, 403, 404})
_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
#: Headers of every reply, where the route has none of its own.
_HEADERS = {
    # Files of ours alone, no script within a page, and in no frame.
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "base-uri 'none'; form-action 'self'; require-trusted-types-for 'script'; trusted-types 'none'; "
        "frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    # Addresses hold tokens, so no other site may learn them.
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
    "x-robots-tag": "noindex, nofollow",
    "x-frame-options": "DENY",
    "cross-origin-opener-policy": "same-origin",
}
#: Headers of a page with a form and no token in its address: without a referrer a browser would send the form
#: without its origin, and it would be refused.
FORM_PAGE = {"referrer-policy": "same-origin"}


@dataclass
class Attempts:
    """Wrong attempts by address, or by what else they have in common, within the last `WINDOW` seconds."""

    _seen: dict[str, deque[float]] = field(default_factory=dict)

    def wrong(self, address: str, *, now: float) -> None:
        times = self._seen.pop(address, None) or deque(maxlen=MOST_WRONG)
        times.append(now)
        self._seen[address] = times
        if len(self._seen) > _MOST_ADDRESSES:
            del self._seen[next(iter(self._seen))]

    def wait(self, address: str, *, now: float) -> int:
        """Whole seconds that an address has to wait, 0 where it need not."""
        times = self._seen.get(address)
        if times is None or len(times) < MOST_WRONG:
            return 0
        return max(0, int(times[0] + WINDOW - now))


def network_of(address: str) -> str:
    """The address as attempts are counted: of IPv6 the network of 64 bits, which one household has whole.

    >>> network_of("192.0.2.7"), network_of("2001:db8:1:2:3::4"), network_of("a socket")
    ('192.0.2.7', '2001:db8:1:2::', 'a socket')
    """
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:
        return address
    if ip.version == 4:
        return address
    return str(ipaddress.ip_network((int(ip), 64), strict=False).network_address)


def host_of(authority: str) -> str:
    """The host of "host:port" in lower case, without a port; empty for what is none."""
    try:
        parts = urlsplit(f"//{authority}")
        _ = parts.port
    except ValueError:
        return ""
    return "" if "@" in authority or "/" in authority else parts.hostname or ""


def is_address(host: str) -> bool:
    """Whether a host is an address in numbers, which no foreign name server can point at this machine."""
    with suppress(ValueError):
        return bool(ipaddress.ip_address(host))
    return False


def check_public_url(address: str) -> str:
    """The address under which people reach the server, without a slash at its end."""
    try:
        parts = urlsplit(address)
        sound = parts.scheme in ("http", "https") and bool(host_of(parts.netloc))
    except ValueError:
        sound = False
    if not sound or parts.path not in ("", "/") or parts.query or parts.fragment:
        what, allowed = "not the address of a site", "https://study.example"
        raise InputError(what, where="--public-url", given=address, allowed=allowed)
    return f"{parts.scheme}://{parts.netloc}"


def check_proxy(address: str) -> str:
    """The address or network of a proxy.

    >>> check_proxy("172.16.0.0/12")
    '172.16.0.0/12'
    """
    try:
        return str(ipaddress.ip_network(address))
    except ValueError:
        what, allowed = "not an address or a network of a proxy", "such as 127.0.0.1 or 172.16.0.0/12"
        raise InputError(what, where="--proxy", given=address, allowed=allowed) from None


def for_scripts(path: str) -> bool:
    """Whether an error on this path is read by a script, and not shown to a person as a page."""
    return path.startswith(_FOR_SCRIPTS)


@dataclass
class Guard:
    """The application behind its guard, which answers to `public_url`, `hosts`, localhost and addresses in
    numbers: another name may have been pointed here to read answers through a visitor's browser. A proxy asks
    by names without a dot, too. `page` shows a refusal to a person; `log` is told of requests, no tokens.
    """

    app: ASGIApp
    clock: Callable[[], float]
    hosts: frozenset[str] = frozenset()
    public_url: str | None = None
    page: Callable[[Request, str, int], Response] | None = None
    log: Callable[[str], None] | None = None
    attempts: Attempts = field(default_factory=Attempts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        begun, status, replaced, read = self.clock(), 500, False, 0
        caching = "no-cache" if scope["path"].startswith("/static/") else "no-store"
        headers = [(n.encode(), v.encode()) for n, v in {**_HEADERS, "cache-control": caching}.items()]
        head = {name: value.decode("latin-1") for name, value in scope["headers"]}
        keys = self._tried(scope, head)

        async def answer(message: Message) -> None:
            nonlocal status, replaced
            if replaced:
                return
            if message["type"] == "http.response.start":
                status = message["status"]
                wait = self._wait(keys) if status in _TRIED else 0
                for key in keys if status in _TRIED else ():
                    self.attempts.wrong(key, now=begun)
                if wait:
                    await self._refuse(scope, receive, answer, *_too_many(wait))
                    replaced = True
                    return
                given = {name.lower() for name, _ in message.get("headers", ())}
                added = [(name, value) for name, value in headers if name not in given]
                message["headers"] = [*message.get("headers", ()), *added]
            await send(message)

        async def counted() -> Message:
            """A part of the body, refused where it is too long, whatever was announced."""
            nonlocal read
            message = await receive()
            read += len(message.get("body", b""))
            if read > LARGEST_BODY:
                raise HTTPException(413, _TOO_MUCH)
            return message

        refusal = self._refusal(scope, head, keys)
        if refusal is None:
            await self.app(scope, counted, answer)
        else:
            keys = ()
            await self._refuse(scope, receive, answer, *refusal)
        if self.log is not None:
            route = getattr(scope.get("route"), "path", "-")
            self.log(f"{scope['method']} {route} {status} {1000 * (self.clock() - begun):.0f} ms")

    def _tried(self, scope: Scope, head: dict[bytes, str]) -> tuple[str, ...]:
        """What an attempt at a secret is counted by; nothing where none is made."""
        address, path = network_of((scope.get("client") or ("", 0))[0]), scope["path"]
        if path == "/open" and scope["method"] == "POST":
            return (f"code {address}",)
        token = _TOKEN.match(path)
        if token is not None:
            return (address, f"token {token[1][:_BEGINNING]}") if token[1] else (address,)
        of_researcher = path == "/research/login" or b"authorization" in head
        return (address,) if of_researcher and path.startswith(("/research", "/api/research")) else ()

    def _wait(self, keys: Sequence[str]) -> int:
        return max((self.attempts.wait(key, now=self.clock()) for key in keys), default=0)

    async def _refuse(self, scope: Scope, receive: Receive, send: Send, status: int, reason: str) -> None:
        headers = {"retry-after": str(int(WINDOW))} if status == 429 else {}
        if status == 413:
            headers["connection"] = "close"
        if self.page is None or for_scripts(scope["path"]):
            response: Response = JSONResponse({"error": reason}, status)
        else:
            response = self.page(Request(scope), reason, status)
        response.headers.update(headers)
        await response(scope, receive, send)

    def _refusal(self, scope: Scope, head: dict[bytes, str], keys: Sequence[str]) -> tuple[int, str] | None:
        """Status and reason of a request that is not passed on."""
        if len(scope.get("raw_path") or b"") + len(scope["query_string"]) > LONGEST_PATH:
            return 414, "the address is too long"
        host = host_of(head.get(b"host", ""))
        own_host = host in self.hosts or (self.public_url is not None and _NO_SITE.fullmatch(host))
        if not (host == "localhost" or is_address(host) or own_host):
            return 421, "this server is not known by that name; start it with --public-url"
        if scope["method"] not in _SAFE:
            origin = head.get(b"origin")
            same_origin = origin is None or origin.lower() == (self.public_url or "").lower()
            foreign = not same_origin and urlsplit(str(origin)).netloc.lower() != head[b"host"].lower()
            if foreign or head.get(b"sec-fetch-site") == "cross-site":
                hint = "" if self.public_url else "; behind a proxy the server is started with --public-url"
                return 403, f"a page of another site may not send this{hint}"
            # Forms of other sites can send everything but this type.
            kind = head.get(b"content-type", "").partition(";")[0].strip().lower()
            if scope["path"].startswith("/api/") and kind != "application/json":
                return 415, "send JSON, with the content type application/json"
        length = head.get(b"content-length", "0")
        if not (length.isascii() and length.isdigit()):
            return 400, "the length of the body is no number"
        if len(length) > 9 or int(length) > LARGEST_BODY:
            return 413, _TOO_MUCH
        # Codes are short, so that right ones wait as well: by them one could tell which are right.
        if scope["path"] == "/open" and (wait := self._wait(keys)):
            return _too_many(wait)
        return None


def _too_many(wait: int) -> tuple[int, str]:
    return 429, f"too many wrong links or codes; try again in {wait} s"
