"""A campaign behind a real nginx: with its defaults, and with what docs/deployment.md says."""

import http.client
import json
import shutil
import socket
import subprocess
import time
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest

from annotate.server.test_attacks import ADDRESSES
from counterfoil.annotate.server.security import MOST_WRONG
from served_campaign import campaign_of, serving

NGINX = shutil.which("nginx") or shutil.which("/usr/sbin/nginx")
pytestmark = pytest.mark.skipif(NGINX is None, reason="nginx is not installed (apt-get install nginx-light)")
#: The part of docs/deployment.md that is nginx's.
WRITTEN = Path(__file__).parents[4].joinpath("docs", "deployment.md")
PUBLIC = "http://study.example"


@contextmanager
def nginx(folder, location, upstream):
    """nginx with a location before a server on a port; gives the port of its own."""
    folder = folder / "nginx"
    folder.mkdir()
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    temporary = "".join(f"{item}_temp_path {folder}/{item};\n" for item in kinds)
    (folder / "nginx.conf").write_text(
        f"daemon off; master_process off; pid {folder}/pid; error_log {folder}/error.log;\n"
        f"events {{}}\nhttp {{\naccess_log off;\n{temporary}"
        f"upstream campaign_server {{ server 127.0.0.1:{upstream}; }}\n"
        f"server {{ listen 127.0.0.1:{port}; server_name study.example;\n{location}\n}}\n}}\n"
    )
    with subprocess.Popen([NGINX, "-p", str(folder), "-c", str(folder / "nginx.conf")]) as process:
        try:
            for _ in range(1200):
                assert process.poll() is None, (folder / "error.log").read_text()
                with suppress(ConnectionError), socket.create_connection(("127.0.0.1", port)):
                    break
                time.sleep(0.05)
            yield port
        finally:
            process.terminate()


def ask(port, path, body=None, **more):
    """Status, location and text of a request as the public site's own page sends it."""
    headers = {"Host": "study.example", **{name.replace("_", "-"): value for name, value in more.items()}}
    if body is not None:
        headers |= {"Origin": PUBLIC, "Content-Type": "application/json", **headers}
    given = ("GET", path, None) if body is None else ("POST", path, json.dumps(body))
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=20)) as connection:
        connection.request(*given, headers)
        reply = connection.getresponse()
        return reply.status, reply.getheader("location", ""), reply.read().decode("latin-1")


def work(port, served):
    """From the link to a stored answer."""
    status, place, _ = ask(port, served.link().removeprefix(served.url))
    assert status == 303
    api = "/api" + place
    assert ask(port, f"{api}/consent", {})[0] == 200
    item = json.loads(ask(port, api)[2])["items"][0]
    answer = {"lease": item["lease"], "key": "key-0001", "answer": {"match": 0}, "seconds": 1}
    status, _, text = ask(port, f"{api}/answers", answer)
    assert (status, json.loads(text)["accepted"]) == (200, True)
    # Another site's page may still send nothing.
    foreign = ask(port, f"{api}/answers", answer, Origin="http://evil.example")
    assert (foreign[0], "another site" in foreign[2]) == (403, True)
    assert ask(port, item["shown"][0]["content"])[0] == 200


@pytest.mark.parametrize("target", ["campaign_server", "127.0.0.1:{port}"])
def test_answers_pass_a_proxy_with_its_defaults(tmp_path, target):
    with serving(campaign_of(tmp_path / "c", "yes-no"), public_url=PUBLIC) as served:
        port = int(served.url.rpartition(":")[2])
        with nginx(tmp_path, f"location / {{ proxy_pass http://{target.format(port=port)}; }}", port) as own:
            work(own, served)


def test_the_configuration_of_the_docs_tells_visitors_apart(tmp_path):
    written = WRITTEN.read_text().partition("```nginx\n")[2].partition("```")[0]
    location = written[written.index("location /") :].partition("\n    }")[0] + "\n    }"
    campaign = campaign_of(tmp_path / "c", "yes-no", entry="sona")
    with serving(campaign, public_url=PUBLIC, proxies=["127.0.0.1"]) as served:
        port = int(served.url.rpartition(":")[2])
        with nginx(tmp_path, location.replace("127.0.0.1:8750", f"127.0.0.1:{port}"), port) as own:
            work(own, served)
            for _ in range(MOST_WRONG):
                assert ask(own, "/enter/guess")[0] == 404
            # nginx says who asks, whatever the visitor says.
            assert ask(own, "/enter/guess", X_Forwarded_For="192.0.2.9")[0] == 429
            assert ask(own, ADDRESSES["sona"])[0] == 303


def test_headers_of_a_proxy_that_was_not_named_are_not_believed(tmp_path):
    with serving(campaign_of(tmp_path / "c", "yes-no"), public_url=PUBLIC) as served:
        port = int(served.url.rpartition(":")[2])
        addresses = [f"192.0.2.{i}" for i in range(MOST_WRONG + 1)]
        replies = [ask(port, f"/enter/x-{item}", X_Forwarded_For=item)[0] for item in addresses]
        assert replies == [404] * MOST_WRONG + [429]
