"""The fixtures of these tests, which those of tests/unit have too."""

from train_fixtures import *  # noqa: F403
