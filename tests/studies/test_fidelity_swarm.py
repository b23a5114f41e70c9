"""A swarm searched for ranking fidelity: its protocol as declared, and one tiny draw."""

from pathlib import Path

import numpy as np
import pytest
from small_models import lighten

from benchmarks.studies.fidelity import proposals
from benchmarks.studies.fidelity.draw import Draw
from benchmarks.studies.fidelity.protocol import (
    Protocol,
    Table,
    load_table,
)
from benchmarks.studies.fidelity.sample import Sample

ENTRY = {
    "sizes": {
        "train": 150,
        "labelled": [60],
        "unlabelled": 10,
        "pool": 120,
        "least_pool": 50,
    },
    "share": 0.2,
    "baselines": [{"model": "ridge"}],
    "methods": ["few_bad", "swarm", "swarm_start"],
}


@pytest.fixture(scope="module")
def sample():
    """S of one draw of a bundled table, with generators that are hardly trained."""
    with pytest.MonkeyPatch.context() as patch:
        lighten(patch)
        small = {"latent": 4, "decoder": 16, "max_steps": 20}
        patch.setattr(proposals, "BASE", {**proposals.BASE, **small})
        patch.setattr(proposals, "GENERATORS", 3)
        patch.setattr(proposals, "STEPS", 3)
        patch.setattr(proposals, "ITERATIONS", 1)
        patch.setattr(proposals, "FINALISTS", 2)
        patch.setattr(proposals, "EVALUATION_ROWS", 60)
        patch.setattr(proposals, "FINAL_ROWS", 60)
        patch.setattr(proposals, "PROPOSED", 200)
        task = load_table("diabetes", Table(source="bundled/diabetes"), Path())
        draw = Draw(task, "diabetes", 5, Protocol.model_validate(ENTRY))
        yield Sample(draw, np.arange(60))


def test_the_search_stays_in_the_hull_and_repeats(sample):
    space = proposals._generators(sample)
    c = proposals.search_fidelity(sample, space)
    assert c.sum() == pytest.approx(1)
    parts = proposals._cross_fit_takers(sample)
    assert len(parts) == proposals.PARTS

    def final(*points):
        batch = np.array(points)
        return proposals._agreements(sample, space, batch, parts, 60, "final")

    # the same point again is the same number: rows are keyed, not drawn anew
    [value] = final(c)
    assert -1 <= value <= 1
    # and it does not depend on the mixtures that pass through the models beside it
    corner = np.eye(space.n_generators)[0]
    assert final(corner, c) == pytest.approx([*final(corner), value])
