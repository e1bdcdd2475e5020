"""The notebooks of `examples` run in an empty folder, without a network, and print what they keep.

COUNTERFOIL_GOLDENS=write keeps what they print now.
"""

import json
import os
from itertools import count

import pytest

from .blocks import ROOT
from .test_first_path import OFFLINE


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
