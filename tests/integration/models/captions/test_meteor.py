"""METEOR against pycocoevalcap's own, and captions that the program would misread."""

import shutil
from itertools import pairwise

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

WORDS = "a man in red shirt rides two brown horses , quickly down the street . café it's half-open"


@pytest.fixture(scope="module", autouse=True)
def _ended():
    yield
    java.close_meteor()


def drawn(n, seed):
    """Captions of random words: candidates, and one to five references each."""
    rng = np.random.default_rng(seed)

    def caption():
        return " ".join(rng.choice(WORDS.split(), rng.integers(1, 12)))

    return [caption() for _ in range(n)], [[caption() for _ in range(rng.integers(1, 6))] for _ in range(n)]


@pytest.fixture(scope="module")
def official():
    """What pycocoevalcap says: of all together, and of each."""
    from pycocoevalcap.meteor.meteor import Meteor

    program = Meteor()

    def ask(candidates, references):
        return program.compute_score(
            dict(enumerate(references)), {at: [text] for at, text in enumerate(candidates)}
        )

    yield ask
    # It leaves its pipes open, and its own ending comes too late to be without a warning.
    for pipe in (program.meteor_p.stdin, program.meteor_p.stdout, program.meteor_p.stderr):
        pipe.close()
    program.meteor_p.wait(30)


class TestAsPycocoevalcap:
    def test_numbers_that_it_gave(self):
        """Of version 1.2; the test below asks it itself, and takes as long again for it to start."""
        candidates = [
            "a man rides two brown horses down the street",
            "the red shirt is half-open , quickly",
            "two dogs",
        ]
        references = [
            ["a man in a red shirt rides a horse", "two horses on a street"],
            ["it's a red shirt in a café"],
            ["a dog runs"],
        ]
        found = meteor(candidates, references)
        np.testing.assert_allclose(found.items, [0.2962962962962963, 0.19172036574635976, 0], atol=1e-9)
        assert found.corpus == pytest.approx(0.1841390984590391, abs=1e-9)

    @pytest.mark.slow
    def test_on_captions_of_people(self, official, shared_data):
        lines = (shared_data / "flickr8k" / "Flickr8k.token.txt").read_text(encoding="utf-8").splitlines()
        captions = [" ".join(line.split("\t")[1].split()) for line in lines[:1000]]
        groups = [captions[start:end] for start, end in pairwise(range(0, 1005, 5))]
        candidates = [group[0] for group in groups]
        references = [group[1:] for group in groups]
        whole, items = official(candidates, references)
        found = meteor(candidates, references)
        np.testing.assert_allclose(found.items, items, rtol=0, atol=1e-9)
        assert found.corpus == pytest.approx(whole, abs=1e-9)
        # Not the mean: the counts of all are taken together.
        assert abs(found.corpus - found.items.mean()) > 1e-3


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
