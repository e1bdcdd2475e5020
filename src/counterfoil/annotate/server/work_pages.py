"""Pages and files of annotators: ways in, the page of work, pictures, and our own scripts and styles."""

import json
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property, partial
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote

from fastapi import APIRouter, HTTPException, Request
from fastapi.responses import FileResponse, HTMLResponse, RedirectResponse, Response

from counterfoil.annotate import participants
from counterfoil.annotate.languages import phrase_in
from counterfoil.annotate.pictures import FIGURES, figures_in, inner, read_figure, tokens_of
from counterfoil.annotate.platforms.base import Visit
from counterfoil.annotate.server.group_commit import GroupCommit
from counterfoil.annotate.server.security import FORM_PAGE
from counterfoil.annotate.server.work_api import Token, Views
from counterfoil.errors import DataError, InputError

#: The secret by which a browser is known again, and seconds for which it is kept.
BROWSER, _SECONDS = "counterfoil_browser", 180 * 24 * 3600
#: What a picture may do where it is opened by itself: nothing.
NOTHING_ALLOWED = {"content-security-policy": "default-src 'none'; sandbox"}


def our_file(*names: str) -> Path:
    """A file of the server's own."""
    return Path(str(files("counterfoil.annotate.server").joinpath(*names)))


@cache
def words_of(language: str) -> Mapping[str, str]:
    """The page's own words in a language."""
    return json.loads(our_file("words", f"{language}.json").read_text(encoding="utf-8"))


@cache
def environment() -> Any:
    """Jinja, with everything escaped that a template does not mark safe, and no name that is not given."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    blocks: Any = {"trim_blocks": True, "lstrip_blocks": True}
    loader = PackageLoader("counterfoil.annotate.server")
    return Environment(loader=loader, autoescape=True, undefined=StrictUndefined, **blocks)


def prose(markdown: str, figures: Mapping[str, str] = {}) -> str:
    """Markdown as HTML, in which HTML of its own is text; `figures` are addresses of images."""
    parser, tokens = tokens_of(markdown)
    for child in inner(tokens):
        if child.type == "image":
            child.attrSet("src", figures.get(unquote(str(child.attrGet("src"))), "data:,"))
        if child.type == "link_open":
            child.attrSet("target", "_blank")
            child.attrSet("rel", "noreferrer noopener")
    return parser.renderer.render(tokens, parser.options, {})


async def posted(request: Request, name: str) -> str:
    """A field of a form that a page posts, empty where there is none."""
    return parse_qs((await request.body()).decode("utf-8", "replace")).get(name, [""])[0]


@dataclass(frozen=True)
class WorkPages(Views):
    """Views of one campaign, what is put into its templates, and the endpoints by which people come in."""

    commits: GroupCommit
    clock: Callable[[], float]

    @cached_property
    def figures(self) -> Mapping[str, bytes]:
        """The images of instructions and consent, by their numbers in addresses."""
        images, folder = {}, self.campaign.folder
        for name, text in self.campaign.texts.items():
            for figure in figures_in(text):
                data = read_figure(folder / FIGURES, figure, where=f"{folder / name}, image")
                images[self._keyed("figure", figure)] = data
        return images

    @cached_property
    def _figure_addresses(self) -> Mapping[str, str]:
        """The addresses of those images by the names that texts have for them."""
        names = {figure for text in self.campaign.texts.values() for figure in figures_in(text)}
        return {name: f"/media/{self._keyed('figure', name)}" for name in names}

    def root(self, request: Request) -> Response:
        """Where the address of the server alone leads."""
        if self.campaign.recipe.entry == "open":
            return RedirectResponse("/open", 303)
        return self._without_link(request)

    async def enter_by_link(self, request: Request, link: Token) -> Response:
        return await self._admit(refused=partial(self.message, request), worker=link, platform="link")

    async def enter_from_platform(self, request: Request) -> Response:
        """In by the parameters of a platform, which name the person."""
        if self.platform is None:
            return self._without_link(request)
        visit = self.platform.visit(request.query_params.multi_items())
        browser = request.cookies.get(BROWSER) or secrets.token_urlsafe(32)
        who: Any = {"worker": visit.person, "platform": self.campaign.recipe.entry, "browser": browser}
        response = await self._admit(visit, **who)
        secure = "; Secure" if request.url.scheme == "https" else ""
        cookie = f"{BROWSER}={browser}; Path=/enter; Max-Age={_SECONDS}; HttpOnly; SameSite=Lax{secure}"
        response.headers.append("set-cookie", cookie)
        return response

    def open_page(self, request: Request) -> Response:
        """The page of an open link, which asks for the code if there is one."""
        return self._open(request)

    async def enter_openly(self, request: Request) -> Response:
        """In by the open link, with its code."""
        code = (await posted(request, "code")).strip()
        return await self._admit(refused=partial(self._open, request), code=code, worker="", platform="open")

    def work_page(self, request: Request, token: Token) -> Response:
        """The page of work of the person whose token it is."""
        with self.commits.database.reading() as connection:
            if participants.person_of(connection, token) is None:
                raise HTTPException(404, participants.UNKNOWN_TOKEN)
        language, languages = self._language(request), self.campaign.recipe.languages
        return self._page(
            request,
            "work.html",
            token=token,
            captions=languages[0] if languages else "",
            consent=prose(self.campaign.consent_in(language), self._figure_addresses),
            instructions=prose(self.campaign.instructions_in(language), self._figure_addresses),
        )

    def picture(self, number: str) -> Response:
        """An image of an item or of a text, all of which were made PNG when the campaign was made."""
        name, figure = self.pictures.get(number), self.figures.get(number)
        headers = {"cache-control": "private, max-age=86400, immutable", **NOTHING_ALLOWED}
        if name is not None:
            return FileResponse(self.campaign.image(name), 200, headers, "image/png")
        if figure is None:
            raise HTTPException(404, "no such image")
        return Response(figure, 200, headers, "image/png")

    def message(self, request: Request, text: str, status: int = 404) -> Response:
        """A page that says why there is nothing else."""
        language = self._language(request)
        values: Any = {"heading": words_of(language)["invalid_title"], "text": phrase_in(language, text)}
        return self._page(request, "message.html", status=status, **values)

    def _without_link(self, request: Request) -> Response:
        return self.message(request, "Open the link that you were given.")

    def _open(self, request: Request, problem: str = "") -> Response:
        recipe = self.campaign.recipe
        if recipe.entry != "open":
            raise HTTPException(404, "this campaign has no open link")
        text = phrase_in(self._language(request), problem)
        values: Any = {"headers": FORM_PAGE, "problem": text, "asks_code": bool(recipe.code)}
        return self._page(request, "open.html", status=403 if problem else 200, **values)

    async def _admit(
        self,
        visit: Visit | None = None,
        *,
        code: str = "",
        refused: Callable[[str], Response] | None = None,
        **who: Any,
    ) -> Response:
        """On to the page of work; where the person is not let in, the page that `refused` makes of why."""
        campaign, now = self.campaign, self.clock()
        about = {"code": code} if visit is None else {"study": visit.study, "submission": visit.submission}
        who["parameters"] = {name: value for name, value in about.items() if value}
        try:
            entered = await self.commits.write(lambda db: participants.enter(db, campaign, now=now, **who))
        except InputError as error:
            if refused is None or isinstance(error, DataError):
                raise
            return refused(str(error))
        query = "" if visit is None else f"?visit={self.signed_visit(visit, entered.token)}"
        return RedirectResponse(f"/work/{entered.token}{query}", 303)

    def _language(self, request: Request) -> str:
        return self.language(request.headers.get("accept-language", ""))

    def _page(
        self,
        request: Request,
        template: str,
        *,
        status: int = 200,
        headers: Mapping[str, str] | None = None,
        **values: Any,
    ) -> Response:
        language = self._language(request)
        values |= {"language": language, "title": self.campaign.recipe.title, "words": words_of(language)}
        return HTMLResponse(environment().get_template(template).render(values), status, headers)


def routes(pages: WorkPages) -> APIRouter:
    """The routes of pages and files; they are no part of the schema."""
    router = APIRouter(include_in_schema=False)
    router.get("/")(pages.root)
    router.get("/enter/{link}")(pages.enter_by_link)
    router.get("/enter")(pages.enter_from_platform)
    router.get("/open")(pages.open_page)
    router.post("/open")(pages.enter_openly)
    router.get("/work/{token}")(pages.work_page)
    router.get("/media/{number}")(pages.picture)
    return router
