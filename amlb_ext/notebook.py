"""Doors for a notebook: tables and models in memory where commands take files."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import cloudpickle

from amlb_ext.core.checked_call import Pair, Text, checked_call
from amlb_ext.core.config import build_config
from amlb_ext.core.errors import ConfigError
from amlb_ext.core.files import inputs_folder, write_file
from amlb_ext.core.frames import to_pandas, with_columns
from amlb_ext.core.parquet import write_frame
from amlb_ext.estimate import EstimateReport, estimate
from amlb_ext.models.adapter import ModelAdapter
from amlb_ext.models.columns import Align, align_rows
from amlb_ext.models.given_table import GivenTable, target_values
from amlb_ext.pipeline import Request, generate_suite
from amlb_ext.report.notebook import Suite
from amlb_ext.sources.table import Table
from amlb_ext.units.labelled import free_target_name


@checked_call
def harden(
    table: Any,
    target: Text | None = None,
    *,
    model: Any = None,
    out: Text | Path,
    settings: Mapping[str, Any] | None = None,
    certificate: Literal["quick", "full", "none"] = "quick",
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
    if not out.name:
        raise ConfigError(f"out is {str(out)!r}", "name a folder of its own")
    layers: list[dict[str, Any]] = [dict(settings or {})]
    if target is not None:
        layers.append({"source": {"target": target}})
    if isinstance(model, str):
        layers.append({"baseline": {"model": model}})
    elif model is not None:
        adapter = ModelAdapter(model, "model")
        if adapter.is_predictions:
            raise ConfigError(
                f"model is a {type(model).__name__} of predictions, which predict no new rows",
                "give a fitted model, or the name of one",
            )
        file = out.with_name(f"{out.name}_inputs") / "model.joblib"
        layers.append({"baseline": {"model": str(file), "trust_pickle": True}})
    # all that can be refused without the files comes before them
    config = build_config(*layers)
    is_named = isinstance(table, str | Path)
    frame = None if is_named else to_pandas(table, what="table")
    with inputs_folder(out) as inputs:
        if frame is not None:
            table = inputs / "table.parquet"
            write_file(table, lambda part: write_frame(frame, part, what="table"))
        if model is not None and not isinstance(model, str):
            content = cloudpickle.dumps(model)
            write_file(inputs / "model.joblib", lambda part: part.write_bytes(content))
        request = Request(
            sources=(str(table),),
            config=config,
            out=out,
            certificate=certificate,
            force=force,
            quiet=quiet,
        )
        report = generate_suite(request)
    if report.failures:
        failure = report.failures[0]
        raise ConfigError(f"{failure['task']}: {failure['reason']}")
    return Suite.load(out)


@checked_call
def estimate_error(
    F: Any,
    X: Any,
    y: Any,
    *,
    train: Pair | None = None,
    unlabelled: Any = None,
    align: Align = "auto",
    **settings: Any,
) -> EstimateReport:
    """Estimate the true error of a fitted model from few labelled rows.

    Parameters
    ----------
    F : estimator, function or predictions
        As of :func:`amlb_ext.comparison.compare.compare`.
    X : DataFrame or array of shape (n, d)
        Labelled rows that F was not fitted on.
    y : array-like of shape (n,)
    train : tuple of (X, y), optional
        The rows that F was fitted on: they bound a numeric target, and X is compared with them.
    unlabelled : DataFrame or array of shape (m, d), optional
        Real rows without labels of the same population.
    align : {'auto', 'index', 'position'}
        How rows of ``y`` and of predictions belong to those of ``X``, see
        :func:`amlb_ext.comparison.compare.compare`.
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
    >>> import numpy as np
    >>> import pandas as pd
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
    table = GivenTable.of(X)
    target = free_target_name(y, table.frame)
    tables: dict[str, Any] = {}
    if train is not None:
        old = GivenTable.of(train[0], "train")
        if (old.is_unnamed or table.is_unnamed) and old.frame.shape[
            1
        ] == table.frame.shape[1]:
            # an array has nothing but the place of its columns
            old = dataclasses.replace(
                old, frame=old.frame.set_axis(table.frame.columns, axis=1)
            )
        tables["train"] = _with_target(old, train[1], target, "train", align)
    if unlabelled is not None:
        rows = to_pandas(unlabelled, what="unlabelled").reset_index(drop=True)
        tables["unlabelled"] = Table("unlabelled", rows)
    return estimate(
        F,
        _with_target(table, y, target, "X", align),
        target=target,
        given=table,
        align=align,
        **tables,
        **settings,
    )


def _with_target(
    table: GivenTable, y: Any, target: str, name: str, align: Align
) -> Table:
    """Return rows with their targets as a table that was read."""
    aligned = align_rows(y, table.rows, what="y", of=name, align=align)
    frame = table.frame.reset_index(drop=True)
    return Table(name, with_columns(frame, {target: target_values(aligned).array}))
