"""What the parts of a suite of tables say of each other must hold, whoever sealed it.

A seal is no signature: whoever changes a file can seal the suite again. But what a fold's record
says stands in the manifest, too, and a row of the source stands in several files, with what F
predicts and loses beside it. Where two of these differ no command made the suite as it is, and AMLB
would run another benchmark than the one that was made.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from amlb_ext.core.errors import SuiteError
from amlb_ext.core.row_losses import brier_loss
from amlb_ext.suite.copy_counts import MADE_PARTS, ReadPart
from amlb_ext.suite.finish import amlb_tasks_of, task_entry_of
from amlb_ext.suite.fold_record import FoldRecord, SuiteTask
from amlb_ext.suite.layout import SUFFIXES, amlb_name
from amlb_ext.suite.manifest import FoldEntry
from amlb_ext.suite.reader import SuiteFiles, stored_predictions
from amlb_ext.suite.unseen_values import row_fingerprints
from amlb_ext.suite.writer import Rows

#: Origins of rows of the source, and of those that were made.
REAL_ORIGINS = ("good", "bad")
#: Parts whose rows are all of the origin that has the part's name.
PARTS_OF_ONE_ORIGIN = ("bad", *MADE_PARTS)
#: F's predictions and made targets are written in the target's unit, losses on the scale of the
#: training rows: so much of an error, and of a number in that unit, may be rounding.
ROUNDING_OF_ERRORS, ROUNDING_OF_NUMBERS = 1e-6, 1e-8
#: Settings that no fold depends on: of a command that changed only these, the request stays.
SETTINGS_OF_NO_FOLD = ("name", "split", "source")
#: What to do about two parts of a suite that differ.
REMEDY = "one of them was changed after the suite was made: run its command again in a new folder"


# The manifest and the records.


def record_faults(suite: SuiteFiles) -> Iterator[str]:
    """Yield what the manifest says otherwise than the request and the records of the folds.

    Parameters
    ----------
    suite : SuiteFiles
    """
    yield from _settings_faults(suite)
    for name, entry in suite.tasks.items():
        records = []
        for fold in sorted(entry.folds):
            path = suite.layout.record(name, fold)
            relative = suite.layout.relative(path)
            record = FoldRecord.read(path)
            if record is None or (record.task, record.fold) != (name, fold):
                yield f"{relative} is not the record of fold {fold} of {name}."
                continue
            records.append(record)
            for file, digest in sorted(record.files.items()):
                if suite.manifest.files.get(file) != digest:
                    yield (
                        f"{relative} and the manifest have another sha256 of {file} each; "
                        f"{REMEDY}."
                    )
        if len(records) == len(entry.folds):
            yield from _entry_faults(suite, name, tuple(records))


def _settings_faults(suite: SuiteFiles) -> Iterator[str]:
    """Yield the settings of the manifest that are not those of the request."""
    path = suite.layout.request
    try:
        settings = json.loads(path.read_text(encoding="utf-8"))["settings"]
        asked = dict(settings)
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        # suites of other tools may keep other words of what was asked for
        return
    config = suite.manifest.config
    for name in sorted({*asked, *config} - {*SETTINGS_OF_NO_FOLD}):
        if asked.get(name) != config.get(name):
            yield (
                f"{suite.layout.relative(path)} and the manifest have other settings of {name!r} "
                f"each; {REMEDY}."
            )


def _entry_faults(
    suite: SuiteFiles, name: str, records: tuple[FoldRecord, ...]
) -> Iterator[str]:
    """Yield the entries of a task that are not what its records give once more."""
    entry = suite.tasks[name]
    task = SuiteTask(
        name=name,
        kind=entry.kind,
        target=entry.target,
        coding=entry.coding,
        origin=entry.origin,
        content_hash=entry.content_hash,
        notes=tuple(entry.notes),
        folds=records,
        source_name=entry.source_name,
    )
    recorded = task_entry_of(task)
    for fold in sorted(entry.folds):
        if recorded.folds[fold] != entry.folds[fold]:
            yield (
                f"{name}, fold {fold}: the manifest and the fold's record differ in its key, its "
                f"notes or its figures; {REMEDY}."
            )
    for amlb_task in amlb_tasks_of(task):
        if suite.amlb_tasks.get(amlb_task.name) != amlb_task:
            yield (
                f"{amlb_task.name}: the manifest and the records of its folds differ in its rows, "
                f"its metric or its description; {REMEDY}."
            )


# The rows of the files and their provenance.


@dataclass
class KnownRows:
    """What was read of the source's rows, each of which is the same in all files of a task.

    Attributes
    ----------
    targets, features : Series
        A number for each, by row of the source.
    """

    targets: pd.Series = field(default_factory=lambda: pd.Series(dtype="float64"))
    features: pd.Series = field(default_factory=lambda: pd.Series(dtype="uint64"))

    def add(self, rows: Rows) -> tuple[int, int]:
        """Take the real rows of a file; return how many have other targets and features."""
        source_row = rows.provenance["source_row"].to_numpy()
        is_real = source_row >= 0
        targets = pd.Series(_target_numbers(rows), index=source_row)
        self.targets, other_targets = _add_known(self.targets, targets[is_real])
        fingerprints = row_fingerprints(rows.features, range(rows.features.shape[1]))
        features = pd.Series(fingerprints, index=source_row)[_is_untouched(rows)]
        self.features, other_features = _add_known(self.features, features)
        return other_targets, other_features


def _add_known(known: pd.Series, more: pd.Series) -> tuple[pd.Series, int]:
    """Return the first number of each row of the source, and how many of ``more`` differ."""
    both = pd.concat([known, more]) if len(known) else more
    first = both[~both.index.duplicated()]
    is_other = first.reindex(more.index).to_numpy() != more.to_numpy()
    return first, int(is_other.sum())


def _is_untouched(rows: Rows) -> np.ndarray:
    """Return which rows are those of the source, with all their cells."""
    is_untouched = rows.provenance["source_row"] >= 0
    # what stands in place of a cell depends on the training rows beside it
    if "substituted" in rows.provenance:
        is_untouched &= rows.provenance["substituted"] == ""
    return is_untouched.to_numpy()


def _target_numbers(rows: Rows) -> np.ndarray:
    """Return the target of rows as numbers; of classes their codes."""
    target = rows.target
    if isinstance(target.dtype, pd.CategoricalDtype):
        target = target.cat.codes
    return target.to_numpy(dtype=float)


def fold_faults(
    suite: SuiteFiles, task: str, fold: int, read: ReadPart, known: KnownRows
) -> Iterator[str]:
    """Yield where the rows of a fold's files are not those of which their provenance tells.

    Parameters
    ----------
    suite : SuiteFiles
    task : str
    fold : int
        The source's number.
    read : callable
        Reads the parts of the fold.
    known : KnownRows
        Of the task's folds before, to which the rows of this one are added.
    """
    entry = suite.tasks[task].folds[fold]
    n_classes = len(suite.tasks[task].coding.labels)
    # of the test rows, by column of the provenance
    facts: dict[str, pd.Series] = {}
    # of the scale on which losses are measured
    span = 1.0
    for suffix, side in _files_of_fold(entry):
        where = f"{amlb_name(task, suffix)}, {side} file of fold {fold}"
        try:
            rows = read(suffix, side)
        except (OSError, ValueError, LookupError, SuiteError) as error:
            # a remedy of its own would tell a programmer what to pass
            why = error.message if isinstance(error, SuiteError) else error
            yield f"{where}: it cannot be read beside its provenance: {why}; {REMEDY}."
            continue
        if rows is None:
            continue
        if side == "train" and suffix != "hard" and not n_classes:
            y = _target_numbers(rows)
            span = float(y.max() - y.min()) or 1.0
        faults = [
            *_repeated_faults(known, rows),
            *_loss_faults(rows, n_classes, span),
            *_origin_faults(rows, suffix, entry, side),
        ]
        if side == "test":
            faults += _fact_faults(facts, rows)
        for fault in faults:
            yield f"{where}: {fault}; {REMEDY}."


def _files_of_fold(entry: FoldEntry) -> list[tuple[str, str]]:
    """Return suffix and side of each file of a fold, that of the common training rows first."""
    parts = [suffix for suffix in SUFFIXES if suffix in entry.parts]
    files = [(suffix, "test") for suffix in parts]
    if "hard" in parts:
        files.insert(0, ("hard", "train"))
    # these parts share one training file
    shared = [suffix for suffix in parts if suffix != "hard"]
    return [(suffix, "train") for suffix in shared[:1]] + files


def _repeated_faults(known: KnownRows, rows: Rows) -> Iterator[str]:
    """Yield where rows of the source are not as in the files before."""
    other_targets, other_features = known.add(rows)
    for count, what in ((other_targets, "targets"), (other_features, "features")):
        if count:
            yield (
                f"{count} of {len(rows)} rows have other {what} than the same rows of the source "
                "in another file, or stand in another order than their provenance"
            )


def _fact_faults(known: dict[str, pd.Series], rows: Rows) -> Iterator[str]:
    """Yield what the provenance says of rows of the source, and that of another file does not."""
    untouched = rows.provenance[_is_untouched(rows)].set_index("source_row")
    for name in untouched:
        hashes = pd.util.hash_pandas_object(untouched[name], index=False)
        first = known.get(name, pd.Series(dtype="uint64"))
        known[name], n_others = _add_known(first, hashes)
        if n_others:
            yield (
                f"of {n_others} of {len(rows)} rows the provenance has another {name} than that of "
                "the same rows in another file"
            )


def _loss_faults(rows: Rows, n_classes: int, span: float) -> Iterator[str]:
    """Yield where the stored loss of F does not follow from its prediction and the target."""
    f = stored_predictions(rows.provenance, n_classes)
    if f is None or "loss" not in rows.provenance:
        return
    y = _target_numbers(rows)
    if n_classes:
        error = np.sqrt(brier_loss(y, f))
        rounding = np.full(len(rows), ROUNDING_OF_NUMBERS)
    else:
        error = np.abs(y - f) / span
        size = np.maximum(1.0, np.maximum(np.abs(y), np.abs(f)))
        rounding = ROUNDING_OF_NUMBERS * size / span
    stored = np.sqrt(rows.provenance["loss"].to_numpy(dtype=float))
    is_near = np.abs(stored - error) <= ROUNDING_OF_ERRORS * error + rounding
    # an F that is a file of predictions says nothing of made rows
    is_unknown = np.isnan(stored) & np.isnan(error)
    count = int((~is_near & ~is_unknown).sum())
    if count:
        yield (
            f"of {count} of {len(rows)} rows the loss in the provenance does not follow from F's "
            "prediction there and the target in the file"
        )


def _origin_faults(
    rows: Rows, suffix: str, entry: FoldEntry, side: str
) -> Iterator[str]:
    """Yield where origins are not those of the rows and of the part, or not as many as counted."""
    if "origin" not in rows.provenance:
        return
    origin = rows.provenance["origin"]
    is_made = rows.provenance["source_row"] < 0
    is_right = origin.isin(MADE_PARTS).where(is_made, origin.isin(REAL_ORIGINS))
    if not is_right.all():
        yield (
            f"{int((~is_right).sum())} of {len(rows)} rows have an origin, such as "
            f"{origin[~is_right].iloc[0]!r}, that does not fit their source_row"
        )
    if side != "test":
        return
    n_others = int((origin != suffix).sum())
    if suffix in PARTS_OF_ONE_ORIGIN and n_others:
        yield f"{n_others} of {len(rows)} rows have another origin than {suffix!r}"
    n_bad = int((origin == "bad").sum())
    counted = entry.summary.get("bad")
    if suffix != "full" or not isinstance(counted, int):
        return
    # rows may have been dropped after they were counted
    if not n_bad <= counted <= n_bad + entry.parts[suffix].dropped:
        yield f"{n_bad} rows have the origin 'bad', the fold's record counts {counted}"
