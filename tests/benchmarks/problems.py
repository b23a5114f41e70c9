"""Planted problems that the benchmarks share; every number is drawn from a keyed stream."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.ensemble import (
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
    RandomForestRegressor,
)
from sklearn.linear_model import Ridge

from amlb_ext.core.config import SearchConfig
from amlb_ext.core.rng import stream
from amlb_ext.hardening.genetic import Domain, make_domain

#: The paper's forest and boosting (Table 2), and what else a user would deploy.
MODELS: dict[str, Any] = {
    "ridge": Ridge(),
    "gradient boosting 100x3": GradientBoostingRegressor(random_state=0),
    "histogram boosting 100": HistGradientBoostingRegressor(random_state=0),
    "random forest 200x3": RandomForestRegressor(200, max_depth=3, random_state=0, n_jobs=1),
}
#: 4 of the 16 columns are categories.
COLUMNS, CATEGORIES = 16, 4


@dataclass(frozen=True)
class Search:
    """What a search is asked."""

    model: Any
    bad: np.ndarray
    y: np.ndarray
    domain: Domain
    config: SearchConfig

    @property
    def rows(self) -> int:
        """Rows that F must predict, over all generations and the first population."""
        return len(self.bad) * self.config.population * (self.config.generations + 1)

    def predict(self, Z: np.ndarray) -> np.ndarray:
        """Return F's predictions."""
        return np.asarray(self.model.predict(Z), dtype=float)


def search_problem(name: str, points: int, population: int = 50, generations: int = 20) -> Search:
    """Return a search of ``points`` bad rows in 16 columns, with a fitted F."""
    rng = stream(7, "benchmark", "search")
    Z = rng.random((2000, COLUMNS))
    Z[:, :CATEGORIES] = rng.integers(0, 5, (2000, CATEGORIES))
    y = Z[:, 4] + Z[:, 5] * Z[:, 6] + 0.2 * (Z[:, 0] == 1) + 0.05 * rng.standard_normal(2000)
    y = (y - y.min()) / np.ptp(y)
    model = MODELS[name].fit(Z, y)
    bad = Z[rng.integers(0, len(Z), points)]
    config = SearchConfig(
        population=population,
        generations=generations,
        kappa=0.02,
        start="near",
        mutation=0.2,
        strength=0.1,
        categoricals="free",
    )
    domain = make_domain(Z, Z, y, 0, CATEGORIES)
    return Search(model, bad, rng.random(points), domain, config)
