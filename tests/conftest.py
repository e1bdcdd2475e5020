"""What all tests share: shape checks switched on, and the folder of real data where there is one."""

import os
import tempfile
from pathlib import Path

import hypothesis
import pytest
from jaxtyping import install_import_hook

# Annotated shapes and types are enforced in the test run, and users never pay for them.
install_import_hook("counterfoil", "shapecheck.check")

# How long an example takes is up to the machine.
hypothesis.settings.register_profile("untimed", deadline=None)
hypothesis.settings.load_profile("untimed")

# Models and data never come from the network in a test.
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault("MPLBACKEND", "Agg")
# What whoever runs the tests has fetched is not what they are about.
os.environ["XDG_DATA_HOME"] = tempfile.mkdtemp(prefix="counterfoil-tests-")


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real benchmark files: COUNTERFOIL_DATA, else ../shared/data beside the checkout."""
    named = os.environ.get("COUNTERFOIL_DATA")
    folder = Path(named) if named else Path(__file__).resolve().parents[2] / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"no real data: set COUNTERFOIL_DATA (looked for {folder})")
    return folder
