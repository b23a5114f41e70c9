"""What the files of a task say of its made rows, no model asked: copies, relations, looks.

Could the made rows exist? They are held against relations that hold on every real row. The
relations that made rows were made to keep are mined on training rows. A certificate judges by
those of them that also hold on every real test row, and it mines them itself, so the maker is not
its own judge. For scale it tells how often real test rows break what was mined on training rows,
and how often rows do whose columns have nothing to do with each other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from amlb_ext.core.display import format_percent, text_table
from amlb_ext.core.frames import with_columns
from amlb_ext.core.rng import random_stream
from amlb_ext.core.unit import ROW
from amlb_ext.hardening.encode import Encoder, TargetEncoder
from amlb_ext.relations.kinds import Relation
from amlb_ext.relations.mining import LOOKED_FOR, mine_relations
from amlb_ext.relations.values import WrittenForm, read_numbers
from amlb_ext.suite import Rows
from amlb_ext.suite.copy_counts import MADE_PARTS
from amlb_ext.validity import realism_measures
from amlb_ext.validity.measures import Measure, finite_or_none, plan_measure
from amlb_ext.validity.realism_measures import ScaledTable
from amlb_ext.validity.task_rows import TaskRows

#: Share of made rows that may break a relation.
MOST_INFEASIBLE = 0.01
#: Relations with less evidence do not judge.
LEAST_EVIDENCE = 10.0
_SOURCE = "relations that hold on every real row, docs/relations.md; limit ours"
#: Name of the target's column in tables of features and target; no feature has it.
TARGET = "\x00target"


@dataclass
class PartCounts:
    """What the made rows of one part break, over all folds.

    Attributes
    ----------
    rows : int
    infeasible : int
        Rows that break a relation.
    unlike_real : int
        Rows with a number that is not written as real ones.
    by_relation : Counter
        Rows that break each relation, by its text.
    """

    rows: int = 0
    infeasible: int = 0
    unlike_real: int = 0
    by_relation: Counter[str] = field(default_factory=Counter)


@dataclass
class Feasibility:
    """What the rows of a task break.

    Attributes
    ----------
    parts : dict of str to PartCounts
        ``ga`` and ``synthetic``.
    n_relations : int
        Relations that judge, over all folds.
    test_rows, test_broken : int
        Real test rows, and those that break a relation mined on the training rows.
    shuffled_share : float
        Share of rows with shuffled columns that break a relation that judges.
    """

    parts: dict[str, PartCounts]
    n_relations: int = 0
    test_rows: int = 0
    test_broken: int = 0
    shuffled_share: float = float("nan")

    def to_json(self) -> dict[str, Any]:
        """Return the counts as plain mappings; no shuffled share where there was no row."""
        return {
            "parts": {name: {**vars(part)} for name, part in self.parts.items()},
            "relations": self.n_relations,
            "test_rows": self.test_rows,
            "test_broken": self.test_broken,
            "shuffled_share": finite_or_none(self.shuffled_share),
        }


def audit_made_rows(rows: TaskRows) -> Feasibility:
    """Count the made rows of a task that break what holds on every real row.

    Parameters
    ----------
    rows : TaskRows

    Returns
    -------
    Feasibility
    """
    found = Feasibility({part: PartCounts() for part in MADE_PARTS})
    real = [
        _with_target(part)
        for train, parts in rows.folds.values()
        if "full" in parts
        for part in (train, parts["full"])
    ]
    texts: set[str] = set()
    shuffled: list[float] = []
    for fold, (train, parts) in rows.folds.items():
        if "full" not in parts:
            continue
        mined = mine_relations(_with_target(train), LEAST_EVIDENCE)
        test = _with_target(parts["full"])
        found.test_rows += len(test)
        found.test_broken += int(_breaks_any(mined.relations, test).sum())
        judging = [
            relation
            for relation in mined.relations
            if not any(relation.breaks(some).any() for some in real)
        ]
        forms = [
            form.judging(
                np.concatenate([read_numbers(some, form.column) for some in real])
            )
            for form in mined.forms
            if form.column != TARGET
        ]
        texts |= {relation.text for relation in judging}
        rng = random_stream(rows.seed, rows.name, fold, "shuffle")
        shuffled.append(float(_breaks_any(judging, _shuffle(test, rng)).mean()))
        for name in MADE_PARTS:
            if name in parts:
                part = found.parts.setdefault(name, PartCounts())
                _count(part, _with_target(parts[name]), judging, forms)
    found.n_relations = len(texts)
    found.shuffled_share = float(np.mean(shuffled)) if shuffled else float("nan")
    return found


def measure_feasibility(rows: TaskRows) -> list[Measure]:
    """Return the shares of infeasible rows and of rows that are not written as real ones.

    Parameters
    ----------
    rows : TaskRows

    Returns
    -------
    list of Measure
        Empty where nothing was made.
    """
    found = audit_made_rows(rows)
    parts = {name: part for name, part in found.parts.items() if part.rows}
    if not parts:
        return []
    worst = max(parts, key=lambda name: parts[name].infeasible / parts[name].rows)
    share = parts[worst].infeasible / parts[worst].rows
    unlike = max(part.unlike_real / part.rows for part in parts.values())
    infeasible = plan_measure("infeasible rows", _SOURCE, "<=", MOST_INFEASIBLE)
    written = plan_measure("written form", _SOURCE, "<=", 0.0)
    text = (
        "share of made rows, in the worst part, with a number that has more decimals than any "
        "real one, or that is not among the few values of its column"
    )
    return [
        infeasible.found(share, _infeasible_text(found, worst)),
        written.found(unlike, text),
    ]


def _infeasible_text(found: Feasibility, worst: str) -> str:
    part = found.parts[worst]
    if not found.n_relations:
        return (
            "no relation between columns holds on every real row with enough evidence; looked for "
            f"were {LOOKED_FOR}"
        )
    text = (
        f"{part.infeasible} of {part.rows} {worst} rows break one of {found.n_relations} relations "
        f"that hold on every real row; of rows with shuffled columns {found.shuffled_share:.0%} do"
    )
    if found.test_broken:
        text += (
            f"; {found.test_broken} of {found.test_rows} real test rows break one that holds on "
            "the training rows only"
        )
    if part.by_relation:
        often = ", ".join(
            f"{name} ({count})" for name, count in part.by_relation.most_common(3)
        )
        text += f"; most often {often}"
    return text


def _with_target(rows: Rows) -> pd.DataFrame:
    target = pd.Series(rows.target.array, index=rows.features.index)
    return with_columns(rows.features, {TARGET: target})


def _any_of(flags: Iterable[np.ndarray], n: int) -> np.ndarray:
    """Return which of n rows are flagged by any."""
    flagged = np.zeros(n, dtype=bool)
    for flag in flags:
        flagged |= flag
    return flagged


def _breaks_any(relations: Iterable[Relation], rows: pd.DataFrame) -> np.ndarray:
    return _any_of((relation.breaks(rows) for relation in relations), len(rows))


def _shuffle(rows: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    columns = {name: rows[name].array[rng.permutation(len(rows))] for name in rows}
    return pd.DataFrame(columns, index=rows.index)


def _count(
    part: PartCounts,
    made: pd.DataFrame,
    relations: list[Relation],
    forms: list[WrittenForm],
) -> None:
    broken = [relation.breaks(made) for relation in relations]
    for relation, breaks in zip(relations, broken, strict=True):
        if breaks.any():
            text = relation.text.replace(f"`{TARGET}`", "target")
            part.by_relation[text] += int(breaks.sum())
    unlike = (form.breaks(made[form.column].to_numpy(dtype=float)) for form in forms)
    part.rows += len(made)
    part.infeasible += int(_any_of(broken, len(made)).sum())
    part.unlike_real += int(_any_of(unlike, len(made)).sum())


#: What the columns of an audit count.
_LEGEND = """\
infeasible: made rows that break a relation which holds on every real row; looked for were
  {looked_for}
shuffled: rows that would, if columns had nothing to do with each other
not as written: rows with a number that is not written as real ones are, in any number of digits"""


def audit_text(audits: Mapping[str, Feasibility]) -> str:
    """Return a table with a row per task and part, a legend, and the relations broken most."""
    headers = [
        "task",
        "part",
        "rows",
        "infeasible",
        "shuffled",
        "not as written",
        "relations",
    ]
    table: list[list[Any]] = []
    remarks = []
    for task, audit in audits.items():
        for name, part in audit.parts.items():
            # a task without such rows has no share of them
            if not part.rows:
                continue
            table.append(
                [
                    task,
                    name,
                    part.rows,
                    format_percent(part.infeasible / part.rows),
                    format_percent(audit.shuffled_share),
                    format_percent(part.unlike_real / part.rows),
                    audit.n_relations,
                ]
            )
            for relation, count in part.by_relation.most_common(3):
                remarks.append(f"{task}, {name}: {count} rows break {relation}")
    if not table:
        return "no made rows"
    lines = [text_table(headers, table), _LEGEND.format(looked_for=LOOKED_FOR)]
    if remarks:
        lines += ["", *remarks]
    return "\n".join(lines)


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
