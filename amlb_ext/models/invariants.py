"""Two facts that hold for every model at every door, asserted each time.

The plain error rate is the mean of ``predict(X) != y``, and the loss of F is what scikit-learn's
formulas give from F's own answers. Both are computed here from what the model said, by the names
of its own classes, apart from everything that the doors do. Where they differ from what a door is
about to print, that is all that is printed.
"""

from __future__ import annotations

import numpy as np

from amlb_ext.core import row_losses
from amlb_ext.core.errors import ModelError
from amlb_ext.models.answers import Answers, RawAnswers
from amlb_ext.models.labels import label_text, plain_form

#: Two means that are equal but for rounding.
_RTOL, _ATOL = 1e-6, 1e-9


def check_answers(
    answers: Answers, y: np.ndarray, given: np.ndarray, name: str
) -> None:
    """Raise where what was made of a model's answers contradicts what it said.

    Parameters
    ----------
    answers : Answers of n rows
    y : ndarray of shape (n,)
        Targets as every door knows them: codes of the labels, or numbers in the target's unit.
    given : ndarray of shape (n,)
        The same as the user gave them.
    name : str
        Of the model.

    Raises
    ------
    ModelError

    Examples
    --------
    >>> said = RawAnswers(decided=np.array([1.0, 3.0]))
    >>> y = np.array([1.0, 2.0])
    >>> check_answers(Answers(f=np.array([1.0, 3.0]), raw=said), y, y, "F")
    """
    if answers.decided is None:
        with np.errstate(over="ignore"):
            loss = float(row_losses.squared_error(y, answers.f).mean())
        _check_squared_error(answers.raw, given, loss, name)
        return
    rate = float((answers.decided != y).mean())
    _check_error_rate(answers.raw, given, rate, name)
    brier = float(row_losses.brier_loss(y, answers.f).mean())
    _check_brier(answers.raw, given, brier, name)


def _check_error_rate(raw: RawAnswers, y: np.ndarray, rate: float, name: str) -> None:
    """Raise where a rate of wrong decisions is not the mean of ``predict(X) != y``."""
    if raw.decided is None:
        return
    own = float(np.mean(~_are_equal(raw.decided, y)))
    _check(
        "the share of wrong decisions", rate, own, "the mean of predict(X) != y", name
    )


def _check_brier(raw: RawAnswers, y: np.ndarray, loss: float, name: str) -> None:
    """Raise where a mean Brier loss is not that of the model's own probabilities.

    ``sklearn.metrics.brier_score_loss(y, p, scale_by_half=False)``, for versions without it.
    """
    if raw.p is None or raw.classes is None:
        return
    hits = np.column_stack([_are_equal(np.full(len(y), c), y) for c in raw.classes])
    # the truth may be a class that the model does not know
    unknown = 1.0 - hits.sum(axis=1)
    own = float((((raw.p - hits) ** 2).sum(axis=1) + unknown).mean())
    _check("the Brier loss", loss, own, "its own probabilities", name)


def _check_squared_error(
    raw: RawAnswers, y: np.ndarray, loss: float, name: str
) -> None:
    """Raise where a mean squared error, in the target's unit, is not that of the predictions."""
    if raw.decided is None:
        return
    with np.errstate(over="ignore"):
        own = float(np.mean((raw.decided.astype(float) - y.astype(float)) ** 2))
    _check("the squared error", loss, own, "its own predictions", name)


def _are_equal(said: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Whether values are equal; texts and numbers by what they look like."""
    said, y = np.asarray(said, dtype=object), np.asarray(y, dtype=object)
    if not (isinstance(said[0], str) or isinstance(y[0], str)):
        return said == y
    texts = [
        [plain_form(label_text(value)) for value in values] for values in (said, y)
    ]
    return np.array(texts[0], dtype=object) == np.array(texts[1], dtype=object)


def _check(what: str, printed: float, own: float, of: str, name: str) -> None:
    if np.isclose(printed, own, rtol=_RTOL, atol=_ATOL) or printed == own:
        return
    raise ModelError(
        f"{what} of {name} would be given as {printed:.6g}, and {of} give {own:.6g}: this is a "
        "fault of hardsynth, and nothing else is said",
        "please report it with the kind of the model and the types of the table",
    )
