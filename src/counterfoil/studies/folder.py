"""The folder of a study: whose it is, and what may be removed from it.

A study that was stopped goes on in its folder. One of another plan begins anew there, so that a folder never
holds networks or runs of two plans; only what a study itself writes is ever removed.
"""

from pathlib import Path

from counterfoil import __version__
from counterfoil.errors import CounterfoilError, InputError
from counterfoil.inputs.parsed import read_json
from counterfoil.outputs.guard import overwriting
from counterfoil.store import UNFINISHED, digest_value, write_json
from counterfoil.studies.plan import Plan

PLAN, NETWORKS, RUNS = "plan.json", "networks", "runs"
REPORT, QUESTIONS, NUMBERS = "report.html", "questions.html", "findings.json"
#: What a study keeps of a network and of a run; everything else in a folder is foreign.
_OF_NETWORKS = ("card.json", "model.safetensors", "resume.pt", "journal.csv", UNFINISHED)
_OF_RUNS = ("manifest.json", "result.json", "*.parquet", UNFINISHED)


def claim(out: Path, plan: Plan) -> bool:
    """Make `out` the folder of a study by this plan; whether one was begun there that can go on.

    What a study of another plan, or of another version of this package, left there is removed. Raises
    `InputError`, and touches nothing, where the folder holds files of the same names that no study wrote.
    """
    check(out)
    path = out / PLAN
    ours = {"study": __version__, "plan": plan.to_json()}
    known = _read(path)
    if known is not None and digest_value(known) == digest_value(ours):
        return any((out / NETWORKS).glob("*/resume.pt"))
    if known is not None:
        # Until all is removed it is no plan's, so a stop in between leaves no mixture.
        write_json(path, {"study": __version__, "plan": None})
        _clear(out)
    write_json(path, ours)
    return False


def check(out: Path) -> None:
    """Raise `InputError` where a folder that is no study's has something of the names a study writes.

    Unless replacing that was asked for.
    """
    if overwriting() or _read(out / PLAN) is not None:
        return
    taken = [name for name in (PLAN, NETWORKS, RUNS, REPORT, QUESTIONS, NUMBERS) if (out / name).exists()]
    if taken:
        raise InputError(
            "the folder holds files that are not of a demo",
            where=out,
            given=", ".join(taken),
            hint="name a new folder",
        )


def _read(path: Path) -> dict[str, object] | None:
    """What `path` says of a study, None where it says nothing of one."""
    try:
        known = read_json(path) if path.is_file() else None
    except CounterfoilError:
        return None
    return known if isinstance(known, dict) and {"study", "plan"} == set(known) else None


def _clear(out: Path) -> None:
    for name in (REPORT, QUESTIONS, NUMBERS):
        (out / name).unlink(missing_ok=True)
    for folder, depth, names in ((NETWORKS, "*", _OF_NETWORKS), (RUNS, "*/*", _OF_RUNS)):
        for place in (out / folder).glob(depth):
            # With what a machine that stopped while writing left behind.
            for path in [path for name in (*names, ".*.part") for path in place.glob(name)]:
                path.unlink()
        _without_empty(out / folder)


def _without_empty(folder: Path) -> None:
    """Remove a folder and those in it, as far as nothing is in them."""
    if not folder.is_dir() or folder.is_symlink():
        return
    for path in folder.iterdir():
        _without_empty(path)
    if not any(folder.iterdir()):
        folder.rmdir()
