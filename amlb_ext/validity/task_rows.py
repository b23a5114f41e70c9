"""A task of a suite in memory, as its own files hold it, and its F, fitted again.

F itself, fitted again, is the null control: it is submitted as if it were a candidate. Rows chosen
by F's realised errors flatter *any* second model, F's own twin included (regression to the mean). A
twin has the same algorithm, another seed, and another random part of the training rows; what it
seems to win over F is the size of that illusion. Up to five twins come with the suite, from the
cross-fitting of its folds; more are fitted when asked for.

Notation
--------
R : number of re-fits
Z, y : (n, d), (n,) encoded training rows of the fold and their targets
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from amlb_ext.core import row_losses
from amlb_ext.core.config import BaselineConfig
from amlb_ext.core.errors import ModelError, SuiteError
from amlb_ext.core.rng import derive_int_seed, random_stream
from amlb_ext.core.task import Column, Kind
from amlb_ext.hardening.baseline.estimator import EstimatorBaseline
from amlb_ext.hardening.encode import Encoder, TargetEncoder
from amlb_ext.models.files import comes_fitted
from amlb_ext.models.registry import ModelSpec, check_model_listed, resolve_model
from amlb_ext.suite import Part, Rows, SuiteFiles, amlb_name
from amlb_ext.suite.copy_counts import (
    MADE_PARTS,
    CopyCounts,
    count_copies,
    read_hard,
)
from amlb_ext.validity.candidates import QUICK_ROWS, Size, fit_zoo

#: What is scored: all real rows, the bad ones, and what was made from these.
PARTS = ("full", "bad", *MADE_PARTS)
#: Columns of the provenance with the losses of F's re-fits: ``null_0``, ``null_1``, ...
REFIT_PREFIX = "null_"
#: Twins of F for the null control: with fewer their luck is taken for a difference too often.
REFITS = 5
#: Part of the training rows that each re-fit sees. A bootstrap of the old size makes linear
#: re-fits worse than F by about 1 % and the check nearly blind (tests/benchmarks/null_control.py).
NULL_SHARE = 0.8
#: Draws of that part until it holds every class, where it can.
_DRAWS = 20


#: Training rows of a fold, and its test rows by part.
FoldRows = tuple[Rows, dict[str, Rows]]


@dataclass(frozen=True, kw_only=True)
class TaskRows:
    """A task of a suite in memory.

    Attributes
    ----------
    name : str
    kind : Kind
    labels : tuple of str
    columns : tuple of Column
    settings : mapping
        The suite's configuration.
    seed : int
        The suite's seed.
    folds : dict of int to (Rows, dict of str to Rows)
        Per source fold: training rows, and test rows by suffix; ``population`` are those of this
        origin among the rows of the main test file.
    summaries : tuple of mapping
        The figures of each fold's record.
    hard : dict of int to Part
        Both files of ``_hard``, per source fold that has it.
    """

    name: str
    kind: Kind
    labels: tuple[str, ...]
    columns: tuple[Column, ...]
    settings: Mapping[str, Any]
    seed: int
    folds: dict[int, FoldRows]
    summaries: tuple[Mapping[str, Any], ...] = ()
    hard: Mapping[int, Part] = field(default_factory=dict)

    def holds_refits(self, refits: int) -> bool:
        """Whether the files hold the losses of so many re-fits of F for every row scored.

        They are the fits of F without a fifth of the training rows each, see
        :mod:`amlb_ext.hardening.prepare`: fitted when the suite was made, for other ends too.
        """
        wanted = {f"{REFIT_PREFIX}{number}" for number in range(refits)}
        for _, parts in self.folds.values():
            for rows in parts.values():
                if len(rows) and not wanted <= set(rows.provenance.columns):
                    return False
        return True

    def count_refits(self, most: int) -> int:
        """Return of how many re-fits of F, up to ``most``, the files hold all losses."""
        count = most
        while count and not self.holds_refits(count):
            count -= 1
        return count

    def count_copies(self) -> CopyCounts:
        """Count what made rows repeat, over all folds."""
        counts = CopyCounts()
        for fold, (train, parts) in self.folds.items():
            if "full" not in parts:
                continue
            made = [parts[name] for name in MADE_PARTS if name in parts]
            counts += count_copies(
                train=train, test=parts["full"], made=made, hard=self.hard.get(fold)
            )
        return counts


@dataclass(frozen=True, kw_only=True)
class FoldRequest:
    """Settings that all folds of an evaluation share.

    ``has_stored_refits`` says that the files hold the losses of F's re-fits; ``whole`` are the
    candidates that see all training rows.
    """

    specs: Mapping[str, ModelSpec]
    size: Size
    refits: int
    seed: int
    has_stored_refits: bool
    whole: frozenset[str]

    @property
    def most_rows(self) -> int | None:
        """Training rows that the other candidates see at most."""
        return QUICK_ROWS if self.size == "quick" else None


class EncodedFold:
    """The training rows of a fold, as its models see them.

    Parameters
    ----------
    rows : TaskRows
    fold : int
    request : FoldRequest

    Attributes
    ----------
    encoder : Encoder
    target : TargetEncoder
    Z, y : ndarray of shape (n, d), (n,)
    """

    def __init__(self, rows: TaskRows, fold: int, request: FoldRequest) -> None:
        self.rows = rows
        self.fold = fold
        self.request = request
        train, _ = rows.folds[fold]
        self.encoder = Encoder(rows.columns).fit(train.features)
        self.target = TargetEncoder(rows.kind, rows.labels, train.target)
        self.Z = self.encoder.transform(train.features)
        self.y = self.target.transform(train.target)

    def fit_zoo(
        self, specs: Mapping[str, ModelSpec], seen: np.ndarray | None = None
    ) -> tuple[dict[str, EstimatorBaseline], dict[str, str]]:
        """Fit candidates on the rows that they may see, see :func:`candidates.fit_zoo`."""
        return fit_zoo(
            specs,
            kind=self.rows.kind,
            n_classes=self.target.n_classes,
            n_categorical=self.encoder.n_categorical_,
            Z=self.Z,
            y=self.y,
            seed=derive_int_seed(self.request.seed, self.rows.name, self.fold, "zoo"),
            most=self.request.most_rows,
            whole=self.request.whole,
            seen=seen,
        )


def losses_of_candidates(
    names: Collection[str], predicted: Mapping[str, np.ndarray], y: np.ndarray
) -> np.ndarray:
    """Return the losses of candidates, ``(n, m)``; NaN for one that could not be fitted.

    It keeps its column, or columns of folds would not match.
    """
    losses = np.full((len(y), len(names)), np.nan)
    for column, name in enumerate(names):
        if name in predicted:
            losses[:, column] = row_losses.row_loss(y, predicted[name])
    return losses


def read_task(suite: SuiteFiles, task: str) -> TaskRows:
    """Read the files of one task of a finished suite.

    Raises
    ------
    SuiteError
        No such task, or a damaged file.
    """
    suite.amlb_task(amlb_name(task, "full"))  # raises where there is none
    entry = suite.tasks[task]
    coding = entry.coding
    folds: dict[int, FoldRows] = {}
    for part in PARTS:
        name = amlb_name(task, part)
        # a task without made rows has no such parts
        if name not in suite.amlb_tasks:
            continue
        # AMLB numbers the folds of a part from 0, the source's numbers may have gaps
        for index, fold in enumerate(suite.amlb_tasks[name].folds):
            train_file, test_file = suite.pair(name, index)
            if fold not in folds:  # all parts share the fold's training rows
                features, target = coding.decode(coding.read_csv(train_file))
                about = pd.DataFrame(index=range(len(features)))
                # where training rows come from may not be known, or not of all
                if suite.layout.train_provenance(task, fold).is_file():
                    known = suite.train_provenance(task, fold)
                    about = known if len(known) == len(features) else about
                folds[fold] = (Rows(features, target, about), {})
            _, parts = folds[fold]
            features, target = coding.decode(coding.read_csv(test_file))
            parts[part] = Rows(features, target, suite.provenance(name, index))
    hard = {}
    for fold in folds:
        pair = read_hard(suite, task, fold)
        if pair is not None:
            hard[fold] = pair
    # in the order of the folds, whatever order they were finished in
    summaries = [entry.folds[fold].summary for fold in sorted(entry.folds)]
    return TaskRows(
        name=task,
        kind=entry.kind,
        labels=coding.labels,
        columns=tuple(column.as_column() for column in coding.columns),
        settings=suite.manifest.config,
        seed=suite.manifest.seed,
        folds=folds,
        summaries=tuple(summaries),
        hard=hard,
    )


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
