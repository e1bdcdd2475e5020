"""What several tests read and none changes, made once for all processes of a test run."""

import fcntl
import os


def made_once(factory, name, make):
    """The folder `name` in what the processes of this run share; the first that asks calls `make` with it.

    The others wait. What `make` raises is raised, and the next process tries again from the start.
    """
    place = factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        place = place.parent
    folder, done = place / name, place / f"{name}.done"
    with (place / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not done.exists():
            folder.mkdir(exist_ok=True)
            make(folder)
            done.touch()
    return folder
