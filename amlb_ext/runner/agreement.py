"""Is the F that was run the F of the suite? Predictions of both, row by row.

``HardsynthBaseline`` fits F again: the same model, parameters, seed, rows and columns. Of the same
versions it predicts what the suite keeps, whatever AMLB's seed is; AMLB's environment may have
others. The suite keeps what its own F predicted and, for the null, the losses of F's re-fits
without a fifth of the training rows each. The F that was run must not scatter around the stored one
more than those re-fits do.

Measured (``docs/evidence/comparison_claims.md``) with scikit-learn 1.2.2, AMLB's, against 1.9.1 on
the bundled tasks, two folds each, F a random forest: with the same seed six of ten tasks were
predicted alike to the last bit, the others with differences of up to .012 of the target's range.
With another seed row losses scattered .3 to .8 times as much as those of the worst re-fit. Versions
can thus not be what takes F beyond :data:`MOST_SCATTER`.
"""

# Denser than elsewhere: the comparisons are formulas over rows.

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

#: Largest scatter of row losses around F's, in scatters of the worst re-fit.
MOST_SCATTER = 2.0
#: Least rows, and least share of rows, that differ by more than any re-fit.
LEAST_ROWS, LEAST_SHARE = 3, 0.05
#: Differences of losses and predictions below this are rounding.
ROUNDING = 1e-6
#: Mean difference allowed where a suite keeps no re-fits, in probabilities or target ranges.
MOST_DIFFERENCE = 0.1


@dataclass(frozen=True)
class Disagreement:
    """Rows of a fold on which the F that was run is not the F of the suite.

    Attributes
    ----------
    task : str
        The AMLB task.
    fold : int
        AMLB's number.
    compared : ComparedRows
    """

    task: str
    fold: int
    compared: ComparedRows

    @property
    def text(self) -> str:
        """What differs in this fold, and by how much."""
        rows = self.compared
        unit = "in a probability" if rows.f.ndim == 2 else "in the target's unit"
        return (
            f"{self.task} fold {self.fold}: {rows.differing.sum()} of {len(rows.loss)} rows, by up "
            f"to {rows.distance.max():.3g} {unit}; mean loss {rows.loss.mean():.3g}, stored "
            f"{rows.loss_f.mean():.3g}"
        )


@dataclass(frozen=True, kw_only=True)
class ComparedRows:
    """Rows on which two fits of F are compared.

    Attributes
    ----------
    fold : ndarray of shape (n,)
        AMLB's numbers.
    f, own : ndarray of shape (n,) or (n, C)
        What the F that was run predicts, and the stored one.
    loss, loss_f : ndarray of shape (n,)
        Their losses.
    null : ndarray of shape (n, R)
        Losses of F's re-fits.
    span : ndarray of shape (n,)
        Range of the target in the training rows; 1 for classes.
    """

    fold: np.ndarray
    f: np.ndarray
    own: np.ndarray
    loss: np.ndarray
    loss_f: np.ndarray
    null: np.ndarray
    span: np.ndarray

    @classmethod
    def join(cls, parts: Sequence[ComparedRows]) -> ComparedRows:
        """Return the rows of all parts, in order."""
        joined = {}
        for name in vars(parts[0]):
            arrays = [getattr(part, name) for part in parts]
            joined[name] = np.concatenate(arrays)
        return cls(**joined)

    def take(self, rows: np.ndarray) -> ComparedRows:
        """Return the rows where a mask of shape (n,) holds."""
        chosen = {name: values[rows] for name, values in vars(self).items()}
        return ComparedRows(**chosen)

    @property
    def has_refits(self) -> bool:
        """Whether the suite keeps losses of F's re-fits."""
        return self.null.shape[1] > 0

    @property
    def distance(self) -> np.ndarray:
        """Largest difference of each row's predictions, ``(n,)``."""
        difference = np.abs(self.f - self.own)
        return difference if difference.ndim == 1 else difference.max(axis=1)

    @property
    def differing(self) -> np.ndarray:
        """Which rows differ by more than any re-fit, bool of shape (n,)."""
        if not self.has_refits:
            return self.distance / self.span > MOST_DIFFERENCE
        # One row's null are R losses: the largest of their distances is the bar.
        worst_refit = np.abs(self.null - self.loss_f[:, None]).max(axis=1)
        difference = np.abs(self.loss - self.loss_f)
        return difference > np.maximum(worst_refit, ROUNDING)

    @property
    def disagrees(self) -> bool:
        """Whether these rows show another F, beyond rounding, seeds and versions."""
        # A few odd rows are no evidence, however far they are apart.
        least_rows = max(LEAST_ROWS, LEAST_SHARE * len(self.loss))
        if self.differing.sum() < least_rows:
            return False
        if not self.has_refits:
            mean_distance = (self.distance / self.span).mean()
            return bool(mean_distance > MOST_DIFFERENCE)
        # Root mean squares over rows: of the F that was run, and of each re-fit, shape (R,).
        scatter = _root_mean_square(self.loss - self.loss_f)
        refit_scatter = _root_mean_square(self.null - self.loss_f[:, None])
        bar = MOST_SCATTER * float(refit_scatter.max())
        return float(scatter) > max(bar, ROUNDING)


def _root_mean_square(deviations: np.ndarray) -> np.ndarray:
    """Return the root mean square over the first axis."""
    return np.asarray(np.sqrt(np.mean(deviations**2, axis=0)))


def find_disagreements(task: str, rows: ComparedRows) -> list[Disagreement]:
    """Return the folds in which the F that was run is not the stored one.

    Folds are judged one by one, and all together where each alone has too few rows.

    Parameters
    ----------
    task : str
        The AMLB task.
    rows : ComparedRows
    """
    folds: dict[int, ComparedRows] = {}
    for number in np.unique(rows.fold):
        folds[int(number)] = rows.take(rows.fold == number)
    disagreeing = {number: fold for number, fold in folds.items() if fold.disagrees}
    if not disagreeing and rows.disagrees:
        disagreeing = folds
    return [Disagreement(task, number, fold) for number, fold in disagreeing.items()]


def stored_refits(provenance: pd.DataFrame) -> np.ndarray:
    """Return the losses of F's re-fits by the provenance, ``(n, R)``."""
    names = [name for name in provenance.columns if str(name).startswith("null_")]
    return provenance[names].to_numpy(dtype=float)


def alarm_text(who: str, disagreements: Sequence[Disagreement]) -> str:
    """Return what the disagreement means, and what to do.

    Parameters
    ----------
    who : str
        What ran F, e.g. ``HardsynthBaseline in AMLB``.
    disagreements : sequence of Disagreement
        At least one.
    """
    folds = "; ".join(disagreement.text for disagreement in disagreements[:3])
    others = len(disagreements) - 3
    more = f"; and {others} more folds" if others > 0 else ""
    return (
        f"{who} is not the F of this suite. {folds}{more}. This is more than another seed or other "
        "versions of scikit-learn explain (F fitted again differs less): the failures of this "
        "suite are not those of the F that was run, so ignore its contrasts"
    )
