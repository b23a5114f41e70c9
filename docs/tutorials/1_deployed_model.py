"""
Replace a deployed model?
=========================

You have a model in use, F, and two that might replace it. You have labelled rows that none of
them was fitted on. In a minute you know which of them is better, and whether it is better *where
F fails*.

"""

# %%
# A model in use
# --------------
#
# Customers of a telephone company stay or leave. The rows are drawn here, so that the truth is
# known: customers who call the support often behave differently, and how depends on how long they
# have been customers. A linear model cannot say that.

import numpy as np
import pandas as pd


def draw_customers(n_rows, seed):
    """Return features of ``n_rows`` customers, and whether they left."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "months": rng.integers(1, 72, n_rows),
            "calls": rng.poisson(2.0, n_rows),
            "bill": rng.gamma(4, 15, n_rows).round(2),
            "age": rng.integers(18, 80, n_rows),
        }
    )
    often = np.where(table["months"] < 24, -7.0, 5.0)
    score = 0.06 * (table["bill"] - 60) - 0.1 * (table["months"] - 36)
    score += np.where(table["calls"] >= 4, often, 0)
    left = rng.random(n_rows) < 1 / (1 + np.exp(-score))
    return table, np.where(left, "left", "stayed")


X_train, y_train = draw_customers(1000, seed=1)
X_new, y_new = draw_customers(1000, seed=2)

# %%
# F is a logistic regression. The candidates are boosting and naive Bayes. All are fitted
# on last year's customers.

from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

F = make_pipeline(StandardScaler(), LogisticRegression()).fit(X_train, y_train)
candidates = {
    "boosting": HistGradientBoostingClassifier(
        max_iter=60, max_leaf_nodes=8, random_state=0
    ),
    "bayes": GaussianNB(),
}
for model in candidates.values():
    model.fit(X_train, y_train)

# %%
# Where does F fail?
# ------------------
#
# The rule ``wrong`` calls a row bad when F gives its true class a probability of at most one half.
# The slices are found on one half of the rows and counted on the other half.

import hardsynth as hs

hs.failures(F, X_new, y_new, rule="wrong")

# %%
# The first slices name customers who call often: what the linear model cannot say.
#
# Which model is better there?
# ----------------------------
#
# All 1,000 new rows are test rows. ``train`` is what F was fitted on: F is fitted again on parts of
# it, to see how much luck there is in a single fit.

result = hs.compare(F, candidates, X_new, y_new, train=(X_train, y_train), rule="wrong")
result

# %%
# The picture by itself, on axes of your own. Left of the line a model loses less than F.

import matplotlib.pyplot as plt

figure, axes = plt.subplots(figsize=(6.4, 2.4), layout="constrained")
result.plot(axes)
plt.show()

# %%
# How to read it
# --------------
#
# * **Overall** is the column to decide on. It is a paired test on all rows, each counting alike.
# * **Where F fails** weights each row by its chance to be a bad row of F. That chance is learnt
#   from features alone, on other rows. So no row counts more because F happened to be unlucky.
# * **Larger** gain there means that the candidate mends F's weakness, and is not just a
#   better model everywhere.
#
# Slice by slice:

result.slices[["slice", "rows", "share", "model", "difference", "verdict"]]

# %%
# Keep the answer
# ---------------
#
# One page that loads nothing from the network. It can be mailed.

import tempfile
from pathlib import Path

page = Path(tempfile.mkdtemp()) / "answer.html"
result.to_html(page)
print(f"{page.stat().st_size / 1024:.0f} KiB")

# %%
# The same from files, where the models were saved with skops or joblib:
#
# .. code-block:: console
#
#    $ hardsynth compare new.csv --target left --baseline F.skops --rule wrong \
#          --candidate boosting=boosting.skops --candidate bayes=bayes.skops \
#          --train old.csv --html answer.html
#
# Where to go on
# --------------
#
# * :doc:`/how-to/compare`: predictions in place of models, regression, every word of the answer.
# * :doc:`/how-to/models`: which files hold a model.
# * :doc:`/how-to/estimate`: how large F's error really is, when there are few labels.
