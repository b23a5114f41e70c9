"""Rows that a surrogate of F proposes and F confirms, where F's answers cost.

The search asks F about a million rows of a small table. Where that is too many, F is asked about a
*design*: rows around its failures, as far as the search may go. A forest learns the answers and
takes F's place in everything that makes rows; at the end F is asked about those that are to be
kept, and K has its word on them. So every made row that is written was seen by F itself, and what
the forest gets wrong costs rows, never truth.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from amlb_ext.core.config import SearchConfig
from amlb_ext.core.rng import derive_int_seed, random_stream
from amlb_ext.hardening.baseline.asked import AskedBaseline, SurrogateBaseline
from amlb_ext.hardening.judged_rows import FoldModels, JudgedRows
from amlb_ext.hardening.made_rows.screening import MadeRows, find_parents

#: Rows of a design: so many for each failure, and at most.
ROWS_PER_FAILURE, MOST_ROWS = 60, 6000
#: Share of the rows that are left that a design may take: a fold has seven of them.
DESIGN_SHARE = 0.12
#: Rows that a synthesizer proposes for each one asked for, on top of what the surrogate got wrong
#: so far, and at most in all.
SAMPLING_SURPLUS, MOST_SURPLUS = 1.5, 4.0
#: Share of the genes of a design's row that differ from its failure's, from few to all.
LEAST_MOVED = 0.1


def ask_design(models: FoldModels, real: JudgedRows, *key: str | int) -> None:
    """Ask F about rows around the failures of a side, in one call, so that it can be learnt.

    Does nothing where F's answers cost nothing, or where there is no failure.

    Parameters
    ----------
    models : FoldModels
    real : JudgedRows
        The real rows of the side.
    *key : str or int
        Of the random stream.
    """
    ledger = models.ledger
    parents = find_parents(real)
    if ledger is None or not len(parents):
        return
    # each target's F is asked about the same rows
    affordable = ledger.afford(DESIGN_SHARE, cost=len(models.targets))
    n_rows = min(affordable, MOST_ROWS, ROWS_PER_FAILURE * len(parents))
    if not n_rows:
        return
    rng = random_stream(models.config.seed, *models.key, *key, "design")
    Z = draw_design(
        real.Z,
        parents,
        n_rows=n_rows,
        n_categorical=models.encoder.n_categorical_,
        config=models.config.search,
        rng=rng,
    )
    # as they would be written: F is asked about such rows alone
    models.predict_baseline(models.encoder.transform(models.encoder.inverse(Z)))


def draw_design(
    Z: np.ndarray,
    parents: np.ndarray,
    *,
    n_rows: int,
    n_categorical: int,
    config: SearchConfig,
    rng: np.random.Generator,
) -> np.ndarray:
    """Return rows around failures, as far from them as the search goes.

    Parameters
    ----------
    Z : ndarray of shape (n, d)
        The side's rows, encoded; categories first.
    parents : ndarray of int
        Positions of the failures, which take turns.
    n_rows : int
    n_categorical : int
    config : SearchConfig
    rng : Generator

    Returns
    -------
    ndarray of shape (n_rows, d)
    """
    parent = parents[np.arange(n_rows) % len(parents)]
    design = Z[parent].copy()
    n_columns = Z.shape[1]
    is_number = np.arange(n_columns) >= n_categorical
    # some rows differ in few genes, others in all
    share = rng.uniform(LEAST_MOVED, 1.0, size=(n_rows, 1))
    is_moved = rng.random(design.shape) < share
    # steps add up over generations, and the jitter comes after them
    width = 2 * max(config.operators.strength, config.operators.jitter)
    length = rng.uniform(0.0, width, size=(n_rows, 1))
    steps = length * rng.standard_normal(design.shape)
    low, high = np.nanmin(Z, axis=0), np.nanmax(Z, axis=0)
    stepped = np.clip(design + steps, low, high)
    design = np.where(is_moved & is_number, stepped, design)

    others = Z[rng.integers(0, len(Z), n_rows)]
    if config.operators.start == "unique":
        # the first population takes any value of the column
        is_drawn = rng.random(design.shape) < share
        from_others = is_drawn & (is_number | (config.operators.categoricals == "free"))
        design = np.where(from_others, others, design)
    elif config.operators.categoricals == "free":
        is_drawn = rng.random(design.shape) < config.operators.mutation
        design = np.where(is_drawn & ~is_number, others, design)
    return design


def with_surrogates(models: FoldModels, *key: str | int) -> FoldModels:
    """Return the models with a surrogate in place of each F whose answers cost.

    It is fitted to all answers that F has given, so it is better the later it is asked for.
    """
    if models.ledger is None:
        return models
    seed = derive_int_seed(models.config.seed, *models.key, *key, "surrogate")
    targets = []
    for target in models.targets:
        assert isinstance(target.baseline, AskedBaseline)
        rows, answers = target.baseline.answered
        surrogate = SurrogateBaseline(rows, answers, seed)
        targets.append(replace(target, baseline=surrogate))
    return replace(models, targets=tuple(targets))


def surplus_of_proposals(models: FoldModels) -> float:
    """Return how many rows to propose for each that is asked for; 1 where F itself searches.

    As many as the surrogate got wrong so far, and more: rows of a synthesizer are farther from
    those that F was asked about than rows of a search.
    """
    ledger = models.ledger
    if ledger is None:
        return 1.0
    share_right = (ledger.confirmed + 1) / (ledger.proposed + 1)
    return min(MOST_SURPLUS, SAMPLING_SURPLUS / share_right)


def confirm_rows(
    models: FoldModels,
    proposals: Sequence[MadeRows],
    *,
    share: float,
) -> list[MadeRows]:
    """Ask F about rows that a surrogate proposed, and drop those on which it does well.

    Parameters
    ----------
    models : FoldModels
        With F itself. Where its answers cost nothing, the rows are returned as they came.
    proposals : sequence of MadeRows
        All of them are asked about in one call.
    share : float
        Of the rows that F may still be asked about. Rows beyond it are dropped, evenly.
    """
    ledger = models.ledger
    n_proposed = sum(len(made.rows) for made in proposals)
    if ledger is None or not n_proposed:
        return list(proposals)
    # each row that is kept is put to every re-fit as well
    refits = len(models.targets[0].refits)
    most = ledger.afford(share, cost=len(models.targets) * (1 + refits))
    chosen = []
    for made in proposals:
        n_rows = len(made.rows)
        n_chosen = min(n_rows, int(most / n_proposed * n_rows))
        if n_chosen < n_rows:
            # from every part of the table alike
            evenly = np.linspace(0, n_rows, n_chosen, endpoint=False).astype(int)
            dropped = made.dropped + Counter(unasked=n_rows - n_chosen)
            made = replace(made, rows=made.rows.take(evenly), dropped=dropped)
        chosen.append(made)
    # one call: the answers are remembered, and each proposal finds its own
    models.predict_baseline(np.vstack([made.rows.Z for made in chosen]))
    confirmed = []
    for made in chosen:
        judged = made.rows
        if len(judged):
            f = models.predict_baseline(judged.Z)
            t = models.predict_oracle(judged.Z)
            hardness = models.rule.hardness(judged.y, f, t)
            judged = replace(
                judged,
                f=f,
                hardness=hardness,
                is_bad=models.rule.select(hardness),
                reducible=models.reducible_hardness(judged.y, f, t),
            )
        is_kept = np.ones(len(judged), dtype=bool)
        ledger.proposed += len(judged)
        ledger.confirmed += int(judged.is_bad.sum())
        if models.config.search.operators.reapply:
            is_kept = judged.is_bad
        dropped = made.dropped + Counter(good=int((~is_kept).sum()))
        kept = np.flatnonzero(is_kept)
        # a surplus that F confirmed after all is not needed
        rows = judged.take(kept[: made.asked])
        ledger.reserved += refits * len(models.targets) * len(rows)
        confirmed.append(replace(made, rows=rows, dropped=dropped))
    return confirmed
