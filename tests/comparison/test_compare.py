"""hs.compare: planted answers, the three questions, and inputs that do not fit."""

from html import escape

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression

import amlb_ext as hs
from amlb_ext.core.errors import ConfigError

# what is written and said matters here, not how good the models are
pytestmark = pytest.mark.usefixtures("light_models")


#: Rows that F is fitted on; the rest is compared on, so many that 200 are where F fails.
OLD = 600


def make_table(n=1700, seed=0):
    """F, a linear model, fails where ``a`` is large: the label turns round there."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "a": rng.uniform(-1, 1, n),
            "b": rng.normal(size=n),
            "town": rng.choice(["north", "south"], n),
        }
    )
    sign = np.where(X["a"] > 0.5, -1, 1)
    chance = 1 / (1 + np.exp(-4 * sign * X["b"]))
    return X, np.where(rng.random(n) < chance, "yes", "no")


@pytest.fixture(scope="module")
def answered():
    X, y = make_table()
    numbers = ["a", "b"]
    old, new = slice(0, OLD), slice(OLD, None)
    F = LogisticRegression().fit(X[numbers][old], y[old])
    boosting = HistGradientBoostingClassifier(max_iter=50, random_state=0)
    boosting.fit(X[numbers][old], y[old])
    result = hs.compare(
        F,
        {"boosting": boosting, "F again": F},
        X[new],
        y[new],
        train=(X[old], y[old]),
        rule="wrong",
    )
    return result, F, boosting, X[new], y[new]


def test_the_better_model_is_better_overall_and_more_so_where_f_fails(answered):
    result = answered[0]
    verdicts = result.table.loc["boosting"]
    assert verdicts["overall"] == "better"
    assert verdicts["where_f_fails"] == "better"
    assert verdicts["concentrated"] == "larger gain"
    assert verdicts["where_f_fails_change"] < verdicts["overall_change"] < 0
    same = result.table.loc["F again"]
    assert same["overall"] == "undecided"
    assert same["overall_change"] == 0
    assert same["where_f_fails"] == "undecided"
    mended = result.slices[result.slices["verdict"] == "better"]
    assert set(mended["model"]) == {"boosting"}
    assert mended["slice"].str.startswith("a >").any()


def test_text_and_page_give_the_answer_first(answered, tmp_path):
    result = answered[0]
    assert str(result).startswith("boosting is better than F (")
    page = result.to_html(tmp_path / "answer.html")
    assert (tmp_path / "answer.html").read_text() == page
    assert page.index("boosting is better than F") < page.index("<table>")
    # it loads nothing
    assert "src=" not in page
    assert 'href="http' not in page
    assert "p against F’s re-fits" in page
    assert "<svg" in result._repr_html_()
    with pytest.raises(ConfigError, match="rows have no picture each"):
        result.plot_worst()
    assert result.plot().get_xlabel().startswith("change of F's loss")


def test_without_training_rows_f_is_not_fitted_again(answered):
    _, F, boosting, X, y = answered
    result = hs.compare(F, {"boosting": boosting}, X, y, rule="wrong")
    assert result.refits == 0
    assert any("give train=(X0, y0)" in note for note in result.notes)
    assert result.table.loc["boosting", "where_f_fails"] == "no claim"
    # what is described needs no re-fits
    assert result.table.loc["boosting", "where_f_fails_high"] < 0
    assert result.harm["boosting"].verdict == "no verdict"


def test_where_f_fails_is_described(answered):
    result, _, _, X, _ = answered
    place, rows = result.place, result.rows
    inside = rows["where_f_fails"]
    assert place.n == inside.sum() == pytest.approx(0.2 * len(X), abs=3)
    assert place.fails_there == rows.loc[inside, "is_bad"].mean()
    assert place.fails_there > 3 * place.fails_elsewhere
    assert place.share_of_failures == rows.loc[rows["is_bad"], "where_f_fails"].mean()
    assert place.words.startswith("a > 0.")
    assert place.sentence(result.unit) in result.text()
    assert escape(place.sentence(result.unit)) in result.to_html()
    assert result.summary()["place"]["n"] == place.n
    # the change there is the mean over these rows
    change = (rows["boosting"] - rows["F"])[inside].mean()
    assert result.row("boosting", "where F fails")["difference"] == pytest.approx(
        change
    )


def test_a_claim_on_recipes_is_made_by_name(answered):
    result, F, boosting, X, y = answered
    X0, y0 = (part[:OLD] for part in make_table())
    said = hs.compare(
        F, {"boosting": boosting}, X, y, train=(X0, y0), rule="wrong", claim="recipes"
    )
    assert said.headline()[0].startswith("boosting's recipe is better than F's (")
    assert "verdict is of the recipes" in said.text()
    model, recipe = (r.row("boosting", "overall") for r in (result, said))
    assert recipe["high"] - recipe["low"] > model["high"] - model["low"]
    with pytest.raises(ConfigError, match="recipes without fits"):
        hs.compare(F, {"boosting": boosting}, X, y, claim="recipes")


def test_a_regression_gives_intervals_that_hold_the_truth():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(900, 3))
    y = X[:, 0] + np.where(X[:, 1] > 1, 3 * X[:, 2], 0) + 0.3 * rng.normal(size=900)
    F = LinearRegression().fit(X[:400], y[:400])
    forest = RandomForestRegressor(40, random_state=0).fit(X[:400], y[:400])
    result = hs.compare(
        F, {"forest": forest}, X[400:], y[400:], train=(X[:400], y[:400])
    )
    loss = "squared error of target, in the square of its unit"
    assert result.loss_name == loss
    row = result.row("forest", "overall")
    f, g = F.predict(X[400:]), forest.predict(X[400:])
    # F errs on 10 of the 500 rows (2 %) by as much as the cap, and nothing counts for more
    errors_f, errors_g = np.abs(f - y[400:]), np.abs(g - y[400:])
    largest = np.sort(errors_f)[-10]
    squares_f = np.minimum(errors_f, largest) ** 2
    exact = (np.minimum(errors_g, largest) ** 2 - squares_f).mean()
    assert row["difference"] == pytest.approx(exact)
    assert row["loss_f"] == pytest.approx(squares_f.mean())
    assert row["low"] < exact < row["high"]
    told = f"errors beyond {largest:.3g} count as {largest:.3g}"
    assert told in result.text()
    assert told in result.to_html()
    assert "(F errs by as much on 10 of 500 rows)" in result.text()


def heavy_claims(n=600):
    """27 claims among rows of nearly nothing; F the median, and a model that finds the claims."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=n), "b": rng.normal(size=n)})
    y = rng.exponential(2.0, size=n)
    claims = rng.choice(n, 10, replace=False)
    y[claims] = rng.uniform(2000, 9000, len(claims))
    found = y + rng.normal(0, 3, n) + 1.5
    return X, y, np.full(n, np.median(y)), found


def test_a_heavy_tail_gets_no_verdict_and_its_plain_figures():
    X, y, F, found = heavy_claims()
    result = hs.compare(F, {"found": found}, X, y)
    told = result.row("found", "overall")
    rmse, rmse_f = (np.sqrt(np.mean((f - y) ** 2)) for f in (found, F))
    assert (told["rmse"], told["rmse_f"]) == pytest.approx((rmse, rmse_f))
    assert told["relative"] == pytest.approx((rmse / rmse_f) ** 2 - 1)
    assert (told["verdict"], told["by"]) == ("no claim", "plain")
    (sentence,) = result.headline()
    assert sentence.startswith(
        "found: no verdict over all rows. By the plain squared error it has 100 % less loss than "
        "F (RMSE "
    )
    assert "decide by another loss, e.g. the absolute error" in sentence
    assert f"RMSE (F {rmse_f:.4g}".replace(" ", "")[:9] in result.text().replace(
        " ", ""
    )
    assert "no claim (plain)" in result.text()
    page = result.to_html()
    assert "no claim (plain)" in page
    assert "RMSE (F " in page
    assert not (result.slices["verdict"].isin(["better", "worse"])).any()


def test_one_absurd_prediction_is_told_and_leaves_the_others_alone():
    rng = np.random.default_rng(1)
    X = pd.DataFrame({"a": rng.normal(size=400), "b": rng.normal(size=400)})
    y = 3 * X["a"].to_numpy() + rng.normal(size=400)
    good = 3 * X["a"].to_numpy()
    absurd = good.copy()
    absurd[7] = 1e209
    F = 2 * X["a"].to_numpy()
    candidates = {"good": good, "absurd": absurd}
    result = hs.compare(F, candidates, X, y, kind="regression")
    assert result.table["overall"].to_dict() == {"good": "better", "absurd": "no claim"}
    assert "too large for a number on 1 of 400 rows" in result.text()
    assert "no claim" in result.to_html()
    absurd_f = hs.compare(absurd, {"good": good}, X, y, kind="regression")
    assert absurd_f.table["overall"].tolist() == ["no claim"]
    assert absurd_f.headline()[0].startswith(
        "good: no verdict over all rows. F's squared"
    )
    assert "<svg" in absurd_f.to_html()


@pytest.mark.parametrize(
    ("unit", "shift"), [(1e-12, 0.0), (1e12, 0.0), (1.0, 1.7e9), (1e-3, 1e6)]
)
def test_the_unit_and_the_zero_of_a_target_change_nothing(unit, shift):
    """A capacity in farads and a time in seconds since 1970 are compared as any number is."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(300, 2)), columns=["a", "b"])
    y = X["a"] + rng.normal(size=300)
    f, g = (y + size * rng.normal(size=300) for size in (1.0, 0.6))
    results = [
        hs.compare(unit * f + zero, {"g": unit * g + zero}, unit * X, unit * y + zero)
        for unit, zero in ((1.0, 0.0), (unit, shift))
    ]
    own, other = (result.contrasts["relative"].to_numpy() for result in results)
    np.testing.assert_allclose(other, own, rtol=1e-5)
    own, other = (result.to_frame()["worst_fifth_change"] for result in results)
    np.testing.assert_allclose(other, own, rtol=0.05 if shift else 1e-5)


def test_a_cell_that_stands_for_nothing_hides_no_place_of_failure():
    """One cell of 1e12, as files have it for a missing value."""
    rng = np.random.default_rng(1)
    X = pd.DataFrame(rng.uniform(0, 100, (900, 2)), columns=["a", "b"])
    y = X["b"] + np.where(X["a"] > 80, 40 * rng.normal(size=900), rng.normal(size=900))
    slices = []
    for cell in (99.9, 1e12):
        X.loc[0, "a"] = cell
        slices.append(hs.failures(X["b"].to_numpy(), X, y).slices["slice"].tolist())
    assert slices[0] == slices[1] != []


def test_the_limits_of_a_segment_are_shares_of_the_loss_over_all_rows():
    """A segment that holds most of F's loss can save more than the mean loss of all rows."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {"a": rng.normal(size=600), "r": np.resize([1, 0, 0, 0, 0, 0], 600)}
    )
    y = X["a"].to_numpy()
    noise = rng.normal(size=(2, 600))
    f, g = y + noise[0] * np.where(X["r"] == 1, 3, 0.3), y + noise[1] * 0.3
    result = hs.compare(f, {"g": g}, X, y, loss="absolute", segments=["r == 1"])
    base = np.abs(f - y).mean()
    low, high = (100 * result.segments[name].iloc[0] / base for name in ("low", "high"))
    assert low < high < -100
    [line] = [line for line in result.text().splitlines() if line.startswith("r == 1")]
    assert f"to {high:.0f})" in line
