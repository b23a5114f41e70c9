"""The null control: F itself, fitted again, submitted as if it were a candidate.

Rows chosen by F's realised errors flatter *any* second model, F's own twin included (regression
to the mean). A twin has the same algorithm, another seed, and another random part of the training
rows; what it seems to win over F is the size of that illusion. Up to five twins come with the
suite, from the cross-fitting of its folds; more are fitted when asked for.

Notation
--------
R : number of re-fits
Z, y : (n, d), (n,) encoded training rows of the fold and their targets
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from amlb_ext.core.config import BaselineConfig
from amlb_ext.core.errors import ModelError, SuiteError
from amlb_ext.core.rng import derive_int_seed, random_stream
from amlb_ext.core.task import Kind
from amlb_ext.hardening.baseline.estimator import EstimatorBaseline
from amlb_ext.models.files import comes_fitted
from amlb_ext.models.registry import (
    ModelSpec,
    check_model_listed,
    resolve_model,
)
from amlb_ext.suite import SuiteFiles

#: Twins of F for the null control: with fewer their luck is taken for a difference too often.
REFITS = 5
#: Part of the training rows that each re-fit sees. A bootstrap of the old size makes linear
#: re-fits worse than F by about 1 % and the check nearly blind (benchmarks/claims/null_control.py).
NULL_SHARE = 0.8
#: Draws of that part until it holds every class, where it can.
_DRAWS = 20


def baseline_spec(settings: Mapping[str, Any], kind: Kind) -> ModelSpec | None:
    """Return the estimator that F is, from a manifest's settings; None when F came as a file.

    Parameters
    ----------
    settings : mapping
        ``manifest.config``.
    kind : Kind

    Raises
    ------
    ModelError
        F's class is not installed here.

    Examples
    --------
    >>> baseline_spec({"baseline": {"model": "ridge"}}, Kind.REGRESSION).path
    'sklearn.linear_model.Ridge'
    >>> baseline_spec({"baseline": {"model": "f.pkl", "sha256": "0"}}, Kind.REGRESSION) is None
    True
    """
    config = _baseline_config(settings)
    return None if comes_fitted(config) else resolve_model(config, kind)


def check_baseline(suite: SuiteFiles) -> None:
    """Raise where a suite names a class for F that is not on the list of permitted ones.

    Raises
    ------
    SuiteError
        Before anything of it is imported.
    """
    config = _baseline_config(suite.manifest.config)
    if not comes_fitted(config):
        for kind in {task.kind for task in suite.tasks.values()}:
            check_model_listed("the suite's baseline", config, kind)


def _baseline_config(settings: Mapping[str, Any]) -> BaselineConfig:
    """Return the settings of F that a manifest holds, without permissions."""
    # a suite must not grant the right to unpickle its own file
    fields = set(BaselineConfig.model_fields) - {"trust_pickle"}
    try:
        entry = settings["baseline"]
        stored = {name: value for name, value in entry.items() if name in fields}
        return BaselineConfig(**stored)
    # whatever stands there instead of a mapping of valid settings
    except (ValueError, KeyError, TypeError, AttributeError):
        raise SuiteError(
            "the suite's manifest does not say in a readable way what its baseline is",
            "run the command that generated the suite again",
        ) from None


def refit_rows(y: np.ndarray, n_classes: int, rng: np.random.Generator) -> np.ndarray:
    """Return the positions of a random 80 % of the rows, ascending, of every class where possible.

    Examples
    --------
    >>> len(refit_rows(np.arange(10) % 2, 2, np.random.default_rng(0)))
    8
    """
    size = max(2, round(NULL_SHARE * len(y)))
    # of a rare class a draw may hold no row, and F could not be fitted on it as on all rows
    for _ in range(_DRAWS):
        rows = np.sort(rng.choice(len(y), min(size, len(y)), replace=False))
        lacks_class = n_classes and len(np.unique(y[rows])) < len(np.unique(y))
        if not lacks_class:
            break
    return rows


def refit_baseline(
    baseline: EstimatorBaseline,
    Z: np.ndarray,
    y: np.ndarray,
    refits: int,
    seed: int,
    key: tuple[str | int, ...],
) -> tuple[list[EstimatorBaseline], str]:
    """Fit F again, ``refits`` times; the streams are keyed by (seed, key, number of the re-fit).

    Returns
    -------
    twins : list of EstimatorBaseline
    reason : str
        Why there are fewer than asked; empty otherwise.
    """
    twins = []
    for number in range(refits):
        # two streams, so that F's own randomness does not depend on which rows were drawn
        rng = random_stream(seed, *key, "null", number)
        rows = refit_rows(y, baseline.n_classes, rng)
        twin_seed = derive_int_seed(seed, *key, "null-fit", number)
        twin = EstimatorBaseline(
            baseline.spec, baseline.kind, baseline.n_classes, baseline.n_categorical
        )
        try:
            twins.append(twin.fit(Z[rows], y[rows], twin_seed))
        except ModelError as error:
            return twins, f"F could not be fitted again: {error}"
    return twins, ""
