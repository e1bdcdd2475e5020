"""Arguments that are declared once: what each type takes, what is refused, and the command of a job."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal, Unpack

import numpy as np
import pyarrow as pa
import pytest

from counterfoil.errors import InputError, UnknownNameError
from counterfoil.inputs.options import Argument, Option, arguments_of
from counterfoil.jobs.job import at_end, closing_at_end, job, job_of
from counterfoil.jobs.shared_options import Reporting
from refusals import refuses

COUNT = Argument("count", int, Option("How many.", 5, low=1, high=1000))
SHARE = Argument("share", float | None, Option("A share.", None, low=0, high=1))
TIES = Argument("ties", Literal["strict", "half"], Option("Ties.", "strict"))
NAMES = Argument("names", Sequence[str], Option("Names.", ()))
COMMAS = Argument("names", Sequence[str], Option("Names.", (), commas=True))
EITHER = Argument("names", str | Sequence[str], Option("Names."))
PLACE = Argument("place", Path | None, Option("A file.", None))
TEXT = Argument("text", str, Option("A text.", ""))
DEVICE = Argument("device", str, Option("", "auto", pattern="auto|cuda(:[0-9])?", metavar="auto|cuda[:N]"))
SWITCH = Argument("switch", bool, Option("A switch.", False))


@pytest.mark.parametrize(
    ("argument", "value", "converted"),
    [
        (COUNT, "20", 20),
        (COUNT, 20.0, 20),
        (COUNT, np.int64(1000), 1000),
        (SHARE, "0.5", 0.5),
        (SHARE, 1, 1.0),
        (SHARE, None, None),
        (TIES, "half", "half"),
        (NAMES, ["a", Path("b")], ("a", "b")),
        (NAMES, "a", ("a",)),
        (COMMAS, "a, b", ("a", "b")),
        (EITHER, "a", "a"),
        (EITHER, ["a"], ("a",)),
        (PLACE, "a/b", Path("a/b")),
        (TEXT, Path("a/b"), "a/b"),
        (SWITCH, np.True_, True),
        (COUNT, np.array(20), 20),
        (SHARE, np.float32(0.5), 0.5),
        (NAMES, np.array(["a", "b"]), ("a", "b")),
        (NAMES, pa.array(["a"]), ("a",)),
        (DEVICE, "cuda:1", "cuda:1"),
    ],
)
def test_a_value_is_converted(argument, value, converted):
    result = argument.converted(value, "--it")
    assert (result, type(result)) == (converted, type(converted))


@pytest.mark.parametrize(
    ("argument", "value", "line"),
    [
        (COUNT, 0, "--it: out of range; given: 0; allowed: 1 to 1,000"),
        (COUNT, "1e9", "--it: not a whole number; given: 1e9; allowed: 1 to 1,000"),
        (COUNT, 2.5, "--it: not a whole number; given: 2.5; allowed: 1 to 1,000"),
        (COUNT, True, "--it: not a whole number; given: True; allowed: 1 to 1,000"),
        (COUNT, None, "--it: no value; given: None; allowed: 1 to 1,000"),
        (SHARE, "nan", "--it: out of range; given: nan; allowed: 0 to 1"),
        (SHARE, 10**400, "--it: not a number; given: 1"),
        (TIES, "maybe", "--it: not a choice; given: maybe; allowed: strict, half"),
        (TEXT, 3, "--it: wrong type; given: int; allowed: a text"),
        (SWITCH, "yes", "--it: neither True nor False; given: yes"),
        (NAMES, np.array(100), "--it: wrong type; given: int; allowed: a text"),
        (TEXT, "half \ud800", r"--it: text that is no valid Unicode; given: 'half \ud800'"),
        (PLACE, "a\0b", r"--it: text that is no valid Unicode; given: 'a\x00b'"),
        (PLACE, "", "--it: no name of a file or folder; given: (empty)"),
        (DEVICE, "tpu", "--it: wrong form; given: tpu; allowed: auto|cuda[:N]"),
    ],
)
def test_another_is_refused_in_one_line(argument, value, line):
    assert refuses("", argument.converted, value, "--it", error=InputError).startswith(line)


class Rows(Reporting, total=False):
    """Arguments that several jobs could share."""

    depth: Annotated[int, Option("How deep.", 3, low=1, high=9)]
    settings: Annotated[Mapping[str, str] | None, Option("Settings.", None, flag="--set")]


@job()
def measure(
    name: Annotated[str, Option("What is measured.")],
    *,
    loud: Annotated[bool, Option("Loudly.")] = False,
    **rows: Unpack[Rows],
):
    """Measure something."""
    return [name, loud, rows["depth"], rows["settings"], rows.get("quiet")]


def test_a_job_gets_its_defaults_and_what_is_given():
    assert measure("a") == ["a", False, 3, None, None]
    assert measure(name="a", loud=True, depth=np.int32(4), quiet=True) == ["a", True, 4, None, True]
    assert [argument.name for argument in arguments_of(job_of(measure).function)] == [
        "name",
        "loud",
        "depth",
        "settings",
    ]
    assert "depth: How deep. [1 to 9; default: 3]" in (measure.__doc__ or "")


@pytest.mark.parametrize(
    ("call", "line"),
    [
        (lambda: measure(), "measure(), argument 'name': missing"),
        (
            lambda: measure("a", depth=0),
            "measure(), argument 'depth': out of range; given: 0; allowed: 1 to 9",
        ),
        (lambda: measure("a", dept=2), "measure(): unknown argument; given: dept"),
        (lambda: measure("a", "b"), "measure(): too many positional arguments"),
    ],
)
def test_what_a_job_does_not_take_names_the_argument(call, line):
    with pytest.raises((InputError, UnknownNameError)) as caught:
        call()
    assert str(caught.value).startswith(line)


def test_what_a_job_opens_is_closed_when_the_outermost_ends():
    closed = []
    with closing_at_end():
        with closing_at_end():
            at_end(lambda: closed.append("inner"))
        assert closed == []
    assert closed == ["inner"]
