"""One split of a data set: what one may set, encoders, rows for the models, labelled rows, models.

The models are the eight classifiers and seven regressors with scikit-learn's own settings (section
5.2.1).

Notation
--------
Z : (n, d) encoded rows;  X : (n, q) what the models see;  M : (n, r) the space of the regions
D_train, D_oracle : 30 % and 70 % of the rows (section 5.2.1);  S : K labelled rows of D_oracle
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field, field_validator, model_validator
from sklearn import discriminant_analysis as da
from sklearn import (
    ensemble,
    linear_model,
    naive_bayes,
    neighbors,
    neural_network,
    svm,
    tree,
)

from amlb_ext.core.config import SynthesizerConfig
from amlb_ext.core.errors import ConfigError
from amlb_ext.core.rng import derive_int_seed, random_stream
from amlb_ext.core.task import Task
from amlb_ext.estimate.osyn.bound import OsynSettings
from amlb_ext.hardening.baseline.estimator import fill_missing
from amlb_ext.hardening.encode import Encoder, TargetEncoder
from amlb_ext.stats.bounded_loss import LOSSES
from amlb_ext.synthesizers import make_synthesizer
from benchmarks.studies.engine import Settings, known_names

#: Models of Table 3; of Table 2; of Table 7, by the paper's abbreviations.
CLASSIFIERS = ("kNN", "SVM", "DT", "ANN", "RF", "LR", "GB", "LDA")
SIMULATED = ("kNN", "SVM", "DT", "ANN", "RF", "LR", "NB", "QDA")
REGRESSORS = ("Ridge", "SVR", "DTR", "RFR", "GBR", "KNR", "ANN")
#: Shifts of the generator (Table 1).
SHIFTS = ("0", "-0.25", "-0.5", "-0.75", "-1", "-1.125", "-1.25", "-1.5", "-1.75", "-2")


class Choice(Settings):
    """Settings; the defaults are the paper's (section 5.2.1, Appendix B) where it states any.

    Attributes
    ----------
    draws : int
        Repetitions.
    generator : str
        A synthesizer, fitted on the oracle rows. NOTE[DIFF]: CTGAN in the paper; ours by default
        is the Gaussian copula, which it lists among others (Table 5). Targets are drawn from the
        oracle rows, and rows for them.
    epochs : int
        Of a generator that is trained in epochs (section 5.4.1).
    size : int
        K = \\|S\\|, the labelled rows.
    rows : int
        Generated rows that give the region masses p.
    iterations, batch : int
        T and N: rows that Algorithm 1 may select from.
    g : int
    b, delta1, delta2 : float
        Of the bound "a priori". NOTE[DIFF]: the paper picks b with the oracle's loss; 1 was
        chosen before any bound was seen.
    c_h : float
        Bound of an absolute error; 0 for the largest one seen, which is none of the population.
    b_reading : float
        Another b for Table 1, found by comparing with the printed bounds.
    k : int
        Neighbours of the sphere; 0: the table's own (10 in Table 2, no sphere elsewhere).
    bootstraps : int
    encoding : str
        What classifiers of the tables see: ``ordinal`` codes with raw numbers, or ``onehot``.
        Regressors see one-hot columns (Appendix C.1).
    space : str
        Of the regions: ``metric`` (one-hot, scaled) or ``model`` (what the model sees).
    bias : float
        BIKE: a row's chance to be labelled grows from 1 to 1 + bias with the rank of its loss.
    data_rows : int
        Rows of a data set; 0 for all.
    train, oracle : int
        Sizes of the simulation (Appendix B.1.1).
    models : tuple of str
        Some of the table's models; empty for all.
    """

    draws: int = Field(1, ge=0)
    generator: str = "copula"
    epochs: int = Field(200, ge=1)
    size: int = Field(500, ge=1)
    rows: int = Field(1_000_000, ge=1)
    iterations: int = Field(15, ge=1)
    batch: int = Field(50_000, ge=1)
    g: int = Field(50_000, ge=1)
    b: float = Field(1.0, ge=0)
    delta1: float = Field(0.01, gt=0)
    delta2: float = Field(0.2, gt=0)
    c_h: float = Field(1.0, ge=0)
    b_reading: float = Field(2.25, ge=0)
    k: int = Field(0, ge=0)
    bootstraps: int = Field(2000, ge=1)
    encoding: Literal["ordinal", "onehot"] = "ordinal"
    space: Literal["metric", "model"] = "metric"
    bias: float = Field(1.5, ge=0)
    data_rows: int = Field(0, ge=0)
    train: int = Field(5_000, ge=1)
    oracle: int = Field(20_000, ge=1)
    models: Annotated[
        tuple[str, ...], known_names("model", (*CLASSIFIERS, *SIMULATED, *REGRESSORS))
    ] = ()

    @field_validator("generator")
    @classmethod
    def _check_generator(cls, generator: str) -> str:
        # raises where there is no such synthesizer, before any data are read
        make_synthesizer(SynthesizerConfig(name=generator))
        return generator

    @model_validator(mode="after")
    def _check_delta(self) -> Choice:
        # both are chances to fail, and a limit that fails every other time limits nothing
        if self.delta >= 0.5:
            raise ValueError("delta1 + delta2 must be below .5")
        return self

    @property
    def delta(self) -> float:
        """What every lower limit may fail with: delta1 + delta2."""
        return self.delta1 + self.delta2

    def bound(self, **others: Any) -> OsynSettings:
        """Return the settings of the bound "a priori", some of them changed."""
        own = {"g": self.g, "b": self.b, "delta1": self.delta1, "delta2": self.delta2}
        return OsynSettings(**{**own, **others})


#: NOTE[DIFF]: "Linear SVM"; on columns of raw numbers a linear one does not converge, so the
#: tables take the kernel that is scikit-learn's default, and the simulation the linear one.
KINDS: dict[str, type[Any]] = {
    "kNN": neighbors.KNeighborsClassifier,
    "SVM": svm.SVC,
    "DT": tree.DecisionTreeClassifier,
    "ANN": neural_network.MLPClassifier,
    "RF": ensemble.RandomForestClassifier,
    "LR": linear_model.LogisticRegression,
    "NB": naive_bayes.GaussianNB,
    "QDA": da.QuadraticDiscriminantAnalysis,
    "GB": ensemble.GradientBoostingClassifier,
    "LDA": da.LinearDiscriminantAnalysis,
}
REGRESSOR_KINDS: dict[str, type[Any]] = {
    "Ridge": linear_model.Ridge,
    "SVR": svm.SVR,
    "DTR": tree.DecisionTreeRegressor,
    "RFR": ensemble.RandomForestRegressor,
    "GBR": ensemble.GradientBoostingRegressor,
    "KNR": neighbors.KNeighborsRegressor,
    "ANN": neural_network.MLPRegressor,
}


def fit_model(
    name: str,
    X: np.ndarray,
    y: np.ndarray,
    seed: int,
    *,
    regression: bool = False,
    linear: bool = False,
) -> Any:
    """Return a fitted model.

    Parameters
    ----------
    name : str
    X : ndarray of shape (n, d)
    y : ndarray of shape (n,)
    seed : int
    regression : bool
    linear : bool
        Give the SVM a linear kernel.

    Examples
    --------
    >>> X = np.arange(20.0)[:, None]
    >>> fit_model("LR", X, (X[:, 0] > 9).astype(int), 0).predict([[3.0], [15.0]]).tolist()
    [0, 1]
    """
    kind = (REGRESSOR_KINDS if regression else KINDS)[name]
    params: dict[str, Any] = {}
    # neighbours and naive Bayes draw nothing, and take no seed
    if "random_state" in inspect.signature(kind).parameters:
        params["random_state"] = seed
    if name == "SVM" and linear:
        params["kernel"] = "linear"
    with warnings.catch_warnings():
        # The paper's settings: iterations that end too early, collinear columns.
        warnings.simplefilter("ignore")
        return kind(**params).fit(X, y)


#: Share of D_train, and of the minority among the labelled rows (300 : 200).
TRAIN, MINORITY = 0.3, 0.4
#: Of every random stream of these tables.
SEED = 1


class Case:
    """A data set, split; the same arguments give the same split, rows and generator.

    Parameters
    ----------
    task : Task
    choice : Choice
    repetition : int
        NOTE[DIFF]: the paper repeats the draw of generated rows alone (its oracle losses have no
        deviation); here a repetition has a split, labelled rows and a generator of its own, so
        that the deviation is of all that chance decides.
    regression : bool
        Losses are absolute errors, targets scaled to 0..1; classes count as 0 and 1.

    Attributes
    ----------
    y : ndarray of shape (n,)
        Class codes, or scaled targets.
    has_classes : bool
        Whether the data have classes, in regression on their codes too.
    train, oracle : ndarray
        Positions.
    Z, Z_oracle, y_oracle : ndarray
        Encoded rows, all and those of D_oracle, and the targets of these.
    """

    #: Single precision: there are 750,000 losses for each of eight models.
    loss_type: type = np.float32

    def __init__(
        self, task: Task, choice: Choice, repetition: int, regression: bool
    ) -> None:
        self.task = task
        self.choice = choice
        self.regression = regression
        self.key = (task.name, int(regression), repetition)
        self.has_classes = task.kind.is_classification
        target = TargetEncoder(task.kind, task.labels, task.target)
        self.y = target.transform(task.target)
        self.train, self.oracle = self._split_rows()
        # the models know D_train alone; what categories there are is known of the table
        self.encoder = Encoder(task.columns, known="table")
        self.encoder.fit(task.features.iloc[self.train])
        self.Z = fill_missing(self.encoder.transform(task.features))
        self.Z_oracle = self.Z[self.oracle]
        self.y_oracle = self.y[self.oracle]
        self.n_classes = target.n_classes
        self.loss = LOSSES["absolute" if regression else "zero_one"]

    def stage_stream(self, stage: str, *more: str | int) -> np.random.Generator:
        """Return the random stream of a stage."""
        return random_stream(SEED, "osyn", *self.key, stage, *more)

    def _split_rows(self) -> tuple[np.ndarray, np.ndarray]:
        """Return 30 % and 70 % of the rows, of each class where there are any."""
        strata = self.y if self.has_classes else np.zeros(len(self.y))
        train = []
        for label in np.unique(strata):
            rng = self.stage_stream("split", int(label))
            rows = rng.permutation(np.flatnonzero(strata == label))
            n_train = max(1, round(TRAIN * len(rows)))
            train.append(rows[:n_train])
        chosen = np.sort(np.concatenate(train))
        rest = np.setdiff1d(np.arange(len(self.y)), chosen)
        return chosen, rest

    def model_inputs(self, Z: np.ndarray) -> np.ndarray:
        """Return X. Regressors see one-hot columns (Appendix C.1)."""
        if self.regression or self.choice.encoding == "onehot":
            return self.encoder.metric(Z)
        # codes as they are, numbers in their own units: the encoder's scaling is undone
        n_categorical = self.encoder.n_categorical_
        codes = Z[:, :n_categorical]
        numbers = Z[:, n_categorical:] * self.encoder.span_ + self.encoder.low_
        return np.hstack([codes, numbers])

    def region_inputs(self, Z: np.ndarray, X: np.ndarray | None = None) -> np.ndarray:
        """Return M, in single precision.

        Parameters
        ----------
        Z : ndarray of shape (n, d)
        X : ndarray of shape (n, q), optional
            What the models see of the same rows, where it is at hand.
        """
        if self.choice.space != "model":
            return self.encoder.metric(Z).astype(np.float32)
        if X is None:
            X = self.model_inputs(Z)
        return X.astype(np.float32)

    def fit_model(self, name: str) -> Any:
        """Return a model fitted on D_train."""
        seed = derive_int_seed(SEED, "osyn", *self.key, "fit", name)
        X = self.model_inputs(self.Z[self.train])
        y = self.y[self.train]
        return fit_model(name, X, y, seed, regression=self.regression)

    def model_losses(self, model: Any, X: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Return the losses of rows."""
        # a regression on classes takes their codes as numbers
        target = y.astype(float) if self.regression else y
        return self.loss(target, model.predict(X))

    def draw_labelled(self, first_losses: np.ndarray) -> np.ndarray:
        """Return S, as positions.

        Classes: three rows of the majority for two of the minority, in regression too ("the same
        manner", Appendix C.1). BIKE: NOTE[DIFF] the paper says only F(S) ≫ F(D_oracle); a row's
        chance grows with the rank of its loss.

        Parameters
        ----------
        first_losses : ndarray
            Losses of the first model on D_oracle; read for BIKE.

        Raises
        ------
        ConfigError
            Fewer rows than asked for.
        """
        rng = self.stage_stream("labelled")
        size = self.choice.size
        if self.has_classes:
            labelled = self._draw_by_class(size, rng)
        else:
            labelled = self._draw_by_loss(first_losses, size, rng)
        if len(labelled) < size:
            raise ConfigError(
                f"{self.task.name}: {len(labelled)} of {size} labelled rows",
                "give a smaller size",
            )
        return np.sort(labelled)

    def _draw_by_class(self, size: int, rng: np.random.Generator) -> np.ndarray:
        # three of the majority for two of the minority, whatever shares the data have
        classes = self.y_oracle
        counts = np.bincount(classes, minlength=self.n_classes)
        is_minority = classes == int(np.argmin(counts))
        n_minority = round(MINORITY * size)
        # the minority is drawn first: the order is part of every number
        minority = rng.permutation(self.oracle[is_minority])[:n_minority]
        majority = rng.permutation(self.oracle[~is_minority])[: size - n_minority]
        return np.concatenate([minority, majority])

    def _draw_by_loss(
        self, losses: np.ndarray, size: int, rng: np.random.Generator
    ) -> np.ndarray:
        # ranks from 0 to 1, so that the units of the loss do not matter
        rank = np.argsort(np.argsort(losses))
        last_rank = max(1, len(losses) - 1)
        weights = 1 + self.choice.bias * (rank / last_rank)
        chances = weights / weights.sum()
        n_drawn = min(size, len(losses))
        return rng.choice(self.oracle, n_drawn, replace=False, p=chances)

    @property
    def class_shares(self) -> np.ndarray | None:
        """Shares of the classes in D_oracle; None without classes."""
        if not self.has_classes:
            return None
        codes = self.y_oracle.astype(int)
        counts = np.bincount(codes, minlength=self.n_classes)
        return counts / counts.sum()

    def fit_generator(self) -> Generator:
        """Return a generator fitted on D_oracle, as in the paper: it has seen the answer."""
        config = SynthesizerConfig(
            name=self.choice.generator, epochs=self.choice.epochs
        )
        synthesizer = make_synthesizer(config)
        synthesizer.fit(
            self.Z_oracle,
            self.y_oracle,
            cards=self.encoder.cards_,
            n_classes=self.n_classes,
            rng=self.stage_stream("generator"),
        )

        def sample(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
            Z, y = synthesizer.sample(n, rng)
            return fill_missing(Z), y

        return Generator(
            sample=sample,
            stream=partial(self.stage_stream, "sample"),
            batch=self.choice.batch,
        )


@dataclass(frozen=True, kw_only=True)
class Generator:
    """Rows of a generator, batch by batch.

    Attributes
    ----------
    sample : callable
        From a number of rows and a random stream to rows and targets.
    stream : callable
        From a stage to its random stream.
    batch : int
    """

    sample: Callable[[int, np.random.Generator], tuple[np.ndarray, np.ndarray]]
    stream: Callable[[str], np.random.Generator]
    batch: int

    def sample_batches(
        self, n: int, stage: str
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield encoded rows and targets; the same rows each time.

        A million rows at once would not fit into memory, so they come in batches.
        """
        rng = self.stream(stage)
        for start in range(0, n, self.batch):
            yield self.sample(min(self.batch, n - start), rng)
