"""The fixtures of these tests, which those of tests/unit have too."""

from benchmarks_fixtures import *  # noqa: F403
