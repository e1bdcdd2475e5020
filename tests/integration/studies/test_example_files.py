"""The small files that README and the tour go on with."""

import subprocess
import sys
from pathlib import Path

from counterfoil.errors import InputError
from counterfoil.studies.example_files import write_example_files
from refusals import refuses

#: Libraries of the extras: the files are written by the core alone.
HEAVY = ("torch", "matplotlib", "transformers", "sqlalchemy")


def written(folder, seed=0):
    names = write_example_files(folder, seed=seed)
    result = {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*.*")}
    assert all(name in result or name == "photos/" for name in names)
    return result


def test_a_seed_has_its_bytes(tmp_path):
    first = written(tmp_path / "a")
    assert first == written(tmp_path / "b")
    assert first != written(tmp_path / "c", seed=1)
    assert {Path(name).parts[0] for name in first} > {"photos", "scores", "pairs.csv", "captions.csv"}


def test_a_folder_that_holds_something_is_left_alone(tmp_path):
    (tmp_path / "pairs.csv").write_text("mine")
    refuses(r"not empty; .*--overwrite", write_example_files, tmp_path, error=InputError)
    assert [path.name for path in tmp_path.iterdir()] == ["pairs.csv"]


def test_the_core_writes_them(tmp_path):
    code = (
        "import sys; from counterfoil.cli import app; "
        f"app(['demo', '--files', 'first'], standalone_mode=False); "
        f"assert not {{*{HEAVY}}} & sys.modules.keys()"
    )
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True)
    assert (tmp_path / "first" / "pairs.csv").is_file()
