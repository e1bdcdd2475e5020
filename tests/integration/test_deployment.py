"""The files of `deploy/`: they are sound, agree with each other, and their commands are ours."""

import ipaddress
import json
import re
import shlex
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from annotate.small_campaigns import make, pairs
from counterfoil.annotate.database import address_of
from counterfoil.annotate.server.security import check_proxy, check_public_url
from counterfoil.cli import app

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
HOST, PASSWORD = "study.example", "s3cret"


def instructions():
    """The instructions of the Dockerfile with what is given to each, lines joined."""
    text = re.sub(r"\\\n", "", (DEPLOY / "Dockerfile").read_text())
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return [(name, rest.strip()) for name, _, rest in (line.partition(" ") for line in lines)]


def filled(value):
    """A value of the compose file with its variables filled in, as `docker compose config` does."""
    if isinstance(value, dict):
        return {key: filled(item) for key, item in value.items()}
    if isinstance(value, list):
        return [filled(item) for item in value]
    if not isinstance(value, str):
        return value
    known = {"STUDY_HOST": HOST, "POSTGRES_PASSWORD": PASSWORD, "STUDY_UID": "1000"}
    return re.sub(r"\$\{(\w+)(?::[-?][^}]*)?\}", lambda found: known[found[1]], value)


@pytest.fixture(scope="module")
def compose():
    return filled(yaml.safe_load((DEPLOY / "compose.yaml").read_text()))


def parsed(arguments):
    """What our command line makes of arguments; fails where it would refuse them."""
    command: Any = app
    while hasattr(command, "rows"):
        name, *arguments = arguments
        command = command.get_command(None, name)
    typed = command.make_context(command.name, list(arguments)).params
    return {name: typed.get(name) or argument.default for name, argument in command.options.items()}


def test_the_dockerfile_is_sound_and_builds_of_the_wheel():
    result = instructions()
    assert result[0][0] == "FROM"
    given = dict(result)
    # Neither root nor everything of the folder: keys and answers lie there.
    assert given["USER"] not in ("root", "0")
    assert given["COPY"].split()[:-1] == ["*.whl"]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    (extras,) = re.findall(r"\[([\w,]+)\]\"", given["RUN"])
    assert set(extras.split(",")) <= set(project["optional-dependencies"])
    version = given["FROM"].partition(":")[2].partition("-")[0]
    least = re.search(r"\d+\.\d+", project["requires-python"])
    assert least is not None
    assert tuple(map(int, version.split("."))) >= tuple(map(int, least[0].split(".")))
    assert shlex.split(given["RUN"])
    program, flag, code = json.loads(given["HEALTHCHECK"].partition("CMD ")[2])
    assert (program, flag) == ("python", "-c")
    compile(code, "HEALTHCHECK", "exec")
    assert json.loads(given["ENTRYPOINT"]) == list(project["scripts"])[:1]
    options = parsed(json.loads(given["CMD"]))
    assert f":{options['port']}/" in code
    assert given["EXPOSE"] == str(options["port"])


def test_the_compose_file_has_the_parts_that_it_names(compose):
    services = compose["services"]
    for name, service in services.items():
        assert ("image" in service) != ("build" in service), name
        assert set(service.get("depends_on", ())) <= set(services), name
        assert set(service["networks"]) <= set(compose["networks"]), name
        for volume in service.get("volumes", ()):
            place = volume.partition(":")[0]
            assert place.startswith("./") or place in compose["volumes"], volume
    # Only Caddy, which speaks https, can be reached from outside.
    assert [name for name, service in services.items() if "ports" in service] == ["caddy"]


def test_the_campaign_is_served_as_the_others_reach_it(compose, tmp_path):
    services = compose["services"]
    options = parsed(services["campaign"]["command"])
    assert check_public_url(options["public_url"]) == f"https://{HOST}"
    (proxy,) = map(check_proxy, options["proxies"])
    (subnet,) = (item["subnet"] for item in compose["networks"]["inside"]["ipam"]["config"])
    assert ipaddress.ip_network(proxy) == ipaddress.ip_network(subnet)
    pytest.importorskip("psycopg")
    address = address_of(make(tmp_path / "c", pairs(1)), options["database"])
    environment = services["database"]["environment"]
    user, password, name = (environment[f"POSTGRES_{item}"] for item in ("USER", "PASSWORD", "DB"))
    assert address == f"postgresql+psycopg://{user}@database/{name}"
    # Of a command everybody on the machine sees what it was given.
    assert services["campaign"]["environment"] == {"PGPASSWORD": password}
    assert password == PASSWORD not in " ".join(services["campaign"]["command"])
    assert services["caddy"]["command"][-1] == f"campaign:{options['port']}"
    folder = services["campaign"]["volumes"][0].partition(":")[2]
    assert Path(folder) == Path("/home/counterfoil", options["campaign"])


def test_the_docs_say_what_has_to_be_set():
    text = (ROOT / "docs" / "deployment.md").read_text()
    caddyfile = text.partition("```caddyfile\n")[2].partition("```")[0]
    port = parsed(["annotate", "serve", "campaign/"])["port"]
    assert caddyfile.split() == ["study.example", "{", "reverse_proxy", f"127.0.0.1:{port}", "}"]
    assert f"proxy_pass http://127.0.0.1:{port};" in text
    variables = set(re.findall(r"\$\{(\w+)", (DEPLOY / "compose.yaml").read_text()))
    assert variables == {"STUDY_HOST", "STUDY_UID", "POSTGRES_PASSWORD"}
    assert all(f"{item}=" in text for item in variables)
    # The file with the password is its owner's alone.
    assert text.index("umask 077") < text.index("> .env")
    (words,) = re.findall(r"docker compose exec campaign counterfoil (.*)", text)
    assert parsed(words.split())["database"] in (DEPLOY / "compose.yaml").read_text()
