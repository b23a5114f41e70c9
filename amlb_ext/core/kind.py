"""What is predicted; apart from the data model, so that names are listed without pandas."""

from __future__ import annotations

from enum import Enum


class Kind(str, Enum):
    """What is predicted, under AMLB's names."""

    REGRESSION = "regression"
    BINARY = "binary"
    MULTICLASS = "multiclass"

    @property
    def is_classification(self) -> bool:
        """Whether the target is a class."""
        return self is not Kind.REGRESSION

    def __str__(self) -> str:
        return self.value
