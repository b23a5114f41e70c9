"""F of a suite, fitted again on bootstrap samples of each fold's training rows.

They show what training again does by itself, beside which harm is judged
(:mod:`amlb_ext.swap.harm`). The re-fits that a suite keeps saw a part of the rows alone, and are no
such null.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from amlb_ext.core.errors import HardsynthError, ModelError
from amlb_ext.core.files import sha256_file
from amlb_ext.core.losses import Loss
from amlb_ext.core.rng import derive_int_seed, random_stream
from amlb_ext.hardening.baseline.estimator import Baseline, EstimatorBaseline
from amlb_ext.hardening.baseline.fitted import FittedBaseline
from amlb_ext.hardening.encode import Encoder, TargetEncoder
from amlb_ext.models.files import is_model_file, load_fitted_model
from amlb_ext.report.losses import as_predicted
from amlb_ext.report.predictions import TaskPredictions, row_clusters
from amlb_ext.suite import SuiteFiles
from amlb_ext.swap.answer import Side
from amlb_ext.swap.harm import bootstrap_rows
from amlb_ext.validity.task_rows import baseline_spec, check_baseline


def fit_baseline_again(
    suite: SuiteFiles, task: str, full: TaskPredictions, loss: Loss, refits: int
) -> tuple[tuple[Side, ...], str]:
    """Return what re-fits of F lose on the untouched test rows, and what they predict of them.

    Parameters
    ----------
    suite : SuiteFiles
    task : str
    full : TaskPredictions
        The untouched test rows.
    loss : Loss
        What is compared.
    refits : int
        Samples of each fold.

    Returns
    -------
    tuple of Side
        Empty where F cannot be fitted again.
    str
        Why; else empty.

    Raises
    ------
    SuiteError
        The suite is damaged, or names a class for F that is not permitted.
    """
    check_baseline(suite)
    classes = (len(full.labels),) if full.labels else ()
    f = np.full((refits, len(full), *classes), np.nan)
    fold_of = full.rows["amlb_fold"].to_numpy()
    for index in range(len(suite.amlb_task(full.name).folds)):
        rows = np.flatnonzero(fold_of == index)
        try:
            f[:, rows] = _predict_fold(suite, task, full, index, rows, refits)
        except HardsynthError as error:
            return (), error.message
    sides = []
    for own in f if full.labels else f * full.span + full.low:
        decided = own.argmax(axis=1) if full.labels else None
        said = as_predicted(full, own, decided)
        sides.append(Side(losses=loss(said), predicted=said))
    return tuple(sides), ""


def _predict_fold(
    suite: SuiteFiles,
    task: str,
    full: TaskPredictions,
    index: int,
    test_rows: np.ndarray,
    refits: int,
) -> np.ndarray:
    """Return predictions of a fold's test rows, scaled or probabilities, ``(refits, n, ...)``."""
    coding = suite.coding(full.name)
    train_file, test_file = suite.pair(full.name, index)
    features, target = coding.decode(coding.read_csv(train_file))
    asked, _ = coding.decode(coding.read_csv(test_file))
    columns = tuple(column.as_column() for column in coding.columns)
    encoder = Encoder(columns).fit(features)
    scale = TargetEncoder(full.kind, full.labels, target)
    Z, y = encoder.transform(features), scale.transform(target)
    Z_asked = encoder.transform(asked)
    baseline = _read_baseline(suite, full, encoder, scale)
    if baseline.comes_fitted:
        own = full.own()
        found = baseline.predict(Z_asked) * scale.span + scale.low
        if own is None or not np.allclose(found, own[test_rows], atol=1e-6):
            raise ModelError(
                "as it is loaded here, it does not predict what the suite has of it"
            )
    fold = suite.amlb_task(full.name).folds[index]
    about = suite.train_provenance(task, fold)
    group = row_clusters(about) if "group" in about else None
    seed, all_rows = suite.manifest.seed, np.arange(len(y))
    # a fit is asked about the rows beside its own, too, of which nobody needs more than one
    asked_beside = all_rows[:1]
    samples = []
    for number in range(refits):
        rng = random_stream(seed, task, fold, "harm", number)
        samples.append((bootstrap_rows(len(y), rng, group), asked_beside))
    _, fits = baseline.cross_fit(
        Z, y, all_rows, samples, derive_int_seed(seed, task, fold, "harm-fit")
    )
    if not fits:
        raise ModelError(
            baseline.refit_problem_ or "a sample of its rows holds a single class"
        )
    return np.stack([fit.predict(Z_asked) for fit in fits])


def _read_baseline(
    suite: SuiteFiles, full: TaskPredictions, encoder: Encoder, scale: TargetEncoder
) -> Baseline:
    """Return F, not yet fitted, or as it came where its file is still there."""
    settings = suite.manifest.config
    spec = baseline_spec(settings, full.kind)
    if spec is not None:
        return EstimatorBaseline(
            spec, full.kind, scale.n_classes, encoder.n_categorical_
        )
    entry = settings["baseline"]
    path = Path(str(entry["model"]))
    if not is_model_file(path.name):
        raise ModelError("it came as predictions or as a service")
    if not path.is_file() or sha256_file(path) != entry.get("sha256"):
        raise ModelError(
            f"its file, {path}, is not there as it was",
            "run the command where the file lies",
        )
    # nobody said here that a pickle is trusted
    model = load_fitted_model(path, trust_pickle=False)
    return FittedBaseline(model, path.name, encoder=encoder, target=scale)
