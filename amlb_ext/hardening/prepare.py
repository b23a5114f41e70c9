"""One fold before anything is made: models fitted, every real row judged.

F is fitted on the training rows and judges the test rows as AMLB will be given them, categories
that no training row has replaced (``suite.fit_to_train``), for a candidate sees no others. The
training rows are judged by out-of-fold fits of F and of the oracle T, so both sides are seen as a
model sees new rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from amlb_ext.core.config import GenerateConfig
from amlb_ext.core.rng import derive_seed
from amlb_ext.core.task import Task
from amlb_ext.hardening.baseline import Baseline
from amlb_ext.hardening.crossfit import CrossFit, cross_fit
from amlb_ext.hardening.given import make_baseline
from amlb_ext.hardening.hardness import BadRule, raw_hardness, settle_rule
from amlb_ext.hardening.made import FoldModels
from amlb_ext.hardening.oracle import check_labels
from amlb_ext.hardening.parts import RealRows, null_losses
from amlb_ext.hardening.weights import Region
from amlb_ext.suite import fit_to_train


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
    """

    models: FoldModels
    region: Region
    test: RealRows
    train: RealRows


@dataclass(frozen=True)
class Seen:
    """Rows of one side of a fold with what F and T predict of them.

    ``Z (n, d)``, ``y (n,)``, ``f`` and ``t`` of shape ``(n,)`` or ``(n, C)``; ``rows`` are
    positions in the table. Seen by side for k targets, y, f and t are ``(n, k)``.
    """

    rows: np.ndarray
    Z: np.ndarray
    y: np.ndarray
    f: np.ndarray
    t: np.ndarray


@dataclass(frozen=True)
class Fitted:
    """A fold's F and T, and both sides as they see them; K has not been asked yet."""

    known: CrossFit
    baseline: Baseline
    train: Seen
    test: Seen


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
        What :func:`amlb_ext.hardening.crossfit.cross_fit` gave for the same arguments; learnt
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
    known = cross or cross_fit(task, fold, config)
    key, encoder, target, oracle = known.key, known.encoder, known.target, known.oracle
    Z, y = known.Z, known.y
    test_rows = task.folds[fold].test
    features = task.features
    asked, _ = fit_to_train(features.iloc[known.rows], features.iloc[test_rows], task.columns)
    Z_test = encoder.transform(asked)
    y_test = target.transform(task.target.iloc[test_rows])

    seed = derive_seed(config.seed, *key, "fit") % 2**31
    baseline = make_baseline(config.baseline, task, encoder, target).fit(Z, y, seed)
    f_test, t_test = baseline.predict_rows(Z_test, test_rows), oracle.predict(Z_test)
    train = Seen(known.rows, Z, y, known.f, oracle.out_of_fold_)
    return Fitted(known, baseline, train, Seen(test_rows, Z_test, y_test, f_test, t_test))


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
    return Prepared(models, region, on_test, on_train)
