"""The built package, installed in a folder of its own, serves every file that its pages name."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
#: Serves a campaign of the installed package and asks for all that its page names, scripts of scripts too.
PROGRAM = """
import re, sys
from pathlib import Path
import counterfoil
assert Path(counterfoil.__file__).is_relative_to(sys.argv[1]), counterfoil.__file__
from starlette.testclient import TestClient
from counterfoil.annotate.database import open_database
from counterfoil.annotate.entry import make_links
from counterfoil.annotate.server.app import make_app
from served_campaign import campaign_of

campaign = campaign_of(Path(sys.argv[2]), "yes-no", languages=("fr",))
client = TestClient(make_app(campaign, open_database(campaign)), base_url="http://127.0.0.1")
waiting, seen = ["/enter/" + make_links(campaign, 1)[0], "/research"], set()
while waiting:
    path = waiting.pop()
    reply = client.get(path)
    # Without its token the page of research is the one that asks for it.
    assert reply.status_code == (401 if path == "/research" else 200), (path, reply.status_code)
    seen.add(path)
    named = re.findall(r'(?:src|href)="(/static/[^"]+)"', reply.text)
    named += ["/static/" + name for name in re.findall(r'from "\\./([^"]+)"', reply.text)]
    waiting += [each for each in named if each not in seen]
print(len(seen))
"""


@pytest.mark.slow
def test_the_built_package_serves_all_pages(tmp_path: Path) -> None:
    pytest.importorskip("hatchling", reason="hatchling is not installed: it builds the package")
    build = (sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation")
    subprocess.run([*build, "-w", str(tmp_path), str(ROOT)], check=True)
    (wheel,) = tmp_path.glob("*.whl")
    installed = tmp_path / "installed"
    zipfile.ZipFile(wheel).extractall(installed)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(installed), str(tmp_path / "campaign")],
        env={**os.environ, "PYTHONPATH": f"{installed}{os.pathsep}{ROOT / 'tests'}"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) >= 8
