"""A task as encoded rows."""

from __future__ import annotations

import numpy as np

from amlb_ext.core.task import Kind, Task
from amlb_ext.hardening.encode import Encoder, TargetEncoder


class EncodedTask:
    """A task whose encoders know its training rows alone.

    Parameters
    ----------
    task : Task
    train : ndarray of int
        Positions of the rows that the encoders are fitted on.

    Attributes
    ----------
    encoder : Encoder
    scale : TargetEncoder
    """

    def __init__(self, task: Task, train: np.ndarray) -> None:
        self.task = task
        self.encoder = Encoder(task.columns).fit(task.features.iloc[train])
        self.scale = TargetEncoder(task.kind, task.labels, task.target.iloc[train])

    def rows(self, positions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return encoded features and targets of some rows."""
        Z = self.encoder.transform(self.task.features.iloc[positions])
        return Z, self.scale.transform(self.task.target.iloc[positions])

    @property
    def shape(self) -> tuple[Kind, int, int]:
        """What a model is told: the kind, the number of classes and of categorical columns."""
        return self.task.kind, self.scale.n_classes, self.encoder.n_categorical_
