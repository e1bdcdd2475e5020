"""Small WebDataset shards: a picture and a caption per key, in a tar file."""

import io
import tarfile

import numpy as np

from counterfoil.benchmarks.records import PixelSource


def png(seed):
    return PixelSource(np.random.default_rng(seed).integers(0, 256, (4, 5, 3), dtype=np.uint8)).read()


def write_tar(path, members):
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w") as tar:
        for name, content in members:
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return path


def pair(key, seed):
    return [(f"{key}.jpg", png(seed)), (f"{key}.txt", f"caption {seed}\n".encode())]
