"""The studies of intervals: what should cover covers, and what should not does not."""

import numpy as np
import pandas as pd
import pytest

from benchmarks.studies.__main__ import main
from benchmarks.studies.five_gaussians import MEANS, SHARES, draw_rows


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    out = tmp_path_factory.mktemp("coverage")
    settings = "levels=[.9] n=[200] populations=[logistic] pool=5000 bca_draws=3"
    words = [word for setting in settings.split() for word in ("--set", setting)]
    assert (
        main(["coverage", "--draws", "40", "-o", str(out), "-q", "-j", "1", *words])
        == 0
    )
    return pd.read_csv(out / "coverage" / "coverage.csv")


def pick(table: pd.DataFrame, **where: object) -> pd.DataFrame:
    for column, value in where.items():
        table = table[table[column] == value]
    return table.set_index("estimator")


def test_what_should_cover_covers(table):
    iid = pick(table, loss="zero_one", design="iid")["coverage"]
    # three standard errors of 40 draws: 3 sqrt(.9 * .1 / 40) = .142
    assert (
        iid[["wilson", "clopper_pearson", "t", "stratified", "ppi"]] > 0.9 - 0.143
    ).all()
    assert iid["empirical_bernstein"] == 1
    by_class = pick(table, loss="zero_one", design="by_class")
    assert by_class["coverage"]["stratified"] > 0.9 - 0.143


def test_draws_by_class_bias_the_plain_mean_but_not_the_stratified_one(table):
    for loss in ("zero_one", "brier", "log_loss"):
        bias = pick(table, loss=loss, design="by_class")["bias"].abs()
        assert bias["stratified"] < 0.5 * bias["t"]


def test_the_mixture_is_that_of_the_paper():
    X, y = draw_rows(200_000, np.random.default_rng(0))
    assert np.bincount(y) / len(y) == pytest.approx(SHARES, abs=0.005)
    assert X[y == 2].mean(axis=0) == pytest.approx(MEANS[2], abs=0.05)
    assert np.cov(X[y == 3].T)[0, 1] == pytest.approx(-7, abs=0.3)
    shifted, _ = draw_rows(1000, np.random.default_rng(0), -1.0)
    plain, _ = draw_rows(1000, np.random.default_rng(0))
    assert shifted - plain == pytest.approx(np.tile([-1.0, 0.0], (1000, 1)))


@pytest.mark.exhaustive
def test_the_study_of_samples_tells_them_apart(tmp_path):
    designs = "[random, by_class, 'by_class, priors', by_score]"
    words = ["--draws", "2", "--set", "kinds=[classes]", "--set", f"designs={designs}"]
    assert main(["sampling", *words, "-o", str(tmp_path), "-q", "-j", "1"]) == 0
    table = pd.read_csv(tmp_path / "sampling" / "sampling.csv")
    rate = table[table["loss"] == "zero_one"].set_index(["design", "given"])["refused"]
    assert rate["by_class", "nothing"] == 0  # nothing can tell
    assert rate["by_class", "train"] == 1
    assert rate["by_score", "train"] == rate["by_score", "unlabelled"] == 1
    assert rate["random", "train and unlabelled"] == 0
