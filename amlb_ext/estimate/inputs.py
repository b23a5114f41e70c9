"""From files to arrays: the model's losses on labelled rows, and all else that the user gives.

Notation
--------
S : the n labelled rows of DATA;  Z : (n, d) encoded rows;  M : their metric form
y, f : targets and predictions, codes and probabilities, or in the target's own units
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd

from amlb_ext.core.config import BaselineConfig
from amlb_ext.core.errors import ConfigError, DataError, suggest_nearest
from amlb_ext.core.rng import derive_int_seed
from amlb_ext.core.tables import natural_order
from amlb_ext.core.task import Fold, Kind, Origin, Task
from amlb_ext.hardening.baseline.estimator import Baseline, fill_missing
from amlb_ext.hardening.baseline.fitted import (
    FittedBaseline,
    PredictionsBaseline,
    is_model_file,
    is_predictions_file,
    load_fitted_model,
    make_baseline,
)
from amlb_ext.hardening.encode import Encoder, TargetEncoder
from amlb_ext.models.predictions import read_predictions
from amlb_ext.sources.features import find_copies, read_features
from amlb_ext.sources.files import table_to_task
from amlb_ext.sources.read_table import read_table
from amlb_ext.sources.table import Table, stack_tables
from amlb_ext.stats.bounded_loss import (
    CLIP,
    LOSSES,
    BoundedLoss,
    absolute_loss,
    default_loss,
    log_loss,
    squared_loss,
)
from amlb_ext.stats.stratified_mean import PRIOR_TOLERANCE


@dataclass(frozen=True, kw_only=True)
class EstimateRequest:
    """The files and settings of the user; see :func:`~amlb_ext.estimate.estimate.estimate`."""

    model: str
    data: Path
    train: Path | None = None
    others: tuple[Path, ...] = ()
    target: str | None = None
    kind: str | None = None
    loss: str | None = None
    clip: float = CLIP
    target_range: tuple[float, float] | None = None
    error_cap: float | None = None
    class_prior: Mapping[str, float] | Literal["train"] = field(default_factory=dict)
    drawn_at_random: bool = False
    trust_pickle: bool = False
    seed: int = 0


@dataclass(kw_only=True)
class EstimateInputs:
    """A model and its labelled rows as arrays.

    Attributes
    ----------
    task : Task
        Of the training rows, if there are any, and DATA behind them.
    model : Baseline
        Fitted.
    can_predict : bool
        Whether the model can predict other rows; a file of predictions cannot.
    encoder, target : Encoder, TargetEncoder
    loss : BoundedLoss
    features : DataFrame of shape (n, d)
        Features of the labelled rows.
    Z : ndarray of shape (n, d)
        The same, encoded.
    y : ndarray of shape (n,)
    losses : ndarray of shape (n,)
    f : ndarray of shape (n,) or (n, C)
    train_features : DataFrame, optional
        Features of the training rows.
    train : tuple of ndarray, optional
        The same, encoded, and their scaled targets.
    priors : ndarray of shape (C,), optional
    priors_of_train : bool
        Whether these are the training rows' shares.
    drawn_at_random : bool
        Whether the user vouches for the draw of the labelled rows, even against the training rows.
    notes : list of str
    """

    task: Task
    model: Baseline
    can_predict: bool
    encoder: Encoder
    target: TargetEncoder
    loss: BoundedLoss
    features: pd.DataFrame
    Z: np.ndarray
    y: np.ndarray
    losses: np.ndarray
    f: np.ndarray
    train_features: pd.DataFrame | None
    train: tuple[np.ndarray, np.ndarray] | None
    priors: np.ndarray | None
    priors_of_train: bool
    drawn_at_random: bool
    notes: list[str]

    @property
    def labels(self) -> tuple[str, ...]:
        """Class labels in code order; empty for regression."""
        return self.task.labels

    def metric(self, Z: np.ndarray) -> np.ndarray:
        """Return rows in metric form, in which distances between rows mean something.

        A missing number lies a column's range below its smallest value.
        """
        return fill_missing(self.encoder.metric(Z))

    def metric_names(self) -> list[str]:
        """Return a name for each column of :meth:`metric`."""
        encoder = self.encoder
        names = []
        # One-hot columns come first: one for each value, and one for a missing value.
        for column, values in zip(encoder.categorical_, encoder.values_, strict=True):
            names += [f"{column.name}={value}" for value in values]
            names.append(f"{column.name}=missing")
        names += [column.name for column in encoder.numeric_]
        return names

    def predict(self, Z: np.ndarray) -> np.ndarray:
        """Return predictions in the units of ``f``."""
        return self.units(self.model.predict(Z))

    def units(self, y: np.ndarray) -> np.ndarray:
        """Return scaled targets in the target's own units; codes and probabilities stay."""
        if self.labels:
            return y
        return _unscale(y, self.target)

    def read_unlabelled(self, path: Path) -> np.ndarray:
        """Return the encoded rows of a table without labels, less any labelled rows in it."""
        features, notes = read_features(path, self.task.columns, self.task.target_name)
        is_labelled = find_copies(features, [self.features])
        _refuse_training_rows(path.name, features, self.train_features)
        # A few rows agree by chance in coarse columns; to drop those would be a selection.
        n_labelled = is_labelled.sum()
        if n_labelled >= len(self.features) / 2:
            notes.append(
                f"{path.name}: the {n_labelled} labelled rows in it are left out"
            )
            features = features[~is_labelled].reset_index(drop=True)
        self.notes += notes
        return self.encoder.transform(features)

    def read_generated(self, path: Path) -> tuple[np.ndarray, np.ndarray]:
        """Return encoded rows and scaled targets of a table of generated rows."""
        features, notes = read_features(
            path, self.task.columns, self.task.target_name, has_target=True
        )
        self.notes += notes
        # a second reading, since features are read without the target
        target = self._read_target(path)
        return self.encoder.transform(features), self.target.transform(target)

    def _read_target(self, path: Path) -> pd.Series:
        """Return the targets of a table of generated rows, as the task codes them."""
        frame = read_table(path).frame
        name = self.task.target_name
        if name not in frame.columns:
            raise DataError(
                f"{path.name} lacks the target {name!r}", "generate it with the rows"
            )
        raw = frame[name]
        if self.labels:
            texts = _to_label_texts(raw)
            known = texts.where(texts.isin(self.labels))
            target = pd.Series(pd.Categorical(known, categories=list(self.labels)))
        else:
            target = pd.to_numeric(raw, errors="coerce").astype(float)
        if target.isna().any():
            first_wrong = raw[target.isna().to_numpy()].iloc[0]
            raise DataError(
                f"{path.name}: target {first_wrong!r}",
                f"write one of {', '.join(self.labels) or 'numbers'}",
            )
        return target


def read_inputs(request: EstimateRequest) -> EstimateInputs:
    """Read the tables, get the model, and let it predict the labelled rows.

    Raises
    ------
    ConfigError
        A model to fit without training rows, regression without a range, a prior of an unknown
        class, or a loss of the other kind.
    SourceError, DataError, ModelError
        From the readers and models.
    """
    path = Path(request.model)
    fitted = None
    if is_model_file(request.model):
        fitted = load_fitted_model(path, request.trust_pickle)
    # One task holds training and labelled rows; `rows` are the positions of the labelled ones.
    task, rows, offset = _read_task(request, _classes_known_elsewhere(request, fitted))
    labelled = _take_rows(task, rows, offset)
    train_rows = task.folds[0].train if task.folds else None
    training = None if train_rows is None else _take_rows(task, train_rows, 0)
    if training is not None:
        _refuse_training_rows(request.data.name, labelled.features, training.features)
    # Without training rows the labelled ones decide the codes and the scale.
    reference = labelled if training is None else training
    encoder = Encoder(task.columns, known="table").fit(reference.features)
    target = TargetEncoder(task.kind, task.labels, reference.target)
    # Encoded like the labelled rows, so that all rows can be compared.
    train = None
    if training is not None:
        train = (
            encoder.transform(training.features),
            target.transform(training.target),
        )
    Z = encoder.transform(labelled.features)
    y = target.transform(labelled.target)

    model: Baseline
    if fitted is not None:
        model = FittedBaseline(fitted, name=path.name, encoder=encoder, target=target)
    elif is_predictions_file(request.model):
        model = PredictionsBaseline(read_predictions(path, labelled), target)
    else:
        config = BaselineConfig(model=request.model)
        model = make_baseline(config, task, encoder=encoder, target=target)
        if train is None:
            raise ConfigError(
                f"{request.model} must be fitted first, and there are no training rows",
                "add --train FILE, or give a fitted model (.skops) or a file of predictions",
            )
        model.fit(*train, derive_int_seed(request.seed, task.name, "estimate"))
    # A file has predictions for the rows of DATA, by position.
    if isinstance(model, PredictionsBaseline):
        f = model.predict_rows(Z, np.arange(len(Z)))
    else:
        f = model.predict(Z)
    # From the scale of the models to the target's own units, in which the loss is bounded.
    if not task.labels:
        f = _unscale(f, target)
        y = _unscale(y, target)

    limits = None if train is None else (target.low, target.low + target.span)
    loss = choose_loss(request, task.kind, limits)
    losses = loss(y, f)
    priors = choose_priors(
        request.class_prior, task.labels, train=None if train is None else train[1]
    )
    notes = list(task.notes)
    if request.error_cap is not None:
        n_capped = int((losses >= loss.bound).sum())
        notes.append(
            f"errors beyond {request.error_cap:g} count as {request.error_cap:g}: "
            f"{n_capped} of {len(losses)} labelled rows"
        )
    return EstimateInputs(
        task=task,
        model=model,
        can_predict=not isinstance(model, PredictionsBaseline),
        encoder=encoder,
        target=target,
        loss=loss,
        features=labelled.features,
        Z=Z,
        y=y,
        losses=losses,
        f=f,
        train_features=None if training is None else training.features,
        train=train,
        priors=priors,
        priors_of_train=request.class_prior == "train",
        drawn_at_random=request.drawn_at_random,
        notes=notes,
    )


def _unscale(scaled: np.ndarray, target: TargetEncoder) -> np.ndarray:
    """Return scaled values of a regression target in its own units."""
    return scaled * target.span + target.low


def _classes_known_elsewhere(request: EstimateRequest, fitted: Any) -> list[str]:
    """Return classes that the labelled rows may lack: those of a fitted model, or of the priors."""
    if fitted is not None:
        return [_to_label_text(label) for label in getattr(fitted, "classes_", [])]
    # Training rows have the classes; so has "train", which stands for their shares.
    if request.train is not None or request.class_prior == "train":
        return []
    return list(request.class_prior)


def _refuse_training_rows(
    name: str, features: pd.DataFrame, train_features: pd.DataFrame | None
) -> None:
    """Refuse a table of which half are training rows: there a model errs less than elsewhere."""
    if train_features is None:
        return
    n_copies = int(find_copies(features, [train_features]).sum())
    if n_copies > len(features) / 2:
        raise DataError(
            f"{n_copies} of {len(features)} rows of {name} are training rows",
            "give rows that the model was not fitted on",
        )


def _read_task(
    request: EstimateRequest, more_labels: list[str]
) -> tuple[Task, np.ndarray, int]:
    """Return the task, the positions of the labelled rows, and where DATA begins in row ids."""
    table = read_table(request.data)
    folds: tuple[Fold, ...] = ()
    offset = 0
    if request.train is not None:
        # One table of both, so that their columns get the same types and categories.
        train = read_table(request.train)
        offset = len(train.frame)
        end = offset + len(table.frame)
        folds = (Fold(train=np.arange(offset), test=np.arange(offset, end)),)
        table = stack_tables([train, table])
    table = _with_all_categories(table, request)
    task = table_to_task(
        table,
        name=request.data.stem,
        target=request.target,
        kind=request.kind,
        folds=folds,
        origin=Origin(str(request.data)),
    )
    # Other rows may lack values in a column that is complete here: each gets a code for it.
    columns = []
    for column in task.columns:
        columns.append(dataclasses.replace(column, has_missing=True))
    task = dataclasses.replace(task, columns=tuple(columns))
    task = _with_labels(task, more_labels)
    rows = task.folds[0].test if task.folds else np.arange(len(task))
    if not len(rows):
        raise DataError(
            f"{request.data.name} has no row with a label", "give labelled rows"
        )
    return task, rows, offset


def _with_labels(task: Task, more_labels: list[str]) -> Task:
    """Return the task with classes that the model or the priors have and its rows lack."""
    absent = [label for label in more_labels if label not in task.labels]
    if not task.labels or not absent:
        return task
    labels = (*task.labels, *absent)
    return dataclasses.replace(
        task,
        labels=labels,
        target=task.target.cat.set_categories(list(labels)),
        kind=Kind.BINARY if len(labels) == 2 else Kind.MULTICLASS,
    )


def _with_all_categories(table: Table, request: EstimateRequest) -> Table:
    """Add the categories that only the rows without labels or generated rows have."""
    categories = dict(table.categories)
    for path in request.others:
        frame = read_table(path).frame
        for name in table.frame.columns.intersection(frame.columns):
            # The target's labels come from the task, the model or the priors alone.
            if (
                pd.api.types.is_numeric_dtype(table.frame[name])
                or name == request.target
            ):
                continue
            known = list(categories.get(name, ()))
            # Appended, so that the codes of the earlier ones stay.
            for values in (table.frame[name], frame[name]):
                present = set(_to_label_texts(values).dropna())
                known += natural_order(present - set(known))
            categories[name] = tuple(known)
    return dataclasses.replace(table, categories=categories)


def _take_rows(task: Task, rows: np.ndarray, offset: int) -> Task:
    """Return the task of selected rows, whose ids count from the beginning of their file."""
    return dataclasses.replace(
        task,
        features=task.features.iloc[rows].reset_index(drop=True),
        target=task.target.iloc[rows].reset_index(drop=True),
        row_ids=task.row_ids[rows] - offset,
        folds=(),
    )


def _to_label_text(value: Any) -> str:
    """Return a label as the task writes it: a whole float without ``.0``."""
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return str(int(value))
    return str(value)


def _to_label_texts(values: pd.Series) -> pd.Series:
    return values.map(_to_label_text, na_action="ignore")


def choose_loss(
    request: EstimateRequest, kind: Kind, limits: tuple[float, float] | None
) -> BoundedLoss:
    """Return the loss that the user asks for, or the default of the kind.

    Parameters
    ----------
    request : EstimateRequest
    kind : Kind
    limits : tuple of float, optional
        Range of the target of the training rows; ``request.target_range`` takes precedence.

    Raises
    ------
    ConfigError
        An unknown loss, a loss of the other kind, or regression without any range.

    Examples
    --------
    >>> from pathlib import Path
    >>> request = EstimateRequest(model="m.skops", data=Path("s.csv"))
    >>> choose_loss(request, Kind.REGRESSION, (0.0, 10.0)).name
    'squared'
    """
    name = request.loss or default_loss(kind).name
    if name not in LOSSES:
        raise ConfigError(f"unknown loss {name!r}", suggest_nearest(name, LOSSES))
    # A loss is either for numbers or for classes.
    needs_numbers = LOSSES[name].needs == "numbers"
    if needs_numbers != (kind is Kind.REGRESSION):
        fitting = []
        for other, loss in LOSSES.items():
            if (loss.needs == "numbers") != needs_numbers:
                fitting.append(other)
        raise ConfigError(
            f"loss {name} for {kind}", f"choose one of {', '.join(fitting)}"
        )
    if not needs_numbers:
        if request.error_cap is not None:
            raise ConfigError(
                f"--error-cap for the {name} loss",
                "leave it out: it is for squared and absolute",
            )
        return log_loss(request.clip) if name == "log" else LOSSES[name]
    # A squared or absolute error has no bound without a range of the target.
    limits = request.target_range or limits
    if limits is None:
        raise ConfigError(
            "the range of the target is unknown, and with it the bound of the loss",
            "add --range LOW HIGH, or --train FILE to take the training rows' range",
        )
    low, high = limits
    make_loss = squared_loss if name == "squared" else absolute_loss
    return make_loss(low, high, request.error_cap)


def choose_priors(
    priors: Mapping[str, float] | Literal["train"],
    labels: tuple[str, ...],
    train: np.ndarray | None = None,
) -> np.ndarray | None:
    """Return the shares of the classes in code order, or None without priors.

    Parameters
    ----------
    priors : mapping of str to float, or "train"
        Share of each class; ``train`` for the shares of the training rows.
    labels : tuple of str
    train : ndarray of shape (n_train,), optional
        Class codes of the training rows.

    Raises
    ------
    ConfigError
        Regression, an unknown class, a class without a share, or shares that do not sum to 1.

    Examples
    --------
    >>> choose_priors({"no": 0.9, "yes": 0.1}, ("yes", "no")).tolist()
    [0.1, 0.9]
    """
    if not priors:
        return None
    # Regression has no labels.
    if not labels:
        raise ConfigError(
            "--class-prior for regression", "leave it out: there are no classes"
        )
    if priors == "train":
        assert train is not None  # estimate() refuses "train" without training rows
        counts = np.bincount(train.astype(int), minlength=len(labels))
        return counts / len(train)
    assert not isinstance(priors, str)
    for label in priors:
        if label not in labels:
            raise ConfigError(
                f"--class-prior names the class {label!r}",
                suggest_nearest(label, labels),
            )
    absent = [label for label in labels if label not in priors]
    if absent:
        raise ConfigError(
            f"--class-prior has no share for {', '.join(absent)}",
            "give one for every class",
        )
    shares = np.array([float(priors[label]) for label in labels])
    if (shares < 0).any() or abs(shares.sum() - 1) > PRIOR_TOLERANCE:
        listed = ", ".join(f"{label}={priors[label]:g}" for label in labels)
        raise ConfigError(
            f"--class-prior {listed} sums to {shares.sum():.6g}",
            "give shares from 0 to 1 that sum to 1",
        )
    # The tolerance allows rounded shares, whose sum is made exact here.
    return shares / shares.sum()
