"""One unit: a fold of an AMLB task as one data set and one task of an OpenML server."""

from __future__ import annotations

import hashlib
import json
import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from amlb_ext.core.errors import PublishError
from amlb_ext.core.files import sha256_file
from amlb_ext.core.rng import random_stream
from amlb_ext.core.task import Kind
from amlb_ext.publish.arff import Attribute, arff_text, attribute_names
from amlb_ext.publish.limits import server_name
from amlb_ext.publish.rows import HOLDOUT, ORDERED, Chosen, Fit, choose
from amlb_ext.suite import AmlbTask, Suite

#: Our columns: which row of the suite's files, its side, where it comes from, which source row.
OWN = ("hardsynth_row", "hardsynth_split", "hardsynth_origin", "hardsynth_source")
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
_DEFAULT = {Kind.BINARY: "auc", Kind.MULTICLASS: "logloss", Kind.REGRESSION: "rmse"}


@dataclass(frozen=True)
class PublishUnit:
    """A fold of an AMLB task, ready to be sent.

    Attributes
    ----------
    suite : Suite
    amlb_task : AmlbTask
    fold : int
        AMLB's fold number.
    rows : Chosen
    attributes : tuple of Attribute
        Features, the target, then :data:`OWN`.
    renamed : dict of str to str
        The suite's column names that the server or its readers would not take → the new ones.
    size : int
        Bytes of the data file.
    md5, sha256 : str
        Of the data file.
    notes : tuple of str
    """

    suite: Suite
    amlb_task: AmlbTask
    fold: int
    rows: Chosen
    attributes: tuple[Attribute, ...]
    renamed: dict[str, str]
    size: int = 0
    md5: str = ""
    sha256: str = ""
    notes: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The data set's name on the server."""
        full = f"hardsynth.{self.amlb_task.name}.{self.fold}"
        return server_name(full)

    @property
    def key(self) -> str:
        """Names the content: two units of one key are the same data set."""
        own = json.dumps([self.sha256, self.target, self.own, self.amlb_task.type.value])
        return hashlib.sha256(own.encode()).hexdigest()[:32]

    @property
    def label(self) -> str:
        """The key as it is written into the data set's ``version_label``."""
        return f"hardsynth-{self.key}"

    @property
    def target(self) -> str:
        """The target's name on the server."""
        return self.attributes[-len(OWN) - 1].name

    @property
    def own(self) -> tuple[str, ...]:
        """Names of our columns on the server, in the order of :data:`OWN`."""
        return tuple(attribute.name for attribute in self.attributes[-len(OWN) :])

    @property
    def measure(self) -> str | None:
        """OpenML's word for what AMLB optimises, where OpenML has it."""
        metric = (self.amlb_task.metric or [_DEFAULT[self.amlb_task.type]])[0]
        return MEASURES.get(metric)

    def arff(self) -> str:
        """Return the data file; the same unit gives the same text."""
        sides = [_read(path) for path in self.suite.pair(self.amlb_task.name, self.fold)]
        return arff_text(self.name, self.attributes, list(_columns(self, *sides)))


def build_unit(suite: Suite, name: str, fold: int, fit: Fit) -> PublishUnit:
    """Return the unit of an AMLB task's fold.

    Parameters
    ----------
    suite : Suite
    name : str
        Of the AMLB task.
    fold : int
        AMLB's fold number.
    fit : str
        See :func:`amlb_ext.publish.rows.sizes`.

    Raises
    ------
    PublishError
        Too few rows, or a file that was changed since the suite was made.
    SuiteError
        No such task or fold.
    """
    task = suite.amlb_task(name)
    pair = suite.pair(name, fold)
    _check_unchanged(suite, [*pair, suite.layout.at(task.provenance[fold])])
    train, test = map(_read, pair)
    classes = task.type.is_classification
    origins = suite.provenance(name, fold)["origin"].astype(str)
    rng = random_stream(suite.manifest.seed, "publish", name, fold)
    try:
        rows = choose(
            ORDERED if classes else HOLDOUT,
            [[label] if classes else [] for label in train[task.target]],
            [
                [label, origin] if classes else [origin]
                for label, origin in zip(test[task.target], origins, strict=True)
            ],
            fit,
            rng,
        )
    except PublishError as error:
        raise PublishError(f"{name}, fold {fold}: {error.message}", error.remedy) from None
    attributes, renamed = _attributes(suite, task, train.iloc[rows.train], test.iloc[rows.test])
    bare = PublishUnit(suite, task, fold, rows, attributes, renamed)
    data = bare.arff().encode()
    return PublishUnit(
        *(suite, task, fold, rows, attributes, renamed),
        size=len(data),
        md5=hashlib.md5(data, usedforsecurity=False).hexdigest(),
        sha256=hashlib.sha256(data).hexdigest(),
        notes=tuple(_notes(task, fold, test[task.target].iloc[rows.test], renamed)),
    )


def _read(path: Path) -> pd.DataFrame:
    """All values as they stand in the file; None is missing."""
    frame = pd.read_csv(path, dtype=str, keep_default_na=False, na_values=[""], encoding="utf-8")
    return frame.astype(object).where(frame.notna(), None)


def _check_unchanged(suite: Suite, paths: Sequence[Path]) -> None:
    for path in paths:
        relative = suite.layout.relative(path)
        if not path.is_file() or sha256_file(path) != suite.manifest.files.get(relative):
            raise PublishError(
                f"{relative} was changed or removed after the suite was written",
                f"see what: hardsynth verify {shlex.quote(str(suite.layout.root))}; the command "
                "that generated the suite repairs it",
            )


def _attributes(
    suite: Suite, task: AmlbTask, train: pd.DataFrame, test: pd.DataFrame
) -> tuple[tuple[Attribute, ...], dict[str, str]]:
    """The columns of the data file, and which had to be renamed."""
    coding = suite.coding(task.name)
    written = [column.written for column in coding.columns]
    names = attribute_names(written)
    out = []
    for column, name in zip(coding.columns, names, strict=True):
        if column.form in ("float", "integer"):
            out.append(Attribute(name))
            continue
        known = column.values if column.form == "text" else ("False", "True")
        present = {*train[column.written], *test[column.written]}
        out.append(Attribute(name, tuple(v for v in known if v in present) or known[:1] or ("-",)))
    target = _free(server_name(task.target.replace(",", "_")), names)
    labels = {*train[task.target], *test[task.target]}
    classes = tuple(label for label in coding.written_labels if label in labels)
    out.append(Attribute(target, classes if task.type.is_classification else None))
    row, split, origin, source = (_free(name, [*names, target]) for name in OWN)
    out.append(Attribute(row, text=True))
    out += [Attribute(split, ("train", "test")), Attribute(origin, ORIGINS), Attribute(source)]
    pairs = zip([*written, task.target], [*names, target], strict=True)
    return tuple(out), {old: new for old, new in pairs if old != new}


def _free(name: str, taken: Sequence[str]) -> str:
    while name in taken:
        name = server_name(f"{name}_")
    return name


def _columns(
    unit: PublishUnit, train: pd.DataFrame, test: pd.DataFrame
) -> Iterator[list[str | None]]:
    """The values of each attribute, row by row as they are sent."""
    side, row, again = unit.rows.layout()
    both = pd.concat([train, test], ignore_index=True)
    place = row + side * len(train)
    for name in both.columns:
        yield both[name].to_numpy(dtype=object)[place].tolist()
    yield [
        f"test.{r}.{k}" if tested else f"train.{r}"
        for tested, r, k in zip(side, row, again, strict=True)
    ]
    yield ["test" if tested else "train" for tested in side]
    origin, source = _provenance(unit, len(train))
    yield origin[place].tolist()
    yield source[place].tolist()


def _provenance(unit: PublishUnit, train_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Origin and source row of all rows of both files; the made ones name the row they follow."""
    task, suite = unit.amlb_task, unit.suite
    home = Path(task.train[unit.fold]).parent.name
    path = suite.layout.train_provenance(home, task.folds[unit.fold])
    train = pd.read_parquet(path) if path.is_file() else pd.DataFrame(index=range(train_rows))
    if len(train) != train_rows:
        raise PublishError(
            f"{suite.layout.relative(path)} has other rows than its training file",
            f"see what: hardsynth verify {shlex.quote(str(suite.layout.root))}",
        )
    parts = [train, suite.provenance(task.name, unit.fold)]
    origins, sources = [], []
    for part in parts:
        default = pd.Series("train", index=part.index, dtype=object)
        origins.append(part["origin"].astype(object) if "origin" in part else default)
        unknown = pd.Series(-1, index=part.index)
        own = part.get("source_row", unknown)
        sources.append(own.where(own >= 0, part.get("parent_row", unknown)))
    source = pd.concat(sources, ignore_index=True).fillna(-1).astype("int64")
    texts = np.array([str(value) if value >= 0 else None for value in source], dtype=object)
    return pd.concat(origins, ignore_index=True).to_numpy(dtype=object), texts


def _notes(task: AmlbTask, fold: int, labels: pd.Series, renamed: dict[str, str]) -> Iterator[str]:
    if task.type.is_classification and labels.nunique() < 2:
        only = next(iter(Counter(labels)))
        yield f"all test rows have the label {only!r}: AUC is undefined there"
    if renamed:
        pairs = [f"{old!r} is {new!r}" for old, new in renamed.items()]
        more = f" and {len(pairs) - 5} more" if len(pairs) > 5 else ""
        yield f"columns were renamed for the server: {', '.join(pairs[:5])}{more}"
