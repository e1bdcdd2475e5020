"""`counterfoil cache`: what is kept of whom, what goes first, and that nothing else is ever removed."""

import json
import os

import numpy as np
import pytest

from counterfoil.engine.cache import Cache
from counterfoil.inputs.files import digest
from counterfoil.models.base import Identity
from unchanged import unchanged

CLIP, VIT = Identity("open-clip:clip", weights="1"), Identity("open-clip:vit", weights="2")


def _key(text):
    return digest(text.encode())


@pytest.fixture
def folder(tmp_path):
    """Three shards of two models, an hour apart from each other, and files of others among them."""
    place = tmp_path / "cache"
    for identity, kind, text in ((CLIP, "images", "a"), (CLIP, "captions", "b"), (VIT, "captions", "c")):
        Cache(place, identity).write(kind, [_key(text)], np.ones((1, 500), dtype=np.float32))
    for hours, (identity, kind) in enumerate(((CLIP, "images"), (CLIP, "captions"), (VIT, "captions"))):
        (shard,) = (place / "v1" / identity.key / kind).iterdir()
        os.utime(shard, (1e9 + 3600 * hours,) * 2)
    root = place / "v1" / CLIP.key
    for name in ("thesis.tex", "v1/notes.npz", f"v1/{CLIP.key}/images/mine.npz", "identities/mine.json"):
        (place / name).parent.mkdir(exist_ok=True)
        (place / name).write_text("mine")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / f"{'0' * 32}.npz").write_text("mine")
    (root / "pairs").symlink_to(tmp_path / "elsewhere")
    return place


def _others(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


MINE = sorted(["identities/mine.json", "thesis.tex", f"v1/{CLIP.key}/images/mine.npz", "v1/notes.npz"])


def test_what_is_kept_is_listed(counterfoil, folder):
    with unchanged(folder.parent, new=False):
        said = counterfoil("cache", "list", "--cache", folder, "--json", "-")
    result = json.loads(said.out)
    rows = [(row["model"], row["kind"], row["files"]) for row in result["shelves"]]
    # The last one needed first.
    assert rows == [(VIT.name, "captions", 1), (CLIP.name, "captions", 1), (CLIP.name, "images", 1)]
    sizes = [path.stat().st_size for path in folder.rglob("*.npz") if len(path.stem) == 32]
    assert result["bytes"] == sum(sizes) + sum(path.stat().st_size for path in folder.rglob("identity.json"))
    assert [row["bytes"] for row in result["shelves"]] == [sizes[0]] * 3
    said = counterfoil("cache", "list", "--cache", folder)
    assert said.out.count("open-clip:clip") == 2
    assert "beside them, never touched: 4 other files" in said.err
    assert f"{result['bytes'] / 1000:.1f} kB in " in said.out


def test_an_empty_cache_is_no_error(counterfoil, tmp_path):
    for command in (("list",), ("limit", "1GB"), ("clear", "--yes")):
        said = counterfoil.succeeds("cache", *command, "--cache", tmp_path / "none")
        assert said.out.startswith("0 bytes in ")
    assert not (tmp_path / "none").exists()


def test_what_was_longest_not_needed_goes_first(counterfoil, folder):
    whole = json.loads(counterfoil("cache", "list", "--cache", folder, "--json", "-").out)["bytes"]
    # Needed now: the oldest becomes the newest.
    assert len(Cache(folder, CLIP).read("images", [_key("a")]).rows) == 1
    assert "removed: 1 file, " in counterfoil.succeeds("cache", "limit", whole - 1, "--cache", folder).err
    assert len(Cache(folder, CLIP).read("captions", [_key("b")]).rows) == 0
    assert len(Cache(folder, CLIP).read("images", [_key("a")]).rows) == 1
    assert len(Cache(folder, VIT).read("captions", [_key("c")]).rows) == 1
    counterfoil("cache", "limit", "0MB", "--cache", folder)
    assert _others(folder) == MINE
    assert (folder.parent / "elsewhere" / f"{'0' * 32}.npz").read_text() == "mine"


def test_one_models_work_is_removed(counterfoil, folder):
    for model in (CLIP.name, VIT.key[:8]):
        with unchanged(folder, new=False):
            words = "nothing was removed: no terminal to confirm in; given:"
            counterfoil.refused(f"cache clear --model {model} --cache {folder}", says=words)
    counterfoil.succeeds("cache", "clear", "--model", CLIP.name, "--yes", "--cache", folder)
    assert len(Cache(folder, VIT).read("captions", [_key("c")]).rows) == 1
    assert not list((folder / "v1" / CLIP.key).rglob("identity.json"))
    clear = f"cache clear --model open-clip:vti --yes --cache {folder}"
    counterfoil.fails(clear, says="did you mean 'open-clip:vit'?")


def test_all_work_is_removed_and_nothing_else(counterfoil, folder):
    (folder / "files-v1.parquet").write_bytes(b"digests")
    (folder / "identities" / f"{'1' * 32}.json").write_text("{}")
    said = counterfoil("cache", "clear", "--yes", "--cache", folder)
    assert (said.code, said.out.split()[0]) == (0, "0")
    assert _others(folder) == MINE
    assert (folder / "v1" / CLIP.key / "pairs").is_symlink()


def test_a_model_whose_note_is_gone_is_still_listed(counterfoil, folder):
    (folder / "v1" / VIT.key / "identity.json").write_text("[")
    said = counterfoil("cache", "list", "--cache", folder)
    assert "(unknown)" in said.out
    assert VIT.key[:8] in said.out
