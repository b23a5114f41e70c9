"""Small cases rebuilt from public bug reports: the same model in another form is no other model.

Each case hands ``compare`` F and one candidate that is F again, in the form that a report was
about; their losses must be equal, or the form is refused in one line that names what came.
"""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.cluster import KMeans
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import FixedThresholdClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline
from sklearn.tree import DecisionTreeClassifier

import amlb_ext as hs
from amlb_ext.core.errors import HardsynthError
from amlb_ext.core.tables import make_task
from amlb_ext.models.answers import Labels
from amlb_ext.models.predictions import (
    check_same_order,
    join_by_shared_columns,
    read_predictions,
    with_points,
)

pytestmark = pytest.mark.usefixtures("light_models")

RNG = np.random.default_rng(0)
N = 500
ALL = pd.DataFrame(
    {
        "age": RNG.integers(18, 80, N).astype(float),
        "customer income": RNG.normal(30, 10, N),
        "town": RNG.choice(["ulm", "bonn", "kiel"], N),
    }
)
SIGNAL = ALL["age"] / 20 - 2 + (ALL["town"] == "ulm") + RNG.normal(0, 0.7, N)
TEXT = pd.Series(np.where(SIGNAL > 0.5, "yes", "no"), name="bought")
OLD, NEW = slice(0, 250), slice(250, None)
NUMBERS = ["age", "customer income"]
X, Y = ALL[NUMBERS][NEW], TEXT[NEW]
IS_YES = (Y == "yes").astype(int)
F = RandomForestClassifier(10, random_state=0).fit(ALL[NUMBERS][OLD], TEXT[OLD])
P = F.predict_proba(X)


class Bare:
    """A classifier that knows nothing of scikit-learn's attributes."""

    def __init__(self, probabilities, labels=None):
        self.probabilities, self.labels = probabilities, labels

    def predict_proba(self, rows):
        return self.probabilities(F.predict_proba(rows))

    def predict(self, rows):
        return F.predict(rows) if self.labels is None else self.labels(rows)


class Sorted(Bare):
    """The same, and it names its classes."""

    classes_ = ("no", "yes")


def same(model=F, again=F, rows=X, y=Y):
    """F, the candidate that is F again, the rows, their targets."""
    return model, again, rows, y


class Named(Bare):
    """The same, with its classes named in the other order."""

    classes_ = ("yes", "no")


def several_targets():
    both = np.column_stack([TEXT[OLD], TEXT[OLD]])
    return RandomForestClassifier(5, random_state=0).fit(ALL[NUMBERS][OLD], both)


def beside_truth(truth):
    """Predictions as AMLB writes them, with targets beside them."""
    return pd.DataFrame(P, columns=F.classes_, index=X.index).assign(truth=truth)


def native_categories(is_given):
    lightgbm = pytest.importorskip("lightgbm")
    table = ALL.astype({"town": "category"})
    model = lightgbm.LGBMClassifier(n_estimators=5, verbose=-1, n_jobs=1)
    p = model.fit(table[OLD], TEXT[OLD]).predict_proba(table[NEW])
    return same(model, p, table[NEW] if is_given else ALL[NEW])


def renamed_columns():
    lightgbm = pytest.importorskip("lightgbm")
    model = lightgbm.LGBMClassifier(n_estimators=5, verbose=-1, n_jobs=1)
    model.fit(
        ALL[NUMBERS][OLD].rename(columns=lambda c: c.replace(" ", "_")), TEXT[OLD]
    )
    renamed = X.set_axis(model.feature_name_, axis=1)
    return same(model, model.predict_proba(renamed), ALL[NEW])


def booster():
    lightgbm = pytest.importorskip("lightgbm")
    data = lightgbm.Dataset(ALL[NUMBERS][OLD], (TEXT[OLD] == "yes").astype(int))
    model = lightgbm.train({"objective": "binary", "verbose": -1}, data, 5)
    return same(model, model.predict(X), ALL[NEW], IS_YES)


def margins():
    xgboost = pytest.importorskip("xgboost")
    data = xgboost.DMatrix(ALL[NUMBERS][OLD], (TEXT[OLD] == "yes").astype(int))
    model = xgboost.train({"objective": "binary:logitraw"}, data, 5)
    margin = model.predict(xgboost.DMatrix(X))
    return same(model, 1 / (1 + np.exp(-margin)), ALL[NEW], IS_YES == 1)


def yes_first():
    catboost = pytest.importorskip("catboost")
    model = catboost.CatBoostClassifier(
        iterations=5, verbose=0, class_names=["yes", "no"], allow_writing_files=False
    )
    model.fit(ALL[NUMBERS][OLD], TEXT[OLD])
    p = pd.DataFrame(model.predict_proba(X), columns=[str(c) for c in model.classes_])
    return same(model, p[["no", "yes"]].to_numpy())


def text_categories():
    catboost = pytest.importorskip("catboost")
    model = catboost.CatBoostClassifier(
        iterations=5, verbose=0, cat_features=["town"], allow_writing_files=False
    )
    model.fit(ALL[OLD], TEXT[OLD])
    return same(model, model.predict_proba(ALL[NEW]), ALL[NEW])


def logit():
    sm = pytest.importorskip("statsmodels.api")
    old = sm.add_constant(ALL[NUMBERS][OLD])
    model = sm.Logit((TEXT[OLD] == "yes").astype(int), old).fit(disp=0)
    rows = X.assign(const=1.0)[["const", *NUMBERS]]
    return same(model, model.predict(rows).to_numpy(), ALL[NEW], IS_YES)


def glm(order):
    """Results that predict the first of two classes, or name them in the order of a category."""
    smf = pytest.importorskip("statsmodels.formula.api")
    import statsmodels.api as sm

    table = ALL[NUMBERS].set_axis(["a", "b"], axis=1)
    named = pd.Categorical(TEXT, categories=order, ordered=True)
    old = table.assign(bought=named)[OLD]
    if order[0] == "no":
        old = old.astype({"bought": object})
        family = sm.families.Binomial()
        model = smf.glm("bought ~ a + b", old, family=family).fit()
        p = 1 - model.predict(table[NEW])
    else:
        design = sm.add_constant(old[["a", "b"]])
        model = sm.MNLogit(old["bought"], design).fit(disp=0)
        p = model.predict(sm.add_constant(table[NEW]))[0]
    return same(model, p.to_numpy(), table[NEW])


def array_names(names):
    """A model of a frame whose columns are called like those of an array, in another order."""
    renamed = ALL[NUMBERS].set_axis(names, axis=1)
    model = LogisticRegression().fit(renamed[OLD], TEXT[OLD])
    rows = renamed[NEW]
    return same(model, model.predict_proba(rows), rows[names[::-1]])


def polars_places():
    """Columns of polars that are called as those of an array are here, in their order."""
    polars = pytest.importorskip("polars")
    renamed = ALL[NUMBERS].set_axis(["x1", "x0"], axis=1)
    model = LogisticRegression().fit(renamed[OLD], TEXT[OLD])
    rows = polars.from_pandas(renamed[NEW][["x0", "x1"]])
    return same(model, model.predict_proba(renamed[NEW]), rows, Y.to_numpy())


def whole_numbers():
    """Names that are whole numbers, which CatBoost keeps and scikit-learn does not."""
    catboost = pytest.importorskip("catboost")
    renamed = ALL[NUMBERS].set_axis([3, 5], axis=1)
    model = catboost.CatBoostClassifier(
        iterations=5, verbose=0, allow_writing_files=False
    )
    model.fit(renamed[OLD], TEXT[OLD])
    return same(model, model.predict_proba(renamed[NEW]), renamed[NEW][[5, 3]])


def counts():
    """CatBoost's base class answers the logarithm of a count."""
    catboost = pytest.importorskip("catboost")
    settings = {"iterations": 5, "loss_function": "Poisson", "verbose": 0}
    n = RNG.poisson(np.exp(SIGNAL - SIGNAL.max() + 2))
    model = catboost.CatBoost({**settings, "allow_writing_files": False})
    model.fit(ALL[NUMBERS][OLD], n[OLD])
    told = model.predict(X, prediction_type="Exponent")
    return same(model, told, X, pd.Series(n[NEW], X.index))


class Scaling:
    """A model that changes the rows it is given."""

    def predict(self, rows):
        rows.data *= 2
        return rows.sum(axis=1)


def sparse_rows():
    rows = sparse.csr_array(X.to_numpy())
    y = SIGNAL[NEW].to_numpy()
    return same(Scaling(), Scaling(), rows, y + RNG.normal(size=len(y)))


def tensor():
    torch = pytest.importorskip("torch")
    p = torch.tensor(P, requires_grad=True)
    return same(lambda rows: p * 1, p)


def polars_rows():
    polars = pytest.importorskip("polars")
    return polars.from_pandas(X.reset_index(drop=True))


def logistic_of(rows):
    return LogisticRegression().fit(rows, TEXT[OLD])


def logistic(target):
    return LogisticRegression().fit(ALL[NUMBERS][OLD], target[OLD])


#: name -> F, the candidate that is F again, the rows, their targets
SAME = {
    "probabilities of a frame with named columns": lambda: same(
        Bare(lambda p: pd.DataFrame(p, columns=["no", "yes"])[["yes", "no"]])
    ),
    "a frame headed by classes, in another order than classes_": lambda: same(
        Sorted(lambda p: pd.DataFrame(p, columns=["no", "yes"])[["yes", "no"]])
    ),
    "one probability a row": lambda: same(Bare(lambda p: p[:, 1])),
    "a sparse matrix": lambda: same(Sorted(sparse.csr_array)),
    "no classes_": lambda: same(Bare(lambda p: p)),
    "single precision": lambda: same(F, P.astype(np.float32)),
    "targets in another order": lambda: same(F, P, y=Y.sample(frac=1, random_state=0)),
    "predictions in another order": lambda: same(
        F, pd.DataFrame(P, columns=F.classes_, index=X.index).sample(frac=1)
    ),
    "a Series of the second class": lambda: same(
        F, pd.Series(P[:, 1], index=X.index, name="score")
    ),
    "a Series of a named class": lambda: same(
        F, pd.Series(P[:, 0], index=X.index, name="score:no")
    ),
    "beside the truth": lambda: same(F, beside_truth(Y)),
    "columns in another order": lambda: same(F, P, ALL[["town", *NUMBERS[::-1]]][NEW]),
    "fitted on an array": lambda: same(
        RandomForestClassifier(10, random_state=0).fit(
            ALL[NUMBERS][OLD].to_numpy(), TEXT[OLD]
        )
    ),
    "asked with an array": lambda: same(F, P, X.to_numpy(), Y.to_numpy()),
    "a frame of polars": lambda: same(F, P, polars_rows(), Y.to_numpy()),
    "text for native categories": lambda: native_categories(False),
    "native categories": lambda: native_categories(True),
    "names that a library changed": renamed_columns,
    "a booster of LightGBM": booster,
    "a booster of margins": margins,
    "classes in another order": yes_first,
    "categories of CatBoost": text_categories,
    "results of statsmodels": logit,
    "results of the first class": lambda: glm(["no", "yes"]),
    "results of ordered classes": lambda: glm(["yes", "no"]),
    "names as those of an array": lambda: array_names(["f0", "f1"]),
    "numbers as names": lambda: array_names(["0", "1"]),
    "polars called as an array": polars_places,
    "whole numbers as names": whole_numbers,
    "the logarithm of a count": counts,
    "sparse rows that a model changes": sparse_rows,
    "a tensor with a gradient": tensor,
    "labels of another type": lambda: same(
        logistic((TEXT == "yes").astype(float)),
        logistic(TEXT == "yes"),
        y=(Y == "yes").astype(int),
    ),
    "a nullable target": lambda: same(
        logistic(TEXT == "yes"),
        logistic(TEXT == "yes"),
        y=(Y == "yes").astype("boolean"),
    ),
    "numbers as texts of another form": lambda: same(
        logistic((TEXT == "yes") * 1),
        logistic(TEXT == "yes"),
        y=Y.map({"no": "0.0", "yes": "1.0"}),
    ),
    "a masked target": lambda: same(
        F, P, y=np.ma.masked_array(Y.to_numpy(dtype=object), np.arange(len(Y)) % 5 == 0)
    ),
    "rows without a target": lambda: same(F, P, y=Y.where(np.arange(len(Y)) % 5 > 0)),
    "a model that reads the index": lambda: same(
        lambda rows: SIGNAL[rows.index].to_numpy(),
        lambda rows: SIGNAL[rows.index],
        y=SIGNAL[NEW] + RNG.normal(size=len(X)),
    ),
    "a rank within the table": lambda: same(
        lambda rows: rows["age"].rank(pct=True),
        X["age"].rank(pct=True),
        y=Y.map({"no": 0, "yes": 1}).where(np.arange(len(Y)) % 5 > 0),
    ),
}


@pytest.mark.parametrize("case", SAME)
def test_the_same_model_in_another_form_is_no_other_model(case):
    model, again, rows, y = SAME[case]()
    result = hs.compare(model, {"again": again}, rows, y, refits=0)
    assert result.table["overall_change"].abs().max() == pytest.approx(0, abs=1e-5)


#: name -> what differs from ``compare(F, {"g": F}, X, Y)``, and the line that says so
REFUSED = {
    "per cent": ({"candidates": {"g": P * 100}}, "look like per cent"),
    "logarithms": ({"candidates": {"g": np.log(P + 1e-9)}}, "look like logarithms"),
    "raw scores": ({"candidates": {"g": 6 * P - 3}}, "look like raw scores"),
    "margins that sum to 1": (
        {"candidates": {"g": np.column_stack([1.5 - P[:, 1], P[:, 1] - 0.5])}},
        "margins are none",
    ),
    "classes in an unknown order": (
        {"F": Bare(lambda p: p[:, ::-1])},
        "F does not name its classes",
    ),
    "classes named in another order": (
        {"F": Named(lambda p: p)},
        "the probabilities of F contradict its predict",
    ),
    "complex numbers": ({"candidates": {"g": P + 1j}}, "g are not numbers"),
    "masked predictions": (
        {"candidates": {"g": np.ma.masked_array(P, mask=P > 0.9)}},
        "g predicts no finite number",
    ),
    "several targets": (
        {"F": several_targets()},
        "answers 2 (outputs|values) for each",
    ),
    "the truth of other rows": (
        {"candidates": {"g": beside_truth(Y.to_numpy()[::-1])}},
        "g has targets of its own, which differ from the table's in",
    ),
    "codes for labels": (
        {"F": Bare(lambda p: p, lambda rows: np.arange(len(rows)) % 2)},
        "predicts the class '0' in row 0, but the classes are no, yes",
    ),
    "few rows": ({"X": X[:30], "y": Y[:30]}, "at least 50 rows"),
    "a column that it was fitted on is missing": (
        {"X": X.drop(columns="age")},
        "fitted on the column 'age', which the table lacks",
    ),
    "fewer rows": ({"F": Bare(lambda p: p[:-3])}, "answers 247 rows for 250"),
    "a tuple": ({"F": Bare(lambda p: (p, p))}, "answers a tuple of 2 for 250"),
    "an index of other rows": (
        {"y": Y.set_axis(range(1000, 1250))},
        "y has no row 250, which X has",
    ),
    "a fresh index beside another": (
        {"y": Y.reset_index(drop=True)},
        'align="position" if both .* or align="index"',
    ),
    "an index with doubles": (
        {"y": Y.set_axis([0, 0, *range(2, 250)]).sample(frac=1)},
        "different indexes",
    ),
    "training rows as an array": (
        {"X": X, "train": (X.to_numpy(), Y.to_numpy())},
        "250 of 250 rows of X are training rows",
    ),
    "training rows in single precision": (
        {"X": X, "train": (X.astype("float32"), Y)},
        "250 of 250 rows of X are training rows",
    ),
    "a regressor for classes": (
        {"candidates": {"g": LinearRegression().fit(ALL[NUMBERS], SIGNAL)}},
        "g is a regressor, but the target 'bought' has classes",
    ),
    "codes of classes": (
        {"candidates": {"g": LogisticRegression().fit(ALL[NUMBERS], TEXT == "yes")}},
        "g knows the classes False, True, and the target has none of them: no, yes",
    ),
    "labels in another case": (
        {"y": Y.str.upper()},
        "F knows the class 'no', and the target has 'NO': nearly the same label",
    ),
    "a blank behind a label": ({"y": Y.replace("yes", "yes ")}, "'yes '.*nearly the"),
    "clusters": (
        {"candidates": {"g": KMeans(2, n_init=1).fit(ALL[NUMBERS])}},
        "g is of the class KMeans, which learns no target",
    ),
    "durations": (
        {"y": pd.to_timedelta(np.arange(250), unit="h")},
        "y holds durations",
    ),
    "a class": (
        {"candidates": {"g": LogisticRegression}},
        "g is the class LogisticRegression",
    ),
    "no model": ({"candidates": {"g": {"a": 1}}}, "g is a dict, which has no predict"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_can_be_read_in_two_ways_is_refused_in_one_line(case):
    change, message = REFUSED[case]
    given = {"F": F, "candidates": {"g": F}, "X": X, "y": Y} | change
    with pytest.raises(HardsynthError, match=message) as raised:
        hs.compare(refits=0, **given)
    assert "\n" not in str(raised.value)


def fitted_catboost(rows):
    catboost = pytest.importorskip("catboost")
    settings = {"iterations": 5, "verbose": 0, "allow_writing_files": False}
    return catboost.CatBoostClassifier(**settings).fit(rows, TEXT[OLD])


@pytest.mark.parametrize(
    ("fit", "names", "table", "said"),
    [
        (logistic_of, ["f0", "f1"], ["f1", "F0"], "fitted on the column 'f0', which"),
        (fitted_catboost, [2019, 2020], [2020, 2021], "fitted on the column '2019'"),
        (
            lambda rows: fitted_catboost(rows.to_numpy()),
            [1, 0],
            [0, 1, 2],
            "an array of 2 columns, or .* and the table has 3",
        ),
    ],
)
def test_a_column_that_is_not_there_is_taken_by_no_place(fit, names, table, said):
    model = fit(ALL[NUMBERS][OLD].set_axis(names, axis=1))
    rows = X.assign(more=1.0).iloc[:, : len(table)].set_axis(table, axis=1)
    with pytest.raises(HardsynthError, match=said):
        hs.compare(model, {"again": model}, rows, Y, refits=0)


def test_codes_of_classes_that_a_booster_knows_are_no_labels():
    codes = "g knows the classes 0, 1, and the target has none of them: no, yes"
    with pytest.raises(HardsynthError, match=codes):
        hs.compare(F, {"g": booster()[0]}, X, Y, refits=0)


def test_results_that_were_fitted_with_exposure_are_refused():
    sm = pytest.importorskip("statsmodels.api")
    counts = RNG.poisson(3, 250)
    design = sm.add_constant(ALL[NUMBERS][OLD])
    family = sm.families.Poisson()
    fitted = sm.GLM(counts, design, family=family, exposure=np.full(250, 9.0)).fit()
    with pytest.raises(HardsynthError, match="fitted with exposure="):
        hs.compare(fitted, {"g": fitted}, X, SIGNAL[NEW], refits=0)


def test_codes_of_a_booster_are_no_labels_where_some_are_alike():
    """A booster of three classes knows 0, 1, 2, whether they stand for 1, 3, 5 or for others."""
    lightgbm = pytest.importorskip("lightgbm")
    code = np.digitize(SIGNAL, [0, 1])
    data = lightgbm.Dataset(ALL[NUMBERS][OLD], code[OLD])
    model = lightgbm.train(
        {"objective": "multiclass", "num_class": 3, "verbose": -1}, data, 3
    )
    y = pd.Series(code[NEW], X.index)
    f = LogisticRegression().fit(ALL[NUMBERS][OLD], code[OLD])
    assert "g" in hs.compare(f, {"g": model}, X, y, refits=0).models
    f = LogisticRegression().fit(ALL[NUMBERS][OLD], np.array([1, 3, 5])[code][OLD])
    with pytest.raises(HardsynthError, match="other codes of the classes"):
        hs.compare(f, {"g": model}, X, y.map({0: 1, 1: 3, 2: 5}), refits=0)


def test_another_unit_than_the_targets_is_asked_about():
    price = np.exp(SIGNAL)
    table = ALL[["age"]].assign(town=ALL["town"] == "ulm")
    logs = LinearRegression().fit(table[OLD], SIGNAL[OLD])
    plain = LinearRegression().fit(table[OLD], price[OLD])
    candidates = {"logs": logs, "cents": 100 * plain.predict(table[NEW])}
    result = hs.compare(plain, candidates, table[NEW], price[NEW], refits=0)
    asked = [note.split()[0] for note in result.notes if "target's unit?" in note]
    assert asked == ["logs", "cents"]


def test_truths_for_labels_are_read_with_a_word():
    result = hs.compare(F, {"g": (F.predict(X) == "yes") * 1}, X, Y, refits=0)
    assert "g answers 0 and 1, which are read as no and yes" in result.notes
    assert result.row("g", "overall")["difference"] == 0


def test_what_predict_says_decides():
    """With a threshold of .1 the most probable class is not what the model decides for."""
    careful = FixedThresholdClassifier(
        LogisticRegression(), threshold=0.1, response_method="predict_proba"
    ).fit(ALL[NUMBERS][OLD], TEXT[OLD])
    wrong = float((careful.predict(X) != Y).mean())
    p = careful.predict_proba(X)
    assert wrong != pytest.approx(
        float((careful.classes_[p.argmax(axis=1)] != Y).mean())
    )
    assert hs.failures(careful, X, Y).rows["is_bad"].mean() == pytest.approx(wrong)
    report = hs.estimate_error(careful, X, Y)
    assert report.rows[0].point == pytest.approx(wrong)
    result = hs.compare(careful, {"labels": careful.predict(X)}, X, Y, refits=0)
    assert result.loss_name == "share of wrong decisions"
    assert result.row("labels", "overall")["loss_f"] == pytest.approx(wrong)
    assert any("decides for another class" in note for note in result.notes)


@pytest.mark.parametrize(
    "model",
    [
        DecisionTreeClassifier(random_state=0),
        KNeighborsClassifier(1),
        DummyClassifier(),
        RandomForestClassifier(10, random_state=0),
    ],
    ids=lambda model: type(model).__name__,
)
@pytest.mark.parametrize("rule", ["auto", "band", "quantile", "wrong"])
def test_no_rule_calls_more_bad_than_it_says_where_confidence_ties(model, rule):
    fitted = model.fit(ALL[NUMBERS][OLD], TEXT[OLD])
    wrong = fitted.predict(X) != Y
    bad = hs.failures(fitted, X, Y, rule=rule).rows["is_bad"]
    assert bad.mean() <= 0.5
    ties = len(np.unique(fitted.predict_proba(X))) <= 2
    if ties and rule != "quantile":
        # only what is really wrong
        assert not (bad.to_numpy() & ~wrong.to_numpy()).any()


def test_where_nothing_tells_rows_apart_all_rows_are_compared():
    perfect = pd.Series(SIGNAL[NEW])
    other = perfect + np.random.default_rng(0).normal(size=len(X))
    result = hs.compare(perfect, {"g": other}, X, SIGNAL[NEW])
    assert result.table["overall"].tolist() == ["worse"]
    assert result.table["where_f_fails"].tolist() == ["no claim"]
    assert "nothing tells rows apart" in result.weighting
    assert "no loss at all" in result.headline()[0]


def test_on_noise_nothing_foretells_where_f_fails():
    rng = np.random.default_rng(5)
    # a constant: a model that fits noise fails more often where it decides for the rarer class
    rows = pd.DataFrame(rng.normal(size=(600, 4)), columns=list("abcd"))
    y = (rng.random(600) < 0.4).astype(int)
    model = DummyClassifier().fit(rows[:200], y[:200])
    report = hs.failures(model, rows[200:], y[200:])
    assert report.problem.startswith("nothing foretells where F fails")
    assert report.rows["is_bad"].mean() == pytest.approx(
        (model.predict(rows[200:]) != y[200:]).mean()
    )
    text = repr(hs.compare(model, {"g": model}, rows[200:], y[200:]))
    assert "Where F fails: no figures, since nothing foretells where F fails" in text


def test_a_class_without_a_labelled_row_is_a_class_all_the_same():
    three = TEXT.where(np.arange(N) % 40 > 0, "maybe")
    model = RandomForestClassifier(10, random_state=0).fit(
        ALL[NUMBERS][OLD], three[OLD]
    )
    result = hs.compare(model, {"g": model.predict_proba(X)}, X, Y, refits=0)
    assert result.table["overall_change"].tolist() == [0]
    p = model.predict_proba(X)
    truth = np.column_stack([label == Y for label in model.classes_])
    brier = float(((p - truth) ** 2).sum(axis=1).mean())
    assert result.row("g", "overall")["loss_f"] == pytest.approx(brier)
    wrong = float((model.predict(X) != Y).mean())
    assert hs.estimate_error(model, X, Y).rows[0].point == pytest.approx(wrong)


def test_a_classifier_of_numbers_is_no_regression():
    digits = (ALL["age"] // 10).astype(int)
    model = RandomForestClassifier(10, random_state=0).fit(ALL[NUMBERS], digits)
    assert hs.compare(model, {"g": model}, X, digits[NEW]).loss_name == "Brier loss"
    assert hs.estimate_error(model, X, digits[NEW]).loss == "zero_one"
    numbers = RandomForestRegressor(10, random_state=0).fit(ALL[NUMBERS], digits % 2)
    loss = hs.compare(numbers, {"g": numbers}, X, digits[NEW] % 2).loss_name
    assert loss.startswith("squared error")


def test_a_code_of_the_target_tells_nothing_of_where_f_fails():
    result = hs.compare(F, {"g": F}, X.assign(code=(Y == "yes") * 1), Y, refits=0)
    assert any("'code' tells the target" in note for note in result.notes)
    assert not result.slices["slice"].str.contains("code").any()


def test_groups_and_times_from_python():
    shop = pd.Series(np.arange(len(X)) // 10, index=X.index)
    named = hs.compare(F, {"g": P}, X.assign(shop=shop), Y, groups="shop", refits=0)
    given = hs.compare(F, {"g": P}, X, Y, groups=shop.sample(frac=1), refits=0)
    pd.testing.assert_frame_equal(named.contrasts, given.contrasts)
    assert any("clustered by the 25 groups" in note for note in named.notes)
    days = pd.date_range("2024-01-01", periods=len(X))
    ordered = hs.compare(F, {"g": P}, X, Y, time=days, refits=0)
    assert any("forward in time" in note for note in ordered.notes)


@pytest.mark.parametrize("rows", [X[NUMBERS], X[NUMBERS].to_numpy()])
def test_columns_that_are_taken_by_position_are_named(rows):
    model = RandomForestClassifier(10, random_state=0)
    model.fit(ALL[NUMBERS].to_numpy()[OLD], TEXT[OLD])
    result = hs.compare(model, {"g": model}, rows, Y, refits=0)
    said = [note for note in result.notes if "F, g were fitted on an array" in note]
    assert len(said) == isinstance(rows, pd.DataFrame)


@pytest.mark.parametrize(
    ("cells", "ask", "message"),
    [
        ("2024-03-01", lambda when: when.dt.month, "when came as text: Parquet"),
        ("1,5", lambda when: when.mean(), r"when came as text: .*--decimal ,"),
    ],
)
def test_texts_that_are_none_are_named_where_the_model_stops(cells, ask, message):
    with pytest.raises(HardsynthError, match=message):
        hs.failures(lambda rows: ask(rows["when"]), X.assign(when=cells), Y)


def test_an_estimate_of_a_model_of_other_classes_is_refused():
    with pytest.raises(HardsynthError, match="nearly the same label"):
        hs.estimate_error(F, X, Y.str.title())


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        ([1, 2, 3], ""),
        ([3, 1, 2], ""),
        ([3, 1, 9], "no row whose id is 2"),
        ([3, 1, 1], "more than one row whose id is 1"),
    ],
)
def test_files_that_share_an_id_are_joined_by_it(ids, message):
    given = pd.DataFrame({"id": ids, "prediction": np.array(ids, dtype=float)})
    rows = pd.DataFrame({"id": [1.0, 2.0, 3.0], "age": [5, 6, 7]})
    if message:
        with pytest.raises(HardsynthError, match=message):
            join_by_shared_columns(given, rows, "p.csv")
    else:
        joined = join_by_shared_columns(given, rows, "p.csv")
        assert joined["prediction"].tolist() == [1, 2, 3]


def test_numbers_that_a_float_does_not_hold_are_not_put_to_a_model(tmp_path):
    """Ids of eight shops that become one as 64-bit floats are refused where F looks at them."""
    table = pd.DataFrame(
        {"shop": 2**60 + 10 * (np.arange(200) % 8), "x": X["age"][:200], "y": Y[:200]}
    )
    model = DecisionTreeClassifier(max_depth=1).fit(table[["shop", "x"]], table["y"])
    blind = DecisionTreeClassifier(max_depth=1).fit(table[["x"]], table["y"])
    features = table[["shop", "x"]]
    for door in (
        lambda F: hs.harden(table, "y", model=F, out=tmp_path / "hard"),
        lambda F: hs.estimate_error(F, features, table["y"], unlabelled=features),
    ):
        with pytest.raises(HardsynthError, match=r"'shop', whose whole numbers beyond"):
            door(model)
    # who does not look at them may be asked
    others = features.assign(x=features["x"] + 0.5)
    report = hs.estimate_error(blind, features, table["y"], unlabelled=others)
    assert report.n == 200


def test_predictions_that_only_a_column_left_out_can_order_are_refused(tmp_path):
    """The ids of a table are texts, which a suite leaves out: the file is in another order."""
    ids = [f"E{number}" for number in range(250)]
    table = X.assign(id=ids, y=SIGNAL[NEW])
    task = make_task(table, "y", name="t")
    chosen = make_task(table.drop(columns="id"), "y", name="t")
    given = pd.DataFrame({"id": ids, "prediction": X["age"].to_numpy()})
    path = tmp_path / "p.csv"
    given.to_csv(path, index=False)
    check_same_order(path, task, chosen)
    given.sample(frac=1, random_state=0).to_csv(path, index=False)
    assert read_predictions(path, task).f.tolist() == X["age"].tolist()
    with pytest.raises(HardsynthError, match="a column that the suite leaves out"):
        check_same_order(path, task, chosen)


@pytest.mark.parametrize(
    ("texts", "numbers"),
    [
        (["0,123", "0,5"], [0.123, 0.5]),
        (["-1,5", "2"], [-1.5, 2]),
        (["1,5e3", "0,25"], [1500, 0.25]),
        # of thousands, or ids
        (["1,234", "5,678"], None),
        (["E1", "E2"], None),
        (["80000000000000000000", "80000000000000000007"], None),
    ],
)
def test_a_decimal_comma_is_read_where_it_is_one(texts, numbers):
    table = pd.DataFrame({"p": texts})
    read = with_points(table, Labels(()))["p"].tolist()
    assert read == (numbers or texts)
    # nor is a label
    assert with_points(table, Labels(tuple(texts)))["p"].tolist() == texts


class OfRisks:
    """A model as scikit-survival has them: it predicts risks unless it says that it does not."""

    def __init__(self, says=None):
        if says is not None:
            self._predict_risk_score = says

    def predict(self, X):
        return np.asarray(X)[:, 0]


OfRisks.__module__ = "sksurv.linear_model.coxph"


@pytest.mark.parametrize("says", [None, True, False])
def test_a_risk_is_no_time(says):
    rows, times = pd.DataFrame({"a": np.arange(60.0)}), np.arange(60.0) + 1
    F, model = LinearRegression().fit(rows, times), OfRisks(says)
    if says is False:
        hs.compare(F, {"g": model}, rows, times, refits=0)
        return
    for each in (model, Pipeline([("last", model)])):
        with pytest.raises(HardsynthError, match="scores are risks and no times"):
            hs.compare(F, {"g": each}, rows, times, refits=0)


def test_predictions_in_a_frame_of_polars_may_have_an_id():
    polars = pytest.importorskip("polars")
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"id": range(100, 200), "a": rng.normal(size=100)})
    y = rows["a"] + rng.normal(size=100)
    said = pd.DataFrame({"id": rows["id"], "prediction": rows["a"]})
    said = said.iloc[::-1].reset_index(drop=True)
    answers = [
        hs.compare(F, {"g": rows["a"] * 0.5}, rows, y, refits=0).row("g", "overall")
        for F in (said, polars.from_pandas(said), pd.array(rows["a"]))
    ]
    assert len({answer["rmse_f"] for answer in answers}) == 1
