"""A study as files: the page opens with what held in this run, and shows the world large."""

import base64
import io
import json
import re
from dataclasses import asdict

import PIL.Image
import pytest

from counterfoil.studies.demo import write
from made_once import made_once
from tiny_study import TINY


@pytest.fixture(scope="module")
def written(made, tmp_path_factory):
    return made_once(tmp_path_factory, "written-study", lambda folder: write(made, folder, seconds=12.3))


def _pictures(html):
    found = re.findall(r"data:image/(?:webp|jpeg);base64,([A-Za-z0-9+/=]+)", html)
    return [PIL.Image.open(io.BytesIO(base64.b64decode(each))) for each in found]


def test_pictures_are_large_on_the_report_and_smaller_beside_questions(written):
    report = _pictures((written / "report.html").read_text())
    assert report
    assert {picture.size for picture in report} == {(192, 192)}
    html = (written / "questions.html").read_text()
    questions = _pictures(html)
    assert questions
    # Of a clip five frames, side by side.
    assert {picture.size for picture in questions} == {(96, 96), (5 * 96 + 4 * 2, 96)}
    data = json.loads(
        re.search(r'id="data">(.*?)</script>', (written / "questions.html").read_text(), re.S)[1]
    )
    assert [len(of["ids"]) for of in data["benchmarks"]] == [TINY.questions] * 2
    assert "see the same scenes at 32 x 32 pixels" in " ".join((written / "report.html").read_text().split())


def test_the_numbers_are_the_study_s(made, written):
    numbers = json.loads((written / "findings.json").read_text())
    assert [each["verdict"] for each in numbers["findings"]] == [each.verdict for each in made.findings]
    assert numbers["plan"] == json.loads(json.dumps(asdict(made.plan)))
    assert numbers["seconds"]["all"] == 12.3
    assert numbers["order"]["sentence"] == made.order.sentence
