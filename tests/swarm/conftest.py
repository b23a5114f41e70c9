"""One small space of generators, made once for all tests that need real ones."""

import pytest
from small_swarms import SMALL, two_groups

from amlb_ext.swarm.initial import make_generators


@pytest.fixture(scope="session")
def space():
    X, y = two_groups(400)
    return make_generators(
        X, y, cards=(3,), n_classes=2, settings=SMALL, seed=0, key=("t", 0, "swarm")
    )
