"""README, tutorials and notebooks of `examples` run as printed, in empty folders, without a network."""

import glob
import json
import os
import subprocess
from itertools import count

import pytest

from warm_shell import WarmShell

from .blocks import FIRST, ROOT, agrees, blocks, commands

#: What sets the toolkit up, before the path begins.
SET_UP = ("make", "pip")
#: The one heading under which commands need a network, and are shown as text.
NETWORK = "With a network"
#: Any connection is refused: a proxy that no one serves.
OFFLINE = {
    **dict.fromkeys(("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"), "http://127.0.0.1:9"),
    "HF_HUB_OFFLINE": "1",
}


def expanded(word, folder):
    return sorted(glob.glob(word, root_dir=folder)) if "*" in word else [word]


@pytest.fixture(scope="module")
def shell(tmp_path_factory):
    shell = WarmShell(tmp_path_factory.mktemp("pages"), small_worlds=True, OMP_NUM_THREADS="1", **OFFLINE)
    yield shell
    shell.close()


@pytest.mark.parametrize("page", FIRST)
def test_a_page_runs_in_an_empty_folder_without_a_network(page, shell, tmp_path):
    folder, home = tmp_path / "folder", tmp_path / "home"
    for place in (folder, home):
        place.mkdir()
    places = {"HOME": home, "COUNTERFOIL_CACHE": home / "cache", "COUNTERFOIL_DATA": home / "data"}
    places = {name: str(place) for name, place in places.items()}
    shell.run(f"import os; os.environ.update({places}); os.chdir({str(folder)!r})")
    count, printed = 0, ""
    for block in blocks(page):
        if block.language == "text":
            continue
        if block.language == "python":
            done = shell.run(block.text)
            assert done.code == 0, f"{block.where}\n{done.err}"
            printed = done.out
            continue
        if block.language == "console" and not block.text.startswith("$ "):
            # What the Python above prints.
            assert agrees(block.text, printed), f"{block.where} prints\n{printed}"
            continue
        if block.language == "toml":
            (folder / block.text.splitlines()[0].removeprefix("# ")).write_text(block.text)
            continue
        assert block.language in ("sh", "console"), f"{block.where}: name the language of the block"
        for command in commands(block):
            count += 1
            program, *rest = command.words
            printed = ""
            if program == "cd":
                folder /= rest[0]
                shell.run(f"import os; os.chdir({str(folder)!r})")
            elif program == "counterfoil":
                done = shell.run([name for word in command.words for name in expanded(word, folder)])
                assert done.code == 0, f"{command.where}\n{done.err}"
                printed = done.out
            elif program not in SET_UP:
                printed = subprocess.check_output(command.words, cwd=folder, text=True)
            if command.printed is not None:
                assert agrees(command.printed, printed), f"{command.where} prints\n{printed}"
    assert count > 3


@pytest.mark.parametrize("page", FIRST)
def test_what_needs_a_network_stands_in_one_place(page):
    lines = (ROOT / page).read_text("utf-8").splitlines()
    for block in blocks(page):
        if block.language == "text":
            above = [line for line in lines[: block.line] if line.startswith("#")]
            assert above[-1].lstrip("# ") == NETWORK, block.where


@pytest.mark.parametrize("path", sorted(ROOT.glob("examples/*.ipynb")), ids=lambda path: path.stem)
def test_a_notebook_prints_what_it_keeps(path, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for name, value in {**OFFLINE, "COUNTERFOIL_CACHE": str(tmp_path / "cache")}.items():
        monkeypatch.setenv(name, value)
    notebook = json.loads(path.read_text("utf-8"))
    names, number = {}, count(1)
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            exec("".join(cell["source"]), names)
            stream = {"name": "stdout", "output_type": "stream"}
            lines = capsys.readouterr().out.splitlines(keepends=True)
            now = {"execution_count": next(number), "outputs": [stream | {"text": lines}]}
            if os.environ.get("COUNTERFOIL_GOLDENS") == "write":
                cell.update(now)
            assert {name: cell[name] for name in now} == now
    if os.environ.get("COUNTERFOIL_GOLDENS") == "write":
        path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", "utf-8")
