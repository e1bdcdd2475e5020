"""A disk that is really full while a campaign is served: what is refused, what is kept, what comes after."""

import resource
import shutil
import subprocess
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from annotate.server_load import serving
from annotate.small_campaigns import make, pairs
from counterfoil.annotate.answers import judgement_table
from counterfoil.annotate.database import open_database
from counterfoil.annotate.participants import make_links
from work_page import begin

#: How many answers a page keeps to send them again.
WAITING = "Object.keys(localStorage).filter((each) => each.startsWith('counterfoil/')).length"


@dataclass
class SmallDisk:
    """A disk in memory of 8 MiB; without the right to mount one, files that the server may not lengthen."""

    folder: Path
    mounted: bool

    @property
    def refusal(self):
        """Status and words of a refusal when it is full."""
        return (507, "the disk is full") if self.mounted else (503, "disk I/O error")

    def fill(self, server):
        if not self.mounted:
            sizes = [path.stat().st_size for path in self.folder.rglob("*") if path.is_file()]
            resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (max(sizes), resource.RLIM_INFINITY))
            return
        with (self.folder / "ballast").open("wb", buffering=0) as file, suppress(OSError):
            while file.write(bytes(4096)):
                pass
        assert shutil.disk_usage(self.folder).free == 0

    def free(self, server):
        if self.mounted:
            (self.folder / "ballast").unlink()
        else:
            resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)


@pytest.fixture(params=["mounted", "limited"])
def disk(tmp_path, request):
    small = SmallDisk(tmp_path / "disk", request.param == "mounted")
    small.folder.mkdir()
    if small.mounted:
        mount = ["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", small.folder]
        if (done := subprocess.run(mount, capture_output=True)).returncode:
            pytest.skip(f"a small disk cannot be mounted: {done.stderr.decode().strip()}")
    yield small
    if small.mounted:
        subprocess.run(["umount", small.folder], check=True)


def test_answers_are_refused_and_none_is_lost_while_the_disk_is_full(disk):
    campaign = make(disk.folder / "campaign", pairs(40), overlap=2)
    acknowledged = []
    with serving(campaign) as server, httpx.Client() as client:
        site = f"http://127.0.0.1:{server.port}"
        entered = client.get(f"{site}/enter/{make_links(campaign, 1)[0]}")
        api = entered.headers["location"].replace("/work/", f"{site}/api/work/")
        seen = client.post(f"{api}/consent", json={}).json()

        def answer():
            key, lease = f"key-{len(acknowledged):04}", seen["items"][0]["lease"]
            given = {"lease": lease, "key": key, "answer": {"match": 0}, "seconds": 1.0}
            reply = client.post(f"{api}/answers", json=given)
            if reply.is_success:
                assert reply.json()["accepted"]
                acknowledged.append(key)
                seen.update(reply.json()["work"])
            return reply

        assert all(answer().is_success for _ in range(3))
        disk.fill(server)
        # What room is left in a page that is there already is used.
        while (refused := answer()).is_success:
            pass
        status, words = disk.refusal
        assert words in refused.json()["error"]
        assert "\n" not in refused.json()["error"]
        before = len(acknowledged)
        assert [answer().status_code for _ in range(5)] == [status] * 5
        # What only reads goes on.
        assert client.get(api).json()["items"][0]["lease"] == seen["items"][0]["lease"]
        assert client.get(f"{site}/research").status_code == 401
        with closing(open_database(campaign)) as beside:
            assert len(judgement_table(beside, campaign)) == before
        disk.free(server)
        assert all(answer().is_success for _ in range(20 - before))
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
        sending = page.locator("#sending:not([hidden])", has_text=disk.refusal[1])
        for _ in range(20):
            page.wait_for_timeout(300)
            page.keyboard.press("1")
            if sending.count():
                break
        sending.wait_for(timeout=20_000)
        assert (waiting := page.evaluate(WAITING)) >= 1
        disk.free(server)
        page.locator("#sending[hidden]").wait_for(state="attached", timeout=60_000)
        assert page.evaluate(WAITING) == 0
        with closing(open_database(campaign)) as db:
            assert len(judgement_table(db, campaign)) >= waiting
