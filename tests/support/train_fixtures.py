"""What the tests of training share."""

import pytest


@pytest.fixture
def thumbs(monkeypatch):
    """Checkpoints of `thumbnails.thumb` can be read back."""
    trained = pytest.importorskip("counterfoil.models.checkpoint")
    monkeypatch.setitem(trained._BUILDERS, "thumb", "thumbnails:from_card")
