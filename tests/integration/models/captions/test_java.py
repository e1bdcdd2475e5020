"""METEOR against pycocoevalcap's own, SPICE with a program in its place, and programs that fail."""

import gzip
import json
import shutil
import sys
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from counterfoil.errors import MissingExtraError, ModelError
from counterfoil.models.base import Options
from counterfoil.models.captions import java
from counterfoil.models.captions.java import PARSER, check_meteor, meteor, spice, spice_command
from counterfoil.models.captions.text import load
from refusals import refuses
from spice_program import fake

pytest.importorskip("pycocoevalcap", reason="needs pycocoevalcap (extra java)")

needs_java = pytest.mark.skipif(shutil.which("java") is None, reason="needs Java")


def test_programs_that_are_not_there_or_too_slow(tmp_path):
    slow = [sys.executable, "-c", "import time; time.sleep(60)"]
    for command, words in (
        ([str(tmp_path / "none")], "^x: cannot be started: No such file"),
        (slow, r"^x: not done within 0\.3 seconds; it was ended$"),
    ):
        refuses(words, java.run, command, name="x", patience=0.3, error=ModelError)


def test_no_java_on_the_path(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert refuses("", java.java, "metric:meteor", error=ModelError).startswith(
        "metric:meteor: needs Java, and there is no program 'java' on PATH; install a Java runtime"
    )


def test_no_pycocoevalcap(monkeypatch):
    monkeypatch.setattr(java, "find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"'pycocoevalcap' is not installed.*pip install"):
        java.folder("meteor")


@pytest.fixture(scope="module", autouse=True)
def _ended():
    yield
    java.close_meteor()


@pytest.fixture
def few_paraphrases(tmp_path, monkeypatch):
    """The program beside the first of its paraphrases: to read all five million takes it 15 s."""
    from pycocoevalcap.meteor import meteor as official

    shutil.copy(java.folder("meteor") / "meteor-1.5.jar", tmp_path)
    (tmp_path / "data").mkdir()
    name = "data/paraphrase-en.gz"
    # Three lines each: how likely, and two phrases.
    with gzip.open(java.folder("meteor") / name) as whole, gzip.open(tmp_path / name, "wb") as few:
        few.writelines(islice(whole, 3 * 100_000))
    monkeypatch.setattr(official, "__file__", str(tmp_path / "meteor.py"))
    java.close_meteor()


# One test, since the program takes seconds to start.
@needs_java
def test_meteor_is_that_of_pycocoevalcap_and_reads_each_caption_as_one(few_paraphrases):
    candidates = ["a man rides two brown horses down the street", "the red shirt is half-open , quickly"]
    candidates += ["two dogs"]
    references = [
        ["a man in a red shirt rides a horse", "two horses on a street"], ["it's a red shirt in a café"],
        ["a dog runs"],
    ]  # fmt: skip
    result = meteor(candidates, references)
    # Of version 1.2.
    np.testing.assert_allclose(result.items, [0.2962962962962963, 0.19172036574635976, 0], atol=1e-9)
    assert result.corpus == pytest.approx(0.1841390984590391, abs=1e-9)
    # The metric cuts words, and the whole is no mean.
    metric = load("meteor", Options())
    asked = ["A man's RED horse.", "dogs run"], [["The man (red) rides", "x"], ["a dog runs fast"]]
    cut = ["a man 's red horse", "dogs run"], [["the man -lrb- red -rrb- rides", "x"], ["a dog runs fast"]]
    direct = meteor(*cut)
    np.testing.assert_array_equal(metric.of_texts(*asked), direct.items)
    assert metric.of_corpus(*asked) == direct.corpus
    assert abs(direct.corpus - direct.items.mean()) > 1e-3
    # Empty ones get nothing.
    result = meteor(["", "  ", "a cat", "|||"], [["a cat"], ["a cat"], [""], ["a cat"]])
    assert result.items.tolist() == [0, 0, 0, 0]
    assert meteor([], []).items.shape == (0,)
    # The mark between captions is none within one: read as two references, "a dog" would be found.
    split, plain = meteor(["a dog"] * 2, [["two cats ||| a dog"], ["two cats a dog"]]).items
    assert split == plain
    assert split < meteor(["a dog"], [["two cats", "a dog"]]).items[0]
    one, other = meteor(["a | dog ||| runs", "a | dog runs"], [["a dog runs"]] * 2).items
    assert one == other
    # Line breaks are blanks.
    one, other = meteor(["a dog\nruns\r\n", "a dog runs"], [["the dog\truns"], ["the dog runs"]]).items
    assert one == other > 0


@needs_java
class TestMeteorIsMissing:
    def test_the_data(self, tmp_path, monkeypatch):
        (tmp_path / "meteor-1.5.jar").touch()
        monkeypatch.setattr(java, "folder", lambda part: tmp_path)
        assert refuses("", check_meteor, error=ModelError) == (
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
        assert not java._PROGRAMS


@pytest.fixture
def models(tmp_path):
    """A folder with files of the parser's names."""
    for name in PARSER:
        (tmp_path / name).touch()
    return tmp_path


class TestWithAProgramInItsPlace:
    def test_scores_by_row(self, models, monkeypatch):
        kept = fake(models, monkeypatch)
        scores = spice(["a cat", "a dog", ""], [["a cat"], ["a", "dog runs"], ["a café"]], models=models)
        # By hand: 1; two of two words found, two of three known ones: 2 * (2/3) / (5/3); nothing.
        assert scores.tolist() == pytest.approx([1, 0.8, 0])
        command = json.loads(kept.read_text(encoding="utf-8"))
        path = command[command.index("-cp") + 1].split(":")
        assert path[0] == str(java.folder("spice") / "spice-1.0.jar")
        assert path[1:3] == [str(models / name) for name in PARSER]
        # What the manifest of the program names besides.
        assert {Path(name).name for name in path} >= {"SceneGraphParser-1.0.jar", "Meteor-1.5.jar"}
        assert not Path(command[command.index("-cp") + 3]).parent.exists()

    def test_no_rows(self):
        assert spice([], []).shape == (0,)

    @pytest.mark.parametrize(
        ("ending", "said"),
        [
            ("sys.exit('Error: Could not score')", "ended with status 1; it said last: Error: Could not"),
            ("sys.exit(0)", "left no scores that can be read; given: FileNotFoundError"),
            ("found = found[1:]", "left no scores that can be read; given: KeyError"),
            ("found[0]['scores']['All']['f'] = float('nan')", "left a score that is no number; given: nan"),
            ("found = 7", "left no scores that can be read; given: TypeError"),
        ],
    )
    def test_a_program_that_fails(self, models, monkeypatch, ending, said):
        fake(models, monkeypatch, ending=ending)
        words = refuses("", spice, ["a"], [["a"]], models=models, error=ModelError)
        assert words.startswith(f"metric:spice: {said}")

    @pytest.mark.parametrize("version", ["1.8.0_402", "14.0.2", "15.0.1", "21"])
    def test_java_without_javascript_needs_a_file(self, models, monkeypatch, version):
        fake(models, monkeypatch, version=version)
        if version >= "15":
            words = f"given: Java {version[:2]}; allowed: Java 8 to 14"
            refuses(words, spice_command, models, error=ModelError)
            (models / "nashorn-core-15.4.jar").touch()
        spice_command(models)


class TestSpiceIsMissing:
    @needs_java
    def test_the_parser_for_real(self):
        missing = java.folder("spice") / "lib" / PARSER[0]
        if missing.exists():
            pytest.skip("the parser is at hand")
        said = refuses("", spice, ["a cat"], [["a cat"]], error=ModelError)
        assert said.startswith(f"metric:spice: a file is missing; given: {missing}; SPICE needs the parser")
        assert "http://nlp.stanford.edu/software/stanford-corenlp-full-2015-12-09.zip" in said
        assert "--set models=FOLDER" in said

    def test_the_second_file(self, models, monkeypatch):
        fake(models, monkeypatch)
        (models / PARSER[1]).unlink()
        refuses(r"given: .*stanford-corenlp-3\.6\.0-models\.jar", spice_command, models, error=ModelError)
