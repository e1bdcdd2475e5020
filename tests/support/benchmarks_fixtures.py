"""Small real files in the layouts that benchmarks are released in."""

import io

import numpy as np
import PIL.Image
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

_CELL = pa.struct({"bytes": pa.binary(), "path": pa.string()})


@pytest.fixture(scope="session")
def jpeg():
    """jpeg(seed): a real JPEG of noise; equal seeds give equal bytes."""

    def make(seed, size=(24, 16), form="JPEG"):
        pixels = np.random.default_rng(seed).integers(0, 256, (size[1], size[0], 3), dtype=np.uint8)
        buffer = io.BytesIO()
        PIL.Image.fromarray(pixels).save(buffer, form)
        return buffer.getvalue()

    return make


@pytest.fixture(scope="session")
def hub_parquet():
    """hub_parquet(path, columns): Parquet as the hub keeps it, image bytes in cells of {bytes, path}."""

    def write(path, columns, rows_per_group=2):
        arrays = {
            name: pa.array([{"bytes": cell, "path": None} for cell in cells], _CELL)
            if isinstance(cells[0], bytes)
            else pa.array(cells)
            for name, cells in columns.items()
        }
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table(arrays), path, row_group_size=rows_per_group)
        return path

    return write


@pytest.fixture(scope="session")
def bivlc_columns(jpeg):
    """Five rows of BiVLC's columns: two add_obj, one replace_rel, two swap_att."""
    kinds = [("add", "obj"), ("add", "obj"), ("replace", "rel"), ("swap", "att"), ("swap", "att")]
    return {
        "image": [jpeg(10 + row) for row in range(5)],
        "caption": [f"a cat sits on mat {row}." for row in range(5)],
        "negative_caption": [f"a dog sits on mat {row}." for row in range(5)],
        "negative_image": [jpeg(20 + row) for row in range(5)],
        "type": [a for a, _ in kinds],
        "subtype": [b for _, b in kinds],
    }
