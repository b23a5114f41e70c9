"""One fold before anything is made: models fitted, every real row judged.

F is fitted on the training rows and judges the test rows *as they are written*. AMLB cannot score
a class that no training row has, and its frameworks fail on a category that no training row has:
rows of such a class are left out, and such a category is replaced, before F is asked
(:mod:`amlb_ext.hardening.baseline.replacements`). So it is the same F, on the same rows, that AMLB
runs and scores.

The training rows are judged by out-of-fold fits of F and of the oracle T, so both sides are
seen as a model sees new rows. Where the rows have times, the fits look forward, and the oldest
training rows, which nothing comes before, are learnt from and not judged.

A fold has one or several tasks: those of a group share features and folds, and each has a target
of its own. Every target has an F, a T and a scale; K, and so the bad rows and their region, are
one for all. Notation as in :mod:`amlb_ext.hardening.judged_rows`.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd

from amlb_ext.core.config import GenerateConfig
from amlb_ext.core.rng import derive_int_seed, derive_seed, random_stream
from amlb_ext.core.row_order import RowOrder
from amlb_ext.core.task import Task
from amlb_ext.hardening.baseline.asked import AskedBaseline, ask_limit
from amlb_ext.hardening.baseline.estimator import AskLedger
from amlb_ext.hardening.baseline.fitted import make_baseline
from amlb_ext.hardening.baseline.replacements import (
    Chooser,
    WrittenRows,
    write_test_rows,
)
from amlb_ext.hardening.encode import Encoder, TargetEncoder
from amlb_ext.hardening.feasibility import FoldRelations
from amlb_ext.hardening.hardness import largest_share, settle_rule, worst_share
from amlb_ext.hardening.judged_rows import (
    FoldModels,
    JudgedRows,
    TargetModels,
    judge_real_rows,
    side_by_side,
)
from amlb_ext.hardening.oracle import Oracle
from amlb_ext.hardening.split import (
    PARTS,
    CvSplits,
    blocks_left_out,
    cross_folds,
    judged_rows,
)
from amlb_ext.hardening.weights import Region, draw_region


@dataclass(frozen=True, kw_only=True)
class CrossFit:
    """What is learnt of a fold's training rows before any other row is looked at.

    F and T are cross-fitted once and used three times. The fits of F without one part give the
    out-of-fold predictions that settle K and the region; they judge the failures that kappa is
    calibrated on; and, each having seen 80 % of the training rows, they are the re-fits of the
    null control. T is cross-fitted on the same parts. An F that came fitted judges the training
    rows as it is, and only its clones are cross-fitted.

    Attributes
    ----------
    key : tuple
        Of the fold's random streams.
    seed : int
        The user's; each stage derives its own from it and the key.
    encoder : Encoder
    table : DataFrame
        Features of all rows of the table, in canonical form: not copied for the training rows.
    row : ndarray of shape (n,), int
        Their positions in the table.
    Z, y : ndarray of shape (n, d), (n, k)
    f, t : ndarray of shape (n, k) or (n, 1, C)
        Out-of-fold predictions of F and of T; those of an F that came fitted are its own. NaN of
        rows that are not judged.
    parts : list of (ndarray, ndarray)
        Positions among the n rows: fitted on, and left out.
    judged : ndarray of int
        Positions that some part leaves out, ascending: all, unless parts look forward in time.
    targets : tuple of TargetModels
        F not yet fitted on all training rows; ``members_`` of the oracle in the order of
        ``parts``. Where parts look forward in time, the re-fits of the null control are F without
        each block of time.
    order : RowOrder or None
        Groups and times of the rows.
    relations : FoldRelations or None
        What made rows must satisfy.
    regions : dict of bytes to Region
        What :meth:`learn_region` has learnt, by the rows that are bad.
    """

    key: tuple[str | int, ...]
    seed: int
    encoder: Encoder
    table: pd.DataFrame
    row: np.ndarray
    Z: np.ndarray
    y: np.ndarray
    f: np.ndarray
    t: np.ndarray
    parts: CvSplits
    targets: tuple[TargetModels, ...]
    judged: np.ndarray
    order: RowOrder | None = None
    relations: FoldRelations | None = None
    regions: dict[bytes, Region] = field(default_factory=dict, repr=False)

    def stage_seed(self, stage: str) -> int:
        """Return the seed of a stage: ``fit`` for F on all rows, ``weights`` for the region."""
        # estimators take 31 bits at most
        return derive_int_seed(self.seed, *self.key, stage)

    def learn_region(self, is_bad: np.ndarray) -> Region:
        """Return the region of the judged rows that are bad, ``(m,)`` bool in their order.

        The mixture of the main test file and the weights of the test rows are settled on the same
        failures, so it is learnt once for both.
        """
        asked = np.packbits(is_bad).tobytes()
        if asked not in self.regions:
            region = Region(self.stage_seed("weights")).fit(
                self.Z[self.judged_view], is_bad, self.judged_parts
            )
            self.regions[asked] = region
        return self.regions[asked]

    @property
    def judged_view(self) -> np.ndarray | slice:
        """``judged``, and all rows as a slice: picked by position they would be a copy."""
        return self.judged if len(self.judged) < len(self.Z) else slice(None)

    @property
    def judged_parts(self) -> CvSplits | None:
        """The parts as positions among the judged rows; None where rows have no order.

        Of time the first part has no judged row to be learnt from, and is left out.
        """
        if self.order is None or not self.order.splits:
            return None
        place = np.full(len(self.Z), -1)
        place[self.judged] = np.arange(len(self.judged))
        splits = []
        for fit, held in self.parts:
            learnt = place[fit]
            learnt = learnt[learnt >= 0]
            if len(learnt):
                splits.append((learnt, place[held]))
        return splits

    def decided_rows(self, rows: np.ndarray | slice) -> np.ndarray | None:
        """Return what F decides for on some of the rows; None where its probabilities tell."""
        decided = self.targets[0].baseline.decided_
        return None if decided is None else decided[rows]

    def unseen_predictions(self) -> np.ndarray | None:
        """Return f by fits that have not seen the row: of an F that came fitted, its clones.

        None where F cannot be fitted again, so that nobody knows which rows it has seen.
        """
        f = self.f
        for j, target in enumerate(self.targets):
            if not target.baseline.comes_fitted:
                continue
            if not target.cross_fits:
                return None
            if f is self.f:
                f = self.f.copy()
            for fit, (_, held) in zip(target.cross_fits, self.parts, strict=True):
                f[held, j] = fit.predict(self.Z[held])
        return f


@dataclass(frozen=True, kw_only=True)
class OutOfFold:
    """What fits without a part of the training rows say of that part: a test for every row.

    Attributes
    ----------
    part : ndarray of shape (n,), int
        The part that each row was left out with, 0, 1, ...
    f : ndarray of shape (n, k) or (n, 1, C)
        F's predictions; of an F that came fitted those of its clones.
    is_bad : ndarray of shape (n,), bool
        K's word on them.
    weight : ndarray of shape (n,)
        ``P(bad | x)`` by the trees of the region that have not seen the row.
    """

    part: np.ndarray
    f: np.ndarray
    is_bad: np.ndarray
    weight: np.ndarray


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """A fold's models and its real rows, judged.

    Attributes
    ----------
    models : FoldModels
        With the rule K settled.
    region : Region
        ``P(bad | x)``, fitted on the out-of-fold failures of the training rows.
    test, train : JudgedRows
        The predictions of training rows are out of fold; those that none of them is for are not
        among them.
    n_train : int
        All training rows.
    out_of_fold : OutOfFold or None
        The training rows as rows to test on; None where F cannot be fitted again, and where the
        oldest rows are not judged.
    region_rows : ndarray of int
        Test rows drawn by their weights: positions among them, ascending.
    region_repeats : bool
        Whether they were drawn with replacement.
    chooser : Chooser
        Settles replacements by F, by those of all targets where several share the rows.
    written : WrittenRows
        The test rows as they are written, with what was left out and replaced.
    """

    models: FoldModels
    region: Region
    test: JudgedRows
    train: JudgedRows
    n_train: int
    out_of_fold: OutOfFold | None
    region_rows: np.ndarray
    region_repeats: bool
    chooser: Chooser
    written: WrittenRows


def prepare(
    tasks: Sequence[Task],
    fold: int,
    config: GenerateConfig,
    cross: CrossFit | None = None,
) -> Prepared:
    """Fit F, T and the region of a fold, settle K, and judge every real row.

    Parameters
    ----------
    tasks : sequence of Task
        One, or all of a group; with folds.
    fold : int
    config : GenerateConfig
    cross : CrossFit, optional
        What :func:`cross_fit` returned for the same arguments; fitted here when omitted.

    Raises
    ------
    ModelError
        F cannot be fitted, or its predict fails.
    ConfigError
        The rule does not serve this kind of task.
    DataError
        No test row has a class that a training row has.

    Examples
    --------
    >>> from amlb_ext.core.config import build_config
    >>> from amlb_ext.hardening.split import split_task
    >>> from amlb_ext.sources import open_specs
    >>> config = build_config({"baseline": {"model": "ridge"}})
    >>> task = next(iter(open_specs(["bundled/toy"], config.source))).load()
    >>> prepared = prepare([split_task(task, config.split, config.seed)], 0, config)
    >>> len(prepared.test), len(prepared.train)
    (200, 800)
    """
    if cross is None:
        cross = cross_fit(tasks, fold, config)
    unseen = cross.unseen_predictions()
    judged = cross.judged_view
    rule = settle_rule(
        config.hardness,
        tasks[0].kind,
        tasks[0].labels,
        y=cross.y[judged],
        f=cross.f[judged],
        t=cross.t[judged],
        decided=cross.decided_rows(judged),
    )
    targets = []
    # one seed for all targets: each F differs from the next by its target alone
    seed = cross.stage_seed("fit")
    for j, target in enumerate(cross.targets):
        # a copy is fitted, since what was cross-fitted may be used again
        baseline = copy(target.baseline).fit(cross.Z, cross.y[:, j], seed)
        targets.append(replace(target, baseline=baseline))
    models = FoldModels(
        encoder=cross.encoder,
        targets=tuple(targets),
        rule=rule,
        Z=cross.Z,
        y=cross.y,
        config=config,
        key=cross.key,
        relations=cross.relations,
        f=unseen,
        t=cross.t,
    )
    baselines = tuple(target.baseline for target in targets)
    # F judges the test rows as AMLB will read them, not as the source has them
    chooser = Chooser(baselines, cross.encoder)
    written = write_test_rows(tasks[0], fold, chooser)
    Z = cross.encoder.transform(written.features)
    pairs = zip(tasks, cross.targets, strict=True)
    y = side_by_side(
        [own.scale.transform(task.target.iloc[written.rows]) for task, own in pairs]
    )

    train = judge_real_rows(
        models,
        features=cross.table.iloc[cross.row[judged]],
        Z=cross.Z[judged],
        y=cross.y[judged],
        f=cross.f[judged],
        t=cross.t[judged],
        row=cross.row[judged],
        decided=cross.decided_rows(judged),
    )
    # learnt from training rows alone, and from features alone: weights know no test label
    region = cross.learn_region(train.is_bad)
    out_of_fold = _judge_out_of_fold(models, cross, train, region, unseen)

    if models.ledger is not None:
        # the null control asks each re-fit about them, too
        n_refits = sum(len(target.refits) for target in models.targets)
        due = n_refits * len(Z)
        models.ledger.check(due + len(models.targets) * len(Z))
        # and rows whose cells are replaced later are asked about again
        models.ledger.reserved = due + models.ledger.limit // 10
    f = side_by_side([each.predict_rows(Z, written.rows) for each in baselines])
    t = models.predict_oracle(Z)
    decided = baselines[0].decide_rows(Z, written.rows)
    test_rule = models.rule
    if test_rule.rule == "quantile":
        # relative to the rows it judges: the worst share of this side, not of the other
        test_rule = test_rule.worst_of(worst_share(config.hardness), y, f, t)
    hardness = test_rule.hardness(y, f, t, decided)
    models = replace(
        models, rule=test_rule.at_most(largest_share(config.hardness), hardness)
    )
    test = judge_real_rows(
        models,
        features=written.features,
        Z=Z,
        y=y,
        f=f,
        t=t,
        row=written.rows,
        substituted=written.substituted,
        weight=region.weights(Z),
        decided=decided,
    )
    region_rows, region_repeats = draw_region(
        test.weight, random_stream(config.seed, *cross.key, "region")
    )
    return Prepared(
        models=models,
        region=region,
        test=test,
        train=train,
        out_of_fold=out_of_fold,
        region_rows=region_rows,
        region_repeats=region_repeats,
        n_train=len(cross.Z),
        chooser=chooser,
        written=written,
    )


def cross_fit(tasks: Sequence[Task], fold: int, config: GenerateConfig) -> CrossFit:
    """Encode the training rows of a fold and cross-fit F and T on them, for each target.

    A pure function of its arguments; no test row is read.

    Parameters
    ----------
    tasks : sequence of Task
        One, or all of a group; with folds.
    fold : int
    config : GenerateConfig
        Only its seed, its baseline and its relations matter.

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
    >>> cross = cross_fit([split_task(task, config.split, config.seed)], 0, config)
    >>> cross.Z.shape, cross.f.shape, len(cross.targets[0].oracle.members_)
    ((800, 2), (800, 1), 5)
    """
    first = tasks[0]
    # the tasks of a group share this key: their streams, and so their parts, are the same
    key = (first.stream_name, fold)
    # of the parts of the training rows, and of the fits of F without one of them
    cross_seed = derive_int_seed(config.seed, *key, "cross")
    oracle_seed = derive_int_seed(config.seed, *key, "oracle")
    rows = first.folds[fold].train
    features = first.features.iloc[rows]
    encoder = Encoder(first.columns).fit(features)
    Z = encoder.transform(features)
    del features

    order = None if first.order is None else first.order.take(rows)
    # one ledger: F of every target is asked on one account
    limit = ask_limit(config.baseline, first.kind)
    ledger = AskLedger(limit=limit) if limit else None
    parts: CvSplits = []
    # what is learnt per target, in the order of the tasks
    ys, fs, ts, targets = [], [], [], []
    for task in tasks:
        target = task.target.iloc[rows]
        scale = TargetEncoder(task.kind, task.labels, target)
        y = scale.transform(target)
        # F and T are fitted on the same parts; of a group they are the same for each target
        parts = cross_folds(y, scale.n_classes, PARTS, cross_seed, order)
        baseline = make_baseline(config.baseline, task, encoder, scale)
        if ledger is not None and baseline.can_search:
            baseline = AskedBaseline(baseline, ledger)
        f, fits = baseline.cross_fit(Z, y, rows, parts, cross_seed)
        oracle = Oracle(scale.n_classes, oracle_seed).fit(Z, y, parts)
        ys.append(y)
        fs.append(f)
        ts.append(oracle.out_of_fold_)
        null = fits
        if order is not None and order.time is not None and fits:
            blocks = blocks_left_out(order, PARTS)
            # of a copy: what fitting again says of F is said of the parts
            _, null = copy(baseline).cross_fit(Z, y, rows, blocks, cross_seed)
        fitted = TargetModels(
            scale=scale,
            baseline=baseline,
            oracle=oracle,
            refits=null,
            cross_fits=fits,
        )
        targets.append(fitted)
    relations = FoldRelations.settle(
        tasks,
        rows,
        [target.scale for target in targets],
        config.relations,
        seed=derive_seed(config.seed, *key, "relations"),
    )
    return CrossFit(
        key=key,
        seed=config.seed,
        encoder=encoder,
        table=first.features,
        row=rows,
        Z=Z,
        y=side_by_side(ys),
        f=side_by_side(fs),
        t=side_by_side(ts),
        parts=parts,
        targets=tuple(targets),
        judged=judged_rows(parts),
        order=order,
        relations=relations if relations else None,
    )


def _judge_out_of_fold(
    models: FoldModels,
    cross: CrossFit,
    train: JudgedRows,
    region: Region,
    unseen: np.ndarray | None,
) -> OutOfFold | None:
    """Return the training rows as rows to test on.

    None where F cannot be fitted again, or where some rows have nothing to be predicted by.
    """
    f = unseen
    if f is None or len(cross.judged) < len(cross.Z):
        return None
    part = np.zeros(len(cross.Z), dtype=np.int64)
    for number, (_, held) in enumerate(cross.parts):
        part[held] = number
    is_bad = train.is_bad
    if f is not cross.f:
        # the clones of an F that came fitted err on other rows than F
        rule = models.rule
        if rule.rule == "quantile":
            # the worst share of the rows that are judged, as of the test rows
            share = worst_share(models.config.hardness)
            rule = rule.worst_of(share, cross.y, f, cross.t)
        is_bad = rule.select(rule.hardness(cross.y, f, cross.t))
    return OutOfFold(part=part, f=f, is_bad=is_bad, weight=region.out_of_fold_)
