"""F, its re-seeded null and a candidate on a suite's files, without AMLB.

The integrations of ``frameworks.yaml`` are fitted here on the training files and scored on the
test files that AMLB would give them, so that a suite can be read before AMLB is installed. Only
code of this installation runs; what a suite carries under ``extensions/`` does not.
"""

from __future__ import annotations

import importlib.util
import itertools
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import log_loss
from tqdm import tqdm

from amlb_ext.core.assets import asset_path
from amlb_ext.core.errors import RunError, SuiteError
from amlb_ext.core.estimators import check_is_listed
from amlb_ext.core.parallel import available_cores, run_jobs
from amlb_ext.core.row_losses import brier_loss, squared_error
from amlb_ext.core.task import Kind
from amlb_ext.core.yaml_reader import read_yaml
from amlb_ext.runner.agreement import (
    ComparedRows,
    Disagreement,
    find_disagreements,
    stored_predictions,
    stored_refits,
)
from amlb_ext.runner.results import RunWriter
from amlb_ext.suite import AmlbTask, Suite
from amlb_ext.suite.coding import Coding
from amlb_ext.suite.layout import BASELINE_FRAMEWORK, INTEGRATION, is_plain_name


@dataclass(frozen=True)
class Scores:
    """Scores of a suite's integrations, and where F is not the F of the suite.

    Attributes
    ----------
    table : DataFrame
        See :func:`score_suite`.
    disagreements : tuple of Disagreement
        See :mod:`amlb_ext.runner.agreement`.
    """

    table: pd.DataFrame
    disagreements: tuple[Disagreement, ...]


def score_suite(
    directory: Path,
    workers: int = 0,
    quiet: bool = True,
    with_hard: bool = False,
    results: Path | None = None,
    trusted: bool = False,
) -> pd.DataFrame:
    """Score every integration of a suite on each of its AMLB tasks; see :func:`compare_scores`.

    Returns
    -------
    DataFrame
        One row per AMLB task, fold and framework: ``task``, ``part`` (the AMLB task's suffix),
        ``fold`` (the source's number), ``framework``, ``metric`` (``rmse`` in the target's own
        unit, or ``logloss`` in nats), ``loss`` (lower is better), ``rows``.
    """
    scores = compare_scores(
        directory,
        workers=workers,
        quiet=quiet,
        with_hard=with_hard,
        results=results,
        trusted=trusted,
    )
    return scores.table


def compare_scores(
    directory: Path,
    *,
    workers: int = 0,
    quiet: bool = True,
    with_hard: bool = False,
    results: Path | None = None,
    trusted: bool = False,
) -> Scores:
    """Score every integration of a suite on each of its AMLB tasks, and hold F to the stored one.

    Parameters
    ----------
    directory : Path
    workers : int
        Processes, one task each; 0 for every core.
    quiet : bool
        No progress bar.
    with_hard : bool
        Also fit on the training files of ``_hard``, which are large and take most of the time.
    results : Path, optional
        An output folder to write predictions and scores to, as AMLB would, one run for each
        integration; what reads AMLB's results reads these.
    trusted : bool
        Fit any class that the suite names, with any parameters: ``--trust-suite``.

    Returns
    -------
    Scores

    Raises
    ------
    SuiteError
        No finished suite, or one that names a model that is not on the list; nothing was fitted.
    RunError
        A model that cannot be built.
    """
    suite = Suite.load(directory)
    if not trusted:
        for name, params in _frameworks(suite).items():
            _check_models(name, params)
    tasks = list(suite.tasks)
    jobs = [(str(directory), task, with_hard, results is not None) for task in tasks]
    rows_by_job: dict[int, list[dict[str, Any]]] = {}
    compared: dict[str, list[ComparedRows]] = {}
    run = (
        None
        if results is None
        else RunWriter(Path(results), Suite.load(directory).manifest.name)
    )
    workers = min(workers or available_cores(), len(jobs))
    with tqdm(total=len(jobs), desc="scores", unit="task", disable=quiet) as bar:
        for index, rows in run_jobs(_score_task, jobs, workers):
            for row in rows:
                predictions = row.pop("predictions")
                if (pair := row.pop("compared")) is not None:
                    compared.setdefault(row["amlb_task"], []).append(pair)
                if run is not None:
                    run.add(row, predictions)
            rows_by_job[index] = rows
            bar.update()
    if run is not None:
        run.finish()
    names = ["task", "part", "fold", "framework", "metric", "loss", "rows"]
    # Jobs end in any order; the table has the order of the tasks.
    in_order = itertools.chain.from_iterable(
        rows_by_job[index] for index in sorted(rows_by_job)
    )
    table = pd.DataFrame(in_order)[names]
    disagreements: list[Disagreement] = []
    for task in sorted(compared):
        disagreements += find_disagreements(task, ComparedRows.join(compared[task]))
    return Scores(table, tuple(disagreements))


def _score_task(
    directory: str, task: str, with_hard: bool, keep: bool
) -> list[dict[str, Any]]:
    suite = Suite.load(directory)
    frameworks = _frameworks(suite)
    parts = [
        part
        for part in suite.amlb_tasks.values()
        if part.task == task and (with_hard or part.suffix != "hard")
    ]
    rows = list(_rows(suite, parts, frameworks, _pipeline()))
    return rows if keep else [row | {"predictions": None} for row in rows]


def _frameworks(suite: Suite) -> dict[str, dict[str, Any]]:
    """Return the parameters of a suite's own integrations, by name."""
    try:
        listed = read_yaml(suite.layout.frameworks, SuiteError) or {}
        frameworks = {
            str(name): dict(entry.get("params") or {})
            for name, entry in listed.items()
            if entry.get("module") == INTEGRATION
        }
    except (OSError, AttributeError, ValueError, TypeError):
        raise SuiteError(
            f"{suite.layout.frameworks} cannot be read", "hardsynth verify DIR --repair"
        ) from None
    for name in frameworks:  # folders of results are named after them
        if not is_plain_name(name):
            raise SuiteError(
                f"frameworks.yaml names the framework {name!r}, which is no plain name",
                "the suite was tampered with: get it again from where it was made",
            )
    return frameworks


def _check_models(name: str, params: dict[str, Any]) -> None:
    for kind in ("classifier", "regressor"):
        if params.get(kind):
            own = params.get(f"{kind}_params") or {}
            check_is_listed(f"{name} in frameworks.yaml", str(params[kind]), own)


def _pipeline() -> ModuleType:
    path = asset_path("frameworks", "HardsynthSklearn", "pipeline.py")
    name = "amlb_ext_integration_pipeline"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, path)
        if spec is None or spec.loader is None:
            raise RunError(f"cannot load {path}", "install hardsynth again")
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
    return sys.modules[name]


def _rows(
    suite: Suite,
    parts: list[AmlbTask],
    frameworks: dict[str, Any],
    pipeline: ModuleType,
) -> Iterator[dict[str, Any]]:
    fitted: dict[tuple[str, str], Any] = {}
    for task in parts:
        coding = suite.coding(task.name)
        for index, fold in enumerate(task.folds):
            train, test = suite.pair(task.name, index)
            features, target = coding.decode(coding.read_csv(test))
            for name, params in frameworks.items():
                key = (name, task.train[index])
                if key not in fitted:
                    fitted[key] = _fit(pipeline, params, suite, task, train)
                if fitted[key] is None:  # the model does not serve this kind of task
                    continue
                predicted = fitted[key].predict(features)
                metric, loss = _loss(fitted[key], predicted, target)
                yield {
                    "amlb_task": task.name,
                    "amlb_fold": index,
                    "type": task.type.value,
                    "predictions": _table(coding, fitted[key], predicted, target),
                    "compared": _compared(
                        suite, task, index, fitted[key], predicted, target
                    )
                    if name == BASELINE_FRAMEWORK and task.suffix == "full"
                    else None,
                    "task": task.task,
                    "part": task.suffix,
                    "fold": fold,
                    "framework": name,
                    "metric": metric,
                    "loss": loss,
                    "rows": len(target),
                }


def _fit(
    pipeline: ModuleType,
    params: dict[str, Any],
    suite: Suite,
    task: AmlbTask,
    train: Path,
) -> Any:
    kind = "regressor" if task.type is Kind.REGRESSION else "classifier"
    if not params.get(kind):
        return None
    coding = suite.coding(task.name)
    features, target = coding.decode(coding.read_csv(train))
    classes = task.type is not Kind.REGRESSION
    try:
        settings = pipeline.Settings.from_params(params)
        model = pipeline.Model(
            settings, classes=classes, seed=suite.manifest.seed, cores=1
        )
        return model.fit(features, target)
    except ValueError as error:
        raise RunError(
            f"{params[kind]} cannot be fitted on {task.name}: {error}"
        ) from error


def _table(
    coding: Coding, model: Any, predicted: Any, target: pd.Series
) -> pd.DataFrame:
    """Return predictions as AMLB writes them: probabilities by label, predictions, truth."""
    predictions, probabilities = predicted
    if probabilities is None:
        return pd.DataFrame(
            {"predictions": predictions, "truth": target.to_numpy(dtype=float)}
        )
    written = dict(zip(coding.labels, coding.written_labels, strict=True))
    labels = [written[str(label)] for label in model.labels_]
    out = pd.DataFrame(probabilities, columns=labels)[sorted(labels)]
    out["predictions"] = [written[str(label)] for label in predictions]
    out["truth"] = [written[str(label)] for label in target]
    return out


def _compared(
    suite: Suite,
    task: AmlbTask,
    index: int,
    model: Any,
    predicted: Any,
    target: pd.Series,
) -> ComparedRows | None:
    """Return what F predicts here beside what the suite keeps of its own F; None where nothing."""
    coding = suite.coding(task.name)
    about = suite.provenance(task.name, index)
    own = stored_predictions(about, len(coding.labels))
    if own is None:
        return None
    span = 1.0
    if coding.labels:
        f = np.zeros(own.shape)
        codes = {label: code for code, label in enumerate(coding.labels)}
        for column, label in enumerate(model.labels_):
            f[:, codes[str(label)]] = predicted[1][:, column]
        y = target.map(codes).to_numpy(dtype=np.int64)
        losses = brier_loss(y, f)
    else:
        train, _ = suite.pair(task.name, index)
        known = coding.decode(coding.read_csv(train))[1].to_numpy(dtype=float)
        span = float(known.max() - known.min()) or 1.0
        f = np.asarray(predicted[0], dtype=float)
        losses = squared_error(target.to_numpy(dtype=float), f) / span**2
    return ComparedRows(
        fold=np.full(len(about), index),
        f=f,
        own=own,
        loss=losses,
        loss_f=about["loss"].to_numpy(dtype=float),
        null=stored_refits(about),
        span=np.full(len(about), span),
    )


def _loss(model: Any, predicted: Any, target: pd.Series) -> tuple[str, float]:
    predictions, probabilities = predicted
    if probabilities is None:
        error = predictions - target.to_numpy(dtype=float)
        return "rmse", float(np.sqrt(np.mean(error**2)))
    clipped = np.clip(probabilities, 1e-15, None)
    clipped /= clipped.sum(axis=1, keepdims=True)
    return "logloss", float(log_loss(target.astype(str), clipped, labels=model.labels_))


def summarise_scores(scores: pd.DataFrame) -> pd.DataFrame:
    """Return mean losses over folds: one row per task and part, one column per framework.

    Examples
    --------
    >>> rows = [("t", "full", k, "F", "rmse", float(k), 5) for k in (1, 3)]
    >>> names = ["task", "part", "fold", "framework", "metric", "loss", "rows"]
    >>> summarise_scores(pd.DataFrame(rows, columns=names))
      task  part metric  rows    F
    0    t  full   rmse    10  2.0
    """
    index = ["task", "part", "metric"]
    first = scores["framework"].iloc[0]
    rows = scores[scores["framework"] == first].groupby(index, sort=False)["rows"].sum()
    means = scores.pivot_table(
        index=index, columns="framework", values="loss", aggfunc="mean", sort=False
    )
    table = rows.to_frame().join(means).reset_index()
    return table
