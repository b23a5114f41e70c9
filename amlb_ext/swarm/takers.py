"""The models that are tested: those the search sees, their re-fits, and families it never saw."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from amlb_ext.core.errors import ModelError
from amlb_ext.core.task import Kind
from amlb_ext.hardening.baseline.estimator import EstimatorBaseline
from amlb_ext.models.registry import ModelSpec
from amlb_ext.swarm.labels import best_labels
from amlb_ext.validity.candidates import candidate_zoo, fit_zoo, named_candidates

#: Candidates of the zoo that the search sees, unless the user names takers.
SEEN = ("linear", "neighbours_25", "tree_8", "boosting_slow")
#: Fewer takers leave nothing to compare.
LEAST_TAKERS = 2


@dataclass(frozen=True, kw_only=True)
class Panel:
    """Fitted takers.

    Attributes
    ----------
    models : dict of str to EstimatorBaseline
    """

    models: Mapping[str, EstimatorBaseline]

    @property
    def names(self) -> tuple[str, ...]:
        """The takers' names, in the order of the rows of :meth:`predict`."""
        return tuple(self.models)

    def predict(self, Z: np.ndarray) -> np.ndarray:
        """Return each taker's labels of encoded rows, ``(M, n)``.

        Raises
        ------
        ModelError
            A taker fails, with its name.
        """
        predictions = []
        for name, model in self.models.items():
            try:
                predictions.append(best_labels(model.predict(Z)))
            except ModelError as error:
                raise ModelError(f"the taker {name} failed: {error}") from None
        return np.array(predictions)


def taker_specs(
    names: Sequence[str], kind: Kind
) -> tuple[dict[str, ModelSpec], dict[str, ModelSpec]]:
    """Return the takers that the search sees, and the families that it does not.

    Parameters
    ----------
    names : sequence of str
        Candidates of the zoo, short names or import paths of classes; empty for :data:`SEEN`.
    kind : Kind

    Raises
    ------
    ModelError
        An unknown name, or a single taker.

    Examples
    --------
    >>> seen, unseen = taker_specs([], Kind.BINARY)
    >>> len(seen), len(unseen), set(seen) & set(unseen)
    (4, 8, set())
    """
    zoo = candidate_zoo(kind)
    chosen = list(dict.fromkeys(names)) or list(SEEN)
    if len(chosen) < LEAST_TAKERS:
        raise ModelError(
            f"one taker, {chosen[0]!r}, leaves nothing to compare",
            "--takers linear forest",
        )
    seen = {}
    for name in chosen:
        if name in zoo:
            seen[name] = zoo[name]
        else:
            seen |= named_candidates([name], kind)
    # a family counts by its class: the same class under the user's own settings is seen
    seen_paths = {spec.path for spec in seen.values()} if names else set()
    unseen = {}
    for name, spec in zoo.items():
        if name not in seen and spec.path not in seen_paths:
            unseen[name] = spec
    return seen, unseen


def fit_panel(
    specs: Mapping[str, ModelSpec],
    *,
    kind: Kind,
    n_classes: int,
    n_categorical: int,
    Z: np.ndarray,
    y: np.ndarray,
    seed: int,
    must_fit: bool = True,
) -> Panel:
    """Fit takers on the rows of their role.

    Parameters
    ----------
    specs : mapping of str to ModelSpec
    kind : Kind
    n_classes, n_categorical : int
    Z, y : ndarray of shape (n, d), (n,)
    seed : int
    must_fit : bool
        Raise where one cannot be fitted; else leave it out.

    Raises
    ------
    ModelError
        A taker cannot be fitted.
    """
    fitted, failed = fit_zoo(specs, kind, n_classes, n_categorical, Z, y, seed)
    if failed and must_fit:
        name, reason = next(iter(failed.items()))
        raise ModelError(
            f"the taker {name} cannot be fitted on {len(y)} rows: {reason}",
            "name other takers with --takers",
        )
    return Panel(models=fitted)


def check_takers(panel: Panel, predictions: np.ndarray) -> None:
    """Raise where a taker says the same of every real row.

    A search for difficulty would do nothing but make rows on which that one answer is wrong.

    Parameters
    ----------
    panel : Panel
    predictions : ndarray of shape (M, n)
        Of real rows.

    Raises
    ------
    ModelError
    """
    for name, predicted in zip(panel.names, predictions, strict=True):
        if np.ptp(predicted) == 0:
            raise ModelError(
                f"the taker {name} answers the same on all {len(predicted)} real rows",
                "name other takers with --takers",
            )
