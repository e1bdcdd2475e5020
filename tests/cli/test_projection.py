"""Work on paper: each number of the page is what the command prints, and what the formula says by hand."""

import json
import re
from pathlib import Path

import pytest

from counterfoil.errors import InputError, UnknownNameError
from counterfoil.tasks.estimate import Costs
from counterfoil.tasks.projection import PROJECTS, MachineRates, Workload, WorkProjection

PAGE = Path(__file__).parents[2] / "docs" / "scale.md"
COSTS = ("--machines", 64, "--price", 3, "--watts", 1000, "--carbon", 350)


@pytest.mark.parametrize("name", PROJECTS)
def test_the_page_has_the_numbers_of_the_command(counterfoil, name):
    found = counterfoil("estimate", "--project", name, *COSTS, "--json", "-", "-q")
    assert found.code == 0, found.err
    whole = json.loads(found.out)
    (row,) = re.findall(rf"^\| `{name}`:.*$", PAGE.read_text(), re.M)
    bound, hours, money, carbon = [cell.strip() for cell in row.strip("|").split("|")[1:]]
    assert whole["bound"] == bound
    assert f"{whole['machine_hours']:,.1f}" == hours
    assert f"{whole['money']:,.2f}" == money
    assert f"{whole['carbon']:,.3g}" == carbon


def test_stages_by_hand():
    work = Workload(
        "all of it",
        images=1000,
        captions=5000,
        drawn=10,
        pairs=1000 * 5000,
        directions=1,
        width=1024,
        flops=(1e12, 1e11, 1e14),
        image_bytes=1e6,
        kept=(4096.0, 4096.0, 1e6),
    )
    rates = MachineRates(card="a100", share=0.5, processors=4, decode=0.01, network=1e8, compared=1e6)
    assert rates.seconds(work) == pytest.approx(
        {
            "fetch": 1000 * 1e6 / 1e8,
            "decode": 1000 * 0.01 / 4,
            "embed": (1000e12 + 5000e11) / 156e12,
            "draw": 10 * 1e14 / 156e12,
            "store": (6000 * 4096 + 10e6) / 1e8,
            "compare": 5e6 * 2 / 4e6,
        }
    )


def test_machines_share_the_time_and_not_the_cost():
    one, many = (WorkProjection("laion-2b", costs=Costs(machines=n, price=2)) for n in (1, 50))
    assert many.seconds == pytest.approx(one.seconds / 50)
    assert many.money == pytest.approx(one.money)
    stages = one.stages
    assert one.seconds == max(stages.values())
    assert one.carbon is None
    both = WorkProjection("coco-pooling")
    assert both.seconds == pytest.approx(both.stages["decode"] + both.stages["compare"])


def test_what_cannot_be_projected():
    with pytest.raises(UnknownNameError, match="unknown project"):
        WorkProjection("laion-5b")
    with pytest.raises(InputError, match="decode"):
        MachineRates(decode=0)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("--project", "laion-2b", "evaluate"), "a project is no command's; given: evaluate"),
        ((), "no command to estimate"),
        (("--project", "laion-2b", "--card", "a100", "--card", "h100"), "a project has one kind of card"),
    ],
)
def test_what_the_command_cannot_do_is_one_line(counterfoil, arguments, error):
    found = counterfoil("estimate", *arguments)
    assert found.code == 2
    assert error in found.err
    assert found.err.count("\n") == 1
