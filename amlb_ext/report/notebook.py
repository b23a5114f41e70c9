"""A suite, its folds and its report for notebooks: everything as tidy data frames."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from amlb_ext.amlb.coding import NUMBERS, Coding
from amlb_ext.core.checked_call import checked_call
from amlb_ext.core.display import format_count, html_view
from amlb_ext.core.errors import ConfigError, ModelError, suggest_nearest
from amlb_ext.core.numbers import count_not_finite
from amlb_ext.report.build import build_report
from amlb_ext.report.given_predictions import (
    PREDICTION_COLUMN,
    TRUTH_COLUMN,
    class_column,
)
from amlb_ext.report.model import SuiteReport
from amlb_ext.report.tables import certificate_table, report_tables
from amlb_ext.report.task import test_rows_by_part
from amlb_ext.suite import SuiteFiles
from amlb_ext.suite.layout import SUFFIXES, amlb_name
from amlb_ext.validity import Certificate, read_certificates

Results = str | Path | Sequence[str | Path]

#: Rows of these AMLB tasks are predicted: all that share the training rows.
_PARTS = tuple(suffix for suffix in SUFFIXES if suffix != "hard")


@dataclass(frozen=True, kw_only=True)
class SuiteFold:
    """One fold of a task: what a model is fitted on, and the test rows of every part.

    Attributes
    ----------
    task : str
        The suite's task.
    fold : int
        The source's number of the fold.
    kind : {'regression', 'binary', 'multiclass'}
    X : DataFrame of shape (n, d)
        Features of the training rows; texts are categories, the same in training and test rows.
    y : Series of shape (n,)
        Numbers, or labels as text.
    tests : dict of (str, int) to DataFrame
        Features and target of test rows, by AMLB task and AMLB's number of the fold.
    target : str
        Name of the target in ``tests``.
    labels : tuple of str
        Empty for a regression.
    """

    task: str
    fold: int
    kind: str
    X: pd.DataFrame
    y: pd.Series
    tests: dict[tuple[str, int], pd.DataFrame]
    target: str
    labels: tuple[str, ...]

    def predictions(self, model: Any) -> pd.DataFrame:
        """Return the predictions of a fitted model as rows of a file of predictions.

        Parameters
        ----------
        model : estimator
            Fitted on ``X`` and ``y``; with ``predict``, for classes with ``predict_proba`` and
            ``classes_``.

        Returns
        -------
        DataFrame
            ``task``, ``fold``, ``row``, ``truth``, and ``prediction`` or one column of
            probabilities for each class.

        Raises
        ------
        ModelError
            A model without probabilities, with a class that the task lacks, or that predicts
            something that is no number.
        """
        tables = []
        for (name, fold), test in self.tests.items():
            predicted = self._predict(model, test.drop(columns=self.target))
            n_not_finite = count_not_finite(predicted.to_numpy())
            if n_not_finite:
                raise ModelError(
                    f"the model predicts no finite number for {n_not_finite} of {len(test)} rows "
                    f"of {name}",
                    "mend the model",
                )
            key = pd.DataFrame(
                {
                    "task": name,
                    "fold": fold,
                    "row": np.arange(len(test)),
                    TRUTH_COLUMN: test[self.target].astype(str),
                }
            )
            tables.append(pd.concat([key, predicted], axis=1))
        return pd.concat(tables, ignore_index=True)

    def _predict(self, model: Any, X: pd.DataFrame) -> pd.DataFrame:
        """Return the columns of predictions of some rows."""
        if not self.labels:
            f = np.asarray(model.predict(X), dtype=float).reshape(len(X))
            return pd.DataFrame({PREDICTION_COLUMN: f})
        if not hasattr(model, "predict_proba"):
            raise ModelError(
                f"a {type(model).__name__} has no predict_proba",
                "give a model with class probabilities, e.g. in a CalibratedClassifierCV",
            )
        known = [str(label) for label in model.classes_]
        unknown = [label for label in known if label not in self.labels]
        if unknown:
            raise ModelError(
                f"the model knows a class {unknown[0]!r}, which {self.task} lacks",
                "fit it on fold.X and fold.y",
            )
        probabilities = pd.DataFrame(model.predict_proba(X), columns=known)
        # a class that no training row has is given no chance
        probabilities = probabilities.reindex(columns=list(self.labels), fill_value=0.0)
        return probabilities.rename(columns=class_column)


def read_suite_folds(suite: SuiteFiles) -> Iterator[SuiteFold]:
    """Yield every fold of every task; see :class:`SuiteFold`.

    Raises
    ------
    SuiteError
        The suite is damaged.
    """
    for task, entry in suite.tasks.items():
        full = suite.amlb_task(amlb_name(task, "full"))
        coding = entry.coding
        for index, source_fold in enumerate(full.folds):
            train_file, _ = suite.pair(full.name, index)
            train = _read_frame(train_file, coding)
            tests = {}
            for suffix in _PARTS:
                part = suite.amlb_tasks.get(amlb_name(task, suffix))
                # a part has the folds in which it has rows
                if part is None or source_fold not in part.folds:
                    continue
                part_index = part.folds.index(source_fold)
                _, test_file = suite.pair(part.name, part_index)
                tests[part.name, part_index] = _read_frame(test_file, coding)
            yield SuiteFold(
                task=task,
                fold=source_fold,
                kind=entry.kind.value,
                X=train.drop(columns=coding.written_target),
                y=train[coding.written_target],
                tests=tests,
                target=coding.written_target,
                labels=coding.written_labels,
            )


def _read_frame(path: Path, coding: Coding) -> pd.DataFrame:
    """Read a file of a suite with the types of its coding."""
    texts = {column.written: str for column in coding.columns if column.form == "text"}
    if coding.written_labels:
        texts[coding.written_target] = str
    frame = pd.read_csv(path, dtype=texts)
    for column in coding.columns:
        if column.form in NUMBERS:
            # whole numbers and fractions alike: a test file may lack what a training file has
            frame[column.written] = frame[column.written].astype(float)
        else:
            values = frame[column.written]
            if column.form == "boolean":
                values = values.astype(str)
            frame[column.written] = pd.Categorical(values, categories=column.values)
    return frame


@dataclass(frozen=True, repr=False)
class Suite:
    """A finished suite and the results on it, as data frames; open one with :meth:`load`.

    Attributes
    ----------
    suite : amlb_ext.suite.SuiteFiles
        The files themselves: ``pair``, ``provenance``, ``manifest``.

    Examples
    --------
    >>> from amlb_ext import Suite
    >>> suite = Suite.load("hard")                                  # doctest: +SKIP
    >>> suite.certificate[["task", "verdict"]]                      # doctest: +SKIP
    >>> suite.contrasts("results").query("verdict == 'better'")     # doctest: +SKIP
    """

    suite: SuiteFiles

    @classmethod
    @checked_call
    def load(cls, directory: str | Path) -> Suite:
        """Open the suite in ``directory``.

        Raises
        ------
        SuiteError
            There is no suite, it is unfinished, or its manifest is damaged.
        """
        return cls(SuiteFiles.load(directory))

    def __repr__(self) -> str:
        verdicts = [certificate.verdict for certificate in self.certificates.values()]
        counted = [f"{verdicts.count(word)} {word}" for word in dict.fromkeys(verdicts)]
        certified = ", ".join(counted) or "not certified"
        tasks = format_count(len(self.suite.tasks), "task")
        return f"Suite({str(self.directory)!r}: {tasks}; certificates: {certified})"

    def _repr_html_(self) -> str:
        verdicts = {
            task: certificate.verdict for task, certificate in self.certificates.items()
        }
        shown = self.tasks
        shown["certificate"] = shown["task"].map(verdicts).fillna("none")
        return html_view([repr(self)], shown)

    @property
    def directory(self) -> Path:
        """Where the suite stands."""
        return self.suite.layout.root

    @property
    def tasks(self) -> pd.DataFrame:
        """One row per task: ``task``, ``source``, ``kind``, ``target``, ``classes``, ``columns``,
        ``folds``, and test rows by part: ``full``, ``bad``, ``ga``, ``synthetic``."""
        rows = []
        for name, entry in self.suite.tasks.items():
            row = {
                "task": name,
                "source": entry.source_name,
                "kind": entry.kind.value,
                "target": entry.target,
                "classes": len(entry.coding.labels),
                "columns": len(entry.coding.columns),
                "folds": len(entry.folds),
                **test_rows_by_part(self.suite, name),
            }
            rows.append(row)
        return pd.DataFrame(rows)

    @property
    def certificates(self) -> dict[str, Certificate]:
        """The certificates by task."""
        return read_certificates(self.suite)

    @property
    def certificate(self) -> pd.DataFrame:
        """One row per task and measure: ``task``, ``verdict``, ``measure``, ``value``, ``low``,
        ``high``, ``sense``, ``threshold``, ``passed``, ``text``."""
        columns = ["task", "verdict", "measure", "value", "low", "high", "sense"]
        columns += ["threshold", "passed", "text"]
        table = certificate_table(self.certificates).rename(columns={"name": "measure"})
        return table.reindex(columns=columns)

    @checked_call
    def pair(self, task: str, fold: int) -> tuple[Path, Path]:
        """Return the training and the test file of an AMLB task, e.g. ``toy_full``.

        Raises
        ------
        SuiteError
            The suite has no such AMLB task or fold.
        """
        return self.suite.pair(task, fold)

    @checked_call
    def provenance(self, task: str, fold: int) -> pd.DataFrame:
        """Return where each row of a test file comes from.

        Raises
        ------
        SuiteError
            The suite has no such AMLB task or fold.
        """
        return self.suite.provenance(task, fold)

    def folds(self) -> Iterator[SuiteFold]:
        """Yield the folds of all tasks as data frames, to predict their test rows with a model.

        Yields
        ------
        SuiteFold
            ``X`` and ``y`` to fit a model on; its method ``predictions`` makes the rows of a file
            for ``hardsynth report --predictions``.

        Raises
        ------
        SuiteError
            The suite is damaged.
        """
        return read_suite_folds(self.suite)

    def contrasts(self, results: Results) -> pd.DataFrame:
        """Return each framework against F, per task, on the region and on all real rows.

        Parameters
        ----------
        results : path or sequence of path
            AMLB's output folders.

        Returns
        -------
        DataFrame
            See ``contrasts`` of :class:`amlb_ext.report.model.TaskReport`.

        Raises
        ------
        RunError
            No results there, or none of this suite.
        """
        return self.table("contrasts", results)

    def pairs(self, results: Results) -> pd.DataFrame:
        """Return frameworks against each other, per task."""
        return self.table("pairs", results)

    def scores(self, results: Results) -> pd.DataFrame:
        """Return every metric of every framework, and of F, on every part."""
        return self.table("scores", results)

    def overall(self, results: Results) -> pd.DataFrame:
        """Return each framework over all tasks."""
        return self.table("overall", results)

    def jobs(self, results: Results) -> pd.DataFrame:
        """Return the jobs without a usable score, and why."""
        return self.table("jobs", results)

    @checked_call
    def table(
        self,
        name: str,
        results: Results = (),
        predictions: Mapping[str, str | Path] | None = None,
        *,
        segments: str | Sequence[str] = (),
        loss: Any = None,
        refits: int = 0,
    ) -> pd.DataFrame:
        """Return any table of the report by its name, see :data:`amlb_ext.report.tables.TABLES`.

        The report is built once and kept until the results change.

        Parameters
        ----------
        name : str
        results : path or sequence of path
            AMLB's output folders.
        predictions : mapping of str to path, optional
            Files of predictions by name, as of ``hardsynth report --predictions``.
        segments, loss, refits
            As of ``hardsynth report``, see :func:`amlb_ext.report.build.build_report`.

        Raises
        ------
        ConfigError
            There is no such table.
        RunError
            No results there, or none of this suite.
        """
        paths = [results] if isinstance(results, (str, Path)) else results
        # Resolved: the same folder by another name is the same report.
        folders = [self.directory.resolve()]
        folders += [Path(path).resolve() for path in paths]
        named = predictions or {}
        files = tuple((key, Path(path).resolve()) for key, path in named.items())
        # a loss may be a function or a table, by which nothing is kept
        build = _build_once if loss is None else _build_once.__wrapped__
        report = build(
            *folders,
            files=files,
            stamp=_last_change([*folders, *(path for _, path in files)]),
            segments=(segments,) if isinstance(segments, str) else tuple(segments),
            loss=loss,
            refits=refits,
        )
        # A copy, for the report is kept and a notebook may change its table.
        tables = report_tables(report)
        if name not in tables:
            remedy = suggest_nearest(name, list(tables))
            raise ConfigError(f"the report has no table {name!r}", remedy)
        return tables[name].copy()


# A few suites beside each other in one notebook; a report of a large suite is large.
@lru_cache(maxsize=4)
def _build_once(
    directory: Path,
    *results: Path,
    files: tuple[tuple[str, Path], ...],
    stamp: int,
    **options: Any,
) -> SuiteReport:
    """Build a report once for as long as its files (``stamp``) stay as they are."""
    return build_report(
        directory, results, predictions=dict(files), charts=False, **options
    )


def _last_change(paths: Sequence[Path]) -> int:
    """Return when a file, or anything in a folder, was changed last, in nanoseconds."""
    # A file that is gone changed its folder. Times, not contents: predictions are gigabytes.
    times = [0]
    for path in paths:
        for inside in (path, *path.rglob("*")):
            if inside.exists():
                times.append(inside.stat().st_mtime_ns)
    return max(times)
