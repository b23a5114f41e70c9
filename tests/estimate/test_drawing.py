"""Rows that were not drawn at random are told, where the rows given can tell."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression, Ridge

from amlb_ext.core.errors import ConfigError
from amlb_ext.estimate import drawing, estimate

YES = 0.22


def made(n, seed):
    """Two numbers and a category, 22 % yes; yes is the harder class."""
    rng = np.random.default_rng(seed)
    y = rng.random(n) < YES
    kind = np.where(rng.random(n) < 0.3 + 0.4 * y, "a", "b")
    table = pd.DataFrame(
        {"x": rng.normal(y * 1.3, 1.0), "z": rng.random(n), "kind": kind}
    )
    return table.assign(y=np.where(y, "yes", "no"))


def reg(n, seed, noise=0.6):
    """A regression that a line fits; its squared errors are skewed as those of Laplace noise."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, 3))
    y = 10 * X.sum(axis=1) + noise * rng.laplace(size=n)
    return pd.DataFrame(X, columns=list("abc")).assign(y=y)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("drawing")
    made(800, 0).to_csv(folder / "train.csv", index=False)
    made(200, 1).to_csv(folder / "iid.csv", index=False)
    made(2000, 2).drop(columns="y").to_csv(folder / "far.csv", index=False)
    made(20_000, 4).to_csv(folder / "large.csv", index=False)
    pool = made(4000, 3)
    yes, no = pool[pool.y == "yes"], pool[pool.y == "no"]
    pd.concat([yes[:100], no[:100]]).to_csv(folder / "by_class.csv", index=False)
    train = pd.read_csv(folder / "train.csv")
    p = (
        LogisticRegression()
        .fit(train[["x"]], train.y)
        .predict_proba(pool[["x"]])
        .max(axis=1)
    )
    pool.iloc[np.argsort(p)[:600]].sample(200, random_state=0).to_csv(
        folder / "unsure.csv", index=False
    )
    reg(600, 0).to_csv(folder / "r_train.csv", index=False)
    reg(200, 1).to_csv(folder / "r.csv", index=False)
    high = reg(4000, 2).sort_values("y")[-900:]
    high.sample(200, random_state=0).to_csv(folder / "r_high.csv", index=False)
    return folder


def ask(folder, data, **more):
    return estimate(
        "logistic", folder / data, target="y", train=folder / "train.csv", **more
    )


def ask_ridge(folder, data, **more):
    return estimate(
        "ridge", folder / data, target="y", train=folder / "r_train.csv", **more
    )


def test_rows_drawn_by_class_are_told_by_the_training_rows(folder, truth):
    report = ask(folder, "by_class.csv")
    assert report.recommended is None
    assert (
        "classes of the labelled rows and of the training rows differ" in report.refused
    )
    assert "yes 50.0% of the labelled rows" in report.refused
    assert "--class-prior train" in report.advice
    assert "--drawn-at-random" in report.advice
    wilson = next(row for row in report.rows if row.name == "wilson")
    assert wilson.check == "failed"
    assert not wilson.low < truth < wilson.high  # what quoting it would have cost


def test_shares_of_the_training_rows_serve_as_priors(folder, truth):
    report = ask(folder, "by_class.csv", class_prior="train")
    best = report.recommended
    assert best.name == "stratified"
    assert best.check == "passed"
    assert best.low < truth < best.high
    assert "training rows" in best.assumes
    assert "classes" not in report.assumption.split("compared with")[1]
    # shares counted on 800 rows are less sure than the same shares given as known
    shares = pd.read_csv(folder / "train.csv").y.value_counts(normalize=True).to_dict()
    known = ask(folder, "by_class.csv", class_prior=shares).recommended
    assert known.point == pytest.approx(best.point)
    assert known.width < best.width


def test_who_vouches_for_the_labelled_rows_is_believed_and_it_is_said(folder):
    report = ask(folder, "by_class.csv", drawn_at_random=True)
    assert report.recommended.name == "wilson"
    assert "as --drawn-at-random says" in report.assumption
    assert any(
        "overruled by --drawn-at-random: classes" in note for note in report.notes
    )
    with pytest.raises(ConfigError, match="contradict each other"):
        ask(folder, "by_class.csv", class_prior="train", drawn_at_random=True)
    with pytest.raises(ConfigError, match="without training rows"):
        estimate(
            str(folder / "p.csv"), folder / "iid.csv", target="y", class_prior="train"
        )


def test_rows_labelled_where_the_model_is_unsure_are_told(folder):
    told = ask(folder, "unsure.csv")
    assert told.recommended is None
    assert (
        "confidence of the labelled rows and of the training rows differ"
        in told.refused
    )
    assert "less sure" in told.refused
    # the priors cannot put right what was chosen within a class
    assert ask(folder, "unsure.csv", class_prior="train").recommended is None


def test_rows_without_labels_tell_it_to_a_file_of_predictions(folder):
    data, train = pd.read_csv(folder / "unsure.csv"), pd.read_csv(folder / "train.csv")
    model = LogisticRegression().fit(train[["x"]], train["y"])
    p = pd.DataFrame(model.predict_proba(data[["x"]]), columns=model.classes_)
    p.to_csv(folder / "p.csv", index=False)
    alone = estimate(str(folder / "p.csv"), folder / "unsure.csv", target="y")
    assert alone.recommended.check == "not checked"
    assert "nothing given here can test that" in alone.assumption
    told = estimate(
        str(folder / "p.csv"),
        folder / "unsure.csv",
        target="y",
        unlabelled=folder / "far.csv",
    )
    assert told.recommended is None
    assert (
        "columns of the labelled rows and of the rows without labels differ"
        in told.refused
    )
    assert "most in x" in told.refused


def test_rows_of_a_quieter_time_are_told_by_a_second_models_errors(folder):
    # the same columns and, nearly, the same targets; the noise is a third of that of the rest
    reg(200, 7, noise=0.2).to_csv(folder / "r_quiet.csv", index=False)
    # A second model that is fitted on 300 rows errs more than the noise does, and three samples in
    # ten are told; on 1,200 rows all of thirty are, with scikit-learn 1.6 as with 1.9.
    reg(2400, 0).to_csv(folder / "r_long.csv", index=False)
    report = estimate(
        "ridge", folder / "r_quiet.csv", target="y", train=folder / "r_long.csv"
    )
    assert report.recommended is None
    assert (
        "errors of the labelled rows and of the training rows differ" in report.refused
    )
    assert "target" not in report.refused


def test_squared_losses_of_a_good_model_have_a_useful_interval(folder):
    large = reg(100_000, 5)
    train = pd.read_csv(folder / "r_train.csv")
    model = Ridge().fit(train[list("abc")], train["y"])
    span = train.y.max() - train.y.min()
    squares = ((model.predict(large[list("abc")]) - large.y) / span) ** 2
    pd.DataFrame(
        {"prediction": model.predict(pd.read_csv(folder / "r.csv")[list("abc")])}
    ).to_csv(folder / "r_p.csv", index=False)

    def ask_file(**more):
        return estimate(
            str(folder / "r_p.csv"),
            folder / "r.csv",
            target="y",
            train=folder / "r_train.csv",
            **more,
        )

    report = ask_file()
    rows = {row.name: row for row in report.rows}
    assert report.recommended.name == "betting"
    assert rows["betting"].width < 0.55 * rows["empirical_bernstein"].width
    # beside it, and said to be approximate, one that says something
    assert report.approximate == "hall"
    assert rows["hall"].low < squares.mean() < rows["hall"].high
    assert rows["hall"].width < 0.1 * rows["betting"].width
    assert "no rare rows" in rows["hall"].assumes
    # errors beyond 6 count as 6: what is estimated is then bounded, and narrow without assuming
    capped = ask_file(error_cap=6.0)
    assert capped.recommended.low < squares.mean() < capped.recommended.high
    assert capped.recommended.width < 2 * squares.mean()
    assert "errors beyond 6 count as 6: 0 of 200 labelled rows" in capped.notes
    with pytest.raises(ConfigError, match="greater than 0"):
        ask_file(error_cap=-1.0)
    with pytest.raises(ConfigError, match="--error-cap for the zero_one loss"):
        ask(folder, "iid.csv", error_cap=1.0)


def test_the_command_says_what_to_type(folder, output_of):
    words = ["estimate", "logistic", str(folder / "by_class.csv"), "--target", "y"]
    words += ["--train", str(folder / "train.csv")]
    out = output_of(words, status=1)
    assert out.startswith(
        "no estimate can be recommended: classes of the labelled rows"
    )
    assert "\nwhat to do: if the labelled rows were drawn class by class" in out
    told = json.loads(output_of(words, "--class-prior train --json"))
    assert told["recommended"] == "stratified"
    assert told["assumption"].startswith("the rows of each class were drawn at random")
    assert "\nassumes that the labelled rows were drawn at random" in output_of(
        words, "--drawn-at-random"
    )


def test_small_counts_are_compared_exactly():
    # 3 of 6 against 5 of 500: Fisher's exact test gives 6e-5
    y, train = np.repeat([0, 1], 3), np.repeat([0, 1], [495, 5])
    found = drawing.compare_classes(y, train, ["no", "yes"])
    assert found.p < 0.001
    assert drawing.compare_classes(np.zeros(6), train, ["no", "yes"]).p == 1


def test_columns_are_compared_with_their_holes_and_categories():
    rng = np.random.default_rng(0)

    def rows(n, hole, share):
        code = (rng.random(n) < share).astype(float)
        number = np.where(rng.random(n) < hole, np.nan, rng.random(n))
        return np.column_stack([code, number])

    plain = rows(900, 0.1, 0.5)

    def found(Z):
        return drawing.compare_columns(Z, plain, ["kind", "pay"], 1, "training rows")

    assert found(rows(200, 0.1, 0.5)).p > 0.01
    assert found(rows(200, 0.4, 0.5)).p < 0.001
    assert found(rows(200, 0.4, 0.5)).detail.startswith("most in pay")
    assert found(rows(200, 0.1, 0.8)).detail == "most in kind"


def test_how_often_sound_rows_are_told_no():
    # four comparisons share .01; of 150 sound samples 1.5 are expected, 4 sd above is 6
    refuted = 0
    for r in range(150):
        rng = np.random.default_rng(r)
        Z, y = rng.random((360, 3)), rng.choice(3, 360, p=[0.7, 0.2, 0.1])
        kept = drawing.same_shares(y[60:], y[:60], rng)
        found = [
            drawing.compare_classes(y[:60], y[60:], "abc"),
            drawing.compare_columns(Z[:60], Z[60:][kept], "uvw", 0, "training rows"),
        ]
        found += drawing.compare_predictions(Z[:60], Z[60:])
        refuted += any(c.finding(drawing.level_of_each(found)).refuted for c in found)
    assert refuted <= 6
