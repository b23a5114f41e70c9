"""All that is said of replacing F by each model: harm, bound, words, segments, flips, remedy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from amlb_ext.core.display import format_decimals, format_percent
from amlb_ext.core.losses import Loss, Predicted
from amlb_ext.core.unit import Unit
from amlb_ext.models.answers import Labels
from amlb_ext.swap.contrast import AucContrast, Change, Contrast, RowContrast
from amlb_ext.swap.flips import count_flips
from amlb_ext.swap.foresee import TableCoder, predictions_as_columns
from amlb_ext.swap.harm import Harm, find_harm, rows_needed, worst_of_refit
from amlb_ext.swap.remedy import Remedy, find_remedy, mix_models
from amlb_ext.swap.segments import Segment, judge_segments
from amlb_ext.swap.words import Words, bound_harm, find_words, list_conditions
from amlb_ext.units.judged import Judged

#: Fewer rows are not divided by what is foreseen: a fifth of them holds fewer than thirty.
FEWEST_ROWS = 150


@dataclass(frozen=True, kw_only=True)
class Side:
    """One model on the rows at hand.

    Attributes
    ----------
    losses : ndarray of shape (n,)
    predicted : Predicted or None
        None where only losses are known.
    """

    losses: np.ndarray
    predicted: Predicted | None = None

    @property
    def right(self) -> np.ndarray | None:
        """Which rows it decides rightly, ``(n,)``; None of numbers, and of losses alone."""
        if self.predicted is None or self.predicted.decided is None:
            return None
        return np.asarray(self.predicted.decided == self.predicted.y)


@dataclass(frozen=True, kw_only=True)
class SwapRows:
    """Labelled units that neither F nor a candidate has seen, rows or windows.

    Attributes
    ----------
    judged : Judged
        What they are, which belong together, and the largest loss that counts.
    table : DataFrame of n rows
        What is known of each beforehand; without columns nothing is foreseen.
    f : Side
        F.
    loss : Loss, optional
        Needed where it is of pairs of rows, and for a mixture of models.
    refits : tuple of Side
        F's recipe, fitted on bootstrap samples of its own rows.
    no_refits : str
        Why there are none, or what would give them.
    """

    judged: Judged
    table: pd.DataFrame
    f: Side
    loss: Loss | None = None
    refits: tuple[Side, ...] = ()
    no_refits: str = "give its training rows"

    @classmethod
    def of_losses(
        cls,
        judged: Judged,
        table: pd.DataFrame,
        no_refits: str = "give its training rows",
    ) -> SwapRows:
        """Return units of which nothing is known but losses, those of F's re-fits among them."""
        losses = judged.compared.refits
        by_refit = [] if losses is None else losses.to_numpy().T
        return cls(
            judged=judged,
            table=table,
            f=Side(losses=judged.compared.loss_f),
            refits=tuple(Side(losses=of_refit) for of_refit in by_refit),
            no_refits=no_refits,
        )

    def capped(self, side: Side) -> np.ndarray:
        """Return a model's losses, none larger than the largest that counts."""
        return self.judged.compared.cap.apply(side.losses)

    @property
    def clusters(self) -> np.ndarray | None:
        """Codes ``0..K-1`` of units that belong together; None where each is its own."""
        labels = self.judged.compared.clusters
        if labels is None:
            return None
        # by first appearance: what groups are called does not decide which rows share a fold
        return np.asarray(pd.factorize(labels, use_na_sentinel=False)[0])

    def contrast(self, side: Side) -> Contrast:
        """Return a model's losses beside F's."""
        contrast: Contrast = RowContrast(
            self.capped(self.f), self.capped(side), self.clusters
        )
        if self.loss is not None and self.loss.is_of_pairs:
            own = self.f.predicted
            assert own is not None
            assert side.predicted is not None
            contrast = AucContrast(
                own.y == 1, own.f[:, 1], side.predicted.f[:, 1], self.clusters
            )
        contrast.widening = self.judged.compared.widening
        return contrast

    def columns(self, coded: np.ndarray, side: Side) -> np.ndarray:
        """Return what a change of loss is foreseen from, ``(n, q)``."""
        if self.f.predicted is None or side.predicted is None:
            return coded
        seen = predictions_as_columns(self.f.predicted.f, side.predicted.f)
        return np.column_stack([coded, seen])


@dataclass(frozen=True, kw_only=True)
class Swap:
    """What replacing F by one model does.

    Attributes
    ----------
    name : str
        Of the model.
    unit : Unit
    n : int
        Rows that it rests on.
    base : float
        F's mean loss over all rows: shares are of it.
    harm : Harm
    bound : float
        No group of a fifth of the rows that the text names is worse by more, in the unit of the
        loss.
    words : Words or None
    remedy : Remedy or None
        None where only losses are known.
    rows_needed : float
        For the verdict "harms", were the estimate true; infinite for no number of rows.
    no_refits : str
        Why F was not fitted again.
    """

    name: str
    unit: Unit
    n: int
    base: float
    harm: Harm
    bound: float
    words: Words | None
    remedy: Remedy | None
    rows_needed: float
    no_refits: str

    @property
    def verdict(self) -> str:
        """``harms``, ``ordinary``, ``not shown`` or ``no verdict``."""
        return self.harm.verdict

    def sentences(self) -> list[str]:
        """Return what is said, a sentence each."""
        harm, many = self.harm, self.unit.many
        there = f"in the fifth of {many} where {self.name} is foreseen to lose"
        again = (
            "Whether that is more than any new fit does is not known: F was not fitted again "
            f"({self.no_refits})."
        )
        if harm.refits:
            by_refits = self.share_text(harm.by_refits)
            again = f"F fitted again shows {by_refits} in its own such fifth."
        said = [
            f"{_VERDICTS[harm.verdict]}: {there}, {self.change_text(harm.judged)}.",
            again,
            f"In the best fifth: {self.change_text(harm.groups['best fifth'])}.",
        ]
        if self.words is not None and harm.verdict in ("harms", "ordinary"):
            share = format_percent(float(self.words.inside.mean()))
            said.append(f"Mostly where {self.words.text} ({share} of {many}).")
        if self.base and np.isfinite(self.bound):
            said.append(
                f"No group of a fifth of the {many} or more, told by two conditions on columns or "
                f"by this foresight, is worse by over {format_percent(self.bound / self.base)}."
            )
        return [*said, *filter(None, [self.advice()])]

    def advice(self) -> str:
        """Return what to do."""
        remedy = self.remedy
        if remedy is None:
            return ""
        advice = (
            f"{remedy.formula(self.name)}: {self.change_text(remedy.change)} than F; in that fifth "
            f"{self.share_text(remedy.worst.value)}."
        )
        if remedy.kind == "keep F":
            advice = f"Keep F: no mixture with {self.name} loses less."
        elif remedy.kind == "take G":
            advice = f"No mixture with F loses less than {self.name} alone."
        outright = "Do not swap outright. " if self.verdict == "harms" else ""
        return f"{outright}{advice}"

    def change_text(self, change: Change) -> str:
        """Return a change with its interval, in percent of F's mean loss.

        Examples
        --------
        A rise of .05 with limits .03 and .07, where F loses .1, is ``50.0 % more loss (30.0 to
        70.0)``.
        """
        low, high = change.interval()
        text = self.share_text(change.value)
        if not np.isfinite(change.se):
            return f"{text} (too few {self.unit.many} change to tell)"
        if not self.base:
            return f"{text} ({low:+.3g} to {high:+.3g})"
        if low * high >= 0:
            limits = sorted([abs(low / self.base), abs(high / self.base)])
            ends = " to ".join(format_decimals(100 * limit, 1) for limit in limits)
            return f"{text} ({ends})"
        return f"{text} ({self.share_text(low)} to {self.share_text(high)})".replace(
            " loss)", ")"
        )

    def share(self, value: float) -> float:
        """Return a change as a share of F's mean loss; NaN where F loses nothing."""
        return value / self.base if self.base else float("nan")

    def shares(self, change: Change, level: float = 0.95) -> tuple[float, float, float]:
        """Return a change with its interval, as shares of F's mean loss."""
        low, high = change.interval(level)
        return self.share(change.value), self.share(low), self.share(high)

    def share_text(self, value: float) -> str:
        """Return a change in percent of F's mean loss: ``12.0 % less loss``."""
        if not self.base:
            return f"{value:+.3g} in the loss"
        if value == 0:
            return "the same loss"
        word = "less" if value < 0 else "more"
        return f"{format_decimals(abs(100 * value / self.base), 1)} % {word} loss"

    def to_dict(self) -> dict[str, Any]:
        """Return the figures as JSON values, shares of F's mean loss."""
        groups = {
            name: dict(zip(("change", "low", "high"), self.shares(change), strict=True))
            for name, change in self.harm.groups.items()
        }
        own = self.remedy
        return {
            "verdict": self.verdict,
            "groups": groups,
            "refits": [self.share(change.value) for change in self.harm.refits],
            "p": self.harm.p,
            "p_refits": self.harm.p_refits,
            "bound": self.share(self.bound),
            "words": None if self.words is None else self.words.text,
            "rows_needed": self.rows_needed,
            "remedy": own
            and {
                "kind": own.kind,
                "weight": own.weight,
                "weight_bad": own.weight_bad,
                "change": self.share(own.change.value),
            },
        }


_VERDICTS = {
    "harms": "HARMS",
    "ordinary": "Worse somewhere, as F fitted again is",
    "not shown": "No harm is shown",
    "no verdict": "No verdict on harm",
}


@dataclass(frozen=True, kw_only=True)
class SwapAnswer:
    """What replacing F does, model by model.

    Attributes
    ----------
    swaps : dict of str to Swap
        Empty where there are too few rows to divide.
    segments : DataFrame
        See :func:`amlb_ext.swap.segments.judge_segments`.
    flips : DataFrame
        See :func:`amlb_ext.swap.flips.count_flips`; empty for numbers.
    masks : dict of str to ndarray of shape (n,), bool
        The rows of each segment.
    """

    swaps: dict[str, Swap] = field(default_factory=dict)
    segments: pd.DataFrame = field(default_factory=pd.DataFrame)
    flips: pd.DataFrame = field(default_factory=pd.DataFrame)
    masks: dict[str, np.ndarray] = field(default_factory=dict)

    def without_trees(self) -> SwapAnswer:
        """Return the same without what was learnt, to be sent and kept; nothing can be mixed."""
        swaps = {
            name: replace(swap, harm=replace(swap.harm, passes=()))
            for name, swap in self.swaps.items()
        }
        return replace(self, swaps=swaps)

    def with_models(
        self,
        models: Mapping[str, Any],
        table: pd.DataFrame,
        labels: Labels,
        targets: np.ndarray,
    ) -> SwapAnswer:
        """Return the same with the mixtures as estimators, where both are fitted models.

        Parameters
        ----------
        models : mapping of str to estimator
            ``F`` and the candidates.
        table : DataFrame of n rows
            What changes are foreseen from.
        labels : Labels
            Empty for a regression.
        targets : ndarray of shape (n,)
            As the user gave them.
        """
        swaps = dict(self.swaps)
        for name, swap in self.swaps.items():
            both = (models["F"], models[name])
            if swap.remedy is not None and all(hasattr(m, "predict") for m in both):
                model = mix_models(
                    *both, swap.remedy, table, swap.harm.passes, labels, targets
                )
                swaps[name] = replace(swap, remedy=replace(swap.remedy, model=model))
        return replace(self, swaps=swaps)


def judge_swaps(
    rows: SwapRows,
    candidates: Mapping[str, Side],
    *,
    segments: Sequence[Segment] = (),
    seed: int = 0,
) -> SwapAnswer:
    """Judge what replacing F by each candidate does.

    Parameters
    ----------
    rows : SwapRows
    candidates : mapping of str to Side
    segments : sequence of Segment
    seed : int
    """
    if not candidates:
        return SwapAnswer()
    contrasts = {name: rows.contrast(side) for name, side in candidates.items()}
    loss_f = rows.capped(rows.f)
    table = judge_segments(segments, contrasts, rows.judged.compared.level)
    swaps = {}
    if len(loss_f) >= FEWEST_ROWS and rows.table.shape[1]:
        coded = TableCoder().fit(rows.table).transform(rows.table)
        refits = tuple(
            worst_of_refit(rows.contrast(side), rows.columns(coded, side), seed)
            for side in rows.refits
        )
        conditions = list_conditions(rows.table)
        for name, contrast in contrasts.items():
            Z = rows.columns(coded, candidates[name])
            harm = find_harm(contrast, Z, seed, refits)
            swaps[name] = Swap(
                name=name,
                unit=rows.judged.unit,
                n=len(loss_f),
                base=float(loss_f.mean()),
                harm=harm,
                bound=bound_harm(contrast, harm, conditions),
                words=find_words(harm, conditions),
                remedy=_remedy(rows, candidates[name], harm),
                rows_needed=rows_needed(harm, len(loss_f)),
                no_refits=rows.no_refits,
            )
    return SwapAnswer(
        swaps=swaps,
        segments=table,
        flips=_flips(rows, candidates, segments),
        masks={segment.name: segment.inside for segment in segments},
    )


def _remedy(rows: SwapRows, side: Side, harm: Harm) -> Remedy | None:
    """Return the mixture of F and a model, where both predict what can be mixed."""
    f, g, loss = rows.f.predicted, side.predicted, rows.loss
    if loss is None or f is None or g is None or f.only_labels or g.only_labels:
        return None

    def loss_of(weight: float) -> np.ndarray:
        # the models' own decisions count where nothing is mixed
        if weight in (0.0, 1.0):
            return rows.capped(side if weight else rows.f)
        mixed = weight * g.f + (1 - weight) * f.f
        decided = None if f.decided is None else np.argmax(mixed, axis=1)
        losses = loss(replace(f, f=mixed, decided=decided))
        return rows.capped(Side(losses=losses))

    return find_remedy(
        loss_of, harm.passes, rows.clusters, is_of_rows=not loss.is_of_pairs
    )


def _flips(
    rows: SwapRows, candidates: Mapping[str, Side], segments: Sequence[Segment]
) -> pd.DataFrame:
    """Return the decisions that change; an empty table for numbers, and for losses alone."""
    if rows.f.right is None:
        return pd.DataFrame()
    right = {
        name: side.right for name, side in candidates.items() if side.right is not None
    }
    refits = [side.right for side in rows.refits if side.right is not None]
    return count_flips(rows.f.right, right, segments, refits)
