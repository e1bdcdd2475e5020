"""What tests of several packages need: worlds that are drawn once, and a bucket of S3."""

import secrets
from functools import partial

import pytest

from bucket_servers import new_bucket, s3_at
from counterfoil.benchmarks import Benchmark
from counterfoil.world import benchmarks


@pytest.fixture(scope="session", autouse=True)
def drawn_once():
    """Worlds that are asked for by name are drawn once: five hundred questions take seconds."""
    drawn: dict[object, Benchmark] = {}

    def once(name, draw, n):
        key = name, n, benchmarks.SIZE, benchmarks.IMAGES
        if key not in drawn:
            drawn[key] = draw(n)
        return drawn[key]

    with pytest.MonkeyPatch.context() as patched:
        for name, draw in dict(benchmarks._DRAWN).items():
            patched.setitem(benchmarks._DRAWN, name, partial(once, name, draw))
        yield


@pytest.fixture(scope="module")
def bucket(s3):
    with s3_at(s3):
        yield new_bucket()


@pytest.fixture
def root(bucket):
    """The URL of a folder in the bucket, for one test alone."""
    return f"s3://{bucket}/{secrets.token_hex(8)}"
