"""All answers of ``hardsynth estimate``, as a table and as JSON."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from amlb_ext.estimate.drawing import Comparison, level_of_each
from amlb_ext.estimate.osyn_run import OsynRun
from amlb_ext.estimate.results import ErrorEstimate
from amlb_ext.stats.support import Support


@dataclass(frozen=True)
class Report:
    """All answers.

    Attributes
    ----------
    model, data, loss, unit : str
    bound, level : float
    n : int
    rows : tuple of ErrorEstimate
        The recommended one first.
    refused : str
        Why none is recommended; empty when one is.
    support : dict of str to Support
        ``unlabelled``, ``generated``.
    osyn : OsynRun, optional
    notes : tuple of str
    advice : str
        What to do where none is recommended.
    assumption : str
        What the recommended one assumes of how the rows were drawn, and what that was held
        against.
    approximate : str
        Name of a narrower interval to look at beside the recommended one; empty for none.
    comparisons : tuple of Comparison
        Of labelled rows with others.
    """

    model: str
    data: str
    loss: str
    unit: str
    bound: float
    level: float
    n: int
    rows: tuple[ErrorEstimate, ...]
    refused: str = ""
    support: dict[str, Support] = field(default_factory=dict)
    osyn: OsynRun | None = None
    notes: tuple[str, ...] = ()
    advice: str = ""
    assumption: str = ""
    approximate: str = ""
    comparisons: tuple[Comparison, ...] = ()

    @property
    def recommended(self) -> ErrorEstimate | None:
        """The row to quote."""
        return next((row for row in self.rows if row.recommended), None)

    def table(self) -> pd.DataFrame:
        """Return a row per estimator."""
        return pd.DataFrame([dataclasses.asdict(row) for row in self.rows])

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values; numbers that there are not are null."""
        return {
            "model": self.model,
            "data": self.data,
            "loss": {"name": self.loss, "unit": self.unit, "bound": self.bound},
            "level": self.level,
            "labelled_rows": self.n,
            "recommended": None if self.recommended is None else self.recommended.name,
            "refused": self.refused,
            "advice": self.advice,
            "assumption": self.assumption,
            "approximate": self.approximate or None,
            "comparisons": [
                {"what": c.what, "against": c.against, "p": c.p} for c in self.comparisons
            ],
            "level_of_each_comparison": level_of_each(self.comparisons),
            "estimates": [
                {k: None if _is_nan(v) else v for k, v in dataclasses.asdict(row).items()}
                for row in self.rows
            ],
            "support": {
                name: {
                    "share_inside": None if _is_nan(s.share_inside) else s.share_inside,
                    "own": None if _is_nan(s.own) else s.own,
                    "k": s.k,
                    "refused": s.refused,
                    "lacking": list(s.lacking),
                    "reason": s.reason,
                }
                for name, s in self.support.items()
            },
            "osyn": None if self.osyn is None else self.osyn.to_json(),
            "notes": list(self.notes),
        }


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and not math.isfinite(value)
