"""How the paper's text is read where it is ambiguous; see ``docs/evidence/readings.md``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Readings:
    """One choice for each ambiguity that the settings of the pipeline do not cover.

    Attributes
    ----------
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
    """

    pool: Literal["bad", "test"] = "bad"
    with_bad: bool = False
    fitness: Literal["printed", "label"] = "printed"
    learning_rate: float = 0.3
    sample: int = 0
    by_area: bool = False
    balanced: bool = True


#: What a reading may be, where not any number will do. A value from the command line is any YAML.
ALLOWED: dict[str, tuple[object, ...]] = {
    "pool": ("bad", "test"),
    "with_bad": (True, False),
    "fitness": ("printed", "label"),
    "by_area": (True, False),
    "balanced": (True, False),
}
