"""The fixtures of these tests, which those of tests/integration have too."""

from build_fixtures import *  # noqa: F403
