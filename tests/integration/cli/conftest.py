"""The command line as a user meets it: arguments in; exit code, standard output and standard error out."""

import shlex
import sys
from collections.abc import Callable
from dataclasses import dataclass

import PIL.Image
import pytest

from report_fixtures import undrawn  # noqa: F401

from .annotator_world import made
from .caption_samples import CANDIDATES, REFERENCES, written


@dataclass(frozen=True)
class Said:
    code: int
    out: str
    err: str


@dataclass(frozen=True)
class Run:
    call: Callable[..., Said]

    def __call__(self, *arguments):
        return self.call(*arguments)

    def succeeds(self, *arguments):
        done = self.call(*arguments)
        assert done.code == 0, done.err
        return done

    def fails(self, *arguments, says=""):
        """The input is refused, perhaps after notes; the message has these words."""
        done = self.call(*arguments)
        assert done.code == 2, done.err
        assert says in done.err
        return done

    def refused(self, *arguments, says=""):
        """The input is refused by one line and nothing else."""
        done = self.fails(*arguments, says=says)
        assert done.err.count("\n") == 1, done.err
        return done


def words(arguments):
    """The words of a command: the first argument, and each that begins with an option, may hold several."""
    for place, text in enumerate(map(str, arguments)):
        yield from shlex.split(text) if place == 0 or text.startswith("--") else [text]


@pytest.fixture
def counterfoil(monkeypatch, capsys, tmp_path):
    from counterfoil.cli import main

    monkeypatch.setenv("COUNTERFOIL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.delenv("COUNTERFOIL_DATA", raising=False)

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["counterfoil", *words(arguments)])
        with pytest.raises(SystemExit) as stopped:
            main()
        said = capsys.readouterr()
        return Said(int(stopped.value.code or 0), said.out, said.err)

    return Run(run)


@pytest.fixture
def world(tmp_path):
    return made(tmp_path)


@pytest.fixture
def caption_inputs(tmp_path):
    for number, name in enumerate(("dog.png", "cat.png", "cow.png", "owl.png")):
        (tmp_path / "images").mkdir(exist_ok=True)
        PIL.Image.new("RGB", (8, 8), (60 * number, 0, 0)).save(tmp_path / "images" / name)
    return {
        "candidates": written(tmp_path / "c.json", CANDIDATES),
        "references": written(tmp_path / "r.json", REFERENCES),
        "images": tmp_path / "images",
    }


@pytest.fixture
def spec(tmp_path):
    """A small CLIP of random weights."""
    pytest.importorskip("open_clip")
    from tiny_families import write_random_checkpoint

    return write_random_checkpoint(tmp_path / "tiny")
