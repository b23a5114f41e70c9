"""Tables, the teacher and the expected contrasts of a study."""

from pathlib import Path

import numpy as np
import pytest

from amlb_ext.core.errors import ConfigError
from benchmarks.studies.fidelity.draw import Draw
from benchmarks.studies.fidelity.protocol import (
    Protocol,
    Table,
    load_table,
    read_protocol,
)
from benchmarks.studies.fidelity.sample import expected_contrasts

SIZES = {
    "train": 150,
    "labelled": [40, 80],
    "unlabelled": 30,
    "pool": 120,
    "least_pool": 50,
}
PROTOCOL = Protocol.model_validate(
    {"sizes": SIZES, "share": 0.2, "baselines": [{"model": "ridge"}]}
)


@pytest.fixture(scope="module", params=["diabetes", "breast_cancer"])
def draw(request):
    task = load_table(request.param, Table(source=f"bundled/{request.param}"), Path())
    return Draw(task, request.param, 0, PROTOCOL)


def test_the_teacher_gives_a_distribution_for_every_row(draw):
    points = draw.labelled
    y, chance = draw.teacher.outcomes(points.Z, points.t)
    np.testing.assert_array_equal(chance, points.chance)
    assert y.shape == chance.shape
    assert (chance > 0).all()
    np.testing.assert_allclose(chance.sum(axis=1), 1)
    if y.shape[1] == 2:
        assert y[0].tolist() == [0, 1]
        return
    train = draw.prepared.train.y
    assert y.min() >= train.min()
    assert y.max() <= train.max()
    assert (np.diff(y, axis=1) >= 0).all()
    gap = (y * chance).sum(axis=1) - points.t
    assert abs(gap.mean()) < 0.15 * train.std()
    inside = (y[:, 0] <= draw.y) & (draw.y <= y[:, -1])
    assert inside.mean() > 0.8


@pytest.mark.parametrize("failures", [True, False])
def test_the_expected_contrast_is_the_sum_over_outcomes(draw, failures):
    points = draw.unlabelled.take_rows(np.arange(12))
    tau, beta = expected_contrasts(draw, points, failures)
    by_hand, mass = np.zeros_like(tau), np.zeros_like(beta)
    for y, chance in zip(points.outcomes.T, points.chance.T, strict=True):
        b = draw.is_bad(points, y) if failures else np.ones(len(points), dtype=bool)
        by_hand += (chance * b)[:, None] * points.delta(y)
        mass += chance * b
    np.testing.assert_allclose(tau, by_hand, atol=1e-9 * np.abs(by_hand).max())
    np.testing.assert_allclose(beta, mass)


def test_overlapping_seeds_are_refused(tmp_path):
    path = tmp_path / "p.yaml"
    path.write_text(
        "seeds: {exploratory: {first: 0, draws: 9}, confirmatory: {first: 8, draws: 2}}",
        encoding="utf-8",
    )
    with pytest.raises(ConfigError, match="seeds overlap"):
        read_protocol(path)
