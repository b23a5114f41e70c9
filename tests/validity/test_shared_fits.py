"""F is fitted once per fold and part; certificate and null use these fits, not others."""

import numpy as np
import pytest
from planted_suites import certify_rows, make_suite, region_table, tampered

from amlb_ext.core import row_losses
from amlb_ext.core.config import build_config
from amlb_ext.core.tables import make_task
from amlb_ext.hardening.baseline.estimator import EstimatorBaseline
from amlb_ext.hardening.prepare import cross_fit
from amlb_ext.hardening.split import PARTS, split_task
from amlb_ext.suite import SuiteFiles
from amlb_ext.validity import read_task

SETTINGS = {
    "baseline": {"model": "random_forest", "params": {"n_estimators": 10}},
    "hardness": {"rule": "wrong"},
    "search": {"kappa": 0.02},
}


@pytest.fixture(scope="module")
def suite(tmp_path_factory):
    return make_suite(tmp_path_factory.mktemp("shared"), region_table(600), **SETTINGS)


@pytest.fixture(scope="module")
def rows(suite):
    return read_task(SuiteFiles.load(suite), "planted")


@pytest.fixture
def fits(monkeypatch):
    """The fits of F, by its settings, of the test."""
    made = []
    plain = EstimatorBaseline.fit

    def counted(self, *args):
        if self.spec.params == {"n_estimators": 10}:
            made.append(self)
        return plain(self, *args)

    monkeypatch.setattr(EstimatorBaseline, "fit", counted)
    return made


def test_stored_losses_are_those_of_the_fits_on_the_rows_of_the_file(rows):
    config = build_config({"split": {"folds": 2}, "train_hard": False}, SETTINGS)
    table = region_table(600)
    task = make_task(table, "y", name="planted")
    task = split_task(task, config.split, config.seed)
    for fold, (_, parts) in rows.folds.items():
        cross = cross_fit([task], fold, config)
        for name in ("full", "bad", "ga", "synthetic"):
            part = parts[name]
            Z, y = (
                cross.encoder.transform(part.features),
                cross.targets[0].scale.transform(part.target),
            )
            for k, fit in enumerate(cross.targets[0].cross_fits):
                loss = row_losses.row_loss(y, fit.predict(Z))
                np.testing.assert_allclose(
                    part.provenance[f"null_{k}"], loss, atol=1e-12
                )
            # another forest on other rows: another loss, of the same size
            twins = part.provenance[[f"null_{k}" for k in range(PARTS)]].to_numpy()
            assert len(np.unique(twins.mean(axis=0))) == PARTS


def test_a_certificate_fits_f_only_where_the_files_do_not_say(rows, fits):
    stored = certify_rows(rows, candidates=("ridge",))
    assert not fits
    assert len(stored.null["full"]["twins"]) == PARTS
    full = np.concatenate(
        [p["full"].provenance["null_0"] for _, p in rows.folds.values()]
    )
    assert stored.null["full"]["twins"][0] == pytest.approx(full.mean(), abs=1e-4)

    # rows that were changed are judged anew
    again = certify_rows(
        tampered(rows, "full", lambda part: part), candidates=("ridge",)
    )
    assert len(fits) == 2 * (1 + PARTS)
    # F's stored loss is what F, fitted on the training file, loses on the test file
    for part in ("full", "bad", "ga", "synthetic", "region"):
        assert again.null[part]["F"] == pytest.approx(stored.null[part]["F"], abs=1e-9)
        # other draws of 80 % of the rows: the same size of loss
        twins = [np.mean(c.null[part]["twins"]) for c in (stored, again)]
        assert twins[0] == pytest.approx(twins[1], rel=0.25)


def test_more_refits_than_are_stored_are_fitted(rows, fits):
    assert rows.holds_refits(PARTS)
    assert not rows.holds_refits(PARTS + 1)
    found = certify_rows(rows, refits=PARTS + 1, candidates=("ridge",))
    assert len(found.null["full"]["twins"]) == PARTS + 1
    assert len(fits) == 2 * (1 + PARTS + 1)
