"""The fixtures of these tests, which those of tests/integration have too."""

from annotate_fixtures import *  # noqa: F403
