"""The doors of the safe swap: any loss, segments, cross-validation, losses alone, a remedy."""

import json

import joblib
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import (
    FixedThresholdClassifier,
    GroupKFold,
    KFold,
    PredefinedSplit,
    ShuffleSplit,
    TimeSeriesSplit,
    cross_val_predict,
)
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import amlb_ext as hs
from amlb_ext.comparison.files import read_costs
from amlb_ext.core.errors import HardsynthError


@pytest.fixture(scope="module")
def loans():
    """F and a boosting model, each with an older table and rows that neither has seen."""
    rng = np.random.default_rng(0)
    n = 1600
    X = pd.DataFrame(rng.normal(size=(n, 3)), columns=["income", "debt", "age"])
    X["region"] = rng.choice(["north", "south", "sea"], n)
    signal = X["income"] - X["debt"] ** 2 + (X["region"] == "sea") * X["age"]
    y = np.where(signal + rng.logistic(size=n) > 0, "paid", "lost")
    numbers = ["income", "debt", "age"]
    old, new = slice(0, 900), slice(900, n)
    X = X.assign(sea=(X["region"] == "sea").astype(int))
    columns = [*numbers, "sea"]
    F = LogisticRegression().fit(X.loc[:899, columns], y[old])
    G = HistGradientBoostingClassifier(max_iter=30).fit(X.loc[:899, columns], y[old])
    return F, G, X[columns], y, old, new


@pytest.fixture(scope="module")
def swapped(loans):
    F, G, X, y, old, new = loans
    return hs.compare(
        F,
        {"G": G},
        X[new],
        y[new],
        train=(X[old], y[old]),
        loss="log_loss",
        segments=["sea", "age < -1"],
        refits=3,
    )


def test_segments_flips_and_harm_are_told_everywhere(swapped):
    assert swapped.segments["segment"].tolist() == ["sea = 0", "sea = 1", "age < -1"]
    assert set(swapped.flips["segment"]) == {
        "all rows",
        "sea = 0",
        "sea = 1",
        "age < -1",
    }
    assert swapped.flips["refits"].notna().all()
    assert swapped.harm["G"].verdict in ("harms", "ordinary", "not shown")
    for shown in (swapped.text(), swapped.to_html()):
        assert "age &lt; -1" in shown or "age < -1" in shown
        assert "in the fifth of rows where G is foreseen to lose" in shown
    assert len(swapped.rows_of("sea = 1")) == (swapped.rows.index >= 0).sum() - len(
        swapped.rows_of("sea = 0")
    )
    json.dumps(swapped.to_dict())
    assert swapped.to_frame().loc["G", "harm"] == swapped.harm["G"].verdict
    assert swapped.to_latex().count(r"\\") >= 2


def test_the_pictures_are_drawn(swapped):
    for ax in (
        swapped.plot_segments(),
        swapped.plot_curve("G"),
        swapped.plot_ranks("G"),
    ):
        ax.figure.canvas.draw()
        assert ax.get_xlabel()


def test_the_remedy_is_a_model_that_can_be_kept_and_compared_again(
    loans, swapped, tmp_path
):
    F, G, X, y, _, new = loans
    remedy = swapped.remedy["G"]
    joblib.dump(remedy.model, tmp_path / "mixed.joblib")
    mixed = joblib.load(tmp_path / "mixed.joblib")
    p = mixed.predict_proba(X[new])
    weight = np.array([remedy.weight_bad, remedy.weight])[:, None, None]
    both = weight * G.predict_proba(X[new]) + (1 - weight) * F.predict_proba(X[new])
    assert np.abs(p - both).min(axis=0).max() < 1e-12
    assert set(mixed.predict(X[new])) <= {"paid", "lost"}
    again = hs.compare(F, {"mixed": mixed}, X[new], y[new], refits=0)
    assert again.table.loc["mixed", "overall"] in ("better", "undecided")


def test_by_cross_validation_each_row_is_judged_by_models_that_have_not_seen_it():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(300, 3)), columns=list("abc"))
    y = X["a"] + rng.normal(size=300)
    folds = KFold(5, shuffle=True, random_state=0)
    # a tree without limits has no error on rows that it has seen
    tree = DecisionTreeRegressor(random_state=0)
    result = hs.compare(Ridge(), {"tree": tree}, X, y, cv=folds, refits=2)
    assert result.table.loc["tree", "overall"] == "worse"
    own = cross_val_predict(Ridge(), X, y, cv=folds)
    other = cross_val_predict(tree, X, y, cv=folds)
    number = np.empty(300, dtype=int)
    for k, (_, test) in enumerate(folds.split(X)):
        number[test] = k
    given = hs.compare(own, {"tree": other}, X, y, cv=number)
    for question in ("loss", "loss_f", "low", "high"):
        assert given.row("tree", "overall")[question] == pytest.approx(
            result.row("tree", "overall")[question]
        )
    # a column of the table names the folds, and is no feature
    named = hs.compare(own, {"tree": other}, X.assign(fold=number), y, cv="fold")
    assert named.contrasts.equals(given.contrasts)
    lettered = X.set_axis([f"row {k}" for k in range(300)])
    labelled = pd.Series(number, index=lettered.index)
    masks = [(number != k, number == k) for k in range(5)]
    named = np.array(["ABCDE"[k] for k in number], dtype=object)
    shuffled = labelled.sample(frac=1, random_state=0)
    of_rows = (masks, named, pa.chunked_array([number]), number.tolist())
    for rows, cv in (*((X, cv) for cv in of_rows), (lettered, shuffled)):
        again = hs.compare(own, {"tree": other}, rows, y.to_numpy(), cv=cv)
        assert again.contrasts.equals(given.contrasts)
    with pytest.raises(HardsynthError, match="F is given as predictions, and cv=5"):
        hs.compare(own, {"tree": other}, X, y, cv=5)
    with pytest.raises(HardsynthError, match="cv names no fold in 60 rows"):
        hs.compare(own, {"tree": other}, X, y, cv=np.where(number, number, np.nan))
    with pytest.raises(HardsynthError, match="cv cannot split the rows: ValueError"):
        hs.compare(own, {"tree": other}, X, y, cv=GroupKFold(5))
    # -1 is never tested, as for scikit-learn's PredefinedSplit
    partly = hs.compare(own, {"tree": other}, X, y, cv=np.where(number, number, -1))
    assert len(partly.rows) == 240
    held_out = hs.compare(own, {"tree": other}, X, y)
    by_rows = held_out.row("tree", "overall")
    by_folds = given.row("tree", "overall")
    width = (by_folds["high"] - by_folds["low"]) / (by_rows["high"] - by_rows["low"])
    assert width == pytest.approx(1.5)  # the root of 1 + 5 * 1/4


def test_folds_are_those_of_the_table_where_targets_are_missing():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=300)})
    y = X["a"] + rng.normal(size=300)
    y[rng.choice(300, 40, replace=False)] = np.nan
    known = y.notna().to_numpy()
    positions = list(KFold(5).split(X))
    own, number = np.empty(300), np.empty(300, dtype=int)
    for k, (train, test) in enumerate(positions):
        learnt = train[known[train]]
        own[test] = Ridge().fit(X.iloc[learnt], y.iloc[learnt]).predict(X.iloc[test])
        number[test] = k
    by_hand = np.mean((own - y)[known] ** 2)
    masks = [(number != k, number == k) for k in range(5)]
    for cv in (positions, masks, number, PredefinedSplit(number)):
        result = hs.compare(Ridge(), {"G": Ridge(alpha=9)}, X, y, cv=cv)
        assert result.row("G", "overall")["rmse_f"] == pytest.approx(by_hand**0.5)

    among_the_known = list(KFold(5).split(X[known]))
    with pytest.raises(HardsynthError, match="rows 0 to 259, as many as have a target"):
        hs.compare(Ridge(), {"G": Ridge(alpha=9)}, X, y, cv=among_the_known)


def test_predictions_may_lack_what_is_never_tested():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=300)})
    y = X["a"] + rng.normal(size=300)
    own = pd.Series(np.where(np.arange(300) < 60, np.nan, 0.9 * X["a"]))
    fold = np.where(np.arange(300) < 60, -1, np.arange(300) % 4)
    for F in (own, own.tolist(), own.to_frame("prediction")):
        row = hs.compare(F, {"G": own.mul(0.5)}, X, y, cv=fold).row("G", "overall")
        by_hand = np.mean((own - y)[60:] ** 2) ** 0.5
        assert row["rmse_f"] == pytest.approx(by_hand)
    with pytest.raises(HardsynthError, match="no finite number for 60 of 300 rows"):
        hs.compare(own, {"G": own}, X, y)


def test_folds_that_look_ahead_say_so():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=300), "day": np.arange(300)[::-1]})
    y = X["a"] + rng.normal(size=300)
    for cv, ahead in ((4, 0), (TimeSeriesSplit(4), 4), (KFold(4), 3)):
        notes = hs.compare(
            Ridge(), {"G": Ridge(alpha=9)}, X, y, cv=cv, time="day", refits=0
        ).notes
        found = [note for note in notes if "folds models are fitted on rows la" in note]
        assert len(found) == (ahead > 0)
        assert all(note.startswith(f"in {ahead} of 4") for note in found)


def test_groups_stay_on_one_side_of_every_fold():
    rng = np.random.default_rng(0)
    shop = np.repeat(np.arange(60), 6)
    X = pd.DataFrame({"a": rng.normal(size=360), "shop": shop})
    y = X["a"] + np.repeat(rng.normal(size=60), 6)
    for cv in (5, GroupKFold(5)):
        result = hs.compare(
            Ridge(), {"G": Ridge(alpha=100)}, X, y, cv=cv, groups="shop", refits=2
        )
        assert any("clustered by the 60 groups" in note for note in result.notes)
    with pytest.raises(HardsynthError, match="on both sides"):
        hs.compare(
            Ridge(), {"G": Ridge()}, X, y, cv=KFold(3, shuffle=True), groups="shop"
        )


@pytest.mark.parametrize(
    ("more", "culprit"),
    [
        ({"cv": 1}, "cv"),
        ({"cv": "five"}, "five"),
        ({"cv": [([0, 1], [1, 2])]}, "row 1"),
        ({"cv": [([0, 1], [900])]}, "900"),
        ({"cv": [([0, 1], [])]}, "fold 1"),
        ({"cv": [([True, False], [2])]}, "(2,)"),
        ({"cv": np.arange(50) % 5}, "50 rows"),
        ({"cv": []}, "cv"),
        ({"cv": ShuffleSplit(3, random_state=0)}, "times and others 1"),
        ({"cv": 5, "train": (np.ones((9, 1)), np.ones(9))}, "train"),
        ({"loss": lambda y, f: f[:3]}, "(3,)"),
        ({"loss": "log_loss"}, "log_loss"),
        ({"segments": "z"}, "z"),
        ({"segments": "a > 99"}, "a > 99"),
    ],
)
def test_bad_input_is_one_line_with_its_culprit(more, culprit):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=100)})
    F = Ridge().fit(X, X["a"])
    with pytest.raises(HardsynthError) as caught:
        hs.compare(F, {"G": F}, X, X["a"] + rng.normal(size=100), **more)
    assert culprit in caught.value.message
    assert "\n" not in str(caught.value)


def test_losses_alone_are_judged_as_models_are():
    rng = np.random.default_rng(0)
    n = 600
    X = pd.DataFrame(
        {"topic": rng.choice(["law", "code", "math"], n), "words": rng.random(n)}
    )
    right_f = rng.random(n) < 0.7
    right_g = np.where(X["topic"] == "law", rng.random(n) < 0.2, rng.random(n) < 0.95)
    result = hs.compare_losses(
        1.0 - right_f,
        pd.DataFrame({"new prompt": 1.0 - right_g}),
        X,
        segments="topic",
        refits=1.0 - (rng.random((n, 3)) < 0.7),
    )
    segments = result.segments.set_index("segment")["verdict"]
    assert segments["topic = law"] == "worse"
    assert segments["topic = math"] == "better"
    assert result.harm["new prompt"].verdict == "harms"
    assert "law" in result.harm["new prompt"].words.text
    assert result.remedy == {}
    assert "losses given" in result.text()
    bare = hs.compare_losses(1.0 - right_f, {"new": 1.0 - right_g})
    assert bare.harm == {}
    lists = hs.compare_losses(list(1.0 - right_f), {"new": list(1.0 - right_g)})
    assert lists.table.equals(bare.table)


@pytest.mark.parametrize(
    ("arguments", "culprit"),
    [
        ((np.ones(10), {"G": np.ones(10)}), "10 rows"),
        ((np.ones(60), {"G": np.ones(59)}), "G"),
        ((np.ones(60), {"G": np.full(60, np.nan)}), "G"),
        ((np.ones(60), {"G": ["x"] * 60}), "G"),
        ((np.ones(60), {}), "candidate"),
        ((np.ones(60), np.ones(60)), "candidates is of type ndarray"),
        ((1.0, {"G": 1.0}), "loss_F"),
        ((np.ones((60, 2)), {"G": np.ones(60)}), "loss_F"),
        ((np.ones(60), {"G": -np.ones(60)}), "G is negative on 60 of 60 rows"),
        ((np.ones(60), {"G": np.ones(60) + 1j}), "G holds what is no number"),
        ((np.ones(60), {"G": pd.to_timedelta(np.ones(60))}), "G holds what is no"),
        ((np.ones(60), {"G": pd.to_datetime(np.ones(60))}), "G holds what is no"),
    ],
)
def test_losses_that_are_none_are_refused(arguments, culprit):
    with pytest.raises(HardsynthError) as caught:
        hs.compare_losses(*arguments)
    assert culprit in str(caught.value)


@pytest.mark.parametrize("n_groups", [2, 3])
def test_fewer_groups_than_folds_are_compared(n_groups):
    rng = np.random.default_rng(0)
    right = rng.random(400) < 0.5
    X = pd.DataFrame({"shop": np.arange(400) % n_groups, "words": rng.random(400)})
    losses = pd.DataFrame({"G": 1.0 - (right | (rng.random(400) < 0.3))})
    answer = hs.compare_losses(1.0 - right, losses, X, groups="shop")
    change = losses["G"].mean() - (1.0 - right).mean()
    assert answer.row("G", "overall")["difference"] == pytest.approx(change)


@pytest.fixture(scope="module")
def small():
    """F, rows that it has not seen, and those that it was fitted on."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(400, 3)), columns=list("abc"))
    y = np.where(X["a"] + rng.logistic(size=400) > 0, "yes", "no")
    F = LogisticRegression().fit(X[:200], y[:200])
    return F, (X[200:], y[200:]), (X[:200], y[:200])


def test_a_candidate_that_was_fitted_on_these_rows_is_doubted(small):
    F, (X, y), _ = small
    knows = DecisionTreeClassifier(random_state=0).fit(X, y)
    (note,) = [
        note
        for note in hs.compare(F, {"G": knows}, X, y).notes
        if "fitted on these rows" in note
    ]
    assert note.startswith("G decides all 200 rows rightly")
    fair = hs.compare(F, {"G": F}, X, y)
    assert not [note for note in fair.notes if "fitted on these rows" in note]


def test_groups_on_both_sides_are_told(small):
    F, (X, y), train = small
    here, there = np.arange(200) // 4, np.arange(200) // 4 + 25
    answer = hs.compare(
        F, {"G": F}, X, y, train=train, groups=here, train_groups=there, refits=0
    )
    assert [note for note in answer.notes if note.startswith("25 of 50 groups")]
    apart = hs.compare(
        F, {"G": F}, X, y, train=train, groups=here, train_groups=there + 99, refits=0
    )
    assert not [note for note in apart.notes if "rows in train" in note]


def test_a_mixture_of_one_model_alone_decides_as_that_model_does():
    """A threshold that was tuned for the costs is part of the model."""
    rng = np.random.default_rng(3)
    X = pd.DataFrame(rng.normal(size=(900, 3)), columns=list("abc"))
    y = (X["a"] + rng.normal(size=900) > 1).astype(int)
    old, new = slice(0, 450), slice(450, 900)
    tuned = FixedThresholdClassifier(LogisticRegression(), threshold=0.15)
    untuned = LogisticRegression(C=0.01)
    costs = {0: {1: 1}, 1: {0: 8}}
    for F, G, kind in ((tuned, untuned, "keep F"), (untuned, tuned, "take G")):
        F, G = (clone(model).fit(X[old], y[old]) for model in (F, G))
        result = hs.compare(F, {"G": G}, X[new], y[new], refits=0, loss=costs)
        remedy = result.remedy["G"]
        assert remedy.kind == kind
        alone = F if kind == "keep F" else G
        np.testing.assert_array_equal(
            remedy.model.predict(X[new]), alone.predict(X[new])
        )


def test_a_table_of_costs_is_read_as_people_write_it(tmp_path):
    file = tmp_path / "costs.csv"
    for text in (
        "true,no,yes\nno,0,1.5\nyes,5,0\n",
        "true;no;yes\nno;0;1,5\nyes;5;0\n",
        "no,yes\nno,0,1.5\nyes,5,0\n",
    ):
        file.write_text(text)
        costs = read_costs(str(file))
        assert costs.to_dict("index") == {
            "no": {"no": 0, "yes": 1.5},
            "yes": {"no": 5, "yes": 0},
        }
    file.write_text('true,no,yes\nno,0,"1,000"\nyes,5,0\n')
    with pytest.raises(HardsynthError, match="cannot read the costs of"):
        read_costs(str(file))


def test_a_cost_matrix_counts_what_a_model_decides(loans):
    F, G, X, y, _, new = loans
    costs = {"lost": {"paid": 10}, "paid": {"lost": 1}}
    row = hs.compare(F, {"G": G}, X[new], y[new], loss=costs, refits=0).row(
        "G", "overall"
    )
    said = F.predict(X[new])
    wrong = 10 * ((y[new] == "lost") & (said == "paid")) + (y[new] == "paid") * (
        said == "lost"
    )
    assert row["loss_f"] == pytest.approx(wrong.mean())


def test_an_f_that_always_loses_the_same_is_compared():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"words": rng.random(200)})
    answer = hs.compare_losses(np.ones(200), {"G": (rng.random(200) < 0.8) * 1.0}, X)
    assert answer.table["overall"].tolist() == ["better"]


def test_a_loss_of_ones_own_is_never_negative(small):
    F, (X, y), _ = small
    with pytest.raises(HardsynthError, match="negative on 200 of 200 rows") as caught:
        hs.compare(F, {"G": F}, X, y, loss=lambda y, p: -np.ones(len(y)))
    assert "\n" not in str(caught.value)
