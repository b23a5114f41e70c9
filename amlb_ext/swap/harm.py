"""Who is harmed where G replaces F, beside what fitting F again would do.

A new model loses somewhere: so does F fitted again on a bootstrap sample of its rows, by some 17 %
in the fifth of rows where that is foreseen. So harm is claimed only where the foreseen worst fifth
is worse than nothing *and* worse than one more such re-fit would be.

Notation
--------
t : change of G's foreseen worst fifth; t_1..t_R : that of each re-fit, foreseen for itself
m, s : mean and standard deviation of t_1..t_R
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import pandas as pd
from scipy.stats import t as student

from amlb_ext.swap.contrast import Change, Contrast
from amlb_ext.swap.foresee import Foresight, foresee, group_change

HarmVerdict = Literal["harms", "ordinary", "not shown", "no verdict"]
#: Groups by the rank of their rows, from the foreseen worst on.
GROUPS = {
    "worst tenth": (0.0, 0.1),
    "worst fifth": (0.0, 0.2),
    "best fifth": (0.8, 1.0),
    "all rows": (0.0, 1.0),
}
#: The group that the verdict is of.
JUDGED = "worst fifth"
#: Shares of rows of the curve, foreseen worst first.
CURVE = np.arange(1, 21) / 20
#: Chance to call harm what is none: of "worse than F", ...
LEVEL = 0.05
#: ... and of "worse than a re-fit". Five re-fits are few; with this the two together falsely
#: flagged .049 of exchangeable re-fits.
REFIT_LEVEL = 0.03


@dataclass(frozen=True, kw_only=True)
class Harm:
    """What the swap does to the rows where it is foreseen to do most.

    Attributes
    ----------
    verdict : {'harms', 'ordinary', 'not shown', 'no verdict'}
        ``ordinary``: worse, and no worse than F fitted again would be. ``no verdict``: F was not
        fitted again.
    groups : dict of str to Change
        By the names of :data:`GROUPS`.
    curve : DataFrame
        ``share`` of rows, foreseen worst first, their ``change`` and its ``se``.
    refits : tuple of Change
        The worst fifth of each re-fit of F.
    p, p_refits : float
        One-sided p-values: of "not worse than F" and "not worse than a re-fit"; NaN without one.
    passes : tuple of Foresight
    """

    verdict: HarmVerdict
    groups: dict[str, Change]
    curve: pd.DataFrame
    refits: tuple[Change, ...] = ()
    p: float = float("nan")
    p_refits: float = float("nan")
    passes: tuple[Foresight, ...] = field(default=(), repr=False)

    @property
    def judged(self) -> Change:
        """The change that the verdict is of."""
        return self.groups[JUDGED]

    @property
    def by_refits(self) -> float:
        """m; NaN without re-fits."""
        values = [change.value for change in self.refits]
        return float(np.mean(values)) if values else float("nan")

    @property
    def score(self) -> np.ndarray:
        """The score of each row, mean of the passes, ``(n,)``."""
        return np.asarray(np.mean([each.score for each in self.passes], axis=0))


def find_harm(
    contrast: Contrast,
    Z: np.ndarray,
    seed: int,
    refits: Sequence[Change] = (),
) -> Harm:
    """Foresee where G loses, and judge it.

    Parameters
    ----------
    contrast : Contrast
        Of F and G.
    Z : ndarray of shape (n, q)
        Columns of the table and both models' predictions.
    seed : int
    refits : sequence of Change
        From :func:`worst_of_refit`, at least two; without any there is no verdict.
    """
    passes = foresee(contrast, Z, seed)
    groups = {
        name: group_change(contrast, passes, low, high)
        for name, (low, high) in GROUPS.items()
    }
    along = [group_change(contrast, passes, 0.0, share) for share in CURVE]
    curve = {
        "share": CURVE,
        "change": [change.value for change in along],
        "se": [change.se for change in along],
    }
    verdict, p, p_refits = judge_harm(groups[JUDGED], refits)
    return Harm(
        verdict=verdict,
        groups=groups,
        curve=pd.DataFrame(curve),
        refits=tuple(refits),
        p=p,
        p_refits=p_refits,
        passes=tuple(passes),
    )


def bootstrap_rows(
    n: int, rng: np.random.Generator, group: np.ndarray | None = None
) -> np.ndarray:
    """Return positions of a bootstrap sample of n rows, ascending; of rows with groups, of groups.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> bootstrap_rows(4, rng)
    array([1, 2, 2, 3])
    >>> bootstrap_rows(4, rng, np.array(["a", "a", "b", "b"]))
    array([0, 0, 1, 1])
    """
    unit = np.arange(n)
    if group is not None:
        unit = np.unique(group, return_inverse=True)[1].reshape(-1)
    n_units = unit.max() + 1
    times = np.bincount(rng.integers(0, n_units, n_units), minlength=n_units)
    return np.repeat(np.arange(n), times[unit])


def worst_of_refit(contrast: Contrast, Z: np.ndarray, seed: int) -> Change:
    """Return the change of a re-fit's own foreseen worst fifth, as if it were a G."""
    return group_change(contrast, foresee(contrast, Z, seed), *GROUPS[JUDGED])


def judge_harm(
    judged: Change, refits: Sequence[Change]
) -> tuple[HarmVerdict, float, float]:
    r"""Return the verdict and the p-values that it rests on.

    The second is that of one more draw from the re-fits' normal distribution,
    :math:`(t - m) / (s \sqrt{1 + 1/R})` with R - 1 degrees of freedom.

    Examples
    --------
    >>> small = Change(value=0.5, se=0.1, df=99.0, share=0.2)
    >>> same = [Change(value=v, se=0.1, df=99.0, share=0.2) for v in (0.3, 0.45, 0.6)]
    >>> judge_harm(small, same)[0]
    'ordinary'
    >>> judge_harm(small, [])[0]
    'no verdict'
    """
    p = judged.p_worse()
    if len(refits) < 2:
        return "no verdict", p, float("nan")
    values = np.array([change.value for change in refits])
    scale = values.std(ddof=1) * np.sqrt(1 + 1 / len(values))
    excess = judged.value - values.mean()
    p_refits = float(excess <= 0)
    if scale > 0:
        p_refits = float(student.sf(excess / scale, len(values) - 1))
    if p > LEVEL:
        return "not shown", p, p_refits
    return ("harms" if p_refits <= REFIT_LEVEL else "ordinary"), p, p_refits


def rows_needed(harm: Harm, n: int, power: float = 0.8) -> float:
    """Return for how many rows both tests would call harm, were this estimate the truth.

    Parameters
    ----------
    harm : Harm
        With re-fits.
    n : int
        Rows that it rests on.
    power : float
        Chance to call it.

    Returns
    -------
    float
        Infinite where no number of rows would do: re-fits of F show as much.
    """
    if len(harm.refits) < 2:
        return float("inf")
    for times in 1.1 ** np.arange(-30, 60):
        if _chance_of_harm(harm, times) >= power:
            return float(round(n * times))
    return float("inf")


def _chance_of_harm(harm: Harm, times: float) -> float:
    """Return the chance of the verdict "harms" on so many times the rows."""
    judged = harm.judged
    if not np.isfinite(judged.se) or judged.se == 0:
        return 0.0
    values = np.array([change.value for change in harm.refits])
    n_refits = len(values)
    # with more rows re-fits scatter less, down to what fitting again does by itself
    own_error = np.mean([change.se for change in harm.refits]) / 2
    variance = max(values.var(ddof=1), own_error**2 / times)
    limit_of_refits = values.mean() + student.ppf(
        1 - REFIT_LEVEL, n_refits - 1
    ) * np.sqrt(variance * (1 + 1 / n_refits))
    se = judged.se / np.sqrt(times)
    limit = max(student.ppf(1 - LEVEL, judged.df) * se, limit_of_refits)
    return float(student.cdf((judged.value - limit) / se, judged.df))
