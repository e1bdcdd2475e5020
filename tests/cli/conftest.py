"""The command line as a user meets it: arguments in; exit code, standard output and standard error out."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from .annotator_world import World, made


@dataclass(frozen=True)
class Said:
    code: int
    out: str
    err: str


Run = Callable[..., Said]


@pytest.fixture
def counterfoil(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path) -> Run:
    from counterfoil.cli import main

    monkeypatch.setenv("COUNTERFOIL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.delenv("COUNTERFOIL_DATA", raising=False)

    def run(*arguments: object) -> Said:
        monkeypatch.setattr(sys, "argv", ["counterfoil", *map(str, arguments)])
        with pytest.raises(SystemExit) as stopped:
            main()
        said = capsys.readouterr()
        return Said(int(stopped.value.code or 0), said.out, said.err)

    return run


@pytest.fixture
def world(tmp_path: Path) -> World:
    return made(tmp_path)
