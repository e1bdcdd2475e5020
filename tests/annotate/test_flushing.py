"""What is acknowledged is on the disk, and one wait for the disk serves all who came before it."""

import errno
import os
import threading
from pathlib import Path

import pytest

from annotate.small_campaigns import Worker, make, pairs
from counterfoil.annotate.database import open_database
from counterfoil.annotate.flushing import SharedFlush
from counterfoil.errors import StorageError


def test_one_wait_serves_all_who_came_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "log"
    path.touch()
    begun, go_on, waits = threading.Event(), threading.Event(), []

    def slow(handle: int) -> None:
        waits.append(handle)
        begun.set()
        assert go_on.wait(10)

    monkeypatch.setattr(os, "fsync", slow)
    flush = SharedFlush(path, written=1)
    first = threading.Thread(target=flush.wait, args=(1,))
    first.start()
    assert begun.wait(10)
    # Nine more write while the disk is at work on the first.
    flush.written = 10
    others = [threading.Thread(target=flush.wait, args=(at,)) for at in range(2, 11)]
    for thread in others:
        thread.start()
    assert flush.flushed == 0
    go_on.set()
    for thread in (first, *others):
        thread.join(10)
    assert (len(waits), flush.flushed) == (2, 10)


def test_a_wait_that_failed_is_not_taken_for_one_that_did_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    campaign = make(tmp_path / "c", pairs(4))
    db = open_database(campaign)
    worker = Worker(db, campaign, 1)
    first = worker.standing().assigned[0]
    real, paths = os.fsync, []

    def broken(handle: int) -> None:
        paths.append(Path(os.readlink(f"/proc/self/fd/{handle}")).name)
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "fsync", broken)
    with pytest.raises(StorageError, match=r"did not take what was written: Input/output error"):
        worker.answer(first, key="k")
    assert paths == ["database.sqlite-wal"]
    # The disk says that all is well again, but of what was written before that is not known.
    monkeypatch.setattr(os, "fsync", real)
    with pytest.raises(StorageError, match="start again"):
        worker.answer(first, key="k")
    db.close()
    # The page sends what it has no receipt for to the server that was started again.
    db = open_database(campaign)
    worker.db = db
    assert worker.answer(first, key="k").accepted
    db.close()


def test_who_changes_nothing_does_not_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    campaign = make(tmp_path / "c", pairs(4))
    db = open_database(campaign)
    worker = Worker(db, campaign, 1)
    worker.standing()
    waits: list[int] = []
    monkeypatch.setattr(os, "fsync", waits.append)
    worker.standing()
    assert waits == []
    worker.answer(worker.standing().assigned[0])
    assert len(waits) == 1
    db.close()


def test_a_simulation_does_not_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    campaign = make(tmp_path / "c", pairs(4))
    monkeypatch.setattr(os, "fsync", lambda handle: pytest.fail("waited"))
    db = open_database(campaign, durable=False)
    assert Worker(db, campaign, 1).do().state == "done"
    db.close()
