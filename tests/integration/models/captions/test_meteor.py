"""METEOR against pycocoevalcap's own, and captions that the program would misread."""

import shutil

import numpy as np
import pytest

from counterfoil.errors import ModelError
from counterfoil.models.base import Options
from counterfoil.models.captions import java
from counterfoil.models.captions.java import check_meteor, meteor
from counterfoil.models.captions.text import load
from refusals import refuses

pytest.importorskip("pycocoevalcap", reason="needs pycocoevalcap (extra java)")

pytestmark = pytest.mark.skipif(shutil.which("java") is None, reason="needs Java")


@pytest.fixture(scope="module", autouse=True)
def _ended():
    yield
    java.close_meteor()


def test_numbers_that_pycocoevalcap_gave():
    candidates = ["a man rides two brown horses down the street", "the red shirt is half-open , quickly"]
    candidates += ["two dogs"]
    references = [
        ["a man in a red shirt rides a horse", "two horses on a street"], ["it's a red shirt in a café"],
        ["a dog runs"],
    ]  # fmt: skip
    found = meteor(candidates, references)
    # Of version 1.2.
    np.testing.assert_allclose(found.items, [0.2962962962962963, 0.19172036574635976, 0], atol=1e-9)
    assert found.corpus == pytest.approx(0.1841390984590391, abs=1e-9)


def test_the_metric_cuts_words_and_the_whole_is_no_mean():
    found = load("meteor", Options())
    asked = ["A man's RED horse.", "dogs run"], [["The man (red) rides", "x"], ["a dog runs fast"]]
    direct = meteor(
        ["a man 's red horse", "dogs run"], [["the man -lrb- red -rrb- rides", "x"], ["a dog runs fast"]]
    )
    np.testing.assert_array_equal(found.of_texts(*asked), direct.items)
    assert found.of_corpus(*asked) == direct.corpus
    assert abs(direct.corpus - direct.items.mean()) > 1e-3


class TestOddCaptions:
    def test_empty_ones_get_nothing(self):
        found = meteor(["", "  ", "a cat", "|||"], [["a cat"], ["a cat"], [""], ["a cat"]])
        assert found.items.tolist() == [0, 0, 0, 0]
        assert meteor([], []).items.shape == (0,)

    def test_the_mark_between_captions_is_no_mark_within_one(self):
        # Read as two references, "a dog" would be found.
        split, plain = meteor(["a dog"] * 2, [["two cats ||| a dog"], ["two cats a dog"]]).items
        assert split == plain
        assert split < meteor(["a dog"], [["two cats", "a dog"]]).items[0]
        one, other = meteor(["a | dog ||| runs", "a | dog runs"], [["a dog runs"]] * 2).items
        assert one == other

    def test_line_breaks_are_blanks(self):
        one, other = meteor(["a dog\nruns\r\n", "a dog runs"], [["the dog\truns"], ["the dog runs"]]).items
        assert one == other > 0


class TestWhatIsMissing:
    def test_the_data(self, tmp_path, monkeypatch):
        (tmp_path / "meteor-1.5.jar").touch()
        monkeypatch.setattr(java, "folder", lambda part: tmp_path)
        words = refuses("", check_meteor, error=ModelError)
        assert words == (
            f"metric:meteor: a file is missing; given: {tmp_path}/data/paraphrase-en.gz; "
            "install pycocoevalcap again: pip install --force-reinstall 'counterfoil[java]'"
        )

    @pytest.mark.parametrize(
        ("program", "words"),
        [
            ("while read line; do echo 1 2 3; done", "not a score$"),
            (
                "read line; echo 'Picked up X' >&2; echo no space >&2; exit 3",
                "ended with status 3; it said last: no s",
            ),
            ("kill -9 $$", "was ended by signal 9; it said nothing"),
        ],
    )
    def test_a_program_that_fails(self, tmp_path, monkeypatch, program, words):
        java.close_meteor()
        (tmp_path / "java").write_text(f"#!/bin/sh\n{program}\n", encoding="utf-8")
        (tmp_path / "java").chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
        for _ in range(2):
            refuses(f"^metric:meteor: {words}", meteor, ["a"], [["a"]], error=ModelError)

    def test_an_interrupted_question_ends_the_program(self, tmp_path, monkeypatch):
        from pycocoevalcap.meteor import meteor as official

        def interrupted(program, *_):
            program.lock.acquire()
            raise KeyboardInterrupt

        java.close_meteor()
        (tmp_path / "java").write_text("#!/bin/sh\nexec sleep 3600\n", encoding="utf-8")
        (tmp_path / "java").chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
        monkeypatch.setattr(official.Meteor, "compute_score", interrupted)
        with pytest.raises(KeyboardInterrupt):
            meteor(["a"], [["a"]])
        assert not java._KEPT
