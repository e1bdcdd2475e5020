"""Many people at a server at once, each with a connection of their own, and what is true afterwards.

The server is a process of its own that can be killed; people then send again what they have no receipt for,
with the same key, as the page does.
"""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from annotate.small_campaigns import make, pairs
from counterfoil.annotate import answering
from counterfoil.annotate.campaign import Campaign
from counterfoil.annotate.database import open_database
from counterfoil.annotate.participants import make_links, person_id
from counterfoil.annotate.tables import answers, items, leases, sa

#: Seconds after which a person asks a server again that did not answer, and for how long.
AGAIN, PATIENCE = 0.05, 60.0


@dataclass
class Server:
    """`annotate serve` as a process; `program` runs instead of the package where it is given."""

    campaign: Campaign
    database: str | None = None
    program: Sequence[str] = ("-m", "counterfoil")
    port: int = 0
    process: Any = None

    def start(self, *program):
        """Serve, on the port of the last time, and wait until it listens."""
        given = [] if self.database is None else ["--database", self.database]
        command = [*(program or self.program), "annotate", "serve", str(self.campaign.folder), *given]
        self.process = subprocess.Popen(
            [sys.executable, *command, "--port", str(self.port), "--quiet"], stdout=subprocess.PIPE, text=True
        )
        printed = [self.process.stdout.readline() for _ in range(3)]
        assert printed[2], "the server did not start"
        self.port = urlsplit(printed[0].split()[1]).port or 0

    def kill(self):
        """Kill it with no chance to end anything."""
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    def stop(self):
        """Stop it as Ctrl-C does."""
        self.process.send_signal(signal.SIGINT)
        self.process.wait(60)
        self.process.stdout.close()

    def memory(self):
        """The most memory that it had so far, in MiB."""
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))

    def cpu(self):
        """Seconds of processor time that it took so far."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def serving(campaign, database=None):
    """A server for as long as the block runs."""
    server = Server(campaign, database)
    server.start()
    try:
        yield server
    finally:
        if server.process.poll() is None:
            server.stop()


@dataclass
class Load:
    """What people met with: seconds of requests by kind, what was acknowledged, and what was sent again.

    An acknowledged answer is its link, key and lease, and the place of the option chosen.
    """

    seconds: dict[str, list[float]] = field(default_factory=dict)
    acknowledged: list[tuple[str, str, str, int]] = field(default_factory=list)
    again: int = 0
    repeated: int = 0
    refused: list[str] = field(default_factory=list)
    wall: float = 0.0


class Browser:
    """One connection that is kept, and made anew where it was lost."""

    def __init__(self, server, load):
        self.server, self.load = server, load
        self.streams = None

    async def ask(self, kind, method, path, body=None):
        """Status and body of a reply (of a redirect the address); asked again for as long as none comes."""
        content = b"" if body is None else json.dumps(body).encode()
        head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{self.server.port}\r\n"
        if content:
            head += f"Content-Type: application/json\r\nContent-Length: {len(content)}\r\n"
        end = perf_counter() + PATIENCE
        while True:
            begun = perf_counter()
            try:
                status, result = await self._exchange(head.encode() + b"\r\n" + content)
            except (OSError, EOFError):
                await self.close()
                assert begun < end, "the server never came back"
                self.load.again += 1
                await asyncio.sleep(AGAIN)
                continue
            self.load.seconds.setdefault(kind, []).append(perf_counter() - begun)
            return status, result

    async def _exchange(self, sent):
        if self.streams is None:
            self.streams = await asyncio.open_connection("127.0.0.1", self.server.port)
        reader, writer = self.streams
        writer.write(sent)
        lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines[1:])}
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        if "location" in headers:
            return int(lines[0].split()[1]), headers["location"]
        return int(lines[0].split()[1]), json.loads(body)

    async def close(self):
        """Give the connection up."""
        if self.streams is not None:
            self.streams[1].close()
            with suppress(OSError):
                await self.streams[1].wait_closed()
            self.streams = None


async def _person(server, load, link, think, until, reload, seed):
    """Come in, agree, and answer until nothing is left or it is time to stop."""
    rng = np.random.default_rng(seed)
    browser = Browser(server, load)
    # People do not come in the same moment.
    await asyncio.sleep(rng.uniform(0, max(think, 0.5)))
    _, address = await browser.ask("enter", "GET", f"/enter/{link}")
    api = f"/api{address}"
    status, result = await browser.ask("consent", "POST", f"{api}/consent", {})
    assert status == 200, result
    number = 0
    while result["items"] and not until():
        if think:
            await asyncio.sleep(rng.gamma(4, think / 4))
        if rng.random() < reload:
            _, result = await browser.ask("next item", "GET", api)
            if not result["items"]:
                break
        item, place, number = result["items"][0], int(rng.integers(2)), number + 1
        key = f"{seed:06}-{number:06}"
        given = {"lease": item["lease"], "key": key, "answer": {"match": place}, "seconds": think}
        status, receipt = await browser.ask("submit", "POST", f"{api}/answers", given)
        if status != 200:
            load.refused.append(receipt["error"])
            await asyncio.sleep(0.5)
            _, result = await browser.ask("next item", "GET", api)
            continue
        load.repeated += receipt["repeated"]
        if receipt["accepted"]:
            load.acknowledged.append((link, key, item["lease"], place))
        result = receipt["work"]
    await browser.close()


def crowd(server, people, *, think=0.0, seconds=float("inf"), reload=0.2, meanwhile=None):
    """So many people at once, for so long or until all is done; `think` is the mean time before an answer.

    A share `reload` of answers comes after the page was loaded once more. `meanwhile` runs beside them.
    """
    load = Load()
    links = make_links(server.campaign, people)

    async def run():
        begun = perf_counter()

        def until():
            return perf_counter() - begun > seconds

        beside = [] if meanwhile is None else [meanwhile(load)]
        item = (_person(server, load, link, think, until, reload, i) for i, link in enumerate(links))
        await asyncio.gather(*item, *beside)
        load.wall = perf_counter() - begun

    # In a thread of its own: a browser of another test keeps an event loop in this one.
    with ThreadPoolExecutor(1) as pool:
        pool.submit(asyncio.run, run()).result()
    return load


def check(campaign, database, load):
    """Assert that every acknowledged answer is stored once as it was given, and no item has too many.

    Returns how many answers are stored.
    """
    with closing(open_database(campaign, database)) as opened, opened.reading() as connection:
        columns = answers.c.person, answers.c.key, answers.c.lease, answers.c.item, answers.c.answer
        rows = connection.execute(sa.select(*columns).where(answers.c.counted)).all()
        wanted = connection.execute(sa.select(items.c.position, items.c.answered, items.c.leased)).all()
        live = connection.execute(sa.select(leases.c.item).where(leases.c.state == "live")).scalars().all()
        if opened.is_sqlite:
            assert connection.exec_driver_sql("PRAGMA integrity_check").scalar() == "ok"
    stored = {(row.person, row.key): row for row in rows}
    assert len(stored) == len(rows), "an answer is stored twice"
    for link, key, lease, place in load.acknowledged:
        person = person_id(campaign, "link", link)
        row = stored.get((person, key))
        assert row is not None, f"{key} was acknowledged and is lost"
        assert row.lease == lease, f"{key} is stored under another lease"
        page = answering.shown_page(campaign, person, campaign.items[row.item])
        value = next(item for item in page.fields if item.name == "match").values[place]
        assert json.loads(row.answer) == {"match": value}, f"{key} is stored as {row.answer}"
    of_item, of_pair = Counter(row.item for row in rows), Counter((row.person, row.item) for row in rows)
    assert max(of_item.values(), default=0) <= campaign.recipe.overlap, "an item has too many answers"
    assert max(of_pair.values(), default=0) <= 1, "a person answered an item twice"
    leased = Counter(live)
    for position, answered, on_lease in wanted:
        assert (answered, on_lease) == (of_item[position], leased[position]), f"item {position} is miscounted"
    return len(rows)


def _kills(server, times, answers):
    """Kills the server each time that so many more answers were acknowledged, and starts it again."""

    async def kill(load):
        for number in range(1, times + 1):
            while len(load.acknowledged) < number * answers:
                await asyncio.sleep(0.01)
            await asyncio.to_thread(server.kill)
            await asyncio.to_thread(server.start)

    return kill


def work_through_kills(folder, url, people, items, times):
    """Let people do a whole campaign while the server is killed so often, and check what is stored."""
    campaign = make(folder, pairs(items), overlap=3)
    server = Server(campaign, url)
    server.start()
    try:
        load = crowd(server, people, meanwhile=_kills(server, times, items * 3 // (times + 2)))
    finally:
        server.stop()
    assert not load.refused, load.refused[0]
    # Every item has all its answers, and each of them was acknowledged.
    assert check(campaign, url, load) == len(load.acknowledged) == 3 * items
    assert load.again >= times
    return load
