"""What a model predicts, classes or numbers, from what the model itself says."""

from __future__ import annotations

from typing import Any

from sklearn.base import is_classifier, is_regressor

from amlb_ext.core.errors import ModelError
from amlb_ext.models.native import native_kind


def kind_of_model(model: Any) -> str | None:
    """Return ``classification`` or ``regression``; None where the model does not tell.

    Parameters
    ----------
    model : object
        A fitted model, a function, or predictions, which do not tell.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression, Ridge
    >>> kind_of_model(LogisticRegression()), kind_of_model(Ridge()), kind_of_model(len)
    ('classification', 'regression', None)
    """
    known = native_kind(model)
    # a service answers what it is asked for
    if known is not None or not getattr(model, "gives_labels", True):
        return known
    if _has_tag(is_classifier, model):
        return "classification"
    if _has_tag(is_regressor, model):
        return "regression"
    # CatBoost's regressors have an empty list of classes
    if classes_of_model(model) is not None or hasattr(model, "predict_proba"):
        return "classification"
    return None


def classes_of_model(model: Any) -> list[Any] | None:
    """Return the classes of a model in its own order; None where it names none."""
    try:
        classes = getattr(model, "classes_", None)
    except Exception:
        # a property of a pipeline whose last step has none
        return None
    if classes is None or not len(classes):
        return None
    return list(classes)


def check_kind(model: Any, name: str, *, target: str, is_classification: bool) -> None:
    """Raise where a model predicts numbers and the target has classes, or the reverse.

    Raises
    ------
    ModelError
    """
    kind = kind_of_model(model)
    if kind is None or (kind == "classification") == is_classification:
        return
    has = "a regressor" if is_classification else "a classifier"
    needs = "classes" if is_classification else "numbers"
    flag = "regression" if is_classification else "classification"
    raise ModelError(
        f"{name} is {has}, but the target {target} has {needs}",
        f"name the column that the model predicts with --target, or add --kind {flag} (in Python "
        f"kind={flag!r})",
    )


def _has_tag(ask: Any, model: Any) -> bool:
    """Whether scikit-learn counts a model as of a kind; False where it has no tags."""
    if isinstance(model, type):
        return False
    try:
        return bool(ask(model))
    except Exception:
        return False
