"""What the test file of a task's main part is made of.

Real test rows, each repeated by how likely F fails there, and made rows that stand for the same
population, carry the order of models; rows that K has chosen show failures. The mixture is settled
per task on training rows (:mod:`amlb_ext.validity.composition`) or named by the user.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from amlb_ext.core.config import CompositionPart
from amlb_ext.hardening.weights import mixed_weights, repeat_by_weight

#: Region share and share of made rows where the user names the parts and nothing is measured.
USUAL_REGION_SHARE, USUAL_MADE_SHARE = 0.5, 0.5
#: A weighted real row comes this often on average, so that few weights are lost to rounding.
REPEATS = 2
#: Most made rows of the population in a test file.
MOST_POPULATION = 5000


@dataclass(frozen=True, kw_only=True)
class Composition:
    """The parts of a main test file, and how much each counts.

    Attributes
    ----------
    parts : tuple of str
        Of ``weighted``, ``population``, ``bad``, ``ga`` and ``synthetic``.
    region_share : float
        lambda of :func:`amlb_ext.hardening.weights.mixed_weights`: 0 leaves every real row once.
    made_share : float
        Share of ``population`` rows in the file; 0 for none.
    reason : str
        How it was settled, one sentence.
    """

    parts: tuple[CompositionPart, ...]
    region_share: float = USUAL_REGION_SHARE
    made_share: float = USUAL_MADE_SHARE
    reason: str = ""

    @classmethod
    def of_parts(
        cls, parts: Sequence[CompositionPart], reason: str = ""
    ) -> Composition:
        """Return the composition of named parts; ``auto`` stands for weighted real rows.

        Examples
        --------
        >>> Composition.of_parts(["auto"]).parts
        ('weighted',)
        """
        if "auto" in parts:
            parts = ("weighted",)
        return cls(parts=tuple(parts), reason=reason)

    @property
    def made_from_failures(self) -> tuple[CompositionPart, ...]:
        """The parts that K has chosen; bad and synthetic rows where there are none."""
        chosen = [part for part in self.parts if part in ("bad", "ga", "synthetic")]
        return tuple(chosen) or ("bad", "synthetic")

    def population_wanted(self, n_real: int) -> int:
        """Return how many ``population`` rows are asked for beside n real rows."""
        if "population" not in self.parts:
            return 0
        share = self.made_share
        beside = REPEATS * n_real if "weighted" in self.parts else n_real
        return min(MOST_POPULATION, round(beside * share / (1 - share)))

    def importance(self, weights: np.ndarray) -> np.ndarray:
        """Return u of rows with these region weights."""
        return mixed_weights(weights, self.region_share)

    def pick_real_rows(
        self, weights: np.ndarray, n_made: int, rng: np.random.Generator
    ) -> np.ndarray:
        """Return the positions of the weighted real rows, ascending, with repeats.

        Parameters
        ----------
        weights : ndarray of shape (n,)
            ``P(bad | x)`` of all test rows.
        n_made : int
            Population rows beside them: with fewer than were asked for real rows are repeated
            less, so that each side keeps its share.
        rng : Generator
        """
        n = len(weights)
        size = REPEATS * n
        if n_made:
            beside = round(n_made * (1 - self.made_share) / self.made_share)
            size = min(max(beside, n), REPEATS * n)
        u = self.importance(weights)
        # equal weights need no repeats, and no rounding
        if np.allclose(u, 1.0) and not n_made:
            return np.arange(n)
        return repeat_by_weight(u, size, rng)

    def to_json(self) -> dict[str, Any]:
        """Return plain mappings and lists."""
        entry: dict[str, Any] = {"parts": list(self.parts)}
        if "weighted" in self.parts:
            entry["region_share"] = self.region_share
        if "population" in self.parts:
            entry["made_share"] = self.made_share
        return entry | {"reason": self.reason}
