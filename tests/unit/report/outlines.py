"""A page as its tags: whether they close as they opened, and where they point."""

import base64
import hashlib
import html
import re
from html.parser import HTMLParser
from typing import Self


class Outline(HTMLParser):
    """Tags in order, with a check that they close as they opened."""

    VOID = ("meta", "link", "img", "input", "br")

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.attributes: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    @classmethod
    def of(cls, page: str) -> Self:
        """The outline of a page that is whole: tags closed, ids there once, links that lead somewhere."""
        outline = cls()
        outline.feed(page)
        outline.close()
        assert outline.open == []
        ids = outline.ids
        assert len(ids) == len(set(ids))
        for _, attributes in outline.attributes:
            link = attributes.get("href") or ""
            assert not link.startswith("#") or link[1:].split("?")[0] in ids, link
        return outline

    @property
    def ids(self) -> list[str | None]:
        return [attributes["id"] for _, attributes in self.attributes if "id" in attributes]


def closed(page: str, *outside: str) -> str:
    """The script of a page that is whole and fetches nothing; a click alone leads to `outside`."""
    for tag, attributes in Outline.of(page).attributes:
        for name in ("src", "href", "srcset", "action", "xlink:href", "data"):
            value = attributes.get(name)
            inside = value is None or value.startswith(("#", "data:"))
            assert inside or (tag == "a" and value in outside), (tag, name, value)
        assert not any(name.startswith("on") for name in attributes)
    return own_script(page)


def own_script(page: str) -> str:
    """The one script that a page may run: it stands in the page, and the policy names it by its digest."""
    (script,) = re.findall(r"<script>(.*?)</script>", page, re.S)
    assert page.count("<script") == 1 + page.count('<script type="application/json"')
    policy = html.unescape(re.search(r'Content-Security-Policy" content="([^"]*)"', page).group(1))  # type: ignore[union-attr]
    digest = base64.b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode("ascii")
    assert policy == (
        "default-src 'none'; img-src data:; style-src 'unsafe-inline'; "
        f"script-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    )
    return script
