"""Tasks of TabArena by name."""

import pytest

from amlb_ext.core.config import SourceConfig
from amlb_ext.core.errors import SourceError
from amlb_ext.sources import open_specs


def test_all_51_tasks_have_a_name_and_an_id_of_their_own():
    refs = list(open_specs(["tabarena"]))
    assert len({ref.spec for ref in refs}) == 51
    assert len({ref.load.args[0] for ref in refs}) == 51


def test_a_mistyped_task_gets_the_nearest_name():
    with pytest.raises(SourceError) as caught:
        list(open_specs(["tabarena/annael"], SourceConfig()))
    assert "anneal" in caught.value.remedy
