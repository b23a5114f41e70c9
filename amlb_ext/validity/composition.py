"""Which mixture of rows orders models best? Settled per task on the training rows alone.

The training rows play both parts. F, the oracle and the candidates are cross-fitted on them, so
every row has losses of models that did not see it. Again and again a few of the rows, as many as
the test fold has, are taken for a test fold; what each mixture of them says is held to the
candidates' gains over F on the other rows, weighted by P(bad | x) and all alike. The main test
file is a mixture that is shown to order candidates better than the whole fold does where F fails,
and no worse over all rows; where none is, it is the whole fold. The test fold plays no part.

Made rows of the population are not made here. What they would say is what the oracle expects of
the rows that they are moved from, and that is known without a draw. Augmented rows and those of a
synthesizer are not among the mixtures: in no study did they order models better than the failures
they were made from (docs/evidence/fidelity.md), so only the user puts them into the main test file.

Notation
--------
D : (n, m) losses of m candidates minus F's, out of fold;  w : (n,) P(bad | x), out of fold
E : (n, m) what the oracle expects of D, given the features
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import stats

from amlb_ext.core import row_losses
from amlb_ext.core.config import GenerateConfig
from amlb_ext.core.errors import ModelError
from amlb_ext.core.rng import random_stream
from amlb_ext.core.task import Task
from amlb_ext.core.unit import ROW
from amlb_ext.hardening.made_rows.population_teacher import Teacher
from amlb_ext.hardening.prepare import CrossFit
from amlb_ext.hardening.weights import Composition, mixed_weights
from amlb_ext.stats.ranking import expected_contrast, kendall_tau
from amlb_ext.validity.candidates import MIN_CANDIDATES
from amlb_ext.validity.held_out_parts import HeldOutCandidates, HeldOutPart
from amlb_ext.validity.measures import MIN_ROWS, too_few_text
from amlb_ext.validity.ranking_measures import ORDER_LOSS

#: Random mock test folds.
SPLITS = 40
#: Shares of the region weights and of made rows that are tried; none of either is the whole fold.
REGION_SHARES = (0.0, 0.5, 1.0)
MADE_SHARES = (0.0, 0.5)
#: One-sided: how likely any mixture may pass for better than the whole fold where none is.
ALPHA = 0.05


@dataclass(frozen=True, kw_only=True)
class Option:
    """One mixture and how well it orders models on the training rows.

    Attributes
    ----------
    composition : Composition
    tau, tau_all : float
        Mean agreement with the other training rows over the mock test folds: weighted by
        P(bad | x), and all alike.
    """

    composition: Composition
    tau: float
    tau_all: float

    def to_json(self) -> dict[str, Any]:
        """Return plain mappings and lists."""
        entry = self.composition.to_json()
        del entry["reason"]
        return entry | {"tau": self.tau, "tau_all": self.tau_all}


@dataclass(frozen=True, kw_only=True)
class CompositionChoice:
    """The mixture of a fold's main test file, and those it was chosen from.

    Attributes
    ----------
    composition : Composition
    options : tuple of Option
        Empty where nothing was compared; the composition's reason says why.
    chosen : int
        Position among them.
    """

    composition: Composition
    options: tuple[Option, ...] = ()
    chosen: int = 0

    @property
    def tau(self) -> dict[str, float]:
        """Agreement of what was chosen, of the whole fold and of bad rows alone."""
        return {
            "chosen": self.options[self.chosen].tau,
            "whole": self.options[0].tau,
            "bad": self.options[-1].tau,
        }

    def to_json(self) -> dict[str, Any]:
        """Return plain mappings and lists."""
        entry = self.composition.to_json()
        if self.options:
            entry["tau"] = self.tau
            entry["options"] = [option.to_json() for option in self.options]
        return entry


def choose_composition(
    tasks: Sequence[Task],
    fold: int,
    config: GenerateConfig,
    cross: CrossFit,
    held_out: HeldOutCandidates,
) -> CompositionChoice:
    """Return a mixture that is shown to order candidates better than the whole fold, or that.

    A pure function of its arguments; no test row is read. The tasks of a group share their rows,
    so they share the mixture, that of the best mean over targets.

    Parameters
    ----------
    tasks : sequence of Task
        One, or all of a group; with folds.
    fold : int
    config : GenerateConfig
    cross : CrossFit
    held_out : HeldOutCandidates
        Of the same arguments.

    Examples
    --------
    >>> from amlb_ext.core.config import build_config
    >>> from amlb_ext.hardening.prepare import cross_fit
    >>> from amlb_ext.hardening.split import split_task
    >>> from amlb_ext.sources import open_specs
    >>> config = build_config({"baseline": {"model": "ridge"}})
    >>> task = next(iter(open_specs(["bundled/toy"], config.source))).load()
    >>> tasks = [split_task(task, config.split, config.seed)]
    >>> cross = cross_fit(tasks, 0, config)
    >>> held_out = HeldOutCandidates(tasks, config, cross)
    >>> choice = choose_composition(tasks, 0, config, cross, held_out)
    >>> "weighted" in choice.composition.parts, len(choice.options)
    (True, 7)
    """
    if "auto" not in config.composition:
        return CompositionChoice(
            composition=Composition.of_parts(config.composition, "as the settings say")
        )
    why = _why_not_compared(cross, held_out)
    if why:
        reason = f"not compared on the training rows: {why}"
        return CompositionChoice(composition=Composition.of_parts(["auto"], reason))
    trial = try_mixtures(tasks, fold, config, cross, held_out)
    chosen = trial.better_than_whole()
    reason = "no mixture is shown to order candidates better than the whole fold does"
    if chosen:
        reason = (
            "shown on the training rows to order candidates better than the whole fold does "
            "where F fails, and no worse over all rows"
        )
    return CompositionChoice(
        composition=replace(trial.compositions[chosen], reason=reason),
        options=trial.options(),
        chosen=chosen,
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class MixtureTrial:
    """How well each mixture orders candidates on mock test folds.

    Attributes
    ----------
    compositions : tuple of Composition
        M of them, the whole fold first.
    region, everywhere : ndarray of shape (splits, M)
        Tau with the rows that the mock test fold leaves, weighted by P(bad | x), and all alike.
    share : float
        Rows of a mock test fold for one of the others.
    """

    compositions: tuple[Composition, ...]
    region: np.ndarray
    everywhere: np.ndarray
    share: float

    def options(self) -> tuple[Option, ...]:
        """Return the mixtures with their mean agreement."""
        means = zip(
            self.compositions,
            self.region.mean(axis=0),
            self.everywhere.mean(axis=0),
            strict=True,
        )
        return tuple(
            Option(composition=composition, tau=float(tau), tau_all=float(tau_all))
            for composition, tau, tau_all in means
        )

    def better_than_whole(self) -> int:
        """Return the best of the mixtures that are shown to be better; 0, the whole, for none.

        One is where its lead over the whole fold is surely above 0 in the region, and surely above
        ``-ORDER_LOSS`` over all rows.
        """
        leads = self.region.mean(axis=0) - self.region[:, 0].mean()
        is_better = self._lower_limits(self.region) > 0
        is_no_worse = self._lower_limits(self.everywhere) > -ORDER_LOSS
        leads[~(is_better & is_no_worse)] = 0.0
        return int(leads.argmax())

    def _lower_limits(self, taus: np.ndarray) -> np.ndarray:
        """Return lower limits of the mean leads over the whole fold, ``(M,)``.

        The mock folds share their rows, so that more of them say less than their number: Nadeau &
        Bengio (2003), Mach. Learn. 52, 239-281. Bonferroni's correction is for the M - 1 mixtures.
        """
        leads = taus - taus[:, :1]
        splits, n_mixtures = leads.shape
        se = leads.std(axis=0, ddof=1) * np.sqrt(1 / splits + self.share)
        quantile = stats.t.ppf(1 - ALPHA / (n_mixtures - 1), splits - 1)
        return np.asarray(leads.mean(axis=0) - quantile * se)


def try_mixtures(
    tasks: Sequence[Task],
    fold: int,
    config: GenerateConfig,
    cross: CrossFit,
    held_out: HeldOutCandidates,
    n_test: int | None = None,
) -> MixtureTrial:
    """Rank candidates by each mixture on mock test folds; see :func:`choose_composition`.

    Of a group the taus are means over its targets. ``n_test`` are the rows of a mock test fold; as
    many as the fold has when omitted.
    """
    records = []
    for target in range(len(tasks)):
        records.append(_TrainingRecord.collect(cross, held_out.parts, target))
    rng = random_stream(config.seed, tasks[0].stream_name, fold, "composition")
    if n_test is None:
        n_test = len(tasks[0].folds[fold].test)
    n = len(records[0].weights)
    # of many rows some were drawn, and no mock test fold is larger than half of them
    size = min(n_test, n // 2)
    taus = np.mean([_mock_taus(record, size, rng) for record in records], axis=0)
    return MixtureTrial(
        compositions=tuple(_compositions(can_make=records[0].expected is not None)),
        region=taus[..., 0],
        everywhere=taus[..., 1],
        share=size / (n - size),
    )


def _why_not_compared(cross: CrossFit, held_out: HeldOutCandidates) -> str:
    """Return why the mixtures cannot be compared; empty where they can."""
    for baseline in (target.baseline for target in cross.targets):
        if not baseline.can_search:
            return "F is a file of predictions and cannot be fitted again"
        if baseline.refit_problem_:
            return (
                f"F came fitted and cannot be fitted again ({baseline.refit_problem_})"
            )
    try:
        n_failures = held_out.n_failures
        if n_failures < MIN_ROWS:
            return too_few_text(n_failures, "failures of the training rows", ROW)
        fewest = held_out.n_candidates
    except ModelError as error:
        return str(error)
    if fewest < MIN_CANDIDATES:
        return f"only {fewest} candidates could be fitted"
    return ""


def _compositions(*, can_make: bool) -> list[Composition]:
    """Return the mixtures that are tried: the whole fold first, the bad rows last."""
    compositions = []
    for made_share in MADE_SHARES if can_make else (0.0,):
        for region_share in REGION_SHARES:
            compositions.append(
                Composition(
                    parts=("weighted", "population") if made_share else ("weighted",),
                    region_share=region_share,
                    made_share=made_share,
                )
            )
    compositions.append(Composition(parts=("bad",), region_share=0.0, made_share=0.0))
    return compositions


@dataclass(frozen=True, kw_only=True)
class _TrainingRecord:
    """What models that did not see them say of the training rows, for one target.

    Attributes
    ----------
    gaps, expected : ndarray of shape (n, m)
        D and E; no E where no rows of the population can be made.
    weights : ndarray of shape (n,)
    is_bad : ndarray of shape (n,), bool
    """

    gaps: np.ndarray
    expected: np.ndarray | None
    weights: np.ndarray
    is_bad: np.ndarray

    @classmethod
    def collect(
        cls, cross: CrossFit, parts: Sequence[HeldOutPart], target: int
    ) -> _TrainingRecord:
        """Pool the parts, which together hold every training row once."""
        is_bad = np.concatenate([part.rows.is_bad for part in parts])
        # the oracle knows the spread of one target, and moves need numbers
        can_make = len(cross.targets) == 1 and cross.encoder.n_categorical_ < len(
            cross.encoder.names_
        )
        teacher = None
        if can_make:
            teacher = Teacher(cross.targets[0].oracle, cross.Z, cross.y[:, 0])
        gaps = []
        expected = []
        for part in parts:
            # asked once for both, since neighbours take their time over many rows
            predicted = part.predict_candidates(part.rows, target)
            gaps.append(part.own_opinion(target, predicted).losses.gaps)
            if teacher is not None:
                of_candidates = [predicted[name] for name in part.names(target)]
                expected.append(_expected_gaps(teacher, part, of_candidates))
        return cls(
            gaps=np.concatenate(gaps),
            expected=np.concatenate(expected) if can_make else None,
            weights=_unseen_weights(cross, parts),
            is_bad=is_bad,
        )


def _unseen_weights(cross: CrossFit, parts: Sequence[HeldOutPart]) -> np.ndarray:
    """Return P(bad | x) of the rows of all parts, by the region that weighs the test rows.

    None comes from what learnt from the row, see :class:`Region`.
    """
    is_bad = np.zeros(len(cross.Z), dtype=bool)
    for part in parts:
        is_bad[part.failures] = True
    weight = np.empty(len(cross.Z))
    weight[cross.judged] = cross.learn_region(is_bad[cross.judged]).out_of_fold_
    weights = [weight[part.held] for part in parts]
    # the first part in time has nothing to learn its region from: its rows weigh alike
    if cross.order is not None and cross.order.time is not None:
        weights[0] = np.full(len(parts[0].rows), parts[0].rows.is_bad.mean())
    return np.concatenate(weights)


def _expected_gaps(
    teacher: Teacher, part: HeldOutPart, predicted: Sequence[np.ndarray]
) -> np.ndarray:
    """Return what the oracle that did not see a part expects of the candidates' gaps there."""
    rows = part.rows
    t = part.fitted.predict_oracle(rows.Z)[:, 0]
    outcomes, chance = teacher.outcomes(rows.Z, t)
    loss_of_f = row_losses.outcome_losses(rows.f[:, 0], outcomes)
    columns = []
    for f in predicted:
        loss = row_losses.outcome_losses(f, outcomes)
        contrast, _ = expected_contrast(loss, loss_of_f, chance, None)
        columns.append(contrast)
    return np.column_stack(columns)


def _mock_taus(
    record: _TrainingRecord, size: int, rng: np.random.Generator
) -> np.ndarray:
    """Return the taus of each mixture with the rows that a mock test fold leaves.

    Returns
    -------
    ndarray of shape (splits, M, 2)
        With these rows weighted by P(bad | x), and with all alike.
    """
    taus = []
    for _ in range(SPLITS):
        order = rng.permutation(len(record.weights))
        mock, others = order[:size], order[size:]
        gaps = record.gaps[others]
        in_region = np.average(gaps, axis=0, weights=record.weights[others])
        everywhere = gaps.mean(axis=0)
        taus.append(
            [
                (kendall_tau(said, in_region), kendall_tau(said, everywhere))
                for said in _mixture_means(record, mock)
            ]
        )
    return np.array(taus)


def _mixture_means(record: _TrainingRecord, rows: np.ndarray) -> list[np.ndarray]:
    """Return the candidates' mean gaps on each mixture made from some rows."""
    means = []
    for composition in _compositions(can_make=record.expected is not None):
        if composition.parts == ("bad",):
            bad = rows[record.is_bad[rows]]
            # a mock test fold without a failure says nothing of anyone
            nothing = np.zeros(record.gaps.shape[1])
            means.append(record.gaps[bad].mean(axis=0) if len(bad) else nothing)
            continue
        u = mixed_weights(record.weights[rows], composition.region_share)
        mean = np.average(record.gaps[rows], axis=0, weights=u)
        if composition.made_share and record.expected is not None:
            made = np.average(record.expected[rows], axis=0, weights=u)
            mean = (1 - composition.made_share) * mean + composition.made_share * made
        means.append(mean)
    return means
