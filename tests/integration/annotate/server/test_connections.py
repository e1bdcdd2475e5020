"""Connections that ask nothing, slowly or never, to a server of its own: others are heard all the same."""

import http.client
import os
import resource
import signal
import socket
import subprocess
import sys
import time
from contextlib import ExitStack, closing, contextmanager

import pytest

from counterfoil.annotate.server import connections
from served_campaign import campaign_of

#: Serves the campaign in argv with so many descriptors, and with waits that a test can wait for.
SERVER = """
import resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (int(sys.argv[2]),) * 2)
from counterfoil.annotate.server import connections
connections.HEAD, connections.BODY = float(sys.argv[3]), float(sys.argv[3])
from counterfoil.jobs.annotate_campaign import serve_campaign
from counterfoil.jobs.job import Feedback
serve_campaign(sys.argv[1], port=0, feedback=Feedback(result=lambda found: print(found.site, flush=True)))
"""


@contextmanager
def served(folder, wait):
    """Serves a campaign with 256 descriptors and a wait; gives its port."""
    campaign = campaign_of(folder, "yes-no")
    command = [sys.executable, "-c", SERVER, str(campaign.folder), "256", str(wait)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        yield int(process.stdout.readline().rpartition(":")[2])
        process.send_signal(signal.SIGINT)


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    """The port of a server that waits half a second."""
    with served(tmp_path_factory.mktemp("quick") / "campaign", 0.5) as port:
        yield port


def asked(port):
    """The status of a whole request."""
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=20)) as connection:
        connection.request("GET", "/static/work.css")
        reply = connection.getresponse()
        reply.read()
        return reply.status


def opened(stack, port, begun):
    """A connection that has sent the beginning of a request."""
    made = stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=30))
    made.sendall(begun)
    return made


def ended(connection):
    """Whether the server closed a connection, which it does within the time-out of the socket."""
    try:
        while connection.recv(4096):
            pass
    except TimeoutError:
        return False
    except ConnectionResetError:
        pass
    return True


@pytest.mark.parametrize(
    "begun",
    [
        b"",
        b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ",
        b"POST /open HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100\r\n\r\nhalf",
    ],
    ids=["nothing", "half a head", "half a body"],
)
def test_a_request_that_does_not_end_is_ended(quick, begun):
    with ExitStack() as stack:
        assert ended(opened(stack, quick, begun))
        # Bytes now and then do not make the time longer.
        slow = opened(stack, quick, begun)
        with pytest.raises(OSError):  # noqa: PT011, PT012
            for _ in range(200):
                slow.sendall(b"a")
                time.sleep(0.05)
        assert asked(quick) == 200


def test_more_connections_than_descriptors_do_not_take_the_server_away(tmp_path):
    with served(tmp_path / "campaign", 60.0) as port, ExitStack() as stack:
        # Whole requests whose connections stay open take no one's place either.
        for begun in (b"GET / HTTP/1.1\r\n", b"GET /static/work.css HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"):
            for at in range(400):
                opened(stack, port, begun)
                assert at % 100 != 99 or asked(port) == 200


def test_a_connection_that_asks_stays_open(quick):
    with closing(http.client.HTTPConnection("127.0.0.1", quick, timeout=20)) as connection:
        for _ in range(2):
            connection.request("GET", "/static/work.css")
            assert connection.getresponse().read()
            # Longer than a request may take: between two of them there is no hurry.
            time.sleep(0.8)


def test_as_many_descriptors_are_asked_for_as_the_system_allows():
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(256, before[1]), before[1]))
        assert connections.allowed_descriptors() == min(65_536, before[1])
        assert os.sysconf("SC_OPEN_MAX") == resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
