"""A lease has one holder, who renews it; it passes on when that holder is gone."""

import json
import os
import subprocess
import sys
import threading
import time

import pytest

from counterfoil.engine.cache import LEASES
from counterfoil.engine.executor import _RENEWALS, Leases
from counterfoil.storage import open_store


@pytest.fixture
def place(tmp_path):
    return open_store(tmp_path)


def test_of_many_that_want_a_lease_at_once_one_gets_it(place):
    holders = [Leases(place, "shards") for _ in range(8)]
    taken, start = [], threading.Barrier(8)

    def want(holder):
        start.wait()
        taken.extend(name for name in map(str, range(20)) if holder.take(name))

    threads = [threading.Thread(target=want, args=(holder,)) for holder in holders]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(taken) == sorted(map(str, range(20)))


def test_a_lease_is_renewed_while_its_holder_lives_and_passes_on_when_it_is_not(place):
    with Leases(place, "shards", patience=2.0) as ours:
        assert ours.take("a")
        (lease,) = place.entries(f"{LEASES}/")
        owner = json.loads(place.read(lease.name).data)
        theirs = Leases(place, "shards", patience=2.0)
        # So many renewals take longer than the patience.
        while json.loads(place.read(lease.name).data)["renewals"] <= owner["renewals"] + _RENEWALS:
            assert not theirs.take("a")
            time.sleep(0.05)
    # A holder on another machine that stopped renewing is known by the age of its lease alone.
    place.write(lease.name, json.dumps({**owner, "host": "another machine"}).encode())
    assert not theirs.take("a")
    time.sleep(2.2)
    assert theirs.take("a")


def test_the_lease_of_a_process_of_this_machine_that_is_gone_passes_on_at_once(tmp_path):
    code = (
        "import os, sys\nfrom counterfoil.engine.executor import Leases\n"
        "from counterfoil.storage import open_store\n"
        "assert all(map(Leases(open_store(sys.argv[1]), 'shards').take, 'ab'))\nos._exit(9)"
    )
    ended = subprocess.run([sys.executable, "-c", code, str(tmp_path)], env=os.environ, check=False)
    assert ended.returncode == 9
    place = open_store(tmp_path)
    assert len(place.entries(f"{LEASES}/")) == 2
    ours = Leases(place, "shards", patience=1e6)
    assert ours.take("a")
    # Also where none asks for its shard again: it was finished before its process was killed.
    ours.sweep([])
    assert len(place.entries(f"{LEASES}/")) == 1
    ours.release("a")
    assert not place.entries(f"{LEASES}/")


def test_a_lease_that_was_taken_over_is_not_given_back_by_its_former_holder(place):
    late, ours = Leases(place, "shards", patience=0), Leases(place, "shards", patience=0)
    assert late.take("a")
    time.sleep(0.05)
    assert ours.take("a")
    late.release("a")
    assert len(place.entries(f"{LEASES}/")) == 1
    ours.release("a")
    assert place.entries(f"{LEASES}/") == []


def test_what_a_killed_process_left_is_swept_and_what_a_live_one_holds_stays(place):
    theirs, ours = (Leases(place, "shards", patience=2.0) for _ in range(2))
    # Killed after it wrote the shard; at work; and of another stage, on another machine, long ago.
    assert theirs.take("written")
    assert theirs.take("at work")
    place.write(f"{LEASES}/old.json", json.dumps({"host": "another machine", "process": 1}).encode())
    ours.sweep(["written"])
    assert len(place.entries(f"{LEASES}/")) == 2
    with theirs:
        time.sleep(2.2)
        ours.sweep([])
        (left,) = place.entries(f"{LEASES}/")
        assert left.name != f"{LEASES}/old.json"
        assert not ours.take("at work")
