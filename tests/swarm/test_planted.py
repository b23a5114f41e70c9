"""A table of known truth, and takers that lack its one interaction: does a search find it?"""

from dataclasses import replace

import numpy as np
import pytest
from small_swarms import SMALL

from amlb_ext.core.config import SplitConfig
from amlb_ext.hardening.split import split_task
from amlb_ext.swarm.baselines import draw_by_regret
from amlb_ext.swarm.prepare import SwarmRequest, prepare_swarm
from amlb_ext.swarm.search import make_plan, search_generators
from benchmarks.studies.swarms.populations import draw_task, is_interaction

# generators and teacher must be good here, so they take some seconds to fit
pytestmark = pytest.mark.exhaustive


@pytest.fixture(scope="module")
def prepared():
    """A fold of the table of which a product decides in a third of the rows."""
    task = split_task(draw_task("interaction", seed=1, n=2400), SplitConfig(folds=1), 1)
    request = SwarmRequest(
        plan=make_plan("honest", iterations=15),
        # smaller generators do not learn which rows belong to the group
        initial=replace(
            SMALL, n_generators=6, latent=8, width=48, base_steps=1000, steps=250
        ),
        # neither of them knows a product
        takers=("linear", "naive_bayes"),
    )
    return request, prepare_swarm(task, 0, request)


def test_before_a_search_something_is_there(prepared):
    _, fold = prepared
    assert fold.proof["gain"] > 2 * fold.proof["se"]


def test_honest_difficulty_finds_the_rows_of_the_interaction(prepared):
    request, fold = prepared
    arena = fold.arena
    chosen = search_generators(arena, request.plan).chosen
    rng = np.random.default_rng(0)
    made = arena.make_rows(chosen @ arena.space.initial, 1000, rng)
    supported, _ = arena.guard.nearest(made.Z)
    assert is_interaction(made.features[supported]).mean() >= 2 / 3


def test_redrawing_rows_by_regret_finds_them_without_a_search(prepared):
    _, fold = prepared
    made, _ = draw_by_regret(fold.arena)
    assert is_interaction(made.features).mean() >= 2 / 3
