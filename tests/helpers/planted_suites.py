"""Suites of tables with a planted failure region, small enough to certify in a test."""

from dataclasses import replace

import numpy as np
import pandas as pd

from amlb_ext.core.config import build_config
from amlb_ext.pipeline import Request, generate_suite
from amlb_ext.validity.certify import CertifySettings, certify_task
from amlb_ext.validity.task_rows import REFIT_PREFIX

COMMON = {
    "baseline": {"model": "ridge"},
    "synthesizer": {"name": "local"},
    "source": {"target": "y"},
    "split": {"folds": 2},
    "train_hard": False,
    # the tests look at the parts, not at the mixture of the main task
    "composition": ["bad", "synthetic"],
}

#: Candidates that are enough for a ranking and cheap to fit, for what does not ask for the zoo.
FEW = (
    "ridge",
    "knn",
    "sklearn.naive_bayes.GaussianNB",
    "sklearn.tree.DecisionTreeClassifier:max_depth=2",
    "sklearn.tree.DecisionTreeClassifier:max_depth=8",
)


def region_table(n=1500):
    """A linear rule that is reversed in a corner: a linear F fails there, trees do not."""
    rng = np.random.default_rng(0)
    X = rng.random((n, 4))
    label = X[:, 0] + X[:, 1] > 1
    label ^= (X[:, 2] > 0.6) & (X[:, 3] > 0.6)
    label ^= rng.random(n) < 0.03
    frame = pd.DataFrame(X, columns=list("abcd")).assign(
        e=rng.choice(["u", "v", "w"], n)
    )
    return frame.assign(y=np.where(label, "yes", "no"))


def make_suite(folder, table, **more):
    """Generate a suite without a certificate: the tests take their own."""
    table.to_csv(folder / "planted.csv", index=False)
    out = folder / "suite"
    config = build_config(COMMON, more)
    request = Request(
        (str(folder / "planted.csv"),), config, out, quiet=True, certificate="none"
    )
    assert generate_suite(request).written
    return out


def certify_rows(rows, **settings):
    """Certify a task in memory."""
    return certify_task(rows, CertifySettings(**settings)).certificate


def tampered(rows, part, change):
    """Return the task with ``change(rows)`` in place of a part.

    What the suite stored of F's re-fits is dropped, since it speaks of the rows as they were.
    """
    folds = {}
    for fold, (train, parts) in rows.folds.items():
        changed = {}
        for name, kept in parts.items():
            altered = change(kept) if name == part else kept
            about = altered.provenance
            refits = [column for column in about if column.startswith(REFIT_PREFIX)]
            changed[name] = replace(altered, provenance=about.drop(columns=refits))
        folds[fold] = (train, changed)
    return replace(rows, folds=folds)
