"""Both sides of a fold: rows made from the failures of its test rows, and of its training rows.

The test side may also have rows that stand for all test rows, see
:mod:`~amlb_ext.hardening.made_rows.region_rows`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from amlb_ext.core.progress import begin_stage
from amlb_ext.core.rng import derive_seed
from amlb_ext.hardening.composition import Composition
from amlb_ext.hardening.judged_rows import FoldModels, JudgedRows
from amlb_ext.hardening.made_rows.augment import augment_bad_rows
from amlb_ext.hardening.made_rows.cells import note_least_support, with_least_support
from amlb_ext.hardening.made_rows.proposals import (
    ask_design,
    confirm_rows,
    surplus_of_proposals,
    with_surrogates,
)
from amlb_ext.hardening.made_rows.region_rows import make_region_rows
from amlb_ext.hardening.made_rows.screening import MadeRows, TakenRows
from amlb_ext.hardening.made_rows.synthesize import sample_synthetic_rows
from amlb_ext.hardening.weights import Region
from amlb_ext.suite.fold_notes import REASONS
from amlb_ext.suite.notes import Note

#: Shares of the rows that F may still be asked about, for the made rows of each kind.
AUGMENTED_SHARE, SYNTHETIC_SHARE = 0.4, 0.7


@dataclass(frozen=True, kw_only=True)
class MadeSide:
    """What was made from the bad rows of one side.

    Attributes
    ----------
    augmented, synthetic : MadeRows
    bad : int
        Bad rows of the side.
    least_support : float or None
        As in :class:`FoldModels`.
    notes : tuple of Note
        Remarks for the manifest, in the order of the stages.
    population : MadeRows or None
        Rows that stand for all rows of the side; None where none were asked for.
    """

    augmented: MadeRows
    synthetic: MadeRows
    bad: int
    least_support: float | None
    notes: tuple[Note, ...]
    population: MadeRows | None = None

    @property
    def made(self) -> list[JudgedRows]:
        """The rows that were made, by kind."""
        kinds = [self.augmented, self.synthetic, self.population]
        return [kind.rows for kind in kinds if kind is not None]

    def counts(self) -> dict[str, Any]:
        """Return the side's counts for the manifest."""
        counts: dict[str, Any] = {
            "bad": self.bad,
            "augmented_asked": self.augmented.asked,
            "augmented": len(self.augmented.rows),
            "synthetic_asked": self.synthetic.asked,
            "synthetic": len(self.synthetic.rows),
            "dropped": {
                "augmented": _by_reason(self.augmented.dropped),
                "synthetic": _by_reason(self.synthetic.dropped),
            },
            "least_support": self.least_support,
        }
        if self.population is not None:
            counts["population_asked"] = self.population.asked
            counts["population"] = len(self.population.rows)
            counts["dropped"]["population"] = _by_reason(self.population.dropped)
        return counts


def _by_reason(dropped: Mapping[str, int]) -> dict[str, int]:
    # a fold without relations has no count of rows that break them, nor has one in which F may be
    # asked about any row a count of those that it was not asked about
    return {
        reason: int(dropped.get(reason, 0))
        for reason in REASONS
        if reason not in ("relation", "unasked") or reason in dropped
    }


def make_both_sides(
    models: FoldModels,
    test: JudgedRows,
    train: JudgedRows,
    *,
    table: pd.DataFrame,
    region: Region,
    composition: Composition,
) -> tuple[MadeSide | None, MadeSide | None]:
    """Make rows from the failures of the test rows and, where asked, of the training rows.

    No made row repeats the features of a row of the table, of a test row as it is written, or of
    a row made before it.

    Parameters
    ----------
    models : FoldModels
    test, train : JudgedRows
        The real rows of both sides.
    table : DataFrame
        Features of all rows of the table, in canonical form.
    region : Region
        ``P(bad | x)``.
    composition : Composition
        Whether rows of the population are wanted, and how many.

    Returns
    -------
    test_side, train_side : MadeSide or None
        None where no row failed; without bad test rows nothing is made at all.
    """
    if not test.is_bad.any():
        return None, None
    real_sides = {"test": test}
    if models.config.train_hard and train.is_bad.any():
        real_sides["train"] = train
    models = with_least_support(models, train)
    taken = TakenRows((table, test.features))
    sides = {}
    for name, real in real_sides.items():
        side = make_side(models, real, name, taken)
        # the test side comes first, so it is the training side that gives way
        taken = taken.with_made(side.augmented.rows, side.synthetic.rows)
        sides[name] = side
    # last, so that asking for these rows changes no other row
    sides["test"] = _with_population(
        sides["test"], models, test, taken=taken, region=region, composition=composition
    )
    return sides["test"], sides.get("train")


def _with_population(
    side: MadeSide,
    models: FoldModels,
    real: JudgedRows,
    *,
    taken: TakenRows,
    region: Region,
    composition: Composition,
) -> MadeSide:
    """Return the side with rows of the population where the composition asks for any."""
    wanted = composition.population_wanted(len(real))
    # the oracle knows the spread of one target
    if not wanted or len(models.targets) > 1:
        return side
    proposed = make_region_rows(
        with_surrogates(models, "test", "population"),
        real,
        importance=lambda Z: composition.importance(region.weights(Z)),
        wanted=wanted,
        taken=taken,
        seed=derive_seed(models.config.seed, *models.key, "test", "population"),
    )
    # they stand for any row, whatever K says of them
    population = confirm_rows(
        models, proposed, share=SYNTHETIC_SHARE, holds_to_rule=False
    )
    notes = side.notes
    if not models.can_search:
        notes = (*notes, Note(kind="no population", side="test"))
    elif len(population.rows) < wanted:
        counts = {"made": len(population.rows), "wanted": wanted}
        notes = (
            *notes,
            Note(kind="few of the population", side="test", counts=counts),
        )
    return replace(side, population=population, notes=notes)


def make_side(
    models: FoldModels, real: JudgedRows, side: str, taken: TakenRows | None = None
) -> MadeSide:
    """Augment the bad rows, learn their distribution, sample from it.

    Parameters
    ----------
    models : FoldModels
    real : JudgedRows
        All real rows of this side, at least one of them bad: they bound columns and targets.
    side : str
        ``test`` or ``train``; part of the key of the random streams.
    taken : TakenRows, optional
        Rows that no made row may repeat; when omitted those the models were fitted on, and the
        real rows of this side.
    """
    if taken is None:
        # decoded, not as they came: rows of a study are known by their codes alone
        fitted_on = models.encoder.inverse(models.Z)
        taken = TakenRows((fitted_on, models.encoder.inverse(real.Z)))
    notes: tuple[Note, ...] = ()
    if models.least_support is not None and models.config.search.operators.agreement:
        notes = (note_least_support(models.least_support, side),)

    # one stream per stage, keyed by the side as well
    seed, key = models.config.seed, (*models.key, side)
    augment_seed = derive_seed(seed, *key, "augment")
    synthesize_seed = derive_seed(seed, *key, "synthesize")
    # suites were made before a bad row had several tries: the key of the first has no number
    search_seeds = [derive_seed(seed, *key, "search")]
    for attempt in range(1, models.config.search.tries):
        search_seeds.append(derive_seed(seed, *key, "search", attempt))

    ask_design(models, real, side)
    begin_stage(f"searching for rows near the {side} rows on which F fails")
    proposed = augment_bad_rows(
        with_surrogates(models, side),
        real,
        side=side,
        taken=taken,
        seed=augment_seed,
        search_seeds=search_seeds,
    )
    augmented = confirm_rows(models, proposed, share=AUGMENTED_SHARE)
    if models.config.synthesizer.times:
        begin_stage(f"learning the {side} failures, and sampling from them")
    proposed = sample_synthetic_rows(
        # learnt anew: F has said more by now
        with_surrogates(models, side),
        real,
        augmented=augmented.rows,
        side=side,
        taken=taken.with_made(augmented.rows),
        seed=synthesize_seed,
        surplus=surplus_of_proposals(models),
    )
    synthetic = confirm_rows(models, proposed, share=SYNTHETIC_SHARE)
    return MadeSide(
        augmented=augmented,
        synthetic=synthetic,
        bad=int(real.is_bad.sum()),
        least_support=models.least_support,
        notes=(*notes, *augmented.notes, *synthetic.notes),
    )
