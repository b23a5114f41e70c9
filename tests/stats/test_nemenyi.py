"""Nemenyi's p-values, against scikit-posthocs."""

import numpy as np
import pytest

from amlb_ext.stats.pairwise import nemenyi_p_values


@pytest.mark.parametrize(("n_blocks", "n_entrants"), [(4, 3), (14, 4), (30, 7)])
def test_p_values_are_those_of_scikit_posthocs(n_blocks, n_entrants):
    scikit_posthocs = pytest.importorskip(
        "scikit_posthocs", reason="scikit-posthocs is not installed: pip install it"
    )
    losses = np.random.default_rng(0).random((n_blocks, n_entrants)).round(1)  # ties
    expected = scikit_posthocs.posthoc_nemenyi_friedman(losses).to_numpy()
    found = nemenyi_p_values(losses)
    # its older versions interpolate a table, which ends at .9
    is_exact = ((expected > 0.9) & (expected < 1)).any()
    is_known = (expected < 0.9) | is_exact
    tolerance = 1e-9 if is_exact else 0.03
    assert found[is_known] == pytest.approx(expected[is_known], abs=tolerance)


def test_the_critical_difference_that_demsar_prints():
    """Four entrants on 14 data sets: 1.25 at .05 (section 3.2.4)."""
    ranks = np.tile([1.0, 2.0, 3.0, 4.0], (14, 1))
    p_values = nemenyi_p_values(ranks)
    # mean ranks 1 and 2 are 1.00 apart, 1 and 3 are 2.00 apart
    assert p_values[0, 1] > 0.05 > p_values[0, 2]
