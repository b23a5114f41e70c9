"""What the user asks for, and what it means for the loss and the classes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np

from amlb_ext.core.errors import ConfigError, nearest
from amlb_ext.core.task import Kind
from amlb_ext.estimate.losses import CLIP, LOSSES, Loss, absolute, default_loss, log_loss, squared
from amlb_ext.estimate.strata import PRIOR_TOLERANCE


@dataclass(frozen=True)
class Asked:
    """What the user asked for; see :func:`~amlb_ext.estimate.estimate.estimate`."""

    model: str
    data: Path
    train: Path | None = None
    others: tuple[Path, ...] = ()
    target: str | None = None
    kind: str | None = None
    loss: str | None = None
    clip: float = CLIP
    target_range: tuple[float, float] | None = None
    error_cap: float | None = None
    class_prior: Mapping[str, float] | Literal["train"] = field(default_factory=dict)
    drawn_at_random: bool = False
    trust_pickle: bool = False
    seed: int = 0


def choose_loss(asked: Asked, kind: Kind, limits: tuple[float, float] | None) -> Loss:
    """Return the loss asked for, or the kind's own.

    Parameters
    ----------
    asked : Asked
    kind : Kind
    limits : tuple of float, optional
        Range of the training rows' target, which ``asked.target_range`` overrides.

    Raises
    ------
    ConfigError
        An unknown loss, one of the other kind, regression without any range.

    Examples
    --------
    >>> from pathlib import Path
    >>> choose_loss(Asked("m.skops", Path("s.csv")), Kind.REGRESSION, (0.0, 10.0)).name
    'squared'
    """
    name = asked.loss or default_loss(kind).name
    if name not in LOSSES:
        raise ConfigError(f"unknown loss {name!r}", nearest(name, LOSSES))
    numbers = LOSSES[name].needs == "numbers"
    if numbers != (kind is Kind.REGRESSION):
        fit = [n for n, loss in LOSSES.items() if (loss.needs == "numbers") != numbers]
        raise ConfigError(f"loss {name} for {kind}", f"choose one of {', '.join(fit)}")
    if name == "log" and asked.error_cap is None:
        return log_loss(asked.clip)
    if not numbers:
        if asked.error_cap is not None:
            raise ConfigError(
                f"--error-cap for the {name} loss", "leave it out: it is for squared and absolute"
            )
        return LOSSES[name]
    limits = asked.target_range or limits
    if limits is None:
        raise ConfigError(
            "the range of the target is unknown, and with it the bound of the loss",
            "add --range LOW HIGH, or --train FILE to take the training rows' range",
        )
    low, high = limits
    return (squared if name == "squared" else absolute)(low, high, asked.error_cap)


def choose_priors(
    given: Mapping[str, float] | Literal["train"],
    labels: tuple[str, ...],
    train: np.ndarray | None = None,
) -> np.ndarray | None:
    """Return the classes' shares in code order, or None where none are given.

    Parameters
    ----------
    given : mapping of str to float, or "train"
        ``train``: the shares of the training rows.
    labels : tuple of str
    train : ndarray of shape (n_train,), optional
        Class codes of the training rows.

    Raises
    ------
    ConfigError
        Regression, an unknown class, a class without a share, or a sum other than 1.

    Examples
    --------
    >>> choose_priors({"no": 0.9, "yes": 0.1}, ("yes", "no")).tolist()
    [0.1, 0.9]
    """
    if not given:
        return None
    if not labels:
        raise ConfigError("--class-prior for regression", "leave it out: there are no classes")
    if given == "train":
        assert train is not None  # estimate() asks for them
        return np.bincount(train.astype(int), minlength=len(labels)) / len(train)
    assert not isinstance(given, str)
    for word in given:
        if word not in labels:
            raise ConfigError(f"--class-prior names the class {word!r}", nearest(word, labels))
    absent = [label for label in labels if label not in given]
    if absent:
        raise ConfigError(
            f"--class-prior has no share for {', '.join(absent)}", "give one for every class"
        )
    shares = np.array([float(given[label]) for label in labels])
    if (shares < 0).any() or abs(shares.sum() - 1) > PRIOR_TOLERANCE:
        raise ConfigError(
            f"--class-prior {', '.join(f'{x}={given[x]:g}' for x in labels)} sums to "
            f"{shares.sum():.6g}",
            "give shares from 0 to 1 that sum to 1",
        )
    return shares / shares.sum()
