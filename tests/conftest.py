"""Shared by all tests: shape checks, the folder of real data, a browser, and the time per folder."""

import functools
import gc
import os
import re
import shutil
import sys
import tempfile
from collections import Counter
from pathlib import Path, PurePosixPath

import hypothesis
import pytest

import shapecheck

# Processes that share the machine take a thread each: two pools on two cores wait for one another.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# With torch and every module of the package loaded, the collector walks millions of objects that stay: at
# Python's own threshold that is a quarter of the time of the command line's tests.
gc.set_threshold(100_000, 50, 50)


def pytest_collection_finish():
    """What is loaded by now stays, and the collector passes it over."""
    gc.freeze()


# Annotated shapes and types are enforced in the test run, and users never pay for them.
shapecheck.install()

# How long an example takes is up to the machine. `make slow` draws many more of them.
hypothesis.settings.register_profile("thorough", deadline=None, max_examples=300)
hypothesis.settings.register_profile("quick", deadline=None, max_examples=25)
hypothesis.settings.load_profile("quick")

# Models and data never come from the network in a test.
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault("MPLBACKEND", "Agg")
# Data sets that were fetched on this machine are not part of the tests.
os.environ["XDG_DATA_HOME"] = tempfile.mkdtemp(prefix="counterfoil-tests-")


def pytest_runtest_setup():
    """Equal tokenizers of open_clip share what each would read and make anew: ranks of 49,000 merges."""
    shapecheck.begin_test()
    library = sys.modules.get("open_clip.tokenizer")
    if library is None or hasattr(library.SimpleTokenizer.__init__, "__wrapped__"):
        return
    original, made = library.SimpleTokenizer.__init__, {}

    @functools.wraps(original)
    def once(self, *args, **settings):
        key = repr((args, settings))
        if key not in made:
            original(self, *args, **settings)
            made[key] = dict(vars(self))
        vars(self).update(made[key])

    library.SimpleTokenizer.__init__ = once


#: Libraries of extras, which are not installed everywhere.
_EXTRAS = "av|datasets|diffusers|httpx2|lightning_fabric|open_clip|ray|sqlalchemy|torch|transformers"


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector):
    """A module of tests is left out where a library of an extra, which it imports, is not installed."""
    report = yield
    words = rf"(?:No module named|Python package) '({_EXTRAS})['.]"
    if report.failed and (missing := re.search(words, str(report.longrepr))):
        report.outcome = "skipped"
        report.longrepr = (str(collector.path), 0, f"Skipped: {missing[1]} is not installed")
    return report


@pytest.fixture(scope="session")
def shared_data():
    """The folder of real benchmark files: COUNTERFOIL_DATA, else ../shared/data beside the checkout."""
    named = os.environ.get("COUNTERFOIL_DATA")
    folder = Path(named) if named else Path(__file__).resolve().parents[2] / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"no real data: set COUNTERFOIL_DATA (looked for {folder})")
    return folder


@pytest.fixture(scope="session")
def s3():
    """The URL of an S3-compatible server of this process; `bucket_servers.s3_at` points clients at it."""
    from bucket_servers import s3_server

    with s3_server() as url:
        yield url


@pytest.fixture(scope="session")
def chromium():
    """A headless Chromium without network requests, or a skip that says what to install."""
    path = shutil.which("chromium") or shutil.which("chromium-browser") or "/usr/bin/chromium"
    if not Path(path).is_file():
        pytest.skip("no Chromium: install it (Debian: apt-get install chromium)")
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    quiet = ("background-networking", "quic", "component-update", "sync", "gpu")
    arguments = ["--headless", "--no-sandbox", "--no-first-run", *(f"--disable-{name}" for name in quiet)]
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=arguments)
        yield browser
        browser.close()


@pytest.fixture
def violations():
    """What axe-core finds against a page with all of its details open: a line per broken rule and element.

    Contrast, which takes most of the time on a long page, is left out where `colours` are known to be right.
    """
    axe = pytest.importorskip("axe_playwright_python", reason="axe-playwright-python is not installed")
    code = (Path(axe.__file__).parent / "axe.min.js").read_text(encoding="utf-8")

    def found(view, colours=True):
        view.evaluate("document.querySelectorAll('details').forEach(each => { each.open = true; })")
        view.evaluate(code)
        options = {"resultTypes": ["violations"], "rules": {"color-contrast": {"enabled": colours}}}
        broken = view.evaluate("options => axe.run(document, options)", options)["violations"]
        return [f"{rule['id']}: {node['html'][:120]}" for rule in broken for node in rule["nodes"]]

    return found


def pytest_terminal_summary(terminalreporter):
    """The seconds spent in each folder of tests, with setup, over all processes."""
    seconds: Counter[str] = Counter()
    count: Counter[str] = Counter()
    for reports in terminalreporter.stats.values():
        for report in reports:
            if isinstance(report, pytest.TestReport):
                parts = PurePosixPath(report.nodeid.partition("::")[0]).parts
                folder = "/".join(parts[:3]) if parts[0] == "tests" else parts[0]
                seconds[folder] += report.duration
                count[folder] += report.when == "call"
    if sum(seconds.values()) > 60:
        terminalreporter.section("time per folder")
        for folder, spent in seconds.most_common():
            terminalreporter.write_line(f"{spent:7.1f} s {count[folder]:6,} tests  {folder}")
