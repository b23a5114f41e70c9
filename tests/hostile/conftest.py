"""What files of others try to leave."""

import pytest


@pytest.fixture
def mark(tmp_path):
    """Where a file of somebody else would leave something; it must not."""
    place = tmp_path / "ran"
    yield place
    assert not place.exists()
