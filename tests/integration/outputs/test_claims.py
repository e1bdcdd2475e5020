"""One command at a time writes to an output, and what a killed one left is swept by the next."""

import os
import signal
import subprocess
import sys

import pytest

from counterfoil.claims import claim
from counterfoil.errors import InputError
from counterfoil.outputs import Folder, Outputs, guarding
from counterfoil.store import writing

#: A process that claims what it is told to, says so, and waits to be killed.
HOLDER = """
import sys, time
from pathlib import Path
from counterfoil.claims import claim
from counterfoil.store import writing
out = Path(sys.argv[1])
held = claim(out, "world build")
with writing(out / "images" / "a.png") as file:
    file.write(b"half")
    print("ready", flush=True)
    time.sleep(600)
"""


def _own(out):
    outputs = Outputs("world build")
    outputs.folder(Folder(out, ("images", "manifest.json"), lambda _: True, alone=True))
    return outputs


@pytest.fixture
def holder(tmp_path):
    out = tmp_path / "made" / "out"
    process = subprocess.Popen([sys.executable, "-c", HOLDER, str(out)], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "ready\n"
    yield out, process
    process.kill()
    process.wait()
    process.stdout.close()


def test_the_second_of_two_is_refused(holder):
    out, process = holder
    before = sorted(out.rglob("*"))
    refused = pytest.raises(InputError, match=f"counterfoil world build, process {process.pid} on ")
    with refused, guarding(_own(out)):
        raise AssertionError("the block was entered")
    # The one who was refused swept nothing that the other is writing.
    assert sorted(out.rglob("*")) == before
    assert list(out.rglob("*.part"))


def test_a_killed_holder_is_followed_and_swept(holder):
    out, process = holder
    mine = out / ".mine.part"
    mine.touch()
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert list(out.rglob("*.part")), "nothing was left to sweep"
    with guarding(_own(out)):
        assert list(out.rglob("*.part")) == [mine]
        assert (out.parent / ".out.lock").exists()
    assert not (out.parent / ".out.lock").exists()


def test_a_claim_leaves_nothing(tmp_path):
    with guarding(_own(tmp_path / "a" / "b" / "out")):
        assert (tmp_path / "a" / "b").is_dir()
    assert list(tmp_path.iterdir()) == []


def test_nested_guards_claim_once(tmp_path):
    outputs = Outputs("compare")
    with guarding(outputs):
        outputs.file(tmp_path / "page.html")
        with guarding(outputs):
            pass
        with pytest.raises(InputError, match="another command is writing there"):
            claim(tmp_path / "page.html", "compare")
    claim(tmp_path / "page.html", "compare").release()


def test_other_ranks_do_not_claim(tmp_path, monkeypatch):
    held = claim(tmp_path / "out", "train")
    assert held is not None
    monkeypatch.setenv("RANK", "1")
    assert claim(tmp_path / "out", "train") is None
    held.release()


def test_a_lock_that_is_a_link_is_not_followed(tmp_path):
    other = tmp_path / "other"
    other.write_text("mine")
    os.symlink(other, tmp_path / ".out.lock")
    with guarding(_own(tmp_path / "out")):
        pass
    assert other.read_text() == "mine"


def test_what_is_being_written_is_locked(tmp_path):
    from counterfoil.claims import sweep

    with writing(tmp_path / "a.txt") as file:
        file.write(b"whole")
        sweep(tmp_path / "a.txt")
        assert len(list(tmp_path.glob(".a.txt.*.part"))) == 1
    assert (tmp_path / "a.txt").read_bytes() == b"whole"
