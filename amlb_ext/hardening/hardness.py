r"""K, the rule that calls a row bad (paper, sections 3, 4.1, 4.2 and 6).

Every rule maps a row to a *hardness*, larger is worse, and calls it bad when the hardness
reaches a threshold:

===========  ==========================================  ================  ==============
rule         hardness h                                  threshold         customary alpha
===========  ==========================================  ================  ==============
absolute     :math:`|F(x) - y|`                          alpha             .1
squared      :math:`(F(x) - y)^2`                        alpha             .01
band         :math:`1 - \max_c p_c(x)`                   1 - alpha         .505
wrong        1 where F decides wrongly, and              1                 none
             :math:`(1 - p_y(x)) / 2` beside
wrong, with  :math:`1 - p_y(x)`                          1 - alpha         .5
alpha
quantile     squared error or Brier loss                 worst ``share``   none
reducible    :math:`\sum (T(x) - F(x))^2`, T an oracle   alpha             worst ``share``
===========  ==========================================  ================  ==============

By default a row is bad where F fails: ``wrong``, by what F's ``predict`` decides, or for numbers
``quantile``, where its loss is largest. ``paper`` is what the paper reads: ``band`` or
``absolute``, by the kind of the target; under ``band`` F is unsure, and most often right.

Targets of a regression are min–max scaled by the training rows. ``absolute`` is the reading of
the paper's threshold that gives its shares of bad points; ``squared`` is the printed formula,
``wrong`` with an alpha the printed one for classes, ``band`` the one under which its scores are
possible. ``reducible`` is not in the paper: its rows are chosen by features alone.

No rule but ``paper`` calls more than a stated share of the rows bad: that of ``share`` where this
sets the threshold, else :data:`MOST_BAD`. Where rows tie, those with the larger loss come first,
and rows that nothing tells apart are all good.

A row has k >= 1 targets, and one hardness (section 6). Over several targets it is

* their mean, put to one threshold (``mean``);
* that of the target which decides, each having a threshold of its own: the least hard one
  (``intersection``: a row is bad where every target is) or the hardest (``union``: where any is).

Notation
--------
y : (n, k) scaled targets, or (n, 1) class codes
f, t : (n, k) predictions of F and of the oracle T, or (n, 1, C) class probabilities
j : a target; ``y[:, j]`` and ``f[:, j]`` are what a rule for one target reads
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from amlb_ext.core import row_losses
from amlb_ext.core.errors import ConfigError
from amlb_ext.core.notes import Note
from amlb_ext.core.unit import Kind
from amlb_ext.hardening.rules import BY_KIND, RULES

if TYPE_CHECKING:
    from amlb_ext.core.config import HardnessConfig

CUSTOMARY = {"absolute": 0.1, "squared": 0.01, "band": 0.505, "wrong": 0.5}
#: Rules whose alpha bounds a probability from above: their hardness is 1 - that probability.
_FALLING = ("band", "wrong")
#: The largest alpha-free threshold of ``wrong``: F decides wrongly.
_DECIDED_WRONGLY = 1.0
#: The share of the rows that are bad where nothing else says how many.
USUAL_SHARE = 0.1
#: A customary alpha that fewer training rows fail gives way to the usual share: of 5 % of a small
#: table nothing can be learnt.
FEWEST_FAILING = 0.05
#: The largest share of rows that may be bad, whatever rule and threshold: where F fails on most
#: rows, this is no place. It holds for the hardest rows that tie, too, whatever share was wanted.
MOST_BAD = 0.5
#: Weight of the loss in the hardness where this alone tells rows apart.
_TIE_WEIGHT = 1e-6
_COMBINE: dict[str, Callable[..., np.ndarray]] = {
    "mean": np.mean,
    "intersection": np.min,
    "union": np.max,
}


@dataclass(frozen=True, kw_only=True)
class BadRule:
    """K with its threshold settled for one fold.

    Attributes
    ----------
    rule : str
    threshold : float
        A row is bad when its hardness is at least this.
    alpha : float
        The same in the rule's own units.
    reason : str
        How alpha was chosen, for the manifest.
    class_alpha : tuple of float
        Threshold per class code for ``wrong`` with per-class alphas; else empty.
    over : str
        How the targets become one hardness: ``mean``, ``intersection`` or ``union``.
    shifts : tuple of float
        Per target, what brings its own threshold to the common one; zeros under ``mean``.
    by_decision : bool
        Whether ``wrong`` asks what F decides, and no probability.
    cut : float or None
        Of two classes, the probability of the second from which F decides for it; None where F
        decides for the most probable class.
    breaks_ties : bool
        Whether the loss tells rows apart that the rule does not.
    """

    rule: str
    threshold: float
    alpha: float
    reason: str
    class_alpha: tuple[float, ...] = ()
    over: str = "mean"
    shifts: tuple[float, ...] = (0.0,)
    by_decision: bool = False
    cut: float | None = None
    breaks_ties: bool = False

    def hardness(
        self,
        y: np.ndarray,
        f: np.ndarray,
        t: np.ndarray | None = None,
        decided: np.ndarray | None = None,
    ) -> np.ndarray:
        """Return the hardness of each row, ``(n,)``; larger is worse.

        Parameters
        ----------
        y, f : ndarray
            Targets and F's predictions, see the module's notation.
        t : ndarray, optional
            The oracle's predictions, for ``reducible``.
        decided : ndarray of shape (n,), optional
            Codes of the classes that F decides for, where it was asked; else what ``cut`` says.
        """
        if self.by_decision:
            if decided is None:
                decided = decide(f[:, 0], self.cut)
            # 1 for a wrong decision, and beside it by how much: at most a half
            is_wrong = (decided != y[:, 0]).astype(float)
            own_class = row_losses.true_probability(y[:, 0], f[:, 0])
            by_target = [is_wrong + (1 - own_class) / 2]
        else:
            by_target = hardness_by_target(self.rule, y, f, t)
        if self.breaks_ties:
            losses = hardness_by_target("quantile", y, f)
            pairs = zip(by_target, losses, strict=True)
            by_target = [each + _TIE_WEIGHT * loss for each, loss in pairs]
        shifted = []
        for each, shift in zip(by_target, self.shifts, strict=True):
            shifted.append(each + shift)
        hardness = _COMBINE[self.over](shifted, axis=0)
        if self.class_alpha:
            # paper 4.2: a threshold per class, folded into the hardness so one threshold serves
            classes = y[:, 0].astype(int)
            class_threshold = 1 - np.asarray(self.class_alpha)[classes]
            hardness = hardness + self.threshold - class_threshold
        return hardness

    def select(self, hardness: np.ndarray) -> np.ndarray:
        """Return which rows are bad, ``(n,)`` bool."""
        return hardness >= self.threshold

    def worst_of(
        self, share: float, y: np.ndarray, f: np.ndarray, t: np.ndarray | None = None
    ) -> BadRule:
        """Return the rule ``quantile`` settled on test rows: their worst share, at least one."""
        by_target = hardness_by_target(self.rule, y, f, t)
        if self.over == "mean":
            by_target = [np.mean(by_target, axis=0)]
        reason = f"the worst {share:.0%} of the test rows"
        thresholds = []
        for hardness in by_target:
            n_bad = max(1, int(np.ceil(share * len(hardness))))
            # rows that tie with the last one are none of the worst, unless all of these tie
            worst, _ = _share_within(hardness, _nth_largest(hardness, n_bad), share)
            thresholds.append(_Threshold(worst, worst, reason))
        rule = _combined(self.rule, self.over, thresholds, n_targets=y.shape[1])
        # one threshold for the mean of the targets: its reason says nothing of any target
        return replace(rule, reason=reason) if self.over == "mean" else rule

    def at_most(self, most: float, hardness: np.ndarray) -> BadRule:
        """Return the rule with a threshold that no more than a share of these rows reaches.

        Parameters
        ----------
        most : float
        hardness : ndarray of shape (n,)
            By this rule, of the rows that it judges.
        """
        allowed = int(np.ceil(most * len(hardness)))
        if int(self.select(hardness).sum()) <= allowed:
            return self
        threshold = _threshold_within(hardness, self.threshold, allowed)
        reason = f"{self.reason}, and no more than {most:.0%} of the rows"
        return replace(self, threshold=threshold, reason=reason)

    def alpha_for(self, hardness: np.ndarray, rows: int) -> float:
        """Return an alpha of four digits that would call at least ``rows`` of these rows bad."""
        worst = _nth_largest(hardness, min(rows, len(hardness)))
        # rounded to the lenient side, so that no row which should be bad is lost
        if self.rule in _FALLING:
            return float(np.ceil((1 - worst) * 1e4) / 1e4)
        if worst <= 0:
            return float(np.floor(worst))
        # the unit of the fourth digit that counts
        unit = 10.0 ** (np.floor(np.log10(worst)) - 3)
        return float(np.floor(worst / unit) * unit)


def _nth_largest(hardness: np.ndarray, n: int) -> float:
    falling = np.sort(hardness)[::-1]
    return float(falling[n - 1])


def _threshold_within(hardness: np.ndarray, threshold: float, allowed: int) -> float:
    """Return the smallest threshold from there on that no more than so many rows reach.

    Infinite where the hardest rows tie and are too many.
    """
    if int((hardness >= threshold).sum()) <= allowed:
        return threshold
    falling = np.sort(hardness)[::-1]
    larger = falling[:allowed][falling[:allowed] > falling[allowed]]
    return float(larger[-1]) if len(larger) else float("inf")


def _share_within(
    hardness: np.ndarray, threshold: float, share: float
) -> tuple[float, float]:
    """Return a threshold that no more than a share of the rows reach, at least one, and the share.

    Where the hardest rows tie, all of them do, if they are no more than :data:`MOST_BAD`.
    """
    for most in (share, MOST_BAD):
        allowed = max(1, int(np.ceil(most * len(hardness))))
        stricter = _threshold_within(hardness, threshold, allowed)
        if np.isfinite(stricter):
            break
    return stricter, most


def decide(p: np.ndarray, cut: float | None = None) -> np.ndarray:
    """Return the code of the class that probabilities decide for, ``(n,)``.

    Parameters
    ----------
    p : ndarray of shape (n, C)
    cut : float, optional
        Of two classes: decide for the second from this probability on; for the most probable
        class when omitted.

    Examples
    --------
    >>> p = np.array([[0.8, 0.2], [0.4, 0.6]])
    >>> decide(p).tolist(), decide(p, 0.1).tolist()
    ([0, 1], [1, 1])
    """
    if cut is None:
        return p.argmax(axis=1)
    return (p[:, 1] >= cut).astype(int)


def find_cut(p: np.ndarray, decided: np.ndarray) -> float | None:
    """Return the probability of the second class from which a model decides for it.

    Parameters
    ----------
    p : ndarray of shape (n, C)
    decided : ndarray of shape (n,), int
        What its ``predict`` says of the same rows.

    Returns
    -------
    float or None
        None where the model decides for the most probable class, and where no cut tells: more
        than two classes, or decisions that do not follow the probability.

    Examples
    --------
    >>> p = np.array([[0.9, 0.1], [0.7, 0.3], [0.4, 0.6]])
    >>> find_cut(p, np.array([0, 1, 1])), find_cut(p, np.array([0, 0, 1]))
    (0.2, None)
    """
    if p.shape[1] != 2 or np.array_equal(p.argmax(axis=1), decided):
        return None
    above = p[decided == 1, 1]
    below = p[decided == 0, 1]
    low = below.max(initial=0.0)
    high = above.min(initial=np.nextafter(1.0, 2.0))
    return float((low + high) / 2) if low < high else None


def note_no_failures(rule: BadRule, hardness: np.ndarray) -> Note:
    """Say that no row is bad, how near the worst one comes, and which alpha would give some."""
    n = len(hardness)
    if rule.by_decision:
        return Note(kind="no wrong decision", counts={"rows": n})
    # ten rows are the fewest that a certificate speaks of
    wanted = min(10, int(np.ceil(n / 4)))
    counts = {
        "alpha": float(rule.alpha),
        "worst": float(rule.alpha_for(hardness, 1)),
        "enough": float(rule.alpha_for(hardness, wanted)),
        "wanted": wanted,
        "share": wanted / n,
    }
    return Note(kind="no failures", counts=counts, words={"rule": rule.rule})


def raw_hardness(
    rule: str, y: np.ndarray, f: np.ndarray, t: np.ndarray | None = None
) -> np.ndarray:
    """Return the hardness for one target under ``rule``; see the table of this module.

    Parameters
    ----------
    rule : str
    y : ndarray of shape (n,)
    f, t : ndarray of shape (n,) or (n, C)

    Examples
    --------
    >>> p = np.array([[0.5, 0.5], [0.9, 0.1]])
    >>> raw_hardness("band", np.array([0, 0]), p).round(2).tolist()
    [0.5, 0.1]
    """
    if rule == "absolute":
        return row_losses.absolute_error(y, f)
    if rule == "squared":
        return row_losses.squared_error(y, f)
    if rule == "band":
        return 1 - f.max(axis=1)
    if rule == "wrong":
        return 1 - row_losses.true_probability(y, f)
    if rule == "quantile":
        return row_losses.row_loss(y, f)
    if t is None:
        raise ConfigError(
            "the rule 'reducible' needs an oracle, which is fitted for a suite alone",
            "give wrong, quantile or band",
        )
    # of classes the sum over their probabilities, of regression the one squared difference
    squared = (t - f) ** 2
    return squared.reshape(len(f), -1).sum(axis=1)


def hardness_by_target(
    rule: str, y: np.ndarray, f: np.ndarray, t: np.ndarray | None = None
) -> list[np.ndarray]:
    """Return the hardness of the rows for each of their targets, ``(n,)`` each.

    Examples
    --------
    >>> y, f = np.zeros((1, 2)), np.array([[0.25, -0.5]])
    >>> [hardness.tolist() for hardness in hardness_by_target("absolute", y, f)]
    [[0.25], [0.5]]
    """
    by_target = []
    for j in range(y.shape[1]):
        t_j = None if t is None else t[:, j]
        by_target.append(raw_hardness(rule, y[:, j], f[:, j], t_j))
    return by_target


def check_rule(config: HardnessConfig, kind: Kind, labels: tuple[str, ...]) -> None:
    """Raise for a rule, or thresholds of classes, that a task of this kind does not have.

    Raises
    ------
    ConfigError
    """
    rule = _rule_for(config, kind)
    family, _ = RULES[rule]
    served = "classification" if kind.is_classification else "regression"
    fitting = [name for name, (serves, _) in RULES.items() if serves in ("any", served)]
    if rule not in fitting:
        raise ConfigError(
            f"the rule {rule!r} serves {family}, this task is {kind}",
            f"use --rule {' or '.join(fitting)}",
        )
    if not config.class_alpha:
        return
    if not labels:
        raise ConfigError(
            "class_alpha sets thresholds for classes, this task is regression",
            "leave --class-alpha out; --alpha sets the threshold of a regression",
        )
    unknown = sorted(set(config.class_alpha) - set(labels))
    if unknown:
        raise ConfigError(
            f"class_alpha names {unknown[0]!r}, the classes are {', '.join(labels)}",
            "use the labels as the source writes them",
        )
    if rule != "wrong":
        raise ConfigError(
            f"class_alpha belongs to the rule 'wrong', not {rule!r}", "--rule wrong"
        )


def check_alpha(config: HardnessConfig, kind: Kind) -> None:
    """Raise for a threshold that no error or no probability can have.

    Parameters
    ----------
    config : HardnessConfig
    kind : Kind

    Raises
    ------
    ConfigError

    Examples
    --------
    >>> from amlb_ext.core.config import HardnessConfig
    >>> check_alpha(HardnessConfig(rule="wrong", alpha=7), Kind.BINARY)
    Traceback (most recent call last):
    ...
    amlb_ext.core.errors.ConfigError: --alpha 7 is no threshold of the rule 'wrong', which calls \
a row bad at a probability of at most alpha (give a number from 0 to 1; it is 0.5 by default)
    """
    rule = _rule_for(config, kind)
    if rule in _FALLING:
        for label, class_alpha in config.class_alpha.items():
            if not 0 <= class_alpha <= 1:
                raise ConfigError(
                    f"--class-alpha {label}={class_alpha:g} is no probability",
                    "give a number from 0 to 1",
                )
    alpha = config.alpha
    # the rule quantile counts rows and has no use for alpha
    if alpha is None or rule == "quantile":
        return
    # no upper end of the others: an error may exceed the range of the training rows
    is_allowed = 0 <= alpha < float("inf")
    meaning, wanted = "an error of at least alpha", "a number of at least 0"
    if rule in _FALLING:
        is_allowed = 0 <= alpha <= 1
        meaning, wanted = "a probability of at most alpha", "a number from 0 to 1"
    if not is_allowed:
        usual = f"; it is {CUSTOMARY[rule]:g} by default" if rule in CUSTOMARY else ""
        raise ConfigError(
            f"--alpha {alpha:g} is no threshold of the rule {rule!r}, which calls a row bad "
            f"at {meaning}",
            f"give {wanted}{usual}",
        )


def _rule_for(config: HardnessConfig, kind: Kind) -> str:
    """Return the rule of the configuration, with those for either kind settled by the kind."""
    if config.rule not in BY_KIND:
        return config.rule
    of_classes, of_numbers = BY_KIND[config.rule]
    if kind.is_classification:
        return of_classes
    # an alpha of a regression is a threshold of the error
    return of_numbers if config.alpha is None else "absolute"


def settle_rule(
    config: HardnessConfig,
    kind: Kind,
    labels: tuple[str, ...],
    *,
    y: np.ndarray,
    f: np.ndarray,
    t: np.ndarray | None = None,
    decided: np.ndarray | None = None,
) -> BadRule:
    """Choose rule and threshold for a fold from the configuration and the training rows.

    The test fold plays no part, so a threshold is never chosen on the rows it will judge.

    Parameters
    ----------
    config : HardnessConfig
    kind : Kind
    labels : tuple of str
        The task's class labels.
    y : ndarray of shape (n, k)
        Targets of the training rows.
    f, t : ndarray of shape (n, k) or (n, 1, C)
        Out-of-fold predictions of F, and of the oracle for ``reducible``.
    decided : ndarray of shape (n,), optional
        Codes of the classes that F decides for; the most probable ones when omitted.

    Raises
    ------
    ConfigError
        A rule that does not serve this kind, a threshold outside its range, or thresholds for
        unknown classes.

    Examples
    --------
    >>> from amlb_ext.core.config import HardnessConfig
    >>> y, f = np.zeros((3, 2)), np.array([[0.2, 0.0], [0.3, 0.3], [0.0, 0.0]])
    >>> for over in ("mean", "intersection", "union"):
    ...     config = HardnessConfig(over=over, alpha=0.15)
    ...     rule = settle_rule(config, Kind.REGRESSION, (), y=y, f=f)
    ...     rule.select(rule.hardness(y, f)).tolist()
    [False, True, False]
    [False, True, False]
    [True, True, False]
    """
    rule = _rule_for(config, kind)
    check_rule(config, kind, labels)
    check_alpha(config, kind)
    says_how_many = config.alpha is not None or config.share is not None
    if rule == "wrong" and not (says_how_many or config.class_alpha):
        cut = None if decided is None else find_cut(f[:, 0], decided)
        by_decision = BadRule(
            rule=rule,
            threshold=_DECIDED_WRONGLY,
            alpha=CUSTOMARY["wrong"],
            reason="what F decides is wrong",
            by_decision=True,
            cut=cut,
        )
        return by_decision.at_most(MOST_BAD, by_decision.hardness(y, f, t, decided))
    by_target = hardness_by_target(rule, y, f, t)
    if config.class_alpha:
        return _per_class(config, rule, labels)
    losses = hardness_by_target("quantile", y, f)
    if config.over == "mean":
        by_target = [np.mean(by_target, axis=0)]
        losses = [np.mean(losses, axis=0)]
    thresholds = []
    for hardness, loss in zip(by_target, losses, strict=True):
        thresholds.append(_settle_threshold(config, rule, hardness, loss))
    return _combined(rule, config.over, thresholds, n_targets=y.shape[1])


class _Threshold(NamedTuple):
    """The threshold of a hardness, in its own unit and in the rule's, and why it is this one."""

    threshold: float
    alpha: float
    reason: str
    breaks_ties: bool = False


def _combined(
    rule: str, over: str, thresholds: Sequence[_Threshold], *, n_targets: int
) -> BadRule:
    """Return the rule over all targets; the strictest threshold becomes the common one."""
    strictest = max(thresholds, key=lambda settled: settled.threshold)
    # targets that share a reason say it once, in the order of the targets
    reasons = dict.fromkeys(settled.reason for settled in thresholds)
    reason = "; ".join(reasons)
    if n_targets > 1:
        how = "mean over" if over == "mean" else f"{over} of"
        reason = f"{how} {n_targets} targets: {reason}"
    # a hardness moved by this much is held against the common threshold as against its own
    shifts = [strictest.threshold - settled.threshold for settled in thresholds]
    if over == "mean":
        # one threshold for the mean of the targets: nothing to bring in line
        shifts = [0.0] * n_targets
    return BadRule(
        rule=rule,
        threshold=strictest.threshold,
        alpha=strictest.alpha,
        reason=reason,
        over=over,
        shifts=tuple(shifts),
        breaks_ties=any(settled.breaks_ties for settled in thresholds),
    )


def _settle_threshold(
    config: HardnessConfig, rule: str, hardness: np.ndarray, loss: np.ndarray
) -> _Threshold:
    """Return a threshold that no more than a stated share of the rows reaches."""
    settled, most = _usual_threshold(config, rule, hardness)
    allowed = int(np.ceil(most * len(hardness)))
    if int((hardness >= settled.threshold).sum()) <= allowed:
        return settled
    # rows tie, or the rule's own threshold calls too many bad: the larger losses come first
    told_apart = hardness + _TIE_WEIGHT * loss
    threshold, most = _share_within(told_apart, settled.threshold, most)
    alpha = 1 - threshold if rule in _FALLING else threshold
    reason = f"{settled.reason}, and no more than {most:.0%} of the rows"
    return _Threshold(threshold, alpha, reason, breaks_ties=True)


def _usual_threshold(
    config: HardnessConfig, rule: str, hardness: np.ndarray
) -> tuple[_Threshold, float]:
    """Return the user's alpha, else the customary one, else the worst share's.

    Beside it the largest share of rows that may reach it.
    """
    if config.alpha is not None and rule != "quantile":
        given = _from_alpha(rule, config.alpha, "given by the user")
        return given, largest_share(config)
    share = worst_share(config)
    why = f"the worst {share:.0%} of the training rows, out of fold"
    if rule in CUSTOMARY and config.share is None:
        customary = _from_alpha(rule, CUSTOMARY[rule], "the rule's customary threshold")
        failing = float((hardness >= customary.threshold).mean())
        if failing >= FEWEST_FAILING:
            return customary, largest_share(config)
        why = (
            f"under the customary {customary.alpha:g} only {failing:.1%} of the training rows "
            f"fail out of fold, so their worst {share:.0%} set it"
        )
    # "higher" takes a hardness that some row has, so that this row is bad
    threshold = float(np.quantile(hardness, 1 - share, method="higher"))
    alpha = 1 - threshold if rule in _FALLING else threshold
    return _Threshold(threshold, alpha, why), max(share, 1 / len(hardness))


def worst_share(config: HardnessConfig) -> float:
    """Return the share of the rows that are bad where a share decides.

    Examples
    --------
    >>> from amlb_ext.core.config import HardnessConfig
    >>> worst_share(HardnessConfig()), worst_share(HardnessConfig(share=0.2))
    (0.1, 0.2)
    """
    return USUAL_SHARE if config.share is None else config.share


def largest_share(config: HardnessConfig) -> float:
    """Return the largest share of rows that a rule with a threshold may call bad.

    Examples
    --------
    >>> from amlb_ext.core.config import HardnessConfig
    >>> largest_share(HardnessConfig()), largest_share(HardnessConfig(rule="paper"))
    (0.5, 1.0)
    """
    return 1.0 if config.rule == "paper" else MOST_BAD


def _from_alpha(rule: str, alpha: float, reason: str) -> _Threshold:
    threshold = 1 - alpha if rule in _FALLING else alpha
    # a band of exactly alpha must not be lost to rounding of 1 - alpha
    return _Threshold(threshold - 1e-12, alpha, reason)


def _per_class(config: HardnessConfig, rule: str, labels: tuple[str, ...]) -> BadRule:
    """Return the rule ``wrong`` with the user's threshold for each class."""
    # classes that the user does not name have the threshold of the rule
    default = CUSTOMARY["wrong"] if config.alpha is None else config.alpha
    alphas = [config.class_alpha.get(label, default) for label in labels]
    base = _from_alpha(rule, default, "given by the user, per class")
    return BadRule(
        rule=rule,
        threshold=base.threshold,
        alpha=default,
        reason=base.reason,
        class_alpha=tuple(alphas),
    )
