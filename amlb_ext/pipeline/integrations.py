"""What the suite offers AMLB beside its tasks: F, its re-seeded null, a candidate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from amlb_ext.core.config import GenerateConfig
from amlb_ext.core.errors import ModelError
from amlb_ext.core.task import Kind
from amlb_ext.models.files import comes_fitted
from amlb_ext.models.registry import resolve_model
from amlb_ext.suite.layout import BASELINE_FRAMEWORK, INTEGRATION, NULL_FRAMEWORK
from amlb_ext.validity.task_rows import NULL_SHARE

#: How far the null's seed stands from F's.
NULL_OFFSET = 1000


def framework_definitions(
    config: GenerateConfig, seeds: Mapping[str, Sequence[int]]
) -> dict[str, Any]:
    """Return ``frameworks.yaml``: F itself, its re-seeded null, and a candidate to begin with.

    Parameters
    ----------
    config : GenerateConfig
    seeds : mapping of str to sequence of int
        With which F was fitted on each fold, by task: with AMLB's seed it would be another F.
    """
    entry = {"module": INTEGRATION, "version": "stable"}
    candidate = {
        "classifier": "sklearn.ensemble.HistGradientBoostingClassifier",
        "regressor": "sklearn.ensemble.HistGradientBoostingRegressor",
        "encoding": "ordinal",
    }
    frameworks: dict[str, Any] = {}
    # AMLB does not have the model: its clones are fitted when the suite is made, and not by AMLB.
    if not comes_fitted(config.baseline):
        params = integration_params(config)
        # How much F's scores vary with seed and rows alone: a smaller gain over F means nothing.
        null = params | {"seed_offset": NULL_OFFSET, "train_share": NULL_SHARE}
        own = {"seeds": {task: list(seeds[task]) for task in sorted(seeds)}}
        frameworks[BASELINE_FRAMEWORK] = entry | {
            "description": "the baseline F of this suite",
            "params": params | own,
        }
        frameworks[NULL_FRAMEWORK] = entry | {
            "description": "the null: F with another seed, on another part of the training rows",
            "params": null,
        }
    frameworks["HardsynthCandidate"] = entry | {
        "description": "a candidate for comparison: histogram gradient boosting",
        "params": candidate,
    }
    return frameworks


def integration_params(config: GenerateConfig) -> dict[str, Any]:
    """Return AMLB parameters of F for each family of tasks that it serves."""
    params: dict[str, Any] = {}
    for kind, family in ((Kind.BINARY, "classifier"), (Kind.REGRESSION, "regressor")):
        try:
            spec = resolve_model(config.baseline, kind)
        except ModelError:  # a model of the other family only
            continue
        params[family] = spec.path
        # Sorted, as the manifest gives them back: a repair writes the same bytes.
        params[f"{family}_params"] = dict(sorted(spec.params.items()))
        params["encoding"] = spec.encoding
    return params
