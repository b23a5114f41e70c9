"""One unit: a fold of an AMLB task as one data set and one task of an OpenML server."""

from __future__ import annotations

import hashlib
import json
import shlex
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd

from amlb_ext.amlb.coding import NUMBERS
from amlb_ext.core.errors import PublishError
from amlb_ext.core.parquet import read_frame
from amlb_ext.core.rng import random_stream
from amlb_ext.core.task import Kind
from amlb_ext.publish.arff import Attribute, arff_text, attribute_names
from amlb_ext.publish.limits import server_name
from amlb_ext.publish.rows import HOLDOUT, ORDERED, Fit, SentRows, choose_rows
from amlb_ext.suite import AmlbTask, SuiteFiles

#: Our columns: which row of the suite's files, its side, where it comes from, which source row.
OWN_COLUMNS = (
    "hardsynth_row",
    "hardsynth_split",
    "hardsynth_origin",
    "hardsynth_source",
)
ORIGINS = ("train", "good", "bad", "ga", "synthetic")
#: AMLB's metric → OpenML's measure; OpenML has none for logloss and r2.
MEASURES = {
    "auc": "area_under_roc_curve",
    "acc": "predictive_accuracy",
    "balacc": "unweighted_recall",
    "f1": "f_measure",
    "rmse": "root_mean_squared_error",
    "mae": "mean_absolute_error",
}
#: What AMLB optimises where a definition names no metric.
_DEFAULT_METRIC = {
    Kind.BINARY: "auc",
    Kind.MULTICLASS: "logloss",
    Kind.REGRESSION: "rmse",
}


class DataSet(ABC):
    """A data set that is sent: a fold of a task, or the difficulty of its rows."""

    @property
    @abstractmethod
    def name(self) -> str:
        """Its name on the server."""

    @property
    @abstractmethod
    def key(self) -> str:
        """Names the content: two data sets of one key are the same."""

    @abstractmethod
    def arff(self) -> str:
        """Return the data file; the same data set gives the same text."""

    @property
    def label(self) -> str:
        """The key as it is written into the data set's ``version_label``."""
        return f"hardsynth-{self.key}"

    @cached_property
    def _size_and_sums(self) -> tuple[int, str, str]:
        # of a file that is made for them, and again when it is sent: it may be large
        data = self.arff().encode()
        md5 = hashlib.md5(data, usedforsecurity=False).hexdigest()
        return len(data), md5, hashlib.sha256(data).hexdigest()

    @property
    def size(self) -> int:
        """Bytes of the data file."""
        return self._size_and_sums[0]

    @property
    def md5(self) -> str:
        """Of the data file."""
        return self._size_and_sums[1]

    @property
    def sha256(self) -> str:
        """Of the data file."""
        return self._size_and_sums[2]


@dataclass(frozen=True, kw_only=True)
class PublishUnit(DataSet):
    """A fold of an AMLB task, ready to be sent.

    Attributes
    ----------
    suite : SuiteFiles
    amlb_task : AmlbTask
    fold : int
        AMLB's fold number.
    rows : SentRows
    attributes : tuple of Attribute
        Features, the target, then :data:`OWN_COLUMNS`.
    renamed : dict of str to str
        The suite's column names that the server or its readers would not take → the new ones.
    notes : tuple of str
    """

    suite: SuiteFiles
    amlb_task: AmlbTask
    fold: int
    rows: SentRows
    attributes: tuple[Attribute, ...]
    renamed: dict[str, str]
    notes: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The data set's name on the server."""
        return server_name(f"hardsynth.{self.amlb_task.name}.{self.fold}")

    @property
    def key(self) -> str:
        """Names the content: two units of one key are the same data set."""
        # what a data set is besides its file: which columns are the target and are ignored
        parts = [self.sha256, self.target, self.own_columns, self.amlb_task.type.value]
        content = json.dumps(parts).encode()
        return hashlib.sha256(content).hexdigest()[:32]

    @property
    def target_attribute(self) -> Attribute:
        """The target's column, the last one before our own."""
        return self.attributes[-len(OWN_COLUMNS) - 1]

    @property
    def target(self) -> str:
        """The target's name on the server."""
        return self.target_attribute.name

    @property
    def own_columns(self) -> tuple[str, ...]:
        """Names of our columns on the server, in the order of :data:`OWN_COLUMNS`."""
        own_attributes = self.attributes[-len(OWN_COLUMNS) :]
        return tuple(attribute.name for attribute in own_attributes)

    @property
    def measure(self) -> str | None:
        """OpenML's word for what AMLB optimises, where OpenML has it."""
        # of several metrics AMLB optimises the first
        task = self.amlb_task
        metric = task.metric[0] if task.metric else _DEFAULT_METRIC[task.type]
        return MEASURES.get(metric)

    def columns(self) -> list[list[str | None]]:
        """Return the values of each attribute, row by row as they are sent; None is missing."""
        pair = self.suite.pair(self.amlb_task.name, self.fold)
        train, test = map(_read_texts, pair)
        is_test, position, repetition = self.rows.layout()
        both = pd.concat([train, test], ignore_index=True)
        row_names = []
        for tested, row, repeat in zip(is_test, position, repetition, strict=True):
            row_names.append(f"test.{row}.{repeat}" if tested else f"train.{row}")
        sent = both.iloc[position + is_test * len(train)]
        columns = [sent[name].tolist() for name in both.columns]
        # our own columns follow, in the order of OWN_COLUMNS
        columns += [row_names, np.where(is_test, "test", "train").tolist()]
        for values in self._read_provenance(len(train)):
            columns.append(values.loc[sent.index].tolist())
        return columns

    def arff(self) -> str:
        """Return the data file; the same unit gives the same text."""
        return arff_text(self.name, self.attributes, self.columns())

    def _read_provenance(self, train_rows: int) -> tuple[pd.Series, pd.Series]:
        """Return origin and source row of all rows of both files, training rows first.

        Made rows name the source row of the failure that they follow.
        """
        task = self.amlb_task
        layout = self.suite.layout
        # parts share the training file of their task, which stands in that task's folder
        owner = Path(task.train[self.fold]).parent.name
        path = layout.train_provenance(owner, task.folds[self.fold])
        train = pd.DataFrame(index=range(train_rows))
        if path.is_file():
            train = read_frame(path)
        if len(train) != train_rows:
            raise PublishError(
                f"{layout.relative(path)} has {len(train)} rows, its training file {train_rows}",
                f"see what: hardsynth verify {shlex.quote(str(layout.root))}",
            )
        test = self.suite.provenance(task.name, self.fold)
        both = pd.concat([train, test], ignore_index=True)
        # training files that hold real rows alone record none of these
        both = both.reindex(columns=["origin", "source_row", "parent_row"])
        own_row, parent_row = both["source_row"], both["parent_row"]
        numbers = own_row.where(own_row >= 0, parent_row).fillna(-1).astype("int64")
        texts = numbers.astype(str).astype(object).where(numbers >= 0, None)
        return both["origin"].astype(object).fillna("train"), texts


def build_unit(suite: SuiteFiles, name: str, fold: int, *, fit: Fit) -> PublishUnit:
    """Return the unit of an AMLB task's fold.

    Parameters
    ----------
    suite : SuiteFiles
    name : str
        Of the AMLB task.
    fold : int
        AMLB's fold number.
    fit : str
        See :func:`amlb_ext.publish.rows.choose_sizes`.

    Raises
    ------
    PublishError
        Too few rows.
    SuiteError
        No such task or fold, or a file that was changed since the suite was made.
    """
    task = suite.amlb_task(name)
    train, test = map(_read_texts, suite.pair(name, fold))
    # labels and origins stay in proportion
    origins = suite.provenance(name, fold)["origin"].astype(str)
    if task.type.is_classification:
        procedure = ORDERED
        train_groups = [[label] for label in train[task.target]]
        test_labels = test[task.target]
        test_groups = [list(pair) for pair in zip(test_labels, origins, strict=True)]
    else:
        procedure = HOLDOUT
        train_groups = [[] for _ in range(len(train))]
        test_groups = [[origin] for origin in origins]
    rng = random_stream(suite.manifest.seed, "publish", name, fold)
    try:
        rows = choose_rows(procedure, train_groups, test_groups, fit=fit, rng=rng)
    except PublishError as error:
        where = f"{name}, fold {fold}"
        raise PublishError(f"{where}: {error.message}", error.remedy) from None
    sent_test = test.iloc[rows.test]
    sent = pd.concat([train.iloc[rows.train], sent_test])
    attributes, renamed = _declare_attributes(suite, task, sent)
    notes = []
    if task.type.is_classification and sent_test[task.target].nunique() < 2:
        only = sent_test[task.target].iloc[0]
        notes.append(
            f"all test rows have the label {only!r}, so that AUC is undefined there"
        )
    if renamed:
        pairs = [f"{old!r} is {new!r}" for old, new in renamed.items()]
        more = f" and {len(pairs) - 5} more" if len(pairs) > 5 else ""
        notes.append(
            f"columns were renamed for the server: {', '.join(pairs[:5])}{more}"
        )
    return PublishUnit(
        suite=suite,
        amlb_task=task,
        fold=fold,
        rows=rows,
        attributes=attributes,
        renamed=renamed,
        notes=tuple(notes),
    )


def _read_texts(path: Path) -> pd.DataFrame:
    """Return all values as they stand in the file; None is missing."""
    # nothing is parsed, so that the numbers sent are those of the file, digit for digit
    frame = pd.read_csv(
        path,
        dtype=str,
        keep_default_na=False,
        na_values=[""],
        encoding="utf-8",
    )
    return frame.astype(object).where(frame.notna(), None)


def _declare_attributes(
    suite: SuiteFiles, task: AmlbTask, sent: pd.DataFrame
) -> tuple[tuple[Attribute, ...], dict[str, str]]:
    """Return the columns of the data file for rows to send, and which had to be renamed."""
    coding = suite.coding(task.name)
    written = [column.written for column in coding.columns]
    names = attribute_names(written)
    attributes = []
    for column, name in zip(coding.columns, names, strict=True):
        if column.form in NUMBERS:
            attributes.append(Attribute(name))
            continue
        known = column.values if column.form == "text" else ("False", "True")
        # values of rows that are not sent would be categories without a row
        present = set(sent[column.written])
        values = tuple(value for value in known if value in present)
        # a nominal attribute must declare a value, also where every row lacks one
        attributes.append(Attribute(name, values or known[:1] or ("-",)))
    # a comma would be read as between two targets
    plain_target = server_name(task.target.replace(",", "_"))
    target = _unused_name(plain_target, names)
    classes = None
    if task.type.is_classification:
        labels = set(sent[task.target])
        classes = tuple(label for label in coding.written_labels if label in labels)
    attributes.append(Attribute(target, classes))
    server_names = [*names, target]
    row, split, origin, source = [
        _unused_name(name, server_names) for name in OWN_COLUMNS
    ]
    attributes += [
        Attribute(row, text=True),
        Attribute(split, ("train", "test")),
        Attribute(origin, ORIGINS),
        Attribute(source),
    ]
    pairs = zip([*written, task.target], server_names, strict=True)
    return tuple(attributes), {old: new for old, new in pairs if old != new}


def _unused_name(name: str, taken: Sequence[str]) -> str:
    while name in taken:
        name = server_name(f"{name}_")
    return name
