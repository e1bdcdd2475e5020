"""Programs that are run for a metric: what is said where they are missing or fail."""

import sys

import pytest

from counterfoil.errors import MissingExtraError, ModelError
from counterfoil.models.captions import java
from refusals import refuses


def python(code):
    return [sys.executable, "-c", code]


def test_a_program_that_is_not_there(tmp_path):
    with pytest.raises(ModelError, match=r"^x: cannot be started: No such file"):
        java.run([str(tmp_path / "none")], name="x", patience=1)


def test_no_java_on_the_path(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    words = refuses("", java.java, "metric:meteor", error=ModelError)
    assert words.startswith(
        "metric:meteor: needs Java, and there is no program 'java' on PATH; install a Java runtime"
    )


def test_no_pycocoevalcap(monkeypatch):
    monkeypatch.setattr(java, "find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"'pycocoevalcap' is not installed.*pip install"):
        java.folder("meteor")


def test_run_gives_up_on_time():
    with pytest.raises(ModelError, match=r"^x: not done within 0\.3 seconds; it was ended$"):
        java.run(python("import time; time.sleep(60)"), name="x", patience=0.3)
