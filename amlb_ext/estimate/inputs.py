"""From files to arrays: the model's losses on labelled rows, and all else that the user gives.

Notation
--------
S : the n labelled rows of DATA;  Z : (n, d) encoded rows;  M : their metric form
y, f : targets and predictions, codes and probabilities, or in the target's own units
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd

from amlb_ext.core.config import BaselineConfig, SynthesizerConfig
from amlb_ext.core.errors import ConfigError, DataError, suggest_nearest
from amlb_ext.core.losses import SCORERS, pinball_quantile, read_cost_matrix
from amlb_ext.core.paths import table_ending
from amlb_ext.core.progress import Bar
from amlb_ext.core.rng import derive_int_seed, random_stream
from amlb_ext.core.tables import default_target, natural_order
from amlb_ext.core.task import Fold, Kind, Origin, Task
from amlb_ext.estimate.osyn.regions import Batch
from amlb_ext.hardening.baseline.estimator import Baseline, fill_missing
from amlb_ext.hardening.baseline.fitted import (
    FittedBaseline,
    PredictionsBaseline,
    check_exact,
    make_baseline,
)
from amlb_ext.hardening.encode import Encoder, TargetEncoder
from amlb_ext.hardening.hardness import decide, find_cut
from amlb_ext.models.adapter import ModelAdapter
from amlb_ext.models.answers import Answers, Labels, label_text
from amlb_ext.models.checks import check_answers, check_classes, refuse_seen_rows
from amlb_ext.models.columns import Align
from amlb_ext.models.files import (
    is_model_file,
    is_predictions_file,
    load_fitted_model,
)
from amlb_ext.models.given_table import GivenTable
from amlb_ext.models.native import check_kind
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
    cost_loss,
    log_loss,
    pinball_loss,
    squared_loss,
)
from amlb_ext.stats.bounded_mean import PRIOR_TOLERANCE
from amlb_ext.synthesizers import make_synthesizer


@dataclass(frozen=True, kw_only=True)
class EstimateRequest:
    """What the user gives; see :func:`~amlb_ext.estimate.estimate.estimate`.

    A model is a word that names one, or the model itself; a table a file, or a table in memory.
    """

    model: Any
    data: Path | Table
    train: Path | Table | None = None
    others: tuple[Path | Table, ...] = ()
    target: str | None = None
    kind: str | None = None
    loss: Any = None
    clip: float = CLIP
    target_range: tuple[float, float] | None = None
    error_cap: float | None = None
    class_prior: Mapping[str, float] | Literal["train"] = field(default_factory=dict)
    drawn_at_random: bool = False
    trust_pickle: bool = False
    seed: int = 0
    given: GivenTable | None = None
    align: Align = "auto"

    @property
    def word(self) -> str:
        """What names the model; empty for one in memory."""
        return self.model if isinstance(self.model, str) else ""


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
    decided : ndarray of shape (n,) or None
        Codes of the classes that the model decides for; None for a regression.
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
    decided: np.ndarray | None
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

    def losses_of(self, Z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Return the losses of the model on other rows with targets."""
        f = self.predict(Z)
        decided = None
        if self.decided is not None:
            # what the labelled rows tell of how it decides
            decided = decide(f, find_cut(self.f, self.decided))
        return losses_by(self.loss, y, f, decided)

    def units(self, y: np.ndarray) -> np.ndarray:
        """Return scaled targets in the target's own units; codes and probabilities stay."""
        if self.labels:
            return y
        return _unscale(y, self.target)

    def read_unlabelled(self, given: Path | Table) -> np.ndarray:
        """Return the encoded rows of a table without labels, less any labelled rows in it."""
        features, notes = read_features(given, self.task.columns, self.task.target_name)
        is_labelled = find_copies(features, [self.features])
        if self.train_features is not None:
            refuse_seen_rows(
                GivenTable.of_rows(features),
                GivenTable.of_rows(self.train_features),
                given.name,
            )
        # A few rows agree by chance in coarse columns; to drop those would be a selection.
        n_labelled = is_labelled.sum()
        if n_labelled >= len(self.features) / 2:
            notes.append(
                f"{given.name}: the {n_labelled} labelled rows in it are left out"
            )
            features = features[~is_labelled].reset_index(drop=True)
            if not len(features):
                raise DataError(
                    f"{given.name} holds labelled rows alone",
                    "give rows beside the labelled ones, or leave it out",
                )
        self.notes += notes
        return self.encoder.transform(features)

    def read_generated(self, path: Path) -> tuple[np.ndarray, np.ndarray]:
        """Return encoded rows and scaled targets of a table of generated rows."""
        name = self.task.target_name
        table = read_table(path)
        features, notes = read_features(table, self.task.columns, name, has_target=True)
        self.notes += notes
        if name not in table.frame.columns:
            raise DataError(
                f"{path.name} lacks the target {name!r}", "generate it with the rows"
            )
        raw = table.frame[name]
        if self.labels:
            codes = Labels(self.labels).codes(raw)
            target = pd.Series(pd.Categorical.from_codes(codes, list(self.labels)))
        else:
            target = pd.to_numeric(raw, errors="coerce").astype(float)
        if target.isna().any():
            first_wrong = raw[target.isna().to_numpy()].iloc[0]
            raise DataError(
                f"{path.name}: target {first_wrong!r}",
                f"write one of {', '.join(self.labels) or 'numbers'}",
            )
        return self.encoder.transform(features), self.target.transform(target)


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
    fitted = _given_model(request)
    # One task holds training and labelled rows; `rows` are the positions of the labelled ones.
    data, raw = _read_data(request)
    task, rows, offset = _read_task(request, data, fitted)
    labelled = _take_rows(task, rows, offset)
    train_rows = task.folds[0].train if task.folds else None
    training = None if train_rows is None else _take_rows(task, train_rows, 0)
    if request.train is not None:
        seen = open_table(request.train).frame.drop(columns=[task.target_name])
        refuse_seen_rows(raw, GivenTable.of_rows(seen), data.name)
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
    given = data.frame[task.target_name].to_numpy(dtype=object)[labelled.row_ids]

    model: Baseline
    notes = list(task.notes)
    decided = None
    if fitted is not None:
        if not fitted.is_predictions:
            check_kind(
                fitted.model,
                fitted.name,
                target=repr(task.target_name),
                is_classification=task.kind.is_classification,
            )
        said = fitted.answer(raw, Labels(task.labels), task.target_name)
        answers = said.take(labelled.row_ids)
        if fitted.is_predictions:
            model = PredictionsBaseline(answers, target)
        else:
            if request.others:
                check_exact(fitted.model, fitted.name, task)
            model = FittedBaseline(
                fitted.model, fitted.name, encoder, target, task.dtypes
            )
    elif is_predictions_file(request.word):
        index = pd.RangeIndex(len(data.frame)) if data.index is None else data.index
        answers = read_predictions(Path(request.word), labelled, index)
        model = PredictionsBaseline(answers, target)
    else:
        config = BaselineConfig(model=request.model)
        model = make_baseline(config, task, encoder=encoder, target=target)
        if train is None:
            raise ConfigError(
                f"{request.model} must be fitted first, and there are no training rows",
                "add --train FILE, or give a fitted model (.skops) or a file of predictions",
            )
        model.fit(*train, derive_int_seed(request.seed, task.name, "estimate"))
        f = model.predict(Z)
        answers = Answers(f=f, decided=f.argmax(axis=1) if task.labels else None)
        if not task.labels:
            answers = Answers(f=_unscale(f, target))
    f, decided = answers.f, answers.decided
    notes += answers.notes
    # From the scale of the models to the target's own units, in which the loss is bounded.
    if not task.labels:
        y = _unscale(y, target)
        _check_range(y, request.target_range)
    limits = None if train is None else (target.low, target.low + target.span)
    loss = choose_loss(request, task.kind, limits, task.labels)
    if answers.only_labels and loss.needs == "probabilities":
        raise ConfigError(
            f"the {loss.name} loss needs probabilities, and the model names labels alone",
            "use --loss zero_one, or give a model with predict_proba",
        )
    losses = losses_by(loss, y, f, decided)
    check_answers(answers, y, given, "the model")
    priors = choose_priors(
        request.class_prior, task.labels, train=None if train is None else train[1]
    )
    if loss.is_balanced:
        # each class counts alike, whatever its share
        priors = np.full(len(task.labels), 1 / len(task.labels))
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
        decided=decided,
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


def open_table(given: Path | Table) -> Table:
    """Return a table that was read, or read it."""
    return given if isinstance(given, Table) else read_table(given)


def losses_by(
    loss: BoundedLoss, y: np.ndarray, f: np.ndarray, decided: np.ndarray | None
) -> np.ndarray:
    """Return losses of rows, of decisions where the loss is about these."""
    if loss.needs == "codes" and decided is not None:
        return loss(y, decided)
    return loss(y, f)


def _given_model(request: EstimateRequest) -> ModelAdapter | None:
    """Return the model in memory or in a file; None for a word that names another thing."""
    if not isinstance(request.model, str):
        return ModelAdapter(request.model, "F", align=request.align)
    if is_model_file(request.word):
        path = Path(request.word)
        return ModelAdapter(load_fitted_model(path, request.trust_pickle), path.name)
    return None


def _read_data(request: EstimateRequest) -> tuple[Table, GivenTable]:
    """Return the labelled rows with their target, and as the model is to be given them."""
    data = open_table(request.data)
    if request.given is not None:
        return data, request.given
    names = list(data.frame.columns)
    target = request.target or (default_target(names) if names else "")
    return data, GivenTable.of_rows(data.frame.drop(columns=[target], errors="ignore"))


def _classes_known_elsewhere(
    request: EstimateRequest, fitted: ModelAdapter | None, labels: tuple[str, ...]
) -> list[str]:
    """Return classes that the labelled rows lack: those of a fitted model, or of the priors."""
    known = Labels(labels)
    if fitted is not None:
        classes = fitted.classes or []
        if labels:
            check_classes(classes, known, fitted.name, has_codes=fitted.has_codes)
        return [label_text(value) for value in classes if known.code(value) < 0]
    # Training rows have the classes; so has "train", which stands for their shares.
    if request.train is not None or request.class_prior == "train":
        return []
    return [label for label in request.class_prior if known.code(label) < 0]


def _read_task(
    request: EstimateRequest, table: Table, fitted: ModelAdapter | None
) -> tuple[Task, np.ndarray, int]:
    """Return the task, the positions of the labelled rows, and where DATA begins in row ids."""
    dtypes = table.frame.dtypes.to_dict()
    offset = 0
    if request.train is not None:
        # One table of both, so that their columns get the same types and categories.
        train = open_table(request.train)
        offset = len(train.frame)
        end = offset + len(table.frame)
        fold = Fold(train=np.arange(offset), test=np.arange(offset, end))
        table = dataclasses.replace(stack_tables([train, table]), folds=(fold,))
    table = _with_all_categories(table, request)
    task = table_to_task(
        table,
        name=Path(request.data.name).stem,
        target=request.target,
        kind=request.kind or (fitted.kind if fitted is not None else None),
        origin=Origin(request.data.name),
    )
    # Other rows may lack values in a column that is complete here: each gets a code for it.
    columns = []
    for column in task.columns:
        columns.append(dataclasses.replace(column, has_missing=True))
    task = dataclasses.replace(task, columns=tuple(columns), dtypes=dtypes)
    task = _with_labels(task, _classes_known_elsewhere(request, fitted, task.labels))
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
    for given in request.others:
        frame = open_table(given).frame
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
                present = set(values.map(label_text, na_action="ignore").dropna())
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


def _check_range(y: np.ndarray, given: tuple[float, float] | None) -> None:
    """Refuse a range of the target that does not hold the targets at hand."""
    if given is None:
        return
    if given[0] >= given[1]:
        raise ConfigError(
            f"the range of the target goes from {given[0]:g} to {given[1]:g}",
            "give the smallest target first, --range LOW HIGH",
        )
    n_outside = int(((y < given[0]) | (y > given[1])).sum())
    if n_outside:
        raise DataError(
            f"{n_outside} of {len(y)} targets lie outside the range {given[0]:g} to {given[1]:g}: "
            f"they go from {y.min():g} to {y.max():g}",
            "give the smallest and the largest target that there can be, --range LOW HIGH",
        )


def choose_loss(
    request: EstimateRequest,
    kind: Kind,
    limits: tuple[float, float] | None,
    labels: Sequence[str] = (),
) -> BoundedLoss:
    """Return the loss that the user asks for, or the default of the kind.

    Parameters
    ----------
    request : EstimateRequest
    kind : Kind
    limits : tuple of float, optional
        Range of the target of the training rows; ``request.target_range`` takes precedence.
    labels : sequence of str
        Of the classes, for a cost matrix.

    Raises
    ------
    ConfigError
        An unknown loss, one of the other kind or without a bound, or regression without any range.

    Examples
    --------
    >>> from pathlib import Path
    >>> request = EstimateRequest(model="m.skops", data=Path("s.csv"))
    >>> choose_loss(request, Kind.REGRESSION, (0.0, 10.0)).name
    'squared'
    """
    name = request.loss
    if name is None:
        name = "squared" if kind is Kind.REGRESSION else "zero_one"
    if not isinstance(name, str):
        if callable(name):
            raise ConfigError(
                "the largest value of your own loss is not known, and every interval rests on it",
                f"give a cost matrix, or one of {', '.join(LOSSES)}",
            )
        if request.error_cap is not None:
            raise ConfigError("--error-cap for costs", "leave it out: it is for errors")
        return cost_loss(read_cost_matrix(name, labels))
    name = SCORERS.get(name) or name
    if name in NOT_BOUNDED:
        raise ConfigError(
            f"no interval of the loss {name} from few rows", NOT_BOUNDED[name]
        )
    q = pinball_quantile(name)
    if q is None and name not in LOSSES:
        known = [*LOSSES, "pinball:.9"]
        raise ConfigError(f"unknown loss {name!r}", suggest_nearest(name, known))
    # A loss is either for numbers or for classes.
    needs_numbers = q is not None or LOSSES[name].needs == "numbers"
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
        return log_loss(request.clip) if name == "log_loss" else LOSSES[name]
    # A squared or absolute error has no bound without a range of the target.
    limits = request.target_range or limits
    if limits is None:
        raise ConfigError(
            "the range of the target is unknown, and with it the bound of the loss",
            "add --range LOW HIGH, or --train FILE to take the training rows' range",
        )
    low, high = limits
    if q is not None:
        return pinball_loss(q, low, high, request.error_cap)
    make_loss = squared_loss if name == "squared" else absolute_loss
    return make_loss(low, high, request.error_cap)


#: Losses of :data:`amlb_ext.core.losses.LOSSES` that are refused, and what to do instead.
NOT_BOUNDED = {
    "auc": (
        "it is of pairs of rows, and the intervals are of losses of single rows: give balanced, "
        "brier or log_loss, or compare two models by it with 'hardsynth compare --loss auc'"
    ),
    "squared_log": "its bound is not known: give squared or absolute",
}


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
    known = Labels(labels)
    shares = np.full(len(labels), np.nan)
    for label, share in priors.items():
        code = known.code(label)
        if code < 0:
            raise ConfigError(
                f"--class-prior names the class {label!r}",
                suggest_nearest(str(label), labels),
            )
        shares[code] = share
    absent = [
        name for name, share in zip(labels, shares, strict=True) if np.isnan(share)
    ]
    if absent:
        raise ConfigError(
            f"--class-prior has no share for {', '.join(absent)}",
            "give one for every class",
        )
    if (shares < 0).any() or abs(shares.sum() - 1) > PRIOR_TOLERANCE:
        listed = ", ".join(f"{label}={share:g}" for label, share in priors.items())
        raise ConfigError(
            f"--class-prior {listed}: the shares sum to {shares.sum():.6g}"
            f"{', and one is below 0' if (shares < 0).any() else ''}",
            "give shares from 0 to 1 that sum to 1",
        )
    # The tolerance allows rounded shares, whose sum is made exact here.
    return shares / shares.sum()


# Generated rows in batches: their place among the labelled rows, and the model's losses.


#: Number of rows to sample and predict at once.
BATCH = 20_000


@dataclass
class Generator:
    """Generated rows, the same in every pass.

    Parameters
    ----------
    inputs : EstimateInputs
    name : str
        Name of a synthesizer, or of a file by its ending.
    n : int
        Number of rows; a file has its own.
    seed : int
    quiet : bool
    """

    inputs: EstimateInputs
    name: str
    n: int
    seed: int
    quiet: bool = True

    def __post_init__(self) -> None:
        path = Path(self.name)
        #: Encoded rows and scaled targets of a file; None for a synthesizer.
        self.rows: tuple[np.ndarray, np.ndarray] | None = None
        if table_ending(path.name):
            self.rows = self.inputs.read_generated(path)
            self.n = len(self.rows[0])
            return
        if self.inputs.train is None:
            raise ConfigError(
                f"synthesizer {self.name} has no rows to learn from",
                "add --train FILE; rows made from the labelled ones alone would add nothing",
            )
        Z, y = self.inputs.train
        synthesizer = make_synthesizer(SynthesizerConfig(name=self.name))
        self.model = synthesizer.fit(
            Z,
            y,
            cards=self.inputs.encoder.cards_,
            n_classes=self.inputs.target.n_classes,
            rng=self._random_stream("fit"),
        )

    def encoded(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield encoded rows and targets in the units of the labelled ones."""
        # A new random stream, so that a second pass gives the same rows.
        rng = self._random_stream("sample")
        for start in range(0, self.n, BATCH):
            stop = min(start + BATCH, self.n)
            if self.rows is None:
                Z, y = self.model.sample(stop - start, rng)
            else:
                all_Z, all_y = self.rows
                Z = all_Z[start:stop]
                y = all_y[start:stop]
            yield Z, self.inputs.units(y)

    def stream(self) -> Iterator[Batch]:
        """Yield metric rows and losses (or None)."""
        n_batches = math.ceil(self.n / BATCH)
        batches = Bar(
            self.encoded(),
            total=n_batches,
            desc="generated",
            unit="batch",
            disable=self.quiet,
        )
        for Z, y in batches:
            losses = None
            # A file of predictions cannot predict these rows.
            if self.inputs.can_predict:
                losses = self.inputs.losses_of(Z, y)
            # Single precision takes half the memory; Regions settles ties in double precision.
            yield self.inputs.metric(Z).astype(np.float32), losses

    def _random_stream(self, stage: str) -> np.random.Generator:
        return random_stream(
            self.seed, self.inputs.task.name, "estimate", stage, self.name
        )
