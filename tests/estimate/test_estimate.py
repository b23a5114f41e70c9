"""hardsynth estimate from files to the recommendation, as a user meets it."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from amlb_ext.core.errors import ConfigError, DataError, ModelError
from amlb_ext.estimate import estimate

PRIOR = {"no": 0.8, "yes": 0.2}


def made(n, seed):
    """Two features, a category, and a class whose share is 20 %."""
    rng = np.random.default_rng(seed)
    y = rng.random(n) < 0.2
    x = rng.normal(y * 1.5, 1.0)
    kind = np.where(rng.random(n) < 0.3 + 0.4 * y, "a", "b")
    table = pd.DataFrame({"x": x, "z": rng.random(n), "kind": kind})
    return table.assign(y=np.where(y, "yes", "no"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("estimate")
    made(800, 0).to_csv(folder / "train.csv", index=False)
    made(20_000, 4).to_csv(folder / "large.csv", index=False)
    made(250, 1).to_csv(folder / "iid.csv", index=False)
    made(3000, 2).drop(columns="y").to_csv(folder / "far.csv", index=False)
    pool = made(4000, 3)
    yes, no = pool[pool.y == "yes"], pool[pool.y == "no"]
    pd.concat([yes[:120], no[:120]]).to_csv(folder / "by_class.csv", index=False)
    no[:250].to_csv(folder / "one_class.csv", index=False)
    return folder


def ask(folder, data, **more):
    return estimate(
        "logistic", folder / data, target="y", train=folder / "train.csv", **more
    )


def test_independent_rows_are_answered_by_wilson(folder, truth):
    report = ask(folder, "iid.csv", unlabelled=folder / "far.csv")
    best = report.recommended
    assert best.name == "wilson"
    assert best.check == "passed"
    assert best.low < truth < best.high
    assert report.rows[0] == best
    assert {"ppi", "t", "bca"} <= {row.name for row in report.rows}
    # more rows without labels change nothing of the model
    assert ask(folder, "iid.csv").recommended.point == best.point


def test_a_missing_class_is_refused_and_named(folder):
    with pytest.raises(DataError, match="single value"):
        estimate("m.csv", folder / "one_class.csv", target="y")
    report = ask(folder, "one_class.csv", class_prior=PRIOR)
    assert report.recommended is None
    assert "no labelled row of class yes, 20.0% of the population" in report.refused
    # the training rows alone tell, too
    assert "yes" in ask(folder, "one_class.csv").refused


def test_generated_rows_give_bounds_that_are_never_quoted(folder):
    report = ask(folder, "iid.csv", synthesizer="copula", generated=5000)
    rows = {row.name: row for row in report.rows}
    assert {"synthetic", "osyn", "osyn_closed", "partition"} <= set(rows)
    assert report.recommended.name == "wilson"
    assert rows["osyn_closed"].low <= report.osyn.closed.F_minus_eps
    assert rows["osyn"].low <= rows["osyn_closed"].low + 1e-12
    assert "generator" in rows["partition"].assumes
    again = ask(folder, "iid.csv", synthesizer="copula", generated=5000)
    assert again.to_json() == report.to_json()


def test_generated_rows_may_come_as_a_file(folder):
    made(4000, 9).to_csv(folder / "made.csv", index=False)
    report = ask(folder, "iid.csv", synthetic=folder / "made.csv")
    rows = {row.name: row for row in report.rows}
    assert report.osyn.n == 4000
    assert rows["synthetic"].check == "passed"
    wrong = made(30, 9).assign(y="maybe")
    wrong.to_csv(folder / "wrong.csv", index=False)
    with pytest.raises(DataError, match="'maybe'"):
        ask(folder, "iid.csv", synthetic=folder / "wrong.csv")


def test_predictions_alone_serve(folder, truth):
    table, train = pd.read_csv(folder / "iid.csv"), pd.read_csv(folder / "train.csv")
    model = LogisticRegression().fit(train[["x", "z"]], train["y"])
    p = model.predict_proba(table[["x", "z"]])
    pd.DataFrame(p, columns=model.classes_).to_csv(folder / "p.csv", index=False)
    report = estimate(
        str(folder / "p.csv"),
        folder / "iid.csv",
        target="y",
        train=folder / "train.csv",
        synthesizer="copula",
        generated=3000,
        unlabelled=folder / "far.csv",
    )
    rows = {row.name: row for row in report.rows}
    wrong = (model.predict(table[["x", "z"]]) != table["y"]).mean()
    assert rows["wilson"].point == pytest.approx(wrong)
    assert "osyn_closed" in rows  # needs no prediction of generated rows
    assert not {"osyn", "synthetic"} & set(rows)
    assert not rows["ppi"].has_interval


def test_a_fitted_model_sees_categories_that_no_labelled_row_has(folder):
    skops = pytest.importorskip("skops.io", reason="skops is an optional extra")

    def rows(n, kinds, seed):
        rng = np.random.default_rng(seed)
        kind = rng.choice(kinds, n)
        y = rng.random(n) < np.where(kind == "c", 0.9, 0.3)
        return pd.DataFrame(
            {"x": rng.random(n), "kind": kind, "y": np.where(y, "yes", "no")}
        )

    train = rows(900, ["a", "b", "c"], 0)
    encode = ColumnTransformer(
        [("kind", OneHotEncoder(), ["kind"])], remainder="passthrough"
    )
    model = make_pipeline(encode, LogisticRegression()).fit(
        train[["x", "kind"]], train["y"]
    )
    skops.dump(model, folder / "m.skops")
    rows(200, ["a", "b"], 1).to_csv(folder / "few.csv", index=False)
    far = rows(2000, ["a", "b", "c"], 2)
    far.drop(columns="y").to_csv(folder / "many.csv", index=False)
    report = estimate(
        str(folder / "m.skops"),
        folder / "few.csv",
        target="y",
        unlabelled=folder / "many.csv",
    )
    assert not [note for note in report.notes if "unknown" in note]
    # a third of the other rows is of kind c, where the model predicts yes: not one population
    assert report.recommended is None
    assert "predicted classes" in report.refused


def test_what_is_wrong_is_said(folder):
    with pytest.raises(ConfigError, match="--train"):
        estimate("logistic", folder / "iid.csv", target="y")
    with pytest.raises(ConfigError, match="both a synthesizer"):
        ask(folder, "iid.csv", synthesizer="copula", synthetic=folder / "far.csv")
    with pytest.raises(ConfigError, match="class 'maybe'"):
        ask(folder, "iid.csv", class_prior={"maybe": 1.0})
    with pytest.raises(ConfigError, match="no share for yes"):
        ask(folder, "iid.csv", class_prior={"no": 1.0})
    with pytest.raises(ConfigError, match=r"sum to 1\.1"):
        ask(folder, "iid.csv", class_prior={"no": 0.8, "yes": 0.3})
    with pytest.raises(
        DataError, match=r"800 of 800 rows of train\.csv are training rows"
    ):
        ask(folder, "train.csv")
    with pytest.raises(DataError, match="training rows"):
        ask(folder, "iid.csv", unlabelled=folder / "train.csv")
    with pytest.raises(ConfigError, match="did you mean 'delta2'"):
        ask(folder, "iid.csv", osyn={"delta": 1})
    with pytest.raises(ConfigError, match="level"):
        ask(folder, "iid.csv", level=95)
    (folder / "m.pkl").write_bytes(b"x")
    with pytest.raises(ModelError, match="pickle"):
        estimate(str(folder / "m.pkl"), folder / "iid.csv", target="y")


def test_the_command_writes_what_it_says(folder, refused, output_of, tmp_path):
    out = tmp_path / "out"
    words = [
        "estimate",
        "logistic",
        str(folder / "iid.csv"),
        "--train",
        str(folder / "train.csv"),
    ]
    words += ["--target", "y", "--synthesizer", "copula", "--generated", "3000"]
    shown = output_of(words, "--osyn b=2 -o", out)
    assert shown.startswith("wilson: ")
    assert "wilson *" in shown
    told = json.loads((out / "estimate.json").read_text())
    assert told["recommended"] == "wilson"
    assert told["osyn"]["settings"]["b"] == 2.0
    assert len(pd.read_csv(out / "estimates.csv")) == len(told["estimates"])
    assert (out / "estimate.svg").read_text().lstrip().startswith("<?xml")
    one = [*words[:2], str(folder / "one_class.csv"), *words[3:7]]
    assert output_of(one, "--class-prior yes=.2,no=.8", status=1).startswith(
        "no estimate can be recommended: "
    )
    assert "CLASS=SHARE" in refused(words, "--class-prior yes")


def test_losses_of_probabilities(folder):
    pd.read_csv(folder / "iid.csv").head(99).to_csv(folder / "head.csv", index=False)
    for loss, bound in (("brier", 2.0), ("log_loss", -np.log(0.01))):
        report = ask(folder, "iid.csv", loss=loss, clip=0.01)
        assert report.bound == pytest.approx(bound)
        assert report.recommended.name == "t"
        few = ask(folder, "head.csv", loss=loss, clip=0.01)
        assert few.recommended.name == "betting"  # too few to see how skewed they are
    with pytest.raises(ConfigError, match="squared for binary"):
        ask(folder, "iid.csv", loss="squared")


def test_regression_wants_a_range(folder):
    rng = np.random.default_rng(0)

    def rows(n):
        x = rng.random((n, 2))
        return pd.DataFrame(x, columns=["a", "b"]).assign(
            y=x.sum(axis=1) * 10 + rng.normal(size=n)
        )

    train, data = rows(400), rows(600)
    train.to_csv(folder / "r_train.csv", index=False)
    data.to_csv(folder / "r.csv", index=False)
    model = Ridge().fit(train[["a", "b"]], train["y"])
    predicted = pd.DataFrame({"prediction": model.predict(data[["a", "b"]])})
    predicted.to_csv(folder / "rp.csv", index=False)
    with pytest.raises(ConfigError, match="--range"):
        estimate(str(folder / "rp.csv"), folder / "r.csv", target="y")
    report = estimate(
        str(folder / "rp.csv"), folder / "r.csv", target="y", target_range=(-10, 30)
    )
    by_hand = (((predicted["prediction"] - data["y"]) / 40) ** 2).mean()
    assert report.recommended.name == "t"
    assert report.recommended.point == pytest.approx(by_hand)
