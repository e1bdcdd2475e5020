"""Pickles as data: what NumPy wrote comes back, and no bytes of a file ever reach its own unpickling."""

import pickle
import zipfile
from multiprocessing import get_context

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from hypothesis.extra import numpy as stn

from counterfoil.errors import DataError, ModelError
from counterfoil.inputs.pickled import plain_pickle
from faults.files import flipped, truncations
from refusals import refuses

_KINDS = stn.boolean_dtypes() | stn.integer_dtypes(endianness="?") | stn.floating_dtypes(endianness="?")


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    stn.arrays(_KINDS | stn.unicode_string_dtypes(max_len=5), stn.array_shapes(min_dims=0, max_side=4)),
    st.integers(0, 5),
    st.booleans(),
)
def test_arrays_come_back(tmp_path, array, protocol, fortran):
    array = np.asfortranarray(array) if fortran else array
    (tmp_path / "x.pkl").write_bytes(pickle.dumps({"a": array}, protocol=protocol))
    result = plain_pickle(tmp_path / "x.pkl")["a"]
    np.testing.assert_array_equal(result, array)
    assert result.dtype == array.dtype


def test_arrays_of_objects_are_lists(tmp_path):
    for value in (["a", "bc", None], [["r"] * 2, ["s"] * 3]):
        made = np.empty(len(value), dtype=object)
        made[:] = value
        (tmp_path / "x.pkl").write_bytes(pickle.dumps(made))
        assert plain_pickle(tmp_path / "x.pkl") == value


#: What brings the interpreter down where NumPy reads it, such as bytes taken for a pointer.
_POINTERS = {
    "a number that is an object": (
        b"\x80\x02cnumpy.core.multiarray\nscalar\ncnumpy\ndtype\nX\x02\x00\x00\x00O8K\x00K\x01\x87RC\x08AAAAAAAA\x86R."
    ),
    "an array of objects from bytes": (
        b"\x80\x02cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85C\x01b\x87R"
        b"(K\x01K\x01\x85cnumpy\ndtype\nX\x02\x00\x00\x00O8K\x00K\x01\x87R\x89C\x08AAAAAAAAtb."
    ),
    "bytes of a number": b"\x80\x02c__builtin__\nbytes\n\x8a\x05\x00\x00\x00\x00\x10\x85R.",
    "a memo of a billion places": b"\x80\x02]r\xff\xff\xff\x7f.",
    "more bytes than there are": b"\x80\x04\x8e\xff\xff\xff\xff\xff\xff\xff\x7fabc.",
}


@pytest.mark.parametrize("name", _POINTERS)
def test_what_would_bring_the_interpreter_down_is_a_line(tmp_path, name):
    (tmp_path / "x.pkl").write_bytes(_POINTERS[name])
    if name == "a memo of a billion places":
        assert plain_pickle(tmp_path / "x.pkl") == []  # a place in a dictionary, not a billion of them
        return
    refuses(r"x\.pkl: not a readable pickle", plain_pickle, tmp_path / "x.pkl")


def test_a_list_that_holds_itself_or_doubles_forty_times(tmp_path):
    own = []
    own.append(own)
    (tmp_path / "x.pkl").write_bytes(pickle.dumps(own))
    refuses("nested too deeply", plain_pickle, tmp_path / "x.pkl")
    doubled = ["x"]
    for _ in range(12):
        doubled = [doubled] * 10
    (tmp_path / "x.pkl").write_bytes(pickle.dumps(doubled))
    assert len(plain_pickle(tmp_path / "x.pkl")) == 10


def test_damaged_files_are_a_line_or_data(tmp_path):
    """Cut off at every tenth byte, and many times with some bits changed: never anything else."""
    rng = np.random.default_rng(0)
    objects = np.empty(2, dtype=object)
    objects[:] = ["a", ["b"]]
    value = [np.arange(6.0).reshape(2, 3), np.float32(2), objects, ["a caption", {"x": 1.5}]]
    wholes = [pickle.dumps(value, protocol=protocol) for protocol in (0, 2, 5)]
    cut = [part for whole in wholes for part in truncations(whole)]
    bent = [flipped(wholes[i % 3], rng, bits=1 + i % 3) for i in range(300)]
    refused = 0
    for data in (*cut, *bent):
        (tmp_path / "x.pkl").write_bytes(data)
        try:
            plain_pickle(tmp_path / "x.pkl")
        except DataError:
            refused += 1
    assert refused > len(cut)


def test_a_torch_file_with_a_pointer_is_a_line(tmp_path):
    """In a process of its own: where NumPy itself is asked, it dies of signal 11."""
    torch = pytest.importorskip("torch")
    from counterfoil.models.checkpoint_files import read_tensor

    path = tmp_path / "x.pt"
    torch.save({"a": 1}, path)
    with zipfile.ZipFile(path) as archive:
        members = {info.filename: archive.read(info) for info in archive.infolist()}
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in members.items():
            pointer = _POINTERS["a number that is an object"] if name.endswith("data.pkl") else data
            archive.writestr(name, pointer)
    said = "not a readable PyTorch file|means running code"
    asked = (said, read_tensor, path)
    child = get_context("fork").Process(target=refuses, args=asked, kwargs={"error": ModelError})
    child.start()
    child.join()
    assert child.exitcode == 0
