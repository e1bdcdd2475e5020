"""README and the tour run as they are printed, each from an empty folder, without a network."""

import glob
import os
import subprocess
from pathlib import Path

import pytest

from warm_shell import WarmShell

from .blocks import FIRST, agrees, blocks, commands

#: What sets the toolkit up, before the path begins.
SET_UP = ("make", "pip")
#: The one heading under which commands need a network, and are shown as text.
NETWORK = "With a network"
#: Any connection is refused: a proxy that no one serves.
OFFLINE = {
    **dict.fromkeys(("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"), "http://127.0.0.1:9"),
    "HF_HUB_OFFLINE": "1",
}


class Reader:
    """Someone who types the commands of a page one after another, and begins in `folder`."""

    def __init__(self, folder, home):
        self.variables = {
            **OFFLINE,
            "HOME": str(home),
            "COUNTERFOIL_CACHE": str(home / "cache"),
            "COUNTERFOIL_DATA": str(home / "data"),
            "OMP_NUM_THREADS": "1",
        }
        self.folder, self.shell = folder, WarmShell(folder, small_worlds=True, **self.variables)

    def types(self, command):
        program, *rest = command.words
        if program in SET_UP:
            return
        if program == "cd":
            self.folder /= rest[0]
            self.shell.run(f"import os; os.chdir({str(self.folder)!r})")
            return
        if program == "counterfoil":
            words = [file for word in command.words for file in self.expanded(word)]
            done = self.shell.run(words)
            assert done.code == 0, f"{command.where}\n{done.err}"
            printed = done.out
        else:
            printed = self.run([program, *rest], command.where)
        if command.printed is not None:
            assert agrees(command.printed, printed), f"{command.where} prints\n{printed}"

    def run(self, words, where):
        done = subprocess.run(
            words,
            cwd=self.folder,
            env={**os.environ, **self.variables},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{where}\n{done.stderr}"
        return done.stdout

    def expanded(self, word):
        return sorted(glob.glob(word, root_dir=self.folder)) if "*" in word else [word]


@pytest.mark.parametrize("page", FIRST)
def test_a_page_runs_in_an_empty_folder_without_a_network(page, tmp_path):
    for name in ("folder", "home"):
        (tmp_path / name).mkdir()
    reader = Reader(tmp_path / "folder", tmp_path / "home")
    count = 0
    for block in blocks(page):
        if block.language == "text":
            continue
        if block.language == "python":
            done = reader.shell.run(block.text)
            assert done.code == 0, f"{block.where}\n{done.err}"
            continue
        assert block.language in ("sh", "console"), f"{block.where}: name the language of the block"
        for command in commands(block):
            reader.types(command)
            count += 1
    reader.shell.close()
    assert count > 4


@pytest.mark.parametrize("page", FIRST)
def test_what_needs_a_network_stands_in_one_place(page):
    """No command hides as text elsewhere."""
    lines = (Path(__file__).parents[3] / page).read_text("utf-8").splitlines()
    for block in blocks(page):
        if block.language == "text":
            above = [line for line in lines[: block.line] if line.startswith("#")]
            assert above[-1].lstrip("# ") == NETWORK, block.where
