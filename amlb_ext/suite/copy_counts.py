"""Count made rows that repeat real rows or each other, in the files of a fold.

Rows are compared by their features alone. A made row with the features of a real one is a copy,
whatever its target; with another target it is a contradiction as well.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import pandas as pd

from amlb_ext.core.frames import number_rows, repeats_earlier
from amlb_ext.suite.layout import amlb_name
from amlb_ext.suite.reader import SuiteFiles
from amlb_ext.suite.writer import Part, Rows

#: Parts that consist of made rows.
MADE_PARTS = ("ga", "synthetic")
#: From the suffix of a part and a side, ``test`` or ``train``, to the rows of that file of a fold;
#: None where the suite has no such part.
ReadPart = Callable[[str, str], Rows | None]


@dataclass(frozen=True, kw_only=True)
class CopyCounts:
    """What is repeated in a fold, or in several.

    Attributes
    ----------
    made : int
        Made rows: augmented and synthetic ones of the test side, and those among the training rows
        of ``_hard``.
    copies : int
        Made rows with the features of a real row, on whichever side.
    contradictions : int
        Of these, those that have another target than such a row.
    repeated : int
        Made rows with the features of an earlier made row.
    hard_training : int
        Training rows of ``_hard``, real ones among them.
    on_both_sides : int
        Of these, those with the features of a test row.
    """

    made: int = 0
    copies: int = 0
    contradictions: int = 0
    repeated: int = 0
    hard_training: int = 0
    on_both_sides: int = 0

    def __add__(self, other: CopyCounts) -> CopyCounts:
        totals = {name: count + vars(other)[name] for name, count in vars(self).items()}
        return CopyCounts(**totals)

    @property
    def any(self) -> bool:
        """Whether anything is repeated."""
        return bool(self.copies or self.repeated or self.on_both_sides)


def count_copies(
    *, train: Rows, test: Rows, made: Sequence[Rows], hard: Part | None = None
) -> CopyCounts:
    """Count what is repeated in one fold.

    Parameters
    ----------
    train, test : Rows
        The real rows.
    made : sequence of Rows
        Augmented and synthetic rows of the test side.
    hard : Part, optional
        Both files of ``_hard``.

    Examples
    --------
    >>> def rows(values, labels):
    ...     about = pd.DataFrame({"source_row": [-1] * len(values)})
    ...     return Rows(pd.DataFrame({"a": values}), pd.Series(labels), about)
    >>> made = rows([1.0, 2.0, 3.0, 3.0], ["x", "x", "x", "y"])
    >>> counts = count_copies(train=rows([1.0], ["x"]), test=rows([2.0], ["y"]), made=[made])
    >>> counts.copies, counts.contradictions, counts.repeated
    (2, 1, 1)
    """
    made_blocks = list(made)
    hard_training = 0
    on_both_sides = 0
    if hard is not None and hard.train is not None:
        made_training = hard.train.take(is_made(hard.train))
        # test rows are fitted to the training rows they stand beside, so that these can be new
        replaced_columns = hard.test.provenance["substituted"]
        is_refitted = (replaced_columns != "").to_numpy()
        made_test = hard.test.take(is_made(hard.test) & is_refitted)
        made_blocks += [made_training, made_test]
        hard_training = len(hard.train)
        tested = [rows.features for rows in (hard.test, test, *made)]
        numbers, *test_numbers = number_rows(hard.train.features, *tested)
        on_both_sides = int(np.isin(numbers, np.concatenate(test_numbers)).sum())
    if not made_blocks:
        return CopyCounts()
    # rows get numbers, the same one for the same features; -1 for rows unlike any made one
    features = pd.concat([rows.features for rows in made_blocks], ignore_index=True)
    made_rows, *real_rows = number_rows(features, train.features, test.features)
    # labels get numbers in the same way
    target = pd.concat([rows.target for rows in made_blocks], ignore_index=True)
    labels = (target, train.target, test.target)
    targets = [label.to_frame("target") for label in labels]
    made_labels, *real_labels = number_rows(*targets)
    real = pd.DataFrame(
        {"row": np.concatenate(real_rows), "label": np.concatenate(real_labels)}
    )
    # Several real rows may have the same features. A made row contradicts one of them exactly
    # when its label is not both the lowest and the highest of theirs.
    extremes = real[real["row"] >= 0].groupby("row")["label"].agg(["min", "max"])
    is_copy = np.isin(made_rows, extremes.index)
    copied = extremes.reindex(made_rows[is_copy]).to_numpy()
    has_other_label = (copied != made_labels[is_copy, np.newaxis]).any(axis=1)
    return CopyCounts(
        made=len(made_rows),
        copies=int(is_copy.sum()),
        contradictions=int(has_other_label.sum()),
        repeated=int(repeats_earlier(made_rows).sum()),
        hard_training=hard_training,
        on_both_sides=on_both_sides,
    )


def is_made(rows: Rows) -> np.ndarray:
    """Return which rows were made, by their provenance."""
    # a real row names its row of the source's table, a made one has -1
    return (rows.provenance["source_row"] < 0).to_numpy()


def read_part(
    suite: SuiteFiles, task: str, suffix: str, *, fold: int, side: str = "test"
) -> Rows | None:
    """Read one file of a part with its provenance; None where the suite has no such fold of it.

    Parameters
    ----------
    suite : SuiteFiles
    task : str
    suffix : str
    fold : int
        The source's number.
    side : {'test', 'train'}

    Raises
    ------
    SuiteError, OSError, ValueError
        A damaged or missing file.
    """
    entry = suite.amlb_tasks.get(amlb_name(task, suffix))
    if entry is None or fold not in entry.folds:
        return None
    # AMLB's own number of the fold, which is its place in the entry's lists
    index = entry.folds.index(fold)
    paths = entry.test if side == "test" else entry.train
    coding = suite.tasks[task].coding
    frame = coding.read_csv(suite.layout.at(paths[index]))
    features, target = coding.decode(frame)
    if side == "test":
        return Rows(features, target, suite.provenance(entry.name, index))
    # all parts but _hard share the task's own training rows
    owner = amlb_name(task, "hard") if suffix == "hard" else task
    provenance = suite.train_provenance(owner, fold)
    return Rows(features, target, provenance)


def read_hard(suite: SuiteFiles, task: str, fold: int) -> Part | None:
    """Read both files of ``_hard``; None where the suite has no such fold of it."""
    test = read_part(suite, task, "hard", fold=fold)
    if test is None:
        return None
    train = read_part(suite, task, "hard", fold=fold, side="train")
    return Part(test, train)


def fold_reader(suite: SuiteFiles, task: str, fold: int) -> ReadPart:
    """Return a reader of the parts of one fold that reads each file once."""

    @cache
    def read(suffix: str, side: str) -> Rows | None:
        return read_part(suite, task, suffix, fold=fold, side=side)

    return read


def fold_copies(read: ReadPart) -> CopyCounts:
    """Count what is repeated in one fold of a suite; see :func:`read_part` for what it raises."""
    parts = [read(suffix, "test") for suffix in MADE_PARTS]
    made = [rows for rows in parts if rows is not None]
    hard_test = read("hard", "test")
    hard = None if hard_test is None else Part(hard_test, read("hard", "train"))
    train, test = read("full", "train"), read("full", "test")
    if train is None or test is None or not (made or hard):
        return CopyCounts()
    return count_copies(train=train, test=test, made=made, hard=hard)
