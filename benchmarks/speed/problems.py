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
from sklearn.linear_model import LogisticRegression, Ridge

from amlb_ext.core.config import Operators, SearchConfig
from amlb_ext.core.rng import random_stream
from amlb_ext.hardening.baseline import forests
from amlb_ext.hardening.search import Domain, genetic_search, learn_domain

#: The paper's forest and boosting (Table 2), and what else a user would deploy.
MODELS: dict[str, Any] = {
    "ridge": Ridge(),
    "logistic regression": LogisticRegression(max_iter=1000),
    "gradient boosting 100x3": GradientBoostingRegressor(random_state=0),
    "histogram boosting 100": HistGradientBoostingRegressor(random_state=0),
    "random forest 200x3": RandomForestRegressor(
        200, max_depth=3, random_state=0, n_jobs=1
    ),
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
        operators = self.config.operators
        return len(self.bad) * operators.population * (operators.generations + 1)

    def predict(self, Z: np.ndarray) -> np.ndarray:
        """Return F's predictions, asked as the pipeline asks; of a classifier its probabilities."""
        proba = hasattr(self.model, "predict_proba")
        ask = forests.predict_proba if proba else forests.predict
        return np.asarray(ask(self.model, Z), dtype=float)

    def own_predict(self, Z: np.ndarray) -> np.ndarray:
        """Return the same by the model's own method."""
        proba = getattr(self.model, "predict_proba", None)
        return np.asarray((proba or self.model.predict)(Z), dtype=float)

    def asked(self) -> list[np.ndarray]:
        """Return the rows of each call of ``predict`` that one search makes."""
        calls = []

        def recording(Z: np.ndarray) -> np.ndarray:
            calls.append(Z.copy())
            return self.predict(Z)

        genetic_search(
            recording, self.bad, self.y, domain=self.domain, config=self.config, seed=1
        )
        return calls


def search_problem(
    name: str, points: int, population: int = 50, generations: int = 20
) -> Search:
    """Return a search of ``points`` bad rows in 16 columns, with a fitted F."""
    rng = random_stream(7, "benchmark", "search")
    Z = rng.random((2000, COLUMNS))
    Z[:, :CATEGORIES] = rng.integers(0, 5, (2000, CATEGORIES))
    y = (
        Z[:, 4]
        + Z[:, 5] * Z[:, 6]
        + 0.2 * (Z[:, 0] == 1)
        + 0.05 * rng.standard_normal(2000)
    )
    y = (y - y.min()) / np.ptp(y)
    bad = Z[rng.integers(0, len(Z), points)]
    targets = rng.random(points)
    n_classes = 2 * hasattr(MODELS[name], "predict_proba")
    if n_classes:
        y, targets = (y > np.median(y)).astype(int), (targets > 0.5).astype(int)
    model = MODELS[name].fit(Z, y)
    config = SearchConfig(
        kappa=0.02,
        operators=Operators(
            population=population,
            generations=generations,
            strength=0.1,
            categoricals="free",
        ),
    )
    domain = learn_domain(Z, Z, y, n_classes=n_classes, n_categorical=CATEGORIES)
    return Search(model, bad, targets, domain, config)
