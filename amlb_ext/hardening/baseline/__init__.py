"""The baseline model F, whose failures the benchmark is made of.

F is a scikit-learn estimator that is fitted on each fold, a fitted model from a file, or a file of
predictions.

``estimator`` the interface of F, and F as an estimator · ``fitted`` F that was fitted elsewhere,
and the choice of F · ``asked`` F whose answers cost · ``replacements`` test rows as F and AMLB can
read them · ``forests`` predictions of random forests without detours.
"""
