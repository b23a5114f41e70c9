"""
Replace a deployed model?
=========================

You use a model F, and two other models might replace it. You have labelled rows that none of them
was fitted on. This page shows which model is better, and whether it is better *where F fails*. It
takes about a minute.

"""

# %%
# A model in use
# --------------
#
# A telephone company wants to predict which customers leave. The rows are simulated, so we know
# the truth: customers who often call the support behave differently, and the difference depends
# on how long they have been customers. A linear model cannot represent that.

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
# F is a logistic regression. The candidates are gradient boosting and naive Bayes. All three are
# fitted on last year's customers.

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
# A row is bad if F decides it wrongly, by its ``predict``.
# hardsynth looks for slices in one half of the rows and counts failures in the other half.

import hardsynth as hs

hs.failures(F, X_new, y_new)

# %%
# The first slices name customers who call often, which is what the linear model cannot represent.
#
# Which model is better there?
# ----------------------------
#
# All 1,000 new rows are test rows. ``train`` takes the rows that F was fitted on. F is fitted
# again on parts of them, which shows how much of a difference is luck.

result = hs.compare(
    F,
    candidates,
    X_new,
    y_new,
    train=(X_train, y_train),
)
result

# %%
# You can draw the picture on your own axes. A model to the left of the line has a smaller loss
# than F.

import matplotlib.pyplot as plt

figure, axes = plt.subplots(figsize=(6.4, 2.4), layout="constrained")
result.plot(axes)
plt.show()

# %%
# How to read it
# --------------
#
# * **Overall** is the column to decide on. It is a paired test on all rows, with equal weights.
# * **Where F fails** weights each row by the probability that F fails on it. That probability is
#   learnt from features alone, on other rows. So no row counts more because F happened to be
#   unlucky on it.
# * **Larger** gain there means that the candidate improves on F's weakness, and is not just
#   better everywhere.
#
# The same for each slice:

result.slices[["slice", "rows", "share", "model", "difference", "verdict"]]

# %%
# Keep the answer
# ---------------
#
# The answer is one HTML file that loads nothing from the network, so you can send it by mail.

import tempfile
from pathlib import Path

page = Path(tempfile.mkdtemp()) / "answer.html"
result.to_html(page)
print(f"{page.stat().st_size / 1024:.0f} KiB")

# %%
# If the models were saved with skops or joblib, the command line does the same:
#
# .. code-block:: console
#
#    $ hardsynth compare new.csv --target left --baseline F.skops \
#          --candidate boosting=boosting.skops --candidate bayes=bayes.skops \
#          --train old.csv --html answer.html
#
# Where to go on
# --------------
#
# * :doc:`/how-to/compare`: predictions instead of models, regression, and every term of the
#   answer.
# * :doc:`/how-to/models`: the files from which a model can be read.
# * :doc:`/how-to/estimate`: estimate F's true error from few labels.
