"""
Before you replace a model
==========================

You use a model F and consider another one, G. Who would be worse off? Is that more than training F
again would do? What could you do instead? This page answers that for a real table without rows to
spare, by cross-validation. It takes about a minute.

"""

# %%
# Two recipes and one table
# -------------------------
#
# The table has 442 patients and the progression of their diabetes after one year (Efron et al.
# 2004). F is a ridge regression, G a forest. Neither is fitted yet: both will be cloned.

from sklearn.datasets import load_diabetes
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
F = make_pipeline(StandardScaler(), RidgeCV())
G = RandomForestRegressor(100, min_samples_leaf=5, random_state=0)

# %%
# The question
# ------------
#
# With ``cv`` each patient is judged by models that were fitted on other patients. We count absolute
# errors, in points of the score, and name three groups that matter to us.

import hardsynth as hs

result = hs.compare(
    F,
    {"forest": G},
    X,
    y,
    cv=5,
    loss="absolute",
    segments=["sex", "age < 40", "bmi > 30"],
    refits=3,
)
print(result)

# %%
# How to read it
# --------------
#
# The first line decides on all patients. Its interval is wider than that of a hold-out with as many
# rows, since the verdict is of the *recipes*: other patients would have given other fits.
#
# Then comes the fifth of the patients for whom the forest is foreseen to lose. It was chosen
# without looking at their own errors. F fitted again on a bootstrap sample loses somewhere, too,
# and the line after it says how much. Only what goes beyond that is called harm.
#
# The curve shows the same for every share of patients, from the few that are foreseen worst to all.

result.plot_curve("forest")

# %%
# Segments that you name are judged with intervals that hold together. A group of fewer than thirty
# is not judged, and the table says how many rows it would take.

result.plot_segments()

# %%
# How many patients would decide what is open, if the estimates were true?

result.rows_needed

# %%
# What to do
# ----------
#
# The remedy is a mixture of both models, chosen on other rows than those that it is judged on.

remedy = result.remedy["forest"]
print(remedy.formula("forest"))

# %%
# With fitted models and rows that neither has seen, leave ``cv`` out. The remedy then is a fitted
# estimator that you can save and compare again.

half = len(X) // 2
F.fit(X[:half], y[:half])
G.fit(X[:half], y[:half])
held_out = hs.compare(F, {"forest": G}, X[half:], y[half:], loss="absolute")
held_out.remedy["forest"].model.predict(X[half:])[:3]
