"""SPICE: what is asked of its program and what is read of its answer; its parser is not at hand."""

import json
import shutil
from pathlib import Path

import pytest

from counterfoil.errors import ModelError
from counterfoil.models.captions import java
from counterfoil.models.captions.java import PARSER, spice, spice_command
from refusals import refuses
from spice_program import fake

pytest.importorskip("pycocoevalcap", reason="needs pycocoevalcap (extra java)")


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
        asked = Path(command[command.index("-cp") + 3])
        assert not asked.parent.exists()

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

    @pytest.mark.parametrize("version", ["15.0.1", "21"])
    def test_java_without_javascript(self, models, monkeypatch, version):
        fake(models, monkeypatch, version=version)
        refuses(f"given: Java {version[:2]}; allowed: Java 8 to 14", spice_command, models, error=ModelError)
        (models / "nashorn-core-15.4.jar").touch()
        spice_command(models)

    @pytest.mark.parametrize("version", ["1.8.0_402", "14.0.2"])
    def test_java_with_it(self, models, monkeypatch, version):
        fake(models, monkeypatch, version=version)
        spice_command(models)


class TestWhatIsMissing:
    @pytest.mark.skipif(shutil.which("java") is None, reason="needs Java")
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
