"""What the tests of training share."""

import pytest

from counterfoil.models import checkpoint


@pytest.fixture
def thumbs(monkeypatch):
    """Checkpoints of `thumbnails.thumb` can be read back."""
    monkeypatch.setitem(checkpoint._BUILDERS, "thumb", "thumbnails:from_card")
