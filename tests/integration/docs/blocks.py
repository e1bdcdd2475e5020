"""Code blocks of the documentation, found with a Markdown parser and cut into commands and their output."""

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

from markdown_it import MarkdownIt

ROOT = Path(__file__).resolve().parents[3]

#: Pages that begin in an empty folder, without a network.
FIRST = ("README.md", *(f"docs/{path.name}" for path in sorted((ROOT / "docs").glob("tutorial-*.md"))))

#: Every other page with code that is meant to be run. The architecture page shows signatures only.
_NAMES = ["CONTRIBUTING.md", *(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md"))]
PAGES = tuple(sorted({*_NAMES} - {*FIRST, "docs/architecture.md"}))

#: What a line of the shell may begin with to count as a command.
_PROGRAMS = ("counterfoil ", "make ", "pip ", "torchrun ", "python ", "git ", "cd ")


@dataclass(frozen=True)
class Block:
    """A block of code: the page, its first line there, its language, its text."""

    page: str
    line: int
    language: str
    text: str

    @property
    def where(self):
        return f"{self.page}:{self.line}"


@dataclass(frozen=True)
class Command:
    """A command of the shell, and what the page shows that it prints; None where the page shows nothing."""

    where: str
    words: tuple[str, ...]
    printed: str | None


def blocks(page):
    """The code blocks of a page: fenced ones with their language, indented ones as shell or console."""
    result = []
    for token in MarkdownIt("commonmark").parse((ROOT / page).read_text(encoding="utf-8")):
        if token.type not in ("fence", "code_block"):
            continue
        language = token.info.strip()
        if token.type == "code_block":
            language = "sh" if is_shell(token.content) else ""
            language = "console" if token.content.startswith("$ ") else language
        result.append(Block(page, token.map[0] + 1, language, token.content))
    return result


def is_shell(text):
    return text.startswith(_PROGRAMS)


def commands(block):
    """The commands of a block of shell or console, comments left out, continued lines joined."""
    result = []
    printed = None

    def close():
        if result and printed is not None:
            last = result.pop()
            result.append(Command(last.where, last.words, "\n".join(printed)))

    lines = iter(block.text.splitlines())
    for line in lines:
        if block.language == "console" and not line.startswith("$ "):
            assert printed is not None, f"{block.where}: output before a command"
            printed.append(line)
            continue
        while line.rstrip().endswith("\\"):
            line = line.rstrip()[:-1] + " " + next(lines).strip()
        close()
        words = shlex.split(line.removeprefix("$ "), comments=True)
        if words:
            result.append(Command(f"{block.where}: {line.strip()}", tuple(words), None))
            printed = [] if block.language == "console" else None
    close()
    return result


def agrees(shown, printed):
    """Whether the page's output is what was printed: '...' stands for anything, breaks do not count.

    >>> agrees("a  1\\n...", "a 1\\nb 2\\nc 3"), agrees("a 2", "a 1"), agrees("a\\n b", "a b")
    (True, False, True)
    """
    parts = [re.escape(" ".join(part.split())) for part in re.split(r"\.\.\.|…", shown)]
    return re.fullmatch(" ?.*".join(parts), " ".join(printed.split()), re.DOTALL) is not None
