"""What the files of a task say of its made rows, no model asked: copies, relations, looks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from amlb_ext.core.rng import random_stream
from amlb_ext.core.unit import ROW
from amlb_ext.hardening.encode import Encoder, TargetEncoder
from amlb_ext.suite import Rows
from amlb_ext.suite.copy_counts import MADE_PARTS
from amlb_ext.validity import realism_measures
from amlb_ext.validity.feasibility import measure_feasibility
from amlb_ext.validity.measures import Measure, plan_measure
from amlb_ext.validity.realism_measures import ScaledTable
from amlb_ext.validity.task_rows import TaskRows


def measure_files(rows: TaskRows) -> list[Measure]:
    """Return what generation has recorded, what is copied, and what could not exist."""
    return [
        *_kept_measures(rows),
        *measure_copies(rows),
        *measure_feasibility(rows),
    ]


def _kept_measures(rows: TaskRows) -> list[Measure]:
    """Return the share of made rows that K, the oracle and the search for doublets let pass."""
    out = []
    for origin, part in (("augmented", "ga"), ("synthetic", "synthetic")):
        asked = sum(summary.get(f"{origin}_asked", 0) for summary in rows.summaries)
        if not asked:
            continue
        kept = sum(summary.get(origin, 0) for summary in rows.summaries)
        text = f"{part} rows on which F still fails and whose label stands, of {asked} asked"
        planned = plan_measure(f"{part} rows kept", "docs/validity.md, 4")
        out.append(planned.found(kept / asked, text))
    return out


def measure_copies(rows: TaskRows) -> list[Measure]:
    """Return the shares of copies, contradictions and repeats; none where nothing was made.

    All made rows are compared with all others, by their features as they are written. A copy
    stands on both sides of a fold, or contradicts the row that it repeats; either way a score on
    it says nothing of the model.
    """
    counts = rows.count_copies()
    out = []
    if counts.made:
        made_rows = "made rows (of every part, and in the training file of _hard)"
        real_row = "have the features of a real row"
        kinds = (
            ("exact copies", counts.copies, f"{real_row} on either side"),
            ("contradictions", counts.contradictions, f"{real_row} and another target"),
            ("repeated rows", counts.repeated, "have the features of another made row"),
        )
        for name, count, what in kinds:
            out.append(
                realism_measures.measure_share_of_copies(
                    name, count, counts.made, f"{made_rows} {what}"
                )
            )
    if counts.hard_training:
        out.append(
            realism_measures.measure_share_of_copies(
                "hard on both sides",
                counts.on_both_sides,
                counts.hard_training,
                "training rows of _hard equal a test row",
                # no share is small enough: a row that was trained on tests nothing
                most=0.0,
            )
        )
    return out


def measure_looks(rows: TaskRows, seed: int) -> list[Measure]:
    """Return how made rows differ from real bad ones: synthetic rows, else augmented ones.

    Empty where there are none of either.
    """
    tests = [parts for _, parts in rows.folds.values()]
    made: list[Rows] = []
    for part in MADE_PARTS:
        found = [parts[part] for parts in tests if len(parts.get(part, ()))]
        made = found or made
    bad = [parts["bad"] for parts in tests if len(parts.get("bad", ()))]
    if not made or not bad:
        return []
    real = [parts["full"] for parts in tests]
    encoder = Encoder(rows.columns, known="table")
    encoder.fit(pd.concat([test.features for test in real]))
    scale = TargetEncoder(
        rows.kind, rows.labels, pd.concat([test.target for test in real])
    )
    # the encoder puts categories first; the target is the last column
    is_category = np.arange(len(encoder.names_) + 1) < encoder.n_categorical_
    is_category[-1] = rows.kind.is_classification

    def as_table(parts: Sequence[Rows]) -> ScaledTable:
        """Return rows of several folds as numbers on one scale, that of all real test rows."""
        blocks, clusters = [], []
        for part in parts:
            y = scale.transform(part.target)
            blocks.append(np.column_stack([encoder.transform(part.features), y]))
            clusters.append(part.provenance["parent_row"].to_numpy())
        X = np.concatenate(blocks)
        return ScaledTable(X, np.concatenate(clusters), is_category)

    rng = random_stream(seed, rows.name, "realism")
    made_table = realism_measures.thin_table(as_table(made), rng)
    bad_table = as_table(bad)
    # a row may be bad in several folds, and would be its own nearest neighbour
    _, first_of_each = np.unique(bad_table.clusters, return_index=True)
    bad_table = bad_table.take(first_of_each)
    return [
        *realism_measures.measure_realism(made_table, bad_table, rng, ROW),
        realism_measures.measure_closest_record(made_table, bad_table, rng, ROW),
    ]
