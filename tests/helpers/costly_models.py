"""A model whose answers cost."""

from typing import ClassVar

from sklearn.linear_model import Ridge

LIMIT = 12_000
PATH = f"{__name__}.CostlyRidge"


class CostlyRidge(Ridge):
    """Says how many rows it was asked about, and that they cost."""

    hardsynth_ask_at_most = LIMIT
    asked: ClassVar[list[int]] = []

    def predict(self, X):
        self.asked.append(len(X))
        return super().predict(X)
