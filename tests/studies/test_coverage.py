from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from amlb_ext.core.errors import ConfigError
from amlb_ext.experiments.coverage import sampling, study
from amlb_ext.experiments.coverage.study import (
    COLUMNS,
    coverage_markdown,
    coverage_study,
)
from amlb_ext.experiments.five_gaussians import MEANS, SHARES, draw_rows


def small_study(out: Path) -> pd.DataFrame:
    return coverage_study(
        60,
        [0.9],
        [200],
        populations=["logistic"],
        pool=20_000,
        bca_draws=3,
        out=out,
        workers=1,
        quiet=True,
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("coverage")


@pytest.fixture(scope="module")
def table(folder) -> pd.DataFrame:
    return small_study(folder)


def pick(table: pd.DataFrame, **where: object) -> pd.DataFrame:
    for column, value in where.items():
        table = table[table[column] == value]
    return table.set_index("estimator")


def test_the_table_is_tidy(table):
    assert list(table.columns) == COLUMNS
    keys = ["model", "loss", "design", "n", "level", "estimator"]
    assert not table.duplicated(keys).any()
    assert set(table["design"]) == {"iid", "by_class", "drifted"}
    assert set(pick(table, loss="brier").index) == {
        *("t", "bca", "empirical_bernstein", "hall", "betting", "quoted"),
        *("stratified", "ppi", "ppi_generated"),
    }


def test_what_should_cover_covers(table):
    iid = pick(table, loss="zero_one", design="iid")["coverage"]
    # three standard errors of 60 draws: 3 sqrt(.9 * .1 / 60) = .116
    assert (
        iid[["wilson", "clopper_pearson", "t", "stratified", "ppi"]] > 0.9 - 0.117
    ).all()
    assert iid["empirical_bernstein"] == 1
    by_class = pick(table, loss="zero_one", design="by_class")
    assert by_class["coverage"]["stratified"] > 0.9 - 0.117


def test_draws_by_class_bias_the_plain_mean_but_not_the_stratified_one(table):
    for loss in ("zero_one", "brier", "log"):
        bias = pick(table, loss=loss, design="by_class")["bias"].abs()
        assert bias["stratified"] < 0.5 * bias["t"]


def test_figures_are_consistent(table):
    full = table[table["share_without"] == 0]
    c = full["coverage"]
    assert np.allclose(full["coverage_se"], np.sqrt(c * (1 - c) / full["draws"]))
    assert (table.loc[table["estimator"].isin(["bca", "betting"]), "draws"] == 3).all()
    assert np.allclose(
        table["covered"], table["coverage"] * (1 - table["share_without"])
    )


def test_a_stopped_study_computes_what_is_missing_alone(table, folder, monkeypatch):
    lost = folder / study.CELLS / "logistic_drifted_200.json"
    lost.unlink()
    computed = []

    def count_and_draw(population, cell, rng):
        computed.append(cell.design)
        return draw_rows_of_cell(population, cell, rng)

    draw_rows_of_cell = study._draw_rows
    monkeypatch.setattr(study, "_draw_rows", count_and_draw)
    # the same numbers, so the seed and the number of a draw decide them alone
    pd.testing.assert_frame_equal(table, small_study(folder))
    assert computed == ["drifted"] * 60


def test_regression_has_no_classes():
    got = coverage_study(
        2,
        [0.9],
        [50],
        populations=["boosting"],
        pool=2_000,
        bca_draws=0,
        workers=1,
        quiet=True,
    )
    assert set(got["design"]) == {"iid", "drifted"}
    assert "stratified" not in set(got["estimator"])
    assert set(got["loss"]) == {"squared", "absolute"}


def test_the_mixture_is_that_of_the_paper():
    X, y = draw_rows(200_000, np.random.default_rng(0))
    assert np.bincount(y) / len(y) == pytest.approx(SHARES, abs=0.005)
    assert X[y == 2].mean(axis=0) == pytest.approx(MEANS[2], abs=0.05)
    assert np.cov(X[y == 3].T)[0, 1] == pytest.approx(-7, abs=0.3)
    shifted, _ = draw_rows(1000, np.random.default_rng(0), -1.0)
    plain, _ = draw_rows(1000, np.random.default_rng(0))
    assert shifted - plain == pytest.approx(np.tile([-1.0, 0.0], (1000, 1)))


def test_markdown_marks_what_does_not_hold(table):
    text = coverage_markdown(table)
    assert text.count("## ") == 9  # three losses, three designs
    assert ("!" in text) == (not table["holds"].all())
    assert "| stratified | " in text


def test_wrong_settings_are_refused():
    with pytest.raises(ConfigError, match="did you mean 'logistic'"):
        coverage_study(populations=["logistics"])
    with pytest.raises(ConfigError, match="at least 1"):
        coverage_study(draws=0)


@pytest.mark.exhaustive
def test_the_study_of_samples_tells_them_apart():
    designs = ["random", "by_class", "by_class, priors", "by_score"]
    table = sampling.sampling_study(
        2, kinds=["classes"], designs=designs, workers=1, quiet=True
    )
    assert list(table.columns) == sampling.COLUMNS
    assert set(designs) < set(sampling.DESIGNS["classes"])
    rate = table[table["loss"] == "zero_one"].set_index(["design", "given"])["refused"]
    assert rate["by_class", "nothing"] == 0  # nothing can tell
    assert rate["by_class", "train"] == 1
    assert rate["by_score", "train"] == rate["by_score", "unlabelled"] == 1
    assert rate["random", "train and unlabelled"] == 0
    assert "| by_class, priors |  | " in sampling.sampling_markdown(table)
