"""A disk that is really full while a campaign is served: what is refused, what is kept, what comes after."""

import resource
import shutil
import subprocess
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from annotate.server_load import Server, serving
from annotate.small_campaigns import make, pairs
from counterfoil.annotate.answers import judgement_table
from counterfoil.annotate.database import open_database
from counterfoil.annotate.participants import make_links
from work_page import begin


@dataclass
class SmallDisk:
    """A disk in memory of 8 MiB; without the right to mount one, files that the server may not lengthen."""

    folder: Path
    mounted: bool

    @property
    def ballast(self) -> Path:
        return self.folder / "ballast"

    @property
    def says(self) -> str:
        """What is said when it is full."""
        return "the disk is full" if self.mounted else "disk I/O error"

    def fill(self, server: Server) -> None:
        if not self.mounted:
            sizes = [path.stat().st_size for path in self.folder.rglob("*") if path.is_file()]
            resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (max(sizes), resource.RLIM_INFINITY))
            return
        with self.ballast.open("wb", buffering=0) as file, suppress(OSError):
            while file.write(bytes(4096)):
                pass
        assert shutil.disk_usage(self.folder).free == 0

    def free(self, server: Server) -> None:
        if self.mounted:
            self.ballast.unlink()
        else:
            everything = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
            resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, everything)


@pytest.fixture(params=["mounted", "limited"])
def disk(tmp_path, request):
    folder = tmp_path / "disk"
    folder.mkdir()
    if request.param == "limited":
        yield SmallDisk(folder, False)
        return
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", folder], capture_output=True)
    if done.returncode:
        pytest.skip(f"a small disk cannot be mounted: {done.stderr.decode().strip()}")
    try:
        yield SmallDisk(folder, True)
    finally:
        subprocess.run(["umount", folder], check=True)


def test_answers_are_refused_and_none_is_lost_while_the_disk_is_full(disk):
    campaign = make(disk.folder / "campaign", pairs(40), overlap=2)
    acknowledged: list[str] = []
    with serving(campaign) as server, httpx.Client() as client:
        site = f"http://127.0.0.1:{server.port}"

        entered = client.get(f"{site}/enter/{make_links(campaign, 1)[0]}")
        api = entered.headers["location"].replace("/work/", f"{site}/api/work/")
        seen = client.post(f"{api}/consent", json={}).json()

        def answer(key: str) -> httpx.Response:
            given = {"lease": seen["items"][0]["lease"], "key": key, "answer": {"match": 0}, "seconds": 1.0}
            return client.post(f"{api}/answers", json=given)

        def go_on(until: Callable[[httpx.Response], bool]) -> httpx.Response:
            for at in range(40):
                reply = answer(f"key-{len(acknowledged):04}")
                if reply.is_success:
                    assert reply.json()["accepted"]
                    acknowledged.append(f"key-{len(acknowledged):04}")
                    seen.update(reply.json()["work"])
                if until(reply) or at == 39:
                    return reply
            raise AssertionError

        go_on(lambda reply: len(acknowledged) == 3)
        disk.fill(server)
        # What room is left in a page that is there already is used.
        refused = go_on(lambda reply: not reply.is_success)
        assert refused.status_code == (507 if disk.mounted else 503)
        assert disk.says in refused.json()["error"]
        assert "\n" not in refused.json()["error"]
        before = len(acknowledged)
        for _ in range(5):
            assert answer(f"key-{before:04}").status_code == refused.status_code
        # What only reads goes on.
        assert client.get(api).json()["items"][0]["lease"] == seen["items"][0]["lease"]
        assert client.get(f"{site}/research").status_code == 401
        with closing(open_database(campaign)) as beside:
            assert len(judgement_table(beside, campaign)) == before
        disk.free(server)
        go_on(lambda reply: len(acknowledged) == 20)
    with closing(open_database(campaign)) as db, db.reading() as connection:
        assert connection.exec_driver_sql("PRAGMA integrity_check").scalar() == "ok"
        assert len(judgement_table(db, campaign)) == len(set(acknowledged)) == 20


@pytest.mark.browser
@pytest.mark.parametrize("disk", ["mounted", pytest.param("limited", marks=pytest.mark.slow)], indirect=True)
def test_the_page_says_so_keeps_the_answer_and_sends_it_again(disk, chromium):
    campaign = make(disk.folder / "campaign", pairs(40), overlap=1)
    with serving(campaign) as server, closing(chromium.new_context()) as context:
        page = context.new_page()
        page.goto(f"http://127.0.0.1:{server.port}/enter/{make_links(campaign, 1)[0]}")
        begin(page)
        disk.fill(server)
        sending = page.locator("#sending:not([hidden])", has_text=disk.says)
        for _ in range(20):
            page.wait_for_timeout(300)
            page.keyboard.press("1")
            if sending.count():
                break
        sending.wait_for(timeout=20_000)
        waiting = page.evaluate("Object.keys(localStorage).filter((each) => !each.includes('draft')).length")
        assert waiting >= 1
        disk.free(server)
        page.locator("#sending[hidden]").wait_for(state="attached", timeout=60_000)
        kept = "Object.keys(localStorage).filter((each) => each.startsWith('counterfoil/')).length"
        assert page.evaluate(kept) == 0
        with closing(open_database(campaign)) as db:
            assert len(judgement_table(db, campaign)) >= waiting
