"""Who is harmed, on data whose truth is planted."""

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestRegressor

from amlb_ext.core.losses import Predicted, read_loss
from amlb_ext.stats.contrasts import ComparedUnits
from amlb_ext.swap.answer import Side, SwapRows, judge_swaps
from amlb_ext.swap.contrast import AucContrast, RowContrast
from amlb_ext.swap.foresee import draw_folds, foresee
from amlb_ext.units.judged import Judged

LOSS = read_loss("squared", is_classification=False)


@pytest.fixture(scope="module")
def fitted():
    """A forest, its bootstrap re-fits, and rows that none of them has seen."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(2600, 4)), columns=list("abcd"))
    X["region"] = rng.choice(["north", "south", "sea"], len(X))
    numbers = X[list("abcd")]
    y = (X["a"] + X["b"] ** 2 + rng.normal(size=len(X))).to_numpy()
    train, test = np.arange(1200), np.arange(1200, 2600)
    forest = RandomForestRegressor(30, min_samples_leaf=3, random_state=0)
    f = forest.fit(numbers.iloc[train], y[train]).predict(numbers.iloc[test])
    refits = []
    for number in range(6):
        rows = rng.integers(0, 1200, 1200)
        again = RandomForestRegressor(30, min_samples_leaf=3, random_state=number)
        again.fit(numbers.iloc[rows], y[rows])
        refits.append(again.predict(numbers.iloc[test]))
    return X.iloc[test].reset_index(drop=True), y[test], f, refits


def side(y, f):
    predicted = Predicted(y=y, f=f)
    return Side(losses=LOSS(predicted), predicted=predicted)


def judged(f):
    return Judged(compared=ComparedUnits(loss_f=f.losses), is_bad=f.losses > 1)


def judge(fitted, g, n_refits=5):
    X, y, f, refits = fitted
    rows = SwapRows(
        judged=judged(side(y, f)),
        table=X,
        f=side(y, f),
        refits=tuple(side(y, each) for each in refits[:n_refits]),
        loss=LOSS,
    )
    return judge_swaps(rows, {"G": side(y, g)}).swaps["G"]


def test_planted_harm_is_found_and_named(fitted):
    X, _, f, _ = fitted
    at_sea = (X["region"] == "sea").to_numpy()
    g = np.where(at_sea, f + 2 * np.sign(np.sin(50 * X["c"])), f)
    swap = judge(fitted, g)
    assert swap.verdict == "harms"
    assert "region = sea" in swap.words.text
    assert swap.bound > swap.harm.judged.value
    assert swap.remedy.kind in ("keep F", "route", "two weights", "blend")
    assert swap.remedy.weight_bad <= 0.2
    assert swap.rows_needed < np.inf


def test_a_refit_is_ordinary_or_shows_nothing(fitted):
    assert judge(fitted, fitted[3][5]).verdict in ("ordinary", "not shown")


def test_a_model_that_is_better_on_every_row_harms_nobody(fitted):
    _, y, f, _ = fitted
    swap = judge(fitted, f + 0.3 * (y - f))
    assert swap.verdict == "not shown"
    assert swap.remedy.kind == "take G"


def test_the_foreseen_worst_fifth_of_noise_is_worse_in_no_more_than_its_share():
    falsely = 0
    for draw in range(40):
        rng = np.random.default_rng(draw)
        noise = rng.standard_t(4, 300)
        X = pd.DataFrame(rng.normal(size=(300, 3)), columns=list("abc"))
        f = Side(losses=np.ones(300))
        rows = SwapRows(judged=judged(f), table=X, f=f)
        swap = judge_swaps(rows, {"G": Side(losses=1 + noise)}, seed=draw).swaps["G"]
        falsely += swap.harm.p < 0.05
    assert falsely <= 8  # 2 expected; P(more than 8) < .001


def test_rows_of_a_cluster_share_their_fold_and_count_as_one():
    rng = np.random.default_rng(0)
    clusters = np.repeat(np.arange(60), 6)
    fold = draw_folds(360, 4, rng, clusters)
    assert all(len(set(fold[clusters == k])) == 1 for k in range(60))
    d = np.repeat(rng.normal(size=60), 6)
    apart = RowContrast(np.zeros(360), d)
    together = RowContrast(np.zeros(360), d, clusters)
    every = np.ones(360)
    assert together.change(every).se == pytest.approx(
        np.sqrt(6) * apart.change(every).se, rel=0.02
    )


def test_a_groups_change_of_the_auc_counts_its_pairs_with_the_whole_table():
    rng = np.random.default_rng(0)
    y = rng.random(200) < 0.4
    f, g = y + rng.normal(size=200), y + rng.normal(size=200)
    contrast = AucContrast(y, f, g)
    inside = np.arange(200) < 70

    def misranked_share(scores):
        shares = []
        for own, other in ((inside & y, ~y), (inside & ~y, y)):
            gaps = (scores[own][:, None] - scores[other]) * (1 if y[own].all() else -1)
            shares.append((gaps < 0).mean())
        return np.mean(shares)

    change = contrast.change(inside.astype(float))
    assert change.value == pytest.approx(misranked_share(g) - misranked_share(f))
    assert len(foresee(contrast, rng.normal(size=(200, 2)), seed=0)) == 3


def test_what_saves_nothing_is_no_proposal_and_changes_nothing(fitted):
    _, y, f, _ = fitted
    # worse on every row, and by noise that no mixture turns into a gain
    swap = judge(fitted, f + 5 * np.sign(f - y))
    assert swap.remedy.kind == "keep F"
    assert (swap.remedy.change.value, swap.remedy.worst.value) == (0, 0)


def test_of_pairs_of_rows_one_weight_serves_all():
    rng = np.random.default_rng(0)
    n = 600
    X = pd.DataFrame({"side": rng.integers(0, 2, n), "x": rng.normal(size=n)})
    y = (X["x"] + rng.logistic(size=n) > 0).to_numpy().astype(int)
    p = 1 / (1 + np.exp(-X["x"].to_numpy()))
    noise = rng.random(n)
    auc = read_loss("auc", labels=("a", "b"), is_classification=True)

    def scored(scores):
        f = np.column_stack([1 - scores, scores])
        said = Predicted(y=y, f=f, decided=f.argmax(axis=1), labels=("a", "b"))
        return Side(losses=auc(said), predicted=said)

    # each model knows one side alone, so by rows two weights would be best
    f = scored(np.where(X["side"] == 0, p, noise))
    g = scored(np.where(X["side"] == 1, p, noise))
    rows = SwapRows(judged=judged(f), table=X, f=f, loss=auc)
    remedy = judge_swaps(rows, {"G": g}).swaps["G"].remedy
    assert remedy.weight == remedy.weight_bad


def test_a_calm_group_counts_with_rows_of_the_whole_table():
    """A few rows that change much may be missing among those at hand."""
    rng = np.random.default_rng(0)
    n = 1000
    d = rng.normal(size=n)
    calm = np.arange(n) < 200
    d[calm] *= 0.01
    contrast = RowContrast(np.ones(n), 1 + d)
    own = d[calm].std(ddof=1) / np.sqrt(200)
    change = contrast.change(calm.astype(float))
    assert change.se == pytest.approx(
        np.sqrt((200 * own**2 + 20 * d.var(ddof=1) / 200) / 220), rel=0.01
    )
    assert change.se > 4 * own
    # a group that changes more than the table has its own error, and so has the whole table
    rest = d[~calm].std(ddof=1) / np.sqrt(800)
    assert contrast.change(1.0 - calm).se == pytest.approx(rest, rel=0.01)
    whole = contrast.change(np.ones(n))
    assert whole.se == pytest.approx(d.std(ddof=1) / np.sqrt(n), rel=1e-6)


def test_intervals_hold_where_nearly_nothing_changes():
    """One row in a hundred of the group loses 1; the rest of the table changes as usual."""
    rng = np.random.default_rng(1)
    inside = np.arange(1000) < 200
    covered = []
    for _ in range(300):
        d = rng.normal(0, 0.5, 1000)
        d[inside] = np.where(rng.random(200) < 0.01, 1.0, rng.normal(0, 0.001, 200))
        low, high = RowContrast(np.ones(1000), 1 + d).change(inside * 1.0).interval()
        covered.append(low <= 0.01 <= high)
    assert np.mean(covered) >= 0.94


def test_without_refits_there_is_no_verdict(fitted):
    X, _, f, _ = fitted
    swap = judge(fitted, f + np.where(X["region"] == "sea", 2.0, 0.0), n_refits=0)
    assert swap.verdict == "no verdict"
    assert swap.rows_needed == np.inf
    assert any("not fitted again" in each for each in swap.sentences())


def test_fewer_than_ten_changed_rows_have_no_interval():
    d = np.zeros(500)
    d[:9] = 0.5
    contrast = RowContrast(np.ones(500), 1 + d)
    assert contrast.change(np.ones(500)).se == np.inf
    d[9] = 0.5
    contrast = RowContrast(np.ones(500), 1 + d)
    change = contrast.change(np.ones(500))
    assert np.isfinite(change.se)
    assert change.df == 9
