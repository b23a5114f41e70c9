"""The training rows of a fold, and F and T cross-fitted on them: fitted once, used three times.

The fits of F without one part give the out-of-fold predictions that settle K and the region; they
judge the failures that kappa is calibrated on; and, each having seen 80 % of the training rows,
they are the re-fits of the null control. T is cross-fitted on the same parts.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from amlb_ext.core.config import GenerateConfig
from amlb_ext.core.rng import derive_seed
from amlb_ext.core.task import Task
from amlb_ext.hardening.baseline import Baseline, Parts, cross_folds
from amlb_ext.hardening.encode import Encoder, TargetEncoder
from amlb_ext.hardening.given import make_baseline
from amlb_ext.hardening.oracle import Oracle

#: Parts of the training rows, each left out once.
PARTS = 5


@dataclass(frozen=True)
class CrossFit:
    """What is learnt of a fold's training rows before any other row is looked at.

    Attributes
    ----------
    key : tuple
        Of the fold's random streams.
    encoder, target : Encoder, TargetEncoder
    rows : ndarray of shape (n,), int
        Positions in the table.
    Z, y : ndarray of shape (n, d), (n,)
    parts : list of (ndarray, ndarray)
        Positions among the n rows: fitted on, and left out.
    fits : list of Baseline
        F without each part; empty where it cannot be fitted again, see
        :meth:`amlb_ext.hardening.baseline.Baseline.cross_fit`.
    f : ndarray of shape (n,) or (n, C)
        F's out-of-fold predictions.
    oracle : Oracle
        T; its ``members_`` are in the order of ``parts``.
    """

    key: tuple[str | int, ...]
    encoder: Encoder
    target: TargetEncoder
    rows: np.ndarray
    Z: np.ndarray
    y: np.ndarray
    parts: Parts
    fits: list[Baseline]
    f: np.ndarray
    oracle: Oracle


def cross_fit(task: Task, fold: int, config: GenerateConfig) -> CrossFit:
    """Encode the training rows of a fold and cross-fit F and T on them.

    A pure function of its arguments; no test row is read.

    Parameters
    ----------
    task : Task
        With folds.
    fold : int
    config : GenerateConfig
        Only its seed and its baseline matter.

    Raises
    ------
    ModelError
        F cannot be fitted, or its predict fails.

    Examples
    --------
    >>> from amlb_ext.core.config import build_config
    >>> from amlb_ext.hardening.split import split_task
    >>> from amlb_ext.sources import open_specs
    >>> config = build_config({"baseline": {"model": "ridge"}})
    >>> task = next(iter(open_specs(["bundled/toy"], config.source))).load()
    >>> cross = cross_fit(split_task(task, config.split, config.seed), 0, config)
    >>> cross.Z.shape, cross.f.shape, len(cross.fits), len(cross.oracle.members_)
    ((800, 2), (800,), 5, 5)
    """
    key = (task.stream_name, fold)
    rows = task.folds[fold].train
    encoder = Encoder(task.columns).fit(task.features.iloc[rows])
    target = TargetEncoder(task.kind, task.labels, task.target.iloc[rows])
    Z, y = encoder.transform(task.features.iloc[rows]), target.transform(task.target.iloc[rows])
    seed = derive_seed(config.seed, *key, "cross") % 2**31
    parts = cross_folds(y, target.n_classes, PARTS, seed)
    baseline = make_baseline(config.baseline, task, encoder, target)
    f, fits = baseline.cross_fit(Z, y, rows, parts, seed)
    oracle = Oracle(target.n_classes, derive_seed(config.seed, *key, "oracle") % 2**31)
    oracle.fit(Z, y, parts)
    return CrossFit(key, encoder, target, rows, Z, y, parts, fits, f, oracle)
