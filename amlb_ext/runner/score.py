"""F, its re-seeded null and a candidate on a suite's files, without AMLB.

The integrations of ``frameworks.yaml`` are fitted here on the training files and scored on the
test files that AMLB would give them, so that a suite can be read before AMLB is installed. Only
code of this installation runs; what a suite carries under ``extensions/`` does not.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import log_loss

from amlb_ext.amlb.coding import Coding
from amlb_ext.core.errors import RunError, SuiteError
from amlb_ext.core.estimators import (
    check_is_listed,
    import_packaged,
    make_importable,
)
from amlb_ext.core.parallel import available_cores, run_jobs
from amlb_ext.core.paths import is_plain_name
from amlb_ext.core.progress import Bar
from amlb_ext.core.row_losses import brier_loss, squared_error
from amlb_ext.core.task import Kind
from amlb_ext.core.yaml_reader import read_yaml
from amlb_ext.runner.agreement import (
    ComparedRows,
    Disagreement,
    find_disagreements,
    stored_refits,
)
from amlb_ext.runner.results import RunWriter
from amlb_ext.suite import AmlbTask, SuiteFiles
from amlb_ext.suite.layout import BASELINE_FRAMEWORK, INTEGRATION
from amlb_ext.suite.reader import stored_predictions

#: What a reader must know about every score on failures.
HOW_TO_READ = """\
Mean loss over folds, lower is better: rmse in the target's own unit, or the Brier loss for classes.
An empty part is the main task. 'full' and 'region' are real rows, chosen without looking at F's
errors. Rows of 'bad', 'ga' and 'synthetic' were chosen by F's errors, which favours every other
model. HardsynthNull is F fitted again: if it improves there as much as a candidate does, the
candidate has shown nothing."""


@dataclass(frozen=True)
class Scores:
    """Scores of a suite's integrations, and where F is not the F of the suite.

    Attributes
    ----------
    table : DataFrame
        One row per AMLB task, fold and framework: ``task``, ``part`` (the AMLB task's suffix),
        ``fold`` (the source's number), ``framework``, ``metric`` (``rmse`` in the target's own
        unit, or ``brier``, as the report has it), ``loss`` (lower is better), ``rows``.
    disagreements : tuple of Disagreement
        See :mod:`amlb_ext.runner.agreement`.
    """

    table: pd.DataFrame
    disagreements: tuple[Disagreement, ...]


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
    suite = SuiteFiles.load(directory)
    if not trusted:
        for name, params in _framework_params(suite).items():
            where = f"{name} in frameworks.yaml"
            for family in ("classifier", "regressor"):
                model_params = params.get(f"{family}_params") or {}
                if params.get(family):
                    check_is_listed(where, str(params[family]), model_params)
    jobs = [(str(directory), task, with_hard) for task in suite.tasks]
    writer = RunWriter(Path(results), suite.manifest.name) if results else None

    # One job per task; rows leave their predictions behind as soon as they are written.
    rows_by_job: dict[int, list[dict[str, Any]]] = {}
    compared: dict[str, list[ComparedRows]] = {}
    workers = min(workers or available_cores(), len(jobs))
    with Bar(total=len(jobs), desc="scores", unit="task", disable=quiet) as bar:
        score_task = partial(_score_task, with_predictions=writer is not None)
        for index, rows in run_jobs(score_task, jobs, workers):
            for row in rows:
                written, predictions = row.pop("written"), row.pop("predictions")
                fold_rows = row.pop("compared")
                if fold_rows is not None:
                    compared.setdefault(row["amlb_task"], []).append(fold_rows)
                if writer:
                    writer.add(row | written, predictions)
            rows_by_job[index] = rows
            bar.update()
    if writer:
        writer.finish()

    # Jobs end in any order; the table has the order of the tasks.
    all_rows: list[dict[str, Any]] = []
    for index in sorted(rows_by_job):
        all_rows += rows_by_job[index]
    names = ["task", "part", "fold", "framework", "metric", "loss", "rows"]
    table = pd.DataFrame(all_rows)[names]
    disagreements: list[Disagreement] = []
    for task in sorted(compared):
        disagreements += find_disagreements(task, ComparedRows.join(compared[task]))
    return Scores(table, tuple(disagreements))


def _framework_params(suite: SuiteFiles) -> dict[str, dict[str, Any]]:
    """Return the parameters of a suite's own integrations, by name."""
    frameworks: dict[str, dict[str, Any]] = {}
    try:
        entries = read_yaml(suite.layout.frameworks, SuiteError) or {}
        for name, entry in entries.items():
            if entry.get("module") == INTEGRATION:
                frameworks[str(name)] = dict(entry.get("params") or {})
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


def _score_task(
    directory: str, task: str, with_hard: bool, *, with_predictions: bool
) -> list[dict[str, Any]]:
    """Return a row for each AMLB task of a task, fold and framework that serves it."""
    suite = SuiteFiles.load(directory)
    frameworks = _framework_params(suite)
    rows = []
    # The parts of a fold share training files, so a model is fitted once for all of them.
    fitted: dict[tuple[str, str], Any] = {}
    for part in suite.amlb_tasks.values():
        if part.task != task or (part.suffix == "hard" and not with_hard):
            continue
        coding = suite.coding(part.name)
        for index, fold in enumerate(part.folds):
            _, test = suite.pair(part.name, index)
            features, target = coding.decode(coding.read_csv(test))
            for name, params in frameworks.items():
                key = (name, part.train[index])
                if key not in fitted:
                    fitted[key] = _fit_model(params, suite, part, index)
                if fitted[key] is None:  # it does not serve this kind of task
                    continue
                labels = fitted[key].labels_ if coding.labels else ()
                answers = fitted[key].predict(features)
                predicted = _Predicted(coding, target, labels, *answers)
                compared = None
                if name == BASELINE_FRAMEWORK and part.suffix == "full":
                    compared = _compare_with_stored(suite, part, index, predicted)
                metric, loss = predicted.amlb_loss()
                rows.append(
                    {
                        "amlb_task": part.name,
                        "amlb_fold": index,
                        "type": part.type.value,
                        # large to send, and else nobody keeps them
                        "predictions": predicted.table() if with_predictions else None,
                        "compared": compared,
                        # AMLB's files have its metric; what is shown has that of the report's
                        # verdict
                        "written": {"metric": metric, "loss": loss},
                        "task": part.task,
                        "part": part.suffix,
                        "fold": fold,
                        "framework": name,
                        "metric": "brier" if coding.labels else metric,
                        "loss": float(predicted.losses.mean())
                        if coding.labels
                        else loss,
                        "rows": len(target),
                    }
                )
    return rows


def _fit_model(
    params: dict[str, Any], suite: SuiteFiles, task: AmlbTask, index: int
) -> Any:
    """Return a framework fitted on training rows; None where it does not serve the task."""
    is_classification = task.type is not Kind.REGRESSION
    family = "classifier" if is_classification else "regressor"
    if not params.get(family):
        return None
    coding = suite.coding(task.name)
    train, _ = suite.pair(task.name, index)
    features, target = coding.decode(coding.read_csv(train))
    # the module that AMLB runs, from this installation and not from the suite
    package = import_packaged("HardsynthSklearn")
    pipeline = importlib.import_module(f"{package}.pipeline")
    make_importable(str(params[family]))
    try:
        settings = pipeline.Settings.from_params(params)
        model = pipeline.Model(
            settings,
            classes=is_classification,
            seed=settings.seed_of(task.name, index, suite.manifest.seed),
            cores=1,
        )
        return model.fit(features, target)
    except ValueError as error:
        raise RunError(
            f"{params[family]} cannot be fitted on {task.name}: {error}"
        ) from error


@dataclass(frozen=True)
class _Predicted:
    """What a model predicts of test rows, and their truth.

    Attributes
    ----------
    coding : Coding
    target : Series
    labels : sequence
        Of the columns of ``probabilities``.
    predictions : ndarray of shape (n,)
    probabilities : ndarray of shape (n, C), optional
        None for a regression.
    """

    coding: Coding
    target: pd.Series
    labels: Any
    predictions: np.ndarray
    probabilities: np.ndarray | None

    @cached_property
    def f(self) -> np.ndarray:
        """Numbers, or probabilities in the suite's order of the classes; the model has its own."""
        if self.probabilities is None:
            return np.asarray(self.predictions, dtype=float)
        own = pd.DataFrame(self.probabilities, columns=list(map(str, self.labels)))
        return own.reindex(columns=self.coding.labels, fill_value=0.0).to_numpy()

    @cached_property
    def losses(self) -> np.ndarray:
        """Squared error, or Brier loss of classes, of each row."""
        if self.probabilities is None:
            return squared_error(self.target.to_numpy(dtype=float), self.f)
        codes = pd.Index(self.coding.labels).get_indexer(self.target.astype(str))
        return brier_loss(codes.astype(np.int64), self.f)

    def amlb_loss(self) -> tuple[str, float]:
        """Return AMLB's metric for the kind of task, and its value."""
        if self.probabilities is None:
            error = self.predictions - self.target.to_numpy(dtype=float)
            return "rmse", float(np.sqrt(np.mean(error**2)))
        # A class that is ruled out would cost an infinite loss where it is the truth.
        clipped = np.clip(self.probabilities, 1e-15, None)
        clipped /= clipped.sum(axis=1, keepdims=True)
        loss = log_loss(self.target.astype(str), clipped, labels=self.labels)
        return "logloss", float(loss)

    def table(self) -> pd.DataFrame:
        """Return predictions as AMLB writes them: probabilities by label, predictions, truth."""
        if self.probabilities is None:
            truth = self.target.to_numpy(dtype=float)
            return pd.DataFrame({"predictions": self.predictions, "truth": truth})
        coding = self.coding
        written = dict(zip(coding.labels, coding.written_labels, strict=True))
        labels = [written[str(label)] for label in self.labels]
        table = pd.DataFrame(self.probabilities, columns=labels)[sorted(labels)]
        table["predictions"] = [written[str(label)] for label in self.predictions]
        table["truth"] = [written[str(label)] for label in self.target]
        return table


def _compare_with_stored(
    suite: SuiteFiles, task: AmlbTask, index: int, predicted: _Predicted
) -> ComparedRows | None:
    """Return what F predicts here beside what the suite keeps of its own F; None where nothing."""
    coding = predicted.coding
    provenance = suite.provenance(task.name, index)
    stored_f = stored_predictions(provenance, len(coding.labels))
    if stored_f is None:
        return None
    span = 1.0
    if not coding.labels:
        train, _ = suite.pair(task.name, index)
        _, trained = coding.decode(coding.read_csv(train))
        # 1 where all training targets are alike
        span = float(np.ptp(trained.to_numpy(dtype=float))) or 1.0
    n = len(provenance)
    return ComparedRows(
        fold=np.full(n, index),
        f=predicted.f,
        own=stored_f,
        # Stored losses are in units of the range, which F's training rows give.
        loss=predicted.losses / span**2,
        loss_f=provenance["loss"].to_numpy(dtype=float),
        null=stored_refits(provenance),
        span=np.full(n, span),
    )


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
    # Every framework is scored on the same rows: those of one count.
    of_first = scores[scores["framework"] == scores["framework"].iloc[0]]
    rows = of_first.groupby(index, sort=False)["rows"].sum()
    means = scores.pivot_table("loss", index, "framework", sort=False)
    return rows.to_frame().join(means).reset_index()
