"""Whether capped losses may decide: where a few large errors do, the plain figures stand alone.

Notation
--------
l_G, l_F : (n,) plain losses of a candidate and of F on the same rows
c : the cap of :mod:`amlb_ext.stats.bounded_loss`
w : (n,) weights of the units, all alike where there are none
r = 1 - sum w min(l, c) / sum w l : the share of a loss that the cap takes

The mean of capped losses has an interval that covers, but it is another quantity. A model that
misses the few large values of a target may have less of the capped loss and more of the plain one,
and who pays for the large values asks for the plain one. So nothing is claimed by capped losses

- where they and the plain ones disagree in sign, unless both are within the capped interval, which
  then decides nothing;
- where the cap takes more than half of F's loss, or, of a candidate that is not told from F, more
  than half of the candidate's;
- where a plain loss is too large for a number.

The plain figures then stand without an interval: the t interval of a mean that a few rows decide
covers down to 46 % (``benchmarks/claims/coverage_tails.py``).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from amlb_ext.core.display import format_number, format_percent
from amlb_ext.core.unit import ROW, Unit
from amlb_ext.stats.bounded_loss import ErrorCap
from amlb_ext.stats.weighted_mean import MeanEstimate

#: Of a loss of which the cap takes more than this, the smaller part is left.
MOST_TAKEN = 0.5
#: The column ``by``: what the figures of a row are. Where losses have a cap, plain ones are those
#: of which the largest errors decide, so that nothing is claimed.
BY_CAPPED, BY_PLAIN = "capped", "plain"


def no_interval_text(unit: Unit) -> str:
    """Return what follows where the largest errors decide, and what to do."""
    return (
        f"so no interval of these {unit.many} is sound; decide by another loss, e.g. the absolute "
        "error"
    )


@dataclass(frozen=True, kw_only=True)
class PlainLoss:
    """The plain loss of one model, and what the cap makes of it.

    Attributes
    ----------
    mean, capped : float
        Mean loss as it is, and capped; the first is infinite where a loss is no number.
    rmse : float
        In the target's own unit; NaN where that is not known.
    at_cap, infinite, n : int
        Units that reach the cap, those on which the loss is too large for a number, and all.
    held : float
        Share of the loss on the units that reach the cap.
    unit : Unit
    """

    mean: float = float("nan")
    capped: float = float("nan")
    rmse: float = float("nan")
    at_cap: int = 0
    infinite: int = 0
    n: int = 0
    held: float = float("nan")
    unit: Unit

    @property
    def is_tail(self) -> bool:
        """Whether the cap takes more than half of it."""
        return self.infinite > 0 or self.capped < (1 - MOST_TAKEN) * self.mean

    def sentence(self, whose: str) -> str:
        """Return that a few rows hold most of it, in words."""
        if self.infinite:
            return (
                f"{whose} squared error is too large for a number on {self.infinite} of "
                f"{format_number(self.n)} {self.unit.many}; look at the predictions there"
            )
        if not self.at_cap:
            # nothing was capped but what no variance could hold
            return (
                f"{whose} loss on single {self.unit.many} is so large that its square is no "
                "number; look at the predictions there"
            )
        follows = no_interval_text(self.unit)
        return f"the largest errors decide: {self.holders(whose)}, {follows}"

    def holders(self, whose: str) -> str:
        """Return which share of it few units hold, in words."""
        verb = "holds" if self.at_cap == 1 else "hold"
        counted = (
            f"{format_number(self.at_cap)} of {format_number(self.n)} {self.unit.many}"
        )
        return f"{counted} {verb} {format_percent(self.held)} of {whose} squared error"


@dataclass(frozen=True, kw_only=True)
class PlainContrast:
    """Two models by their plain losses, beside the capped ones.

    Attributes
    ----------
    g, f : PlainLoss
    whose : str
        The second model, in the genitive.
    has_cap, is_capped : bool
        Whether there is a cap, and whether it changes the loss of either.
    """

    g: PlainLoss
    f: PlainLoss
    whose: str
    has_cap: bool
    is_capped: bool

    @property
    def difference(self) -> float:
        """Of the plain means; negative where the first model is better."""
        return self.g.mean - self.f.mean

    @property
    def tail_reason(self) -> str:
        """Why no capped loss of these rows counts, whichever model has less of it."""
        if self.g.infinite:
            return self.g.sentence("its")
        return self.f.sentence(self.whose) if self.f.is_tail else ""

    def veto(self, point: float, low: float, high: float) -> str:
        """Return why the capped losses may not decide; empty where they may.

        Parameters
        ----------
        point, low, high : float
            The difference of the capped losses and its interval, NaN where there is none.
        """
        if not self.is_capped or self.tail_reason:
            return self.tail_reason
        if low <= 0 <= high and self.g.is_tail:
            return self.g.sentence("its")
        return self.disagreement(point, low, high)

    def disagreement(self, point: float, low: float, high: float) -> str:
        """Return that capped and plain losses differ in sign; empty where they do not."""
        # an F without any loss has the same sign of a difference in both
        unit = self.f.capped or 1.0
        plain, capped = self.difference / (self.f.mean or 1.0), point / unit
        if plain == capped or plain * capped > 0:
            return ""
        # both inside an interval around 0: it decides nothing, by either loss
        if low <= 0 <= high and low / unit <= plain <= high / unit:
            return ""
        return (
            f"the largest errors decide: its loss is {_change_text(plain)} than {self.whose}, and "
            f"with these errors capped {_change_text(capped)}, {no_interval_text(self.f.unit)}"
        )

    def by(self, veto: str) -> str:
        """Return what figures are shown: ``capped`` ones, or ``plain`` ones."""
        return BY_CAPPED if self.has_cap and not veto else BY_PLAIN

    def record(self, veto: str) -> dict[str, object]:
        """Return the columns that tell of plain losses: all figures where there is a veto."""
        record = {"rmse": self.g.rmse, "rmse_f": self.f.rmse, "by": self.by(veto)}
        if not veto:
            return record
        nothing = ("low", "high", "p", "p_adjusted", "p_null")
        return {
            **record,
            **dict.fromkeys(nothing, float("nan")),
            "loss": self.g.mean,
            "loss_f": self.f.mean,
            "difference": self.difference,
            "verdict": "no claim",
            "reason": veto,
        }

    def judge(self, estimate: MeanEstimate) -> tuple[MeanEstimate, str]:
        """Return what stands for a difference of capped losses, and why where that may not."""
        veto = self.veto(estimate.point, estimate.low, estimate.high)
        return self.without_interval(estimate, veto), veto

    def without_interval(self, estimate: MeanEstimate, veto: str) -> MeanEstimate:
        """Return the plain difference in the place of an estimate; as given without a veto."""
        if not veto:
            return estimate
        return replace(estimate, point=self.difference).without_interval(veto)


def contrast_plainly(
    loss_g: np.ndarray,
    loss_f: np.ndarray,
    *,
    cap: ErrorCap,
    weights: np.ndarray | None = None,
    span: np.ndarray | None = None,
    whose: str = "F's",
    unit: Unit = ROW,
) -> PlainContrast:
    """Return the plain means of two models, and what the cap takes of each.

    Parameters
    ----------
    loss_g, loss_f : ndarray of shape (n,)
        Plain losses on the same rows.
    cap : ErrorCap
    weights : ndarray of shape (n,), optional
    span : ndarray of shape (n,), optional
        Length of 1 of the scaled target in the target's own unit, for the RMSE.
    whose : str
        The second model, in the genitive.
    unit : Unit

    Examples
    --------
    >>> f = np.r_[np.ones(98), 400.0, 400.0]
    >>> found = contrast_plainly(0.9 * f + 0.5, f, cap=ErrorCap(loss=4.0, at_cap=2, n=100))
    >>> found.f.mean, found.f.capped
    (8.98, 1.06)
    >>> found.tail_reason[:72]
    "the largest errors decide: 2 of 100 rows hold 89 % of F's squared error,"
    """
    w = np.ones(len(loss_f)) if weights is None else np.asarray(weights, dtype=float)
    has_weight = w > 0
    sizes = None if span is None else span[has_weight]
    models = []
    for losses in (loss_g, loss_f):
        losses = np.asarray(losses, dtype=float)[has_weight]
        models.append(_plain_loss(losses, w[has_weight], sizes, cap, unit))
    g, f = models
    is_capped = any(model.infinite or model.capped < model.mean for model in models)
    return PlainContrast(
        g=g, f=f, whose=whose, has_cap=bool(np.isfinite(cap.loss)), is_capped=is_capped
    )


def _plain_loss(
    losses: np.ndarray,
    weights: np.ndarray,
    span: np.ndarray | None,
    cap: ErrorCap,
    unit: Unit,
) -> PlainLoss:
    if not len(losses):
        return PlainLoss(unit=unit)
    reaches = losses >= cap.loss
    rmse = float("nan")
    # the sum of large losses may be too large where each of them is not
    with np.errstate(over="ignore"):
        mean = float(np.average(losses, weights=weights))
        if span is not None:
            rmse = float(np.sqrt(np.average(losses * span**2, weights=weights)))
        held = float((weights * losses)[reaches].sum())
    total = mean * float(weights.sum())
    infinite = int(np.isinf(losses).sum())
    return PlainLoss(
        mean=mean,
        capped=float(np.average(cap.apply(losses), weights=weights)),
        rmse=rmse,
        at_cap=int(reaches.sum()),
        infinite=infinite or int(np.isinf(mean)),
        n=len(losses),
        held=held / total if 0 < total < np.inf else 0.0,
        unit=unit,
    )


def _change_text(change: float) -> str:
    """Return how one loss lies to another: 8.7 % less, 4.2 % more."""
    return f"{format_percent(abs(change))} {'less' if change < 0 else 'more'}"
