"""The fixtures of these tests, which those of tests/unit have too."""

from report_fixtures import *  # noqa: F403
