"""Certificates by the models as they are, with as many rounds as F."""

import pytest
from planted_suites import make_suite, region_table
from small_models import lighten

from amlb_ext.validity import certify_suite


@pytest.mark.exhaustive
def test_the_model_that_f_is_stands_among_the_candidates(tmp_path, monkeypatch):
    """On as many rows and rounds as F; on 2,000 rows and 40 rounds it lost to F by a fifth."""
    lighten(monkeypatch, boosting=False)
    out = make_suite(
        tmp_path,
        region_table(3000),
        baseline={"model": "hist_gradient_boosting"},
        search={"kappa": 0.0},
        split={"folds": 1},
    )
    (found,) = certify_suite(out, 1)
    for where in ("full", "region"):
        boosting, F = found.candidates["boosting"][where], found.null[where]["F"]
        assert boosting == pytest.approx(F, rel=1e-6)
    assert found["solvability"].high >= 0
    (note,) = [note for note in found.notes if "training rows" in note]
    assert note.startswith("neighbours_5, neighbours_25, forest")
    assert "saw at most 2000 training rows, the other candidates as many as F" in note
