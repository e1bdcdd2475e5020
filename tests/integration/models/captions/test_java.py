"""Programs that are asked line by line: answers, endings, and what is said when one fails."""

import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from counterfoil.errors import InputError, MissingExtraError, ModelError
from counterfoil.models.captions import java
from refusals import refuses

ECHO = "import sys\nfor line in sys.stdin: print(line.rstrip('\\n')[::-1], flush=True)"


def python(code):
    return [sys.executable, "-c", code]


def runs(pid):
    """Whether a process of this number is there and no mere trace of one."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except (FileNotFoundError, ProcessLookupError):
        return False
    return status.rpartition(")")[2].split()[0] != "Z"


@pytest.fixture
def echo():
    with closing(java.Child(python(ECHO), name="echo")) as child:
        yield child


class TestChild:
    def test_answers_come_in_order_however_many(self, echo):
        # Many times what pipes hold, both ways: writing all before reading would stand still.
        lines = [f"{at} {'x' * (at % 300)}" for at in range(20_000)]
        assert echo.ask(lines) == [line[::-1] for line in lines]
        assert echo.ask(["", "café 你好", "a\x85b\u2028c"]) == ["", "好你 éfac", "c\u2028b\x85a"]

    def test_askers_at_once_get_their_own_answers(self, echo):
        def ask(asker):
            return echo.ask([f"{asker}:{at}" for at in range(500)])

        with ThreadPoolExecutor(4) as pool:
            answers = list(pool.map(ask, range(4)))
        assert answers == [[f"{k}:{at}"[::-1] for at in range(500)] for k in range(4)]

    def test_a_line_break_in_a_line_is_refused_before_anything_is_sent(self, echo):
        refuses(r"^echo, line 2: a line break within a line$", echo.ask, ["a", "b\nc"], error=InputError)
        assert echo.ask(["a"]) == ["a"]

    def test_closing_one_that_does_not_listen_ends_it_too(self):
        child = java.Child(python("import time; time.sleep(3600)"), name="deaf")
        child.close()
        assert not child.alive


class TestFailures:
    @pytest.mark.parametrize(
        ("code", "message"),
        [
            (
                "import sys; sys.stdin.readline(); print('first', flush=True)\n"
                "sys.stderr.write('Picked up X\\nException: no space\\n\\tat Main.main\\n'); sys.exit(3)",
                "ended with status 3; it said last: Exception: no space",
            ),
            ("import os, sys; sys.stdin.readline(); os.kill(os.getpid(), 9)", "was ended by signal 9; it"),
            ("import sys, time\nfor line in sys.stdin: time.sleep(60)", "no answer within 2 seconds"),
        ],
    )
    def test_a_program_that_ends_is_named_with_its_last_words(self, code, message):
        with closing(java.Child(python(code), name="metric:x", patience=2)) as child:
            for _ in range(2):  # Asking again says it again, and does not wait.
                words = refuses("", child.ask, ["a"] * 100_000, error=ModelError)
                assert words.startswith(f"metric:x: {message}")
            assert not child.alive

    def test_a_program_that_is_not_there(self, tmp_path):
        with pytest.raises(ModelError, match=r"^x: cannot be started: No such file"):
            java.Child([str(tmp_path / "none")], name="x")

    def test_an_interrupted_question_ends_the_program(self, echo, monkeypatch):
        def interrupt():
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(echo, "_next", interrupt)
            refuses("", echo.ask, ["a"], error=KeyboardInterrupt)
        refuses("was ended by signal 9", echo.ask, ["b"], error=ModelError)

    def test_no_java_on_the_path(self, monkeypatch, tmp_path):
        monkeypatch.setenv("PATH", str(tmp_path))
        words = refuses("", java.java, "metric:meteor", error=ModelError)
        assert words.startswith(
            "metric:meteor: needs Java, and there is no program 'java' on PATH; install a Java runtime"
        )

    def test_no_pycocoevalcap(self, monkeypatch):
        monkeypatch.setattr(java, "find_spec", lambda name: None)
        with pytest.raises(MissingExtraError, match=r"'pycocoevalcap' is not installed.*pip install"):
            java.folder("meteor")

    def test_run_gives_up_on_time(self):
        with pytest.raises(ModelError, match=r"^x: not done within 0\.3 seconds; it was ended$"):
            java.run(python("import time; time.sleep(60)"), name="x", patience=0.3)


class TestKept:
    def test_one_command_is_started_once_and_again_where_it_died(self, tmp_path):
        command, how = python(ECHO), {"name": "x", "place": tmp_path, "patience": 10}
        (first,) = java.kept(command, **how)
        again = java.kept(command, **how, copies=2)
        assert first is again[0] is not again[1]
        os.kill(first.process.pid, 9)
        refuses("", first.ask, ["a"], error=ModelError)
        (second,) = java.kept(command, **how)
        assert second.ask(["ab"]) == ["ba"]
        java.close_all()
        assert not any(child.alive for child in (*again, second))
        assert java.kept(command, **how)[0] is not second
        java.close_all()

    @pytest.mark.parametrize("ending", ["", "import os; os.kill(os.getpid(), 15)"])
    def test_nothing_runs_on_after_the_program(self, ending):
        program = (
            "import sys; from pathlib import Path; from counterfoil.models.captions import java\n"
            f"child, = java.kept([sys.executable, '-c', {ECHO!r}], name='x', place=Path(), patience=10)\n"
            f"print(child.ask(['ab']), child.process.pid, flush=True)\n{ending}"
        )
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, check=False
        )
        answer, _, pid = done.stdout.strip().rpartition(" ")
        assert answer == "['ba']"
        assert done.stderr == ""
        until = time.monotonic() + 120
        while runs(int(pid)) and time.monotonic() < until:
            time.sleep(0.05)
        assert not runs(int(pid))
