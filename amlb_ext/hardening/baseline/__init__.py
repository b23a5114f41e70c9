"""The baseline model F, whose failures the benchmark is made of.

F is a scikit-learn estimator that is fitted on each fold, a fitted model from a file, or a file of
predictions.

``registry`` short names and import paths, and the estimators behind them · ``estimator`` the
interface of F, and F as an estimator · ``from_file`` F from a file, and the choice between the
three · ``predictions_file`` the format of predictions · ``model_columns`` the columns that a fitted
model is given · ``clones`` a fitted model, fitted again · ``trial`` F from a file, tried before any
work · ``replacements`` test rows as F and AMLB can read them · ``forests`` predictions
of random forests without detours · ``service`` F behind an
address · ``skops_files``, ``skops_types``, ``skops_trees`` model files of
others, looked through before anything of them is loaded or asked.

Nothing is imported here: ``hardsynth list`` reads the registry's names, without scikit-learn.
"""
