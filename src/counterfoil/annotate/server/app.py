"""The application of a campaign's server, and the process that serves it."""

import gc
import resource
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from counterfoil import __version__
from counterfoil.annotate.campaign import Campaign
from counterfoil.annotate.database import Database
from counterfoil.annotate.participants import OtherBrowserError
from counterfoil.errors import DataError, InputError, MissingExtraError, StorageError

try:
    import uvicorn
    from fastapi import FastAPI, Request
    from fastapi.exceptions import RequestValidationError
    from fastapi.responses import JSONResponse
    from starlette.exceptions import HTTPException
    from starlette.responses import Response
    from starlette.staticfiles import StaticFiles
    from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware
except ModuleNotFoundError as error:
    raise MissingExtraError(error.name or "fastapi", "annotate") from None

from counterfoil.annotate.server import research, work_api, work_pages
from counterfoil.annotate.server.group_commit import GroupCommit
from counterfoil.annotate.server.security import Guard, check_public_url, for_scripts, host_of

#: Files that are asked for, where the system allows them: each connection is one.
_FILES = 65_536
#: What visitors are told where an answer cannot be stored: that the disk is full, or another of these.
FULL = "the disk is full"
STORAGE_ERRORS = (
    FULL,
    "another process is writing",
    "the database cannot be written: disk I/O error",
    "the database cannot be used",
)


def make_app(
    campaign: Campaign,
    database: Database,
    *,
    public_url: str | None = None,
    proxies: Sequence[str] = (),
    clock: Callable[[], float] = time.time,
    log: Callable[[str], None] | None = None,
    trouble: Callable[[str], None] | None = None,
) -> FastAPI:
    """The application, guarded, with every page and route of a campaign.

    Headers about a visitor's address are believed of `proxies` alone. `log` is told of each request,
    `trouble` of a database that fails.
    """
    if public_url is not None:
        public_url = check_public_url(public_url)
    title = f"counterfoil: {campaign.recipe.title}"
    app = FastAPI(title=title, version=__version__, docs_url=None, redoc_url=None)
    commits = GroupCommit(database)
    pages = work_pages.WorkPages(campaign, commits, clock)
    # What is damaged is found out now, and a way in that is no platform's.
    _ = pages.platform, campaign.items, pages.figures
    if (keys := campaign.folder / "platform_keys.json").exists():
        hint = "remove the file: people go on in the browser that they came with first"
        raise DataError("addresses that a platform signed are no longer checked", where=keys, hint=hint)
    _answer_errors(app, pages, trouble)
    for router in (
        work_api.routes(campaign, commits, pages, clock),
        work_pages.routes(pages),
        *research.routes(research.ResearcherPages(campaign, clock, database)),
    ):
        app.include_router(router)
    app.mount("/static", StaticFiles(directory=work_pages.our_file("static")))
    hosts = {socket.gethostname().lower()}
    if public_url is not None:
        hosts.add(host_of(public_url.partition("//")[2]))
    # The one that is added last comes first.
    settings: Any = {"hosts": frozenset(hosts), "public_url": public_url}
    app.add_middleware(Guard, clock=clock, page=pages.message, log=log, **settings)
    if proxies:
        app.add_middleware(ProxyHeadersMiddleware, trusted_hosts=list(proxies))
    return app


def _answer_errors(app: FastAPI, pages: work_pages.WorkPages, trouble: Callable[[str], None] | None) -> None:
    """Answer every error in one line: with {"error": ...} to a script, with a page to a person."""

    def answer(request: Request, error: Exception) -> Response:
        status, text, headers = 500, "a fault of the server; nothing was stored", None
        if isinstance(error, StorageError | DataError):
            # Addresses of databases and paths are the researcher's alone.
            if trouble is not None:
                trouble(str(error))
            what = next((reason for reason in STORAGE_ERRORS if reason in str(error)), STORAGE_ERRORS[-1])
            status, text = 507 if what is FULL else 503, f"{what}; nothing was stored: try again later"
        elif isinstance(error, InputError):
            status, text = 403 if isinstance(error, OtherBrowserError) else 422, str(error)
        elif isinstance(error, RequestValidationError):
            first = error.errors()[0]
            place = ", ".join(str(part) for part in first["loc"])
            status, text = 422, str(InputError(first["msg"].lower(), where=place))
        elif isinstance(error, HTTPException):
            status, text, headers = error.status_code, str(error.detail), error.headers
        if for_scripts(request.url.path):
            return JSONResponse({"error": text}, status, headers)
        page = pages.message(request, text, status)
        page.headers.update(headers or {})
        return page

    for kind in (InputError, StorageError, DataError, RequestValidationError, HTTPException, Exception):
        app.add_exception_handler(kind, answer)


def run(app: FastAPI, *, host: str, port: int, ready: Callable[[str], None] | None = None) -> None:
    """Serve until the process is stopped; `ready` is called with the server's address once it listens."""
    try:
        listening = _listen(host, port)
    except OSError as error:
        why = error.strerror or str(error)
        where = f"--host {host} --port {port}"
        hint = f"choose another --port PORT, and give 'annotate links' --public-url http://{host}:PORT"
        raise InputError("cannot listen", where=where, given=why, hint=hint) from None
    config = uvicorn.Config(
        app,
        # What is kept open by those who ask nothing takes no file from the database.
        limit_concurrency=_allowed_connections(),
        # Headers of proxies are read by the application, of those that were named.
        proxy_headers=False,
        log_level="warning",
        access_log=False,
        # People look at an item for longer than the 5 s after which a connection would be closed.
        timeout_keep_alive=75,
        server_header=False,
        timeout_graceful_shutdown=5,
    )
    with listening:
        if ready is not None:
            name = f"[{host}]" if ":" in host else host
            ready(f"http://{name}:{listening.getsockname()[1]}")
        # Work is done in two threads: the one that writes gets Python back from the other within half a
        # millisecond, not five, after each statement.
        sys.setswitchinterval(0.0005)
        # What was imported stays: to go through it takes the collector a tenth of a second each time.
        gc.freeze()
        # Ctrl-C ends it as Python has it, once: the server stops by it, and the command is done.
        before = signal.getsignal(signal.SIGINT)
        on_main = before is not signal.SIG_IGN and threading.current_thread() is threading.main_thread()
        if on_main:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            # The interrupt that stopped the server is raised once more when all is closed.
            with suppress(KeyboardInterrupt):
                uvicorn.Server(config).run([listening])
        finally:
            if on_main:
                signal.signal(signal.SIGINT, before)


def _allowed_connections() -> int:
    """Three quarters of the files that this process may open, as many as the system allows, within reason."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = _FILES if hard == resource.RLIM_INFINITY else min(hard, _FILES)
    if 0 <= soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    return max(soft, most) * 3 // 4


def _listen(host: str, port: int) -> socket.socket:
    """A socket that listens; raises `OSError`, for a port that is taken too."""
    addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP)
    family, kind, protocol, _, address = addresses[0]
    # Only of sockets that name TCP does asyncio switch off the delay of small packets: 40 ms of each reply.
    listening = socket.socket(family, kind, protocol)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(1024)
    except OSError:
        listening.close()
        raise
    return listening
