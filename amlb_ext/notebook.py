"""Doors for a notebook: tables and models in memory where commands take files."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import joblib
import numpy as np
import pandas as pd

from amlb_ext.comparison.labelled import as_frame, free_target_name
from amlb_ext.core.config import build_config
from amlb_ext.core.errors import ConfigError, DataError, HardsynthError
from amlb_ext.core.files import write_file
from amlb_ext.core.frames import with_columns
from amlb_ext.estimate import EstimateReport, estimate
from amlb_ext.pipeline import Request, generate_suite
from amlb_ext.report.notebook import Suite


def harden(
    table: pd.DataFrame | str | Path,
    target: str | None = None,
    *,
    model: Any = None,
    out: str | Path,
    settings: Mapping[str, Any] | None = None,
    certificate: str = "quick",
    force: bool = False,
    quiet: bool = True,
) -> Suite:
    """Make a hard benchmark of one table, and open it.

    The same suite as ``hardsynth generate`` makes. A table or a model in memory is kept as a file
    in the folder ``OUT_inputs`` beside the suite, so that ``hardsynth verify --repair`` finds it.

    Parameters
    ----------
    table : DataFrame, or any source that ``hardsynth generate`` takes
    target : str, optional
        The column to predict; the one that AMLB would choose when omitted.
    model : fitted estimator or str, optional
        F: a fitted scikit-learn compatible model, or a short name or import path of one to fit;
        the default baseline when omitted. A fitted model is judged as it is; for the null control
        its clones are fitted on the table's training rows.
    out : path
        The suite's folder.
    settings : mapping, optional
        Settings by stage, as in a configuration file: ``{"split": {"folds": 2}}``.
    certificate : {'quick', 'full', 'none'}
    force : bool
        Replace a suite that was made with other settings.
    quiet : bool
        No progress bars.

    Returns
    -------
    Suite

    Raises
    ------
    HardsynthError
        Bad input; nothing was written.

    Examples
    --------
    >>> import hardsynth as hs                                            # doctest: +SKIP
    >>> suite = hs.harden(table, "price", model=deployed, out="hard")     # doctest: +SKIP
    >>> suite.tasks                                                       # doctest: +SKIP
    """
    out = Path(out)
    inputs = out.with_name(f"{out.name}_inputs")
    had_inputs = inputs.exists()
    layers: list[dict[str, Any]] = [dict(settings or {})]
    if target is not None:
        layers.append({"source": {"target": target}})
    if isinstance(model, str):
        layers.append({"baseline": {"model": model}})
    elif model is not None:
        if not hasattr(model, "predict"):
            raise ConfigError(
                f"model is a {type(model).__name__}, which has no predict",
                "give a fitted model, or the name of one",
            )
        path = inputs / "model.joblib"
        write_file(path, lambda part: joblib.dump(model, part))
        layers.append({"baseline": {"model": str(path), "trust_pickle": True}})
    if isinstance(table, pd.DataFrame):
        path = inputs / "table.parquet"
        write_file(path, lambda part: table.to_parquet(part, index=False))
        source = str(path)
    else:
        source = str(table)
    request = Request(
        sources=(source,),
        config=build_config(*layers),
        out=out,
        certificate=certificate,
        force=force,
        quiet=quiet,
    )
    try:
        report = generate_suite(request)
    except HardsynthError:
        # a suite that was never made needs no copy of its inputs
        if not had_inputs:
            shutil.rmtree(inputs, ignore_errors=True)
        raise
    if report.failures:
        failure = report.failures[0]
        raise ConfigError(f"{failure['task']}: {failure['reason']}")
    return Suite.load(out)


def estimate_error(
    F: Any,
    X: Any,
    y: Any,
    *,
    train: tuple[Any, Any] | None = None,
    unlabelled: Any = None,
    **settings: Any,
) -> EstimateReport:
    """Estimate the true error of a fitted model from few labelled rows.

    Parameters
    ----------
    F : estimator
        Fitted, with ``predict`` (and ``predict_proba`` for classes).
    X : DataFrame or array of shape (n, d)
        Labelled rows that F was not fitted on.
    y : array-like of shape (n,)
    train : tuple of (X, y), optional
        The rows that F was fitted on: they bound a numeric target, and X is compared with them.
    unlabelled : DataFrame or array of shape (m, d), optional
        Real rows without labels of the same population.
    **settings
        Keyword arguments of :func:`amlb_ext.estimate.estimate.estimate`: ``loss``, ``level``,
        ``class_prior``, ...

    Returns
    -------
    EstimateReport

    Raises
    ------
    DataError, ModelError, ConfigError
        As :func:`amlb_ext.estimate.estimate.estimate`.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> rng = np.random.default_rng(0)
    >>> X = pd.DataFrame({"a": rng.normal(size=600), "b": rng.normal(size=600)})
    >>> y = np.where(X["a"] + 0.5 * rng.normal(size=600) > 0, "yes", "no")
    >>> F = LogisticRegression().fit(X[:400], y[:400])
    >>> report = estimate_error(F, X[400:], y[400:], train=(X[:400], y[:400]))
    >>> quoted = next(row for row in report.rows if row.recommended)
    >>> bool(quoted.low < np.mean(F.predict(X[400:]) != y[400:]) < quoted.high)
    True
    """
    frame = as_frame(X)
    target = free_target_name(y, frame)
    # the estimators read files: what is in memory is lent to them as files
    with TemporaryDirectory(prefix="hardsynth-") as folder:
        model = Path(folder) / "F.joblib"
        joblib.dump(F, model)
        data = _write_table(frame, y, target, Path(folder) / "labelled.parquet")
        train_file, unlabelled_file = None, None
        if train is not None:
            train_file = _write_table(
                as_frame(train[0]), train[1], target, Path(folder) / "train.parquet"
            )
        if unlabelled is not None:
            unlabelled_file = Path(folder) / "unlabelled.parquet"
            as_frame(unlabelled).to_parquet(unlabelled_file, index=False)
        return estimate(
            str(model),
            data,
            target=target,
            train=train_file,
            unlabelled=unlabelled_file,
            trust_pickle=True,
            **settings,
        )


def _write_table(frame: pd.DataFrame, y: Any, target: str, path: Path) -> Path:
    values = np.asarray(y)
    if values.shape != (len(frame),):
        raise DataError(
            f"{len(frame)} rows of features and a target of the shape {values.shape}",
            "give one target for each row",
        )
    with_columns(frame, {target: values}).to_parquet(path, index=False)
    return path
