"""A bucket of S3, for what is read and written at a distance."""

import secrets

import pytest

from bucket_servers import new_bucket, s3_at


@pytest.fixture(scope="module")
def bucket(s3):
    with s3_at(s3):
        yield new_bucket()


@pytest.fixture
def root(bucket):
    """The URL of a folder in the bucket, for one test alone."""
    return f"s3://{bucket}/{secrets.token_hex(8)}"
