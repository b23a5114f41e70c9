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
    known = cross or cross_fit(task, fold, config)
    key, encoder, target, oracle = known.key, known.encoder, known.target, known.oracle
    Z, y, f_out, t_out = known.Z, known.y, known.f, oracle.out_of_fold_
    test_rows = task.folds[fold].test
    features = task.features
    asked, _ = fit_to_train(features.iloc[known.rows], features.iloc[test_rows], task.columns)
    Z_test = encoder.transform(asked)
    y_test = target.transform(task.target.iloc[test_rows])

    seed = derive_seed(config.seed, *key, "fit") % 2**31
    baseline = make_baseline(config.baseline, task, encoder, target).fit(Z, y, seed)
    f_test, t_test = baseline.predict_rows(Z_test, test_rows), oracle.predict(Z_test)
    rule = settle_rule(config.hardness, task.kind, task.labels, f_out, y, t_out)
    h_train = rule.hardness(y, f_out, t_out)
    bad_train = rule.select(h_train)
    h_test = rule.hardness(y_test, f_test, t_test)
    if rule.rule == "quantile":
        rule, bad_test = _worst_share(rule, h_test, config.hardness.share)
    else:
        bad_test = rule.select(h_test)
    region = Region(derive_seed(config.seed, *key, "weights") % 2**31).fit(Z, bad_train)
    test = RealRows(
        test_rows,
        Z_test,
        y_test,
        f_test,
        h_test,
        raw_hardness("reducible", y_test, f_test, t_test),
        *check_labels(oracle, t_test, y_test, config.agreement),
        region.weights(Z_test),
        bad_test,
        null_losses(known.fits, Z_test, y_test),
    )
    train = RealRows(
        known.rows,
        Z,
        y,
        f_out,
        h_train,
        raw_hardness("reducible", y, f_out, t_out),
        *check_labels(oracle, t_out, y, config.agreement),
        np.full(len(y), np.nan),
        bad_train,
        np.empty((len(y), 0)),
    )
    models = FoldModels(encoder, target, baseline, rule, oracle, Z, y, config, key, known.fits)
    return Prepared(models, region, test, train)


def _worst_share(rule: BadRule, hardness: np.ndarray, share: float) -> tuple[BadRule, np.ndarray]:
    """Settle the rule ``quantile``: the worst share of these rows, at least one."""
    count = max(1, int(np.ceil(share * len(hardness))))
    threshold = float(np.sort(hardness)[::-1][count - 1])
    reason = f"the worst {share:.0%} of the test rows"
    settled = BadRule(rule.rule, threshold, threshold, reason)
    return settled, settled.select(hardness)
