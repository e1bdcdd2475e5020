"""Files appear whole or not at all."""

import errno
import os

import pyarrow as pa
import pytest

from counterfoil import store
from counterfoil.errors import StorageError
from counterfoil.inputs.columns import read_parquet
from counterfoil.inputs.files import digest, digest_file, read_json
from refusals import refuses


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path):
    target = tmp_path / "a.json"
    store.write_json(target, {"old": 1})

    def stopped_half_way():
        with store.writing(target) as file:
            file.write(b"half")
            raise RuntimeError("stopped here")

    refuses("", stopped_half_way, error=RuntimeError)
    assert read_json(target) == {"old": 1}
    assert [path.name for path in tmp_path.iterdir()] == ["a.json"]


@pytest.mark.skipif(not os.path.isdir("/proc"), reason="Linux has such a folder")
def test_a_folder_in_which_no_file_can_be_made_is_refused_before_any_work():
    refuses("/proc/a.json: cannot be written", store.check_writable, "/proc/a.json", error=StorageError)


def test_a_full_disk_is_one_clear_error(tmp_path, monkeypatch):
    def full(_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StorageError, match=r"a\.txt: the disk is full; .*nothing was left half-written"):
        store.write_text(tmp_path / "a.txt", "text")
    assert list(tmp_path.iterdir()) == []


def test_what_cannot_be_written_leaves_nothing(tmp_path):
    with pytest.raises(ValueError, match="not JSON compliant"):
        store.write_json(tmp_path / "a.json", {"value": float("nan")})
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "file").write_text("")
    refuses("cannot be written", store.write_text, tmp_path / "file" / "a.txt", "text", error=StorageError)


def test_the_same_table_gives_the_same_bytes(tmp_path):
    table = pa.table({"question": ["a", "b"], "score": [0.1, 0.2]})
    store.write_parquet(tmp_path / "a.parquet", table)
    store.write_parquet(tmp_path / "b.parquet", table)
    assert (tmp_path / "a.parquet").read_bytes() == (tmp_path / "b.parquet").read_bytes()
    assert read_parquet(tmp_path / "a.parquet").equals(table)


def test_digests_of_files_and_bytes_agree(tmp_path):
    data = os.urandom(3_000_000)
    (tmp_path / "a").write_bytes(data)
    assert digest_file(tmp_path / "a") == digest(data)


def test_written_files_have_the_usual_rights(tmp_path):
    store.write_text(tmp_path / "ours", "")
    (tmp_path / "plain").write_text("")
    assert (tmp_path / "ours").stat().st_mode == (tmp_path / "plain").stat().st_mode
