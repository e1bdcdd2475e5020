"""`counterfoil train` on shards in a bucket: the weights of a training on a disk."""

import pytest

from bucket_servers import new_bucket, s3_at, s3_server
from counterfoil.storage import open_place
from tar_shards import pair, write_tar

pytest.importorskip("torch")


@pytest.fixture
def shards(tmp_path):
    """Three shards of eight rows."""
    for shard in range(3):
        members = [member for row in range(8) for member in pair(f"k{row}", 8 * shard + row)]
        write_tar(tmp_path / "shards" / f"{shard:05d}.tar", members)
    return tmp_path / "shards"


@pytest.fixture
def bucket(shards):
    with s3_server() as server, s3_at(server):
        url = f"s3://{new_bucket()}/shards"
        for file in shards.iterdir():
            open_place(url).write(file.name, file.read_bytes())
        yield url


def _weights(folder):
    """Every array of a checkpoint, to the last bit; the file's header also names the data."""
    from safetensors.numpy import load_file

    return {name: values.tobytes() for name, values in load_file(folder / "model.safetensors").items()}


def _asked(data, out, *more):
    common = ("--model", "small", "--data", data, "--out", out, "--batch-size", 4, "--device", "cpu")
    return list(map(str, ("train", "coco", *common, *more)))


def test_weights_are_those_of_a_disk(counterfoil, shards, bucket, tmp_path):
    asked = ("--steps", 4, "--workers", 0, "--quiet")
    assert counterfoil(*_asked(shards / "{00000..00002}.tar", tmp_path / "near", *asked)).code == 0
    said = counterfoil(*_asked(f"{bucket}/{{00000..00002}}.tar", tmp_path / "far", *asked))
    assert (said.code, said.err) == (0, "")
    assert _weights(tmp_path / "far") == _weights(tmp_path / "near")
    # Rows to validate on from one shard, and to train on from the others.
    held = f"{bucket}/00002.tar"
    said = counterfoil.succeeds(
        *_asked(f"{bucket}/{{00000..00001}}.tar", tmp_path / "held", *asked, "--validation", held)
    )
    assert "s3:/tests" not in said.out
    dry = counterfoil(*_asked(bucket, tmp_path / "dry", "--dry-run", "--validation", held))
    assert (dry.code, held in dry.err) == (0, True), dry.err
