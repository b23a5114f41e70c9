"""What one may set in the paper's tables and figures; see ``docs/evidence/readings.md``."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pydantic import Field

from benchmarks.studies.engine import Settings


class PaperSettings(Settings):
    """One choice for each ambiguity of the paper, and other settings of the pipeline.

    Attributes
    ----------
    draws : int
        Splits.
    pool : {'bad', 'test'}
        Rows whose values the initial population is drawn from (section 4.3.1).
    with_bad : bool
        Whether X_ga holds X_b besides the augmented points (section 4.1).
    fitness : {'printed', 'label'}
        Classification: lower the probability of the positive class of every row (section 4.3.2),
        or that of the row's own label.
    learning_rate : float
        Of gradient boosting as G.
    sample : int
        Which draw of the toy's 1,000 points.
    by_area : bool
        The toy: as many points in the regions as chance puts there, or the shares under which the
        shares of bad points are the printed ones.
    balanced : bool
        The diabetes data: as many rows with diabetes as without, or the file's 60 %.
    simulated_rows : int
        Of the prices that are made here.
    data : tuple of str
        Some of the data sets; empty for all.
    config : dict
        Section → key → value of the configuration, as in ``--set search.kappa=0.3``.
    """

    chooses: ClassVar[frozenset[str]] = frozenset({"draws", "data"})

    draws: int = Field(31, ge=0)
    pool: Literal["bad", "test"] = "bad"
    with_bad: bool = False
    fitness: Literal["printed", "label"] = "printed"
    learning_rate: float = Field(0.3, gt=0)
    sample: int = 0
    by_area: bool = False
    balanced: bool = True
    simulated_rows: int = Field(253_000, ge=100)
    data: tuple[str, ...] = ()
    config: dict[str, dict[str, Any]] = Field(default_factory=dict)
