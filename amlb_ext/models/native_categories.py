"""Texts as the categories on which a boosting model was fitted.

LightGBM, XGBoost and scikit-learn's histogram gradient boosting read pandas' categories. A table
from a text file has none: its texts are given the categories that the model knows.
"""

from __future__ import annotations

from typing import Any

import pandas as pd


def with_native_categories(model: Any, rows: Any) -> pd.DataFrame | None:
    """Return rows with their texts as categories; None where the model reads no categories.

    Parameters
    ----------
    model : object
    rows : DataFrame, or anything else
    """
    if not isinstance(rows, pd.DataFrame):
        return None
    texts = [
        name
        for name in rows.columns
        if pd.api.types.is_object_dtype(rows[name])
        or pd.api.types.is_string_dtype(rows[name])
    ]
    known = _known_categories(model, rows, texts) if texts else None
    if known is None:
        return None
    recast = rows.copy()
    for name, categories in known.items():
        dtype = pd.CategoricalDtype(categories)
        recast[name] = rows[name].astype(object).astype(dtype)
    return recast


def _known_categories(
    model: Any, rows: pd.DataFrame, texts: list[Any]
) -> dict[Any, Any] | None:
    """Return the categories of each text column, None of one whose own will do."""
    package = type(model).__module__.partition(".")[0]
    if package == "lightgbm":
        booster = getattr(model, "booster_", model)
        kept = getattr(booster, "pandas_categorical", None) or []
        # in the order of the columns that were categories
        return dict(zip(texts, kept, strict=True)) if len(kept) == len(texts) else None
    if package == "amlb_ext":
        return _known_categories(model.model, rows, texts)
    if package == "xgboost" and _xgboost_keeps_categories():
        return dict.fromkeys(texts)
    if type(model).__name__.startswith("HistGradientBoosting"):
        # its encoder knows the categories, and goes by their values
        return dict.fromkeys(texts)
    return None


def _xgboost_keeps_categories() -> bool:
    """Whether this XGBoost keeps categories by value; older ones know codes alone."""
    import xgboost

    major, minor, *_ = xgboost.__version__.split(".")
    return (int(major), int(minor)) >= (3, 1)
