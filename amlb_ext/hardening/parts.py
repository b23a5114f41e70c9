"""Rows of a fold as the suite wants them: features and target in canonical form, provenance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from amlb_ext.core import losses
from amlb_ext.core.task import Task
from amlb_ext.hardening.augment import Side
from amlb_ext.hardening.baseline import Baseline
from amlb_ext.hardening.encode import TargetEncoder
from amlb_ext.hardening.hardness import raw_hardness
from amlb_ext.hardening.made import Failures, FoldModels, MadeRows
from amlb_ext.hardening.oracle import check_labels
from amlb_ext.suite import Rows


@dataclass(frozen=True)
class RealRows:
    """The real rows of one side, with what is known of each.

    ``features`` are the rows as they are written, ``substituted`` the columns with replaced cells;
    ``null`` are the losses ``(n, R)`` of F's re-fits, none where the rows are training rows.
    """

    rows: np.ndarray
    features: pd.DataFrame
    substituted: np.ndarray
    Z: np.ndarray
    y: np.ndarray
    f: np.ndarray
    hardness: np.ndarray
    reducible: np.ndarray
    support: np.ndarray
    agrees: np.ndarray
    weight: np.ndarray
    bad: np.ndarray
    null: np.ndarray


def null_losses(fits: Sequence[Baseline], Z: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the losses ``(n, R)`` of F's fits without each part of the training rows."""
    out = np.empty((len(y), len(fits)))
    for k, fit in enumerate(fits if len(y) else ()):
        out[:, k] = losses.row_loss(y, fit.predict(Z))
    return out


def failures(side: RealRows) -> Failures:
    """Return the bad rows of a side, with the oracle's opinion of their labels."""
    return Failures(side.Z[side.bad], side.y[side.bad], side.support[side.bad])


def training_rows(task: Task, rows: np.ndarray) -> Rows:
    """Return the rows F was trained on."""
    provenance = pd.DataFrame({"source_row": task.row_ids[rows]})
    return Rows(_reset(task.features.iloc[rows]), _reset(task.target.iloc[rows]), provenance)


def real_rows(task: Task, target: TargetEncoder, side: RealRows, chosen: Any) -> Rows:
    """Real rows as they are written."""
    rows = side.rows[chosen]
    ids = task.row_ids[rows].astype(np.int64)
    provenance = pd.DataFrame(
        {
            "origin": np.where(side.bad[chosen], "bad", "good"),
            "source_row": ids,
            "parent_row": ids,
            "hardness": side.hardness[chosen],
            "loss": losses.row_loss(side.y[chosen], side.f[chosen]),
            "reducible": side.reducible[chosen],
            "label_support": side.support[chosen],
            "label_agrees": side.agrees[chosen],
            "weight": side.weight[chosen],
            **_predicted(target, side.f[chosen]),
            **_null(side.null[chosen]),
            "substituted": side.substituted[chosen],
        }
    )
    return Rows(_reset(side.features.iloc[chosen]), _reset(task.target.iloc[rows]), provenance)


def made_rows(
    task: Task, models: FoldModels, made: MadeRows, origin: str, parents: np.ndarray
) -> Rows:
    """Made rows, decoded to the table's form; ``parents`` are source ids of the bad rows."""
    provenance = pd.DataFrame(
        {
            "origin": np.full(len(made), origin, dtype=object),
            "source_row": np.full(len(made), -1, dtype=np.int64),
            "parent_row": parents[made.parent].astype(np.int64),
            "hardness": made.hardness,
            "loss": losses.row_loss(made.y, made.f),
            "reducible": made.reducible,
            "label_support": made.support,
            "label_agrees": made.agrees,
            "weight": np.full(len(made), np.nan),
            **_predicted(models.target, made.f),
            **_null(null_losses(models.fits, made.Z, made.y)),
            "substituted": np.full(len(made), "", dtype=object),
        }
    )
    target = models.target.inverse(made.y, task.target_name)
    return Rows(models.encoder.inverse(made.Z), target, provenance)


def stack(blocks: list[Rows]) -> Rows:
    """Return the rows of all blocks, in order."""
    features = pd.concat([b.features for b in blocks], ignore_index=True)
    target = pd.concat([b.target for b in blocks], ignore_index=True)
    provenance = pd.concat([b.provenance for b in blocks], ignore_index=True)
    return Rows(features, target, provenance)


def blocks_by_origin(task: Task, models: FoldModels, real: RealRows, side: Side) -> dict[str, Rows]:
    """Rows by origin, those with none left out."""
    parents = task.row_ids[real.rows[real.bad]]
    blocks = {"bad": real_rows(task, models.target, real, np.flatnonzero(real.bad))}
    if len(side.augmented):
        blocks["ga"] = made_rows(task, models, side.augmented, "ga", parents)
    if len(side.synthetic):
        blocks["synthetic"] = made_rows(task, models, side.synthetic, "synthetic", parents)
    return blocks


def judged_again(
    task: Task, models: FoldModels, features: pd.DataFrame, target: pd.Series
) -> dict[str, np.ndarray]:
    """Return the columns of the provenance that F, K and the oracle give rows as they now stand.

    The hardness of rows with several targets is not among them: no target alone decides it.
    """
    Z, y = models.encoder.transform(features), models.target.transform(target)
    f, t = models.baseline.predict(Z), models.oracle.predict(Z)
    support, agrees = check_labels(models.oracle, t, y, models.config.agreement)
    hardness = {} if task.group else {"hardness": models.rule.hardness(y, f, t)}
    return {
        **hardness,
        "loss": losses.row_loss(y, f),
        "reducible": raw_hardness("reducible", y, f, t),
        "label_support": support,
        "label_agrees": agrees,
        **_predicted(models.target, f),
        **_null(null_losses(models.fits, Z, y)),
    }


def _predicted(target: TargetEncoder, f: np.ndarray) -> dict[str, np.ndarray]:
    """F's predictions as columns: ``f`` in the target's own unit, or ``f_0``, ... per label."""
    if f.ndim == 1:
        return {"f": f * target.span + target.low}
    return {f"f_{code}": f[:, code] for code in range(f.shape[1])}


def _null(table: np.ndarray) -> dict[str, np.ndarray]:
    """Losses of F's re-fits as columns ``null_0``, ..."""
    return {f"null_{k}": table[:, k] for k in range(table.shape[1])}


def _reset(values: Any) -> Any:
    return values.reset_index(drop=True)
