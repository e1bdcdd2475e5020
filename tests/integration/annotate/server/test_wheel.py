"""The built package serves every file that its pages name, in an empty environment."""

import io
import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import httpx
import PIL.Image
import pytest

from served_campaign import PICTURES

ROOT = Path(__file__).resolve().parents[4]


def pixels(picture):
    """What a picture shows: those of a campaign are encoded anew."""
    with PIL.Image.open(io.BytesIO(picture)) as image:
        return image.size, image.convert("RGB").tobytes()


@pytest.mark.slow
def test_the_wheel_in_an_empty_environment_serves_all_pages(tmp_path):
    """Installed with its dependencies from where pip gets them, and run by its own commands."""
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", tmp_path, ROOT]
    if find_spec("hatchling") is not None:
        build.append("--no-build-isolation")
    subprocess.run(build, check=True)
    (wheel,) = tmp_path.glob("*.whl")
    bin = tmp_path / "venv" / "bin"
    env = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "venv")], check=True, env=env)
    install = [bin / "pip", "install", "--quiet", "--no-compile", f"{wheel}[annotate]"]
    subprocess.run(install, check=True, env=env)
    (tmp_path / "photos").mkdir()
    for name, data in PICTURES.items():
        (tmp_path / "photos" / name).write_bytes(data)
    rows = [f"{name},A disc on a ground.\n" for name in PICTURES]
    (tmp_path / "pairs.csv").write_text("image,caption\n" + "".join(rows))

    def counterfoil(*words):
        command = [bin / "counterfoil", "annotate", *words]
        done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    counterfoil("create", "yes-no", "--from", "pairs.csv", "--images", "photos", "--out", "campaign")
    (link,) = counterfoil("links", "campaign", "--n", "1").split()
    serve = [bin / "counterfoil", "annotate", "serve", "campaign", "--port", "0"]
    with subprocess.Popen(serve, cwd=tmp_path, env=env, stdout=subprocess.PIPE, text=True) as server:
        try:
            _, site, token = (server.stdout.readline().split()[1] for _ in range(3))
            with httpx.Client(base_url=site.removesuffix("/research"), follow_redirects=True) as client:
                page = client.get(httpx.URL(link).path)
                waiting, seen = page.text, {}
                while result := set(re.findall(r'(?:/static/|from "\./)([\w.-]+)"', waiting)) - set(seen):
                    seen |= {name: client.get(f"/static/{name}") for name in result}
                    waiting += "".join(seen[name].text for name in result)
                assert {reply.status_code for reply in seen.values()} == {200}
                assert {"work.js", "fields.js", "drafts.js", "work.css"} <= set(seen)
                api = f"/api{page.url.path}"
                item = client.post(f"{api}/consent", json={}).json()["items"][0]
                shown = client.get(item["shown"][0]["content"]).content
                assert pixels(shown) in map(pixels, PICTURES.values())
                given = {"lease": item["lease"], "key": "key-0001", "answer": {"match": 0}, "seconds": 1.0}
                assert client.post(f"{api}/answers", json=given).json()["accepted"]
                login = client.post("/research/login", data={"token": token})
                assert (login.status_code, "Progress" in login.text) == (200, True)
                assert "research.js" in login.text
                for path in ("/research/disputes", "/static/research.js"):
                    assert client.get(path).status_code == 200
        finally:
            server.terminate()
    assert "1, " in counterfoil("status", "campaign")
