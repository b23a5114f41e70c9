"""One fold before anything is made: models fitted, every real row judged.

F is fitted on the training rows and judges the test rows *as they are written*: without those whose
class no training row has, and with another value where a category is unknown to the training rows
(:mod:`amlb_ext.hardening.test_rows`). So it is the same F, on the same rows, that AMLB runs and
scores. The training rows are judged by out-of-fold fits of F and of the oracle T, so both sides are
seen as a model sees new rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from amlb_ext.core.config import GenerateConfig
from amlb_ext.core.rng import derive_seed
from amlb_ext.core.task import Task
from amlb_ext.hardening.baseline.estimator import Baseline, CvSplits, cross_folds
from amlb_ext.hardening.baseline.from_file import make_baseline
from amlb_ext.hardening.encode import Encoder, TargetEncoder
from amlb_ext.hardening.hardness import BadRule, raw_hardness, settle_rule
from amlb_ext.hardening.judged_rows import FoldModels, RealRows, null_losses
from amlb_ext.hardening.oracle import Oracle, check_labels
from amlb_ext.hardening.test_rows import (
    Changes,
    Chooser,
    WrittenRows,
    known_classes,
    write_test_rows,
)
from amlb_ext.hardening.weights import Region


@dataclass(frozen=True)
class Prepared:
    """A fold's models and its real rows.

    Attributes
    ----------
    models : FoldModels
        With the rule K settled.
    region : Region
        ``P(bad | x)``, fitted on the out-of-fold failures of the training rows.
    test, train : RealRows
        The weights of training rows are NaN; their predictions are out of fold.
    chooser, changes : Chooser, Changes
        As in :class:`Fitted`.
    """

    models: FoldModels
    region: Region
    test: RealRows
    train: RealRows
    chooser: Chooser
    changes: Changes


@dataclass(frozen=True)
class Seen:
    """Rows of one side of a fold with what F and T predict of them.

    ``Z (n, d)``, ``y (n,)``, ``f`` and ``t`` of shape ``(n,)`` or ``(n, C)``; ``rows`` are
    positions in the table, ``features`` the rows as they are written and ``substituted (n,)`` the
    written names of replaced cells. Seen by side for k targets, y, f and t are ``(n, k)``.
    """

    rows: np.ndarray
    features: pd.DataFrame
    substituted: np.ndarray
    Z: np.ndarray
    y: np.ndarray
    f: np.ndarray
    t: np.ndarray


@dataclass(frozen=True)
class Fitted:
    """A fold's F and T, and both sides as they see them; K has not been asked yet.

    ``chooser`` settles replacements by F, by those of all targets where several share the rows;
    ``changes`` is what was left out and replaced among the test rows.
    """

    known: CrossFit
    baseline: Baseline
    train: Seen
    test: Seen
    chooser: Chooser
    changes: Changes


@dataclass(frozen=True)
class Verdict:
    """K of a fold, and per side the hardness of each row and whether it is bad."""

    rule: BadRule
    h_train: np.ndarray
    bad_train: np.ndarray
    h_test: np.ndarray
    bad_test: np.ndarray


def prepare(
    task: Task, fold: int, config: GenerateConfig, cross: CrossFit | None = None
) -> Prepared:
    """Fit F, T and the region of a fold, settle K, and judge every real row.

    Parameters
    ----------
    task : Task
        With folds.
    fold : int
    config : GenerateConfig
    cross : CrossFit, optional
        What :func:`amlb_ext.hardening.prepare.cross_fit` gave for the same arguments; learnt
        here when omitted.

    Raises
    ------
    ModelError
        F cannot be fitted, or its predict fails.
    ConfigError
        The rule does not serve this kind of task.

    Examples
    --------
    >>> from amlb_ext.core.config import build_config
    >>> from amlb_ext.hardening.split import split_task
    >>> from amlb_ext.sources import open_specs
    >>> config = build_config({"baseline": {"model": "ridge"}})
    >>> task = next(iter(open_specs(["bundled/toy"], config.source))).load()
    >>> ready = prepare(split_task(task, config.split, config.seed), 0, config)
    >>> len(ready.test.rows), len(ready.train.rows)
    (200, 800)
    """
    fitted = fit_models(task, fold, config, cross)
    train = fitted.train
    rule = settle_rule(config.hardness, task.kind, task.labels, train.f, train.y, train.t)
    verdict = call_bad(rule, config, train, fitted.test)
    return judged(fitted, verdict, fit_region(fitted, verdict, config), config)


def fit_models(
    task: Task, fold: int, config: GenerateConfig, cross: CrossFit | None = None
) -> Fitted:
    """Fit F on the training rows, and let F and T predict both sides; as :func:`prepare`."""
    return fit_together([task], fold, config, [cross or cross_fit(task, fold, config)])[0]


def fit_together(
    tasks: Sequence[Task], fold: int, config: GenerateConfig, crosses: Sequence[CrossFit]
) -> list[Fitted]:
    """Fit the F of each task of a group; what is written of the test rows is one for all.

    Parameters
    ----------
    tasks : sequence of Task
        With the same features and folds; several are regressions.
    fold : int
    config : GenerateConfig
    crosses : sequence of CrossFit
        Of each task.

    Raises
    ------
    ModelError
        F cannot be fitted, or its predict fails.
    DataError
        No test row has a class that a training row has.
    """
    baselines = []
    for task, known in zip(tasks, crosses, strict=True):
        seed = derive_seed(config.seed, *known.key, "fit") % 2**31
        baseline = make_baseline(config.baseline, task, known.encoder, known.target)
        baselines.append(baseline.fit(known.Z, known.y, seed))
    chooser = Chooser(tuple(baselines), tuple(known.encoder for known in crosses))
    rows, left_out = known_classes(tasks[0], fold)
    test = write_test_rows(tasks[0], crosses[0].rows, rows, chooser)
    changes = replace(test.changes, left_out=left_out)
    return [
        _fitted(task, known, baseline, test, chooser, changes)
        for task, known, baseline in zip(tasks, crosses, baselines, strict=True)
    ]


def _fitted(
    task: Task,
    known: CrossFit,
    baseline: Baseline,
    test: WrittenRows,
    chooser: Chooser,
    changes: Changes,
) -> Fitted:
    """Let F and T predict both sides."""
    Z_test = known.encoder.transform(test.features)
    on_train = Seen(
        rows=known.rows,
        features=task.features.iloc[known.rows],
        substituted=np.full(len(known.rows), "", dtype=object),
        Z=known.Z,
        y=known.y,
        f=known.f,
        t=known.oracle.out_of_fold_,
    )
    on_test = Seen(
        rows=test.rows,
        features=test.features,
        substituted=test.substituted,
        Z=Z_test,
        y=known.target.transform(task.target.iloc[test.rows]),
        f=baseline.predict_rows(Z_test, test.rows),
        t=known.oracle.predict(Z_test),
    )
    return Fitted(known, baseline, on_train, on_test, chooser, changes)


def call_bad(rule: BadRule, config: GenerateConfig, train: Seen, test: Seen) -> Verdict:
    """Ask K, settled on the training rows, about both sides; ``quantile`` is relative to each."""
    h_train = rule.hardness(train.y, train.f, train.t)
    bad_train = rule.select(h_train)
    if rule.rule == "quantile":
        rule = rule.worst_of(config.hardness.share, test.y, test.f, test.t)
    h_test = rule.hardness(test.y, test.f, test.t)
    return Verdict(rule, h_train, bad_train, h_test, rule.select(h_test))


def fit_region(fitted: Fitted, verdict: Verdict, config: GenerateConfig) -> Region:
    """Learn where F fails from the training rows."""
    seed = derive_seed(config.seed, *fitted.known.key, "weights") % 2**31
    return Region(seed).fit(fitted.train.Z, verdict.bad_train)


def judged(fitted: Fitted, verdict: Verdict, region: Region, config: GenerateConfig) -> Prepared:
    """Put together what is known of a fold and of its real rows."""
    known, test, train = fitted.known, fitted.test, fitted.train
    oracle = known.oracle
    on_test = RealRows(
        test.rows,
        test.features,
        test.substituted,
        test.Z,
        test.y,
        test.f,
        verdict.h_test,
        raw_hardness("reducible", test.y, test.f, test.t),
        *check_labels(oracle, test.t, test.y, config.agreement),
        region.weights(test.Z),
        verdict.bad_test,
        null_losses(known.fits, test.Z, test.y),
    )
    on_train = RealRows(
        train.rows,
        train.features,
        train.substituted,
        train.Z,
        train.y,
        train.f,
        verdict.h_train,
        raw_hardness("reducible", train.y, train.f, train.t),
        *check_labels(oracle, train.t, train.y, config.agreement),
        np.full(len(train.y), np.nan),
        verdict.bad_train,
        np.empty((len(train.y), 0)),
    )
    models = FoldModels(
        known.encoder,
        known.target,
        fitted.baseline,
        verdict.rule,
        oracle,
        train.Z,
        train.y,
        config,
        known.key,
        known.fits,
    )
    return Prepared(models, region, on_test, on_train, fitted.chooser, fitted.changes)


# The training rows of a fold, and F and T cross-fitted on them: fitted once, used three times.
#
# The fits of F without one part give the out-of-fold predictions that settle K and the region; they
# judge the failures that kappa is calibrated on; and, each having seen 80 % of the training rows,
# they are the re-fits of the null control. T is cross-fitted on the same parts.

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
        :meth:`amlb_ext.hardening.baseline.estimator.Baseline.cross_fit`.
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
    parts: CvSplits
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
