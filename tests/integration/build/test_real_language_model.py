"""Negatives by a real language model of 135 million parameters: what can be read, and what is kept."""

import json

import pyarrow as pa
import pytest

import small_model
from counterfoil import catalog
from counterfoil.build import StepContext
from counterfoil.build.negation.rules import SUGAR_CREPE
from counterfoil.build.steps.negate import Negate
from counterfoil.models import Options
from made_once import made_once


def captions(folder, each):
    """So many captions of each category of SugarCrepe."""
    rows = []
    for category in SUGAR_CREPE:
        table = json.loads((folder / "sugarcrepe" / f"{category}.json").read_text())
        rows += [
            {"id": f"{category}-{key}", "caption": table[key]["caption"], "subset": category}
            for key in list(table)[:: len(table) // each][:each]
        ]
    return pa.Table.from_pylist(rows)


def readable(found):
    """The share of answers from which a caption was read; all of them must be there."""
    answers = found.kept["negative_caption_answer"].to_pylist()
    answers += found.dropped["negative_caption_answer"].to_pylist()
    assert all(answers)
    return 1 - found.facts["refusals"].get("unreadable answer", {"rows": 0})["rows"] / len(answers)


#: The server answers one request at a time, on a machine that may have other work.
PATIENT = {"concurrency": "1", "timeout": "900"}


def endpoint_work(folder):
    def scorer(name, settings):
        return catalog.scorer(name, Options(settings={**settings, **PATIENT}))

    return StepContext(folder, step="negate", scorer=scorer)


@pytest.mark.slow
@pytest.mark.parametrize(("answers", "least"), [("schema", 0.95), ("free", 0.7)])
def test_nearly_all_answers_of_a_small_model_can_be_read(answers, least, shared_data, tmp_path):
    with small_model.serving() as url:
        step = Negate(by=f"chat:{url}#smol", per_caption="subset", answers=answers)
        assert readable(step.run(captions(shared_data, 40), endpoint_work(tmp_path))) >= least


@pytest.mark.slow
def test_a_small_model_within_this_process(shared_data, tmp_path, tmp_path_factory):
    folder = made_once(tmp_path_factory, "smollm2", small_model.convert)
    rows = captions(shared_data, 4)
    step = Negate(by=f"lm:{folder}", per_caption="subset", batch=4)
    found = step.run(rows, StepContext(tmp_path, step="negate"))
    assert readable(found) >= 0.95
