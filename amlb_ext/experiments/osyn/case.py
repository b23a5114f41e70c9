"""One split of a data set: encoders, rows for the models, labelled rows, a generator.

Notation
--------
Z : (n, d) encoded rows;  X : (n, q) what the models see;  M : (n, r) the space of the regions
D_train, D_oracle : 30 % and 70 % of the rows (section 5.2.1);  S : K labelled rows of D_oracle
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from amlb_ext.core.config import SynthesizerConfig
from amlb_ext.core.errors import ConfigError
from amlb_ext.core.rng import derive_seed, random_stream
from amlb_ext.core.task import Task
from amlb_ext.experiments.osyn.choices import Choice
from amlb_ext.experiments.osyn.models import fit_model
from amlb_ext.hardening.baseline.estimator import fill_missing
from amlb_ext.hardening.encode import Encoder, TargetEncoder
from amlb_ext.stats.bounded_loss import LOSSES
from amlb_ext.synthesizers import make_synthesizer

#: Share of D_train, and of the minority among the labelled rows (300 : 200).
TRAIN, MINORITY = 0.3, 0.4
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
    train, oracle : ndarray
        Positions.
    """

    def __init__(
        self, task: Task, choice: Choice, repetition: int, regression: bool
    ) -> None:
        self.task, self.choice, self.regression = task, choice, regression
        self.key = (task.name, int(regression), repetition)
        self.classes = task.kind.is_classification
        target = TargetEncoder(task.kind, task.labels, task.target)
        self.y = target.transform(task.target)
        self.train, self.oracle = self._split()
        self.encoder = Encoder(task.columns, known="table").fit(
            task.features.iloc[self.train]
        )
        self.Z = fill_missing(self.encoder.transform(task.features))
        self.n_classes = target.n_classes
        self.loss = LOSSES["absolute" if regression else "zero_one"]

    def rng(self, stage: str, *more: str | int) -> np.random.Generator:
        """Return the random stream of a stage."""
        return random_stream(SEED, "osyn", *self.key, stage, *more)

    def _split(self) -> tuple[np.ndarray, np.ndarray]:
        """Return 30 % and 70 % of the rows, of each class where there are any."""
        strata = self.y if self.classes else np.zeros(len(self.y))
        train = []
        for label in np.unique(strata):
            rows = self.rng("split", int(label)).permutation(
                np.flatnonzero(strata == label)
            )
            train.append(rows[: max(1, round(TRAIN * len(rows)))])
        chosen = np.sort(np.concatenate(train))
        return chosen, np.setdiff1d(np.arange(len(self.y)), chosen)

    def seen(self, Z: np.ndarray) -> np.ndarray:
        """Return X. Regressors see one-hot columns (Appendix C.1)."""
        if self.regression or self.choice.encoding == "onehot":
            return self.encoder.metric(Z)
        m = self.encoder.n_categorical_
        return np.hstack([Z[:, :m], Z[:, m:] * self.encoder.span_ + self.encoder.low_])

    def placed(self, Z: np.ndarray, X: np.ndarray | None = None) -> np.ndarray:
        """Return M, in single precision."""
        if self.choice.space == "model":
            return (self.seen(Z) if X is None else X).astype(np.float32)
        return self.encoder.metric(Z).astype(np.float32)

    def model(self, name: str) -> Any:
        """Return a model fitted on D_train."""
        seed = derive_seed(SEED, "osyn", *self.key, "fit", name) % 2**31
        X = self.seen(self.Z[self.train])
        return fit_model(name, X, self.y[self.train], seed, self.regression)

    def losses(self, model: Any, X: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Return the losses of rows."""
        return self.loss(y.astype(float) if self.regression else y, model.predict(X))

    def labelled(self, first: np.ndarray) -> np.ndarray:
        """Return S, as positions.

        Classes: three rows of the majority for two of the minority, in regression too ("the same
        manner", Appendix C.1). BIKE: NOTE[DIFF] the paper says only F(S) ≫ F(D_oracle); a row's
        chance grows with the rank of its loss.

        Parameters
        ----------
        first : ndarray
            Losses of the first model on D_oracle; read for BIKE.

        Raises
        ------
        ConfigError
            Fewer rows than asked for.
        """
        rng, size = self.rng("labelled"), self.choice.size
        if not self.classes:
            rank = np.argsort(np.argsort(first)) / max(1, len(first) - 1)
            chance = 1 + self.choice.bias * rank
            few = min(size, len(first))
            taken = rng.choice(self.oracle, few, replace=False, p=chance / chance.sum())
        else:
            of = self.y[self.oracle]
            rare = int(np.argmin(np.bincount(of, minlength=self.n_classes)))
            minor = round(MINORITY * size)
            sides = ((of == rare, minor), (of != rare, size - minor))
            taken = np.concatenate(
                [rng.permutation(self.oracle[side])[:wanted] for side, wanted in sides]
            )
        if len(taken) < size:
            raise ConfigError(
                f"{self.task.name}: {len(taken)} of {size} labelled rows",
                "give a smaller size",
            )
        return np.sort(taken)

    @property
    def priors(self) -> np.ndarray | None:
        """Shares of the classes in D_oracle; None without classes."""
        if not self.classes:
            return None
        counts = np.bincount(self.y[self.oracle].astype(int), minlength=self.n_classes)
        return counts / counts.sum()

    def generator(self) -> Generator:
        """Return a generator fitted on D_oracle, as in the paper: it has seen the answer."""
        config = SynthesizerConfig(
            name=self.choice.generator, epochs=self.choice.epochs
        )
        made = make_synthesizer(config).fit(
            self.Z[self.oracle],
            self.y[self.oracle],
            cards=self.encoder.cards_,
            n_classes=self.n_classes,
            rng=self.rng("generator"),
        )
        return Generator(self, made)


class Generator:
    """Rows of a fitted synthesizer, batch by batch."""

    def __init__(self, case: Case, model: Any) -> None:
        self.case, self.model = case, model

    def batches(self, n: int, stage: str) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield encoded rows and targets; the same rows each time."""
        rng, size = self.case.rng("sample", stage), self.case.choice.batch
        for start in range(0, n, size):
            yield self.model.sample(min(size, n - start), rng)
