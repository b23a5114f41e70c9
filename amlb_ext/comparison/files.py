"""Models compared on a labelled table, all of them in files."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd

from amlb_ext.comparison.compare import Claim, compare_labelled
from amlb_ext.comparison.out_of_fold import read_fold_column
from amlb_ext.comparison.result import ModelComparison
from amlb_ext.core.checked_call import (
    CountOrNone,
    Level,
    Seed,
    check_refits,
    checked_call,
)
from amlb_ext.core.config import GenerateConfig, SourceConfig, SplitConfig
from amlb_ext.core.errors import (
    ConfigError,
    DataError,
    ModelError,
    SourceError,
    suggest_nearest,
)
from amlb_ext.core.row_order import (
    OrderedTable,
    RowOrder,
    order_columns,
    read_order,
)
from amlb_ext.core.task import Reading
from amlb_ext.hardening.identifiers import columns_left_out, split_column_lists
from amlb_ext.models.adapter import ModelAdapter
from amlb_ext.models.columns import columns_of_model
from amlb_ext.models.files import read_model
from amlb_ext.models.predictions import join_by_shared_columns
from amlb_ext.sources.column_roles import apply_roles, csv_format
from amlb_ext.sources.read_table import read_table
from amlb_ext.sources.reading import (
    ColumnReading,
    TableReading,
    describe_reading,
    reading_text,
)
from amlb_ext.swap.segments import read_segments
from amlb_ext.units.labelled import read_labelled_rows
from amlb_ext.units.rows import hardness_config


@checked_call
def compare_files(
    table: Path,
    target: str,
    baseline: str,
    candidates: Mapping[str, str],
    *,
    train: Path | None = None,
    rule: str = "auto",
    alpha: float | None = None,
    kind: Literal["regression", "classification"] | None = None,
    refits: CountOrNone = 5,
    claim: Claim = "models",
    level: Level = 0.95,
    seed: Seed = 0,
    loss: str | None = None,
    segments: Any = None,
    cv: str | None = None,
    trust_pickle: bool = False,
    config: GenerateConfig | None = None,
    quiet: bool = True,
) -> ModelComparison:
    """Compare models on a table, as :func:`amlb_ext.comparison.compare.compare` does, from files.

    Parameters
    ----------
    table : path
        Labelled rows that no model has seen.
    target : str
        The column to predict.
    baseline : str
        The current model F: a fitted model (.skops, or .joblib and .pkl where trusted), its
        predictions for the rows (.csv, .parquet, ...), or the address of a service.
    candidates : mapping of str to str
        The models that might replace it, or their predictions, by name.
    train : path, optional
        The rows that F was fitted on: F is fitted again on samples of them, as a control.
    rule : RULE
        Rule that calls a row bad: absolute, squared, band, wrong, quantile or reducible; for
        series also mase or sql (default: auto, by the kind of the target).
    alpha : float, optional
        Threshold of the rule (default: the rule's usual threshold).
    kind : str, optional
        Kind of the target (default: the kind of F).
    refits : int
        How often F is fitted again; 0 for not at all.
    claim : {'models', 'recipes'}
        What a verdict over all rows is of: these fitted models, or what their recipes make of such
        training rows, which are then fitted again, too (rows of tables).
    level : float
        Confidence level of the intervals.
    seed : int
        Random seed.
    loss : str, optional
        What is compared: brier, log_loss, zero_one, balanced or auc; squared, absolute, squared_log
        or pinball:.9; a scorer of scikit-learn; or a file of costs (.csv), a row for each true
        label and a column for each decision. For series mase, rmsse, mae, sql, wql or crps
        (default: brier or squared; zero_one where labels alone are given; mase).
    segments : sequence of str, optional
        Groups of rows that matter to you: a column, or a condition such as "age < 25".
    cv : N|COLUMN, optional
        Compare recipes by cross-validation with so many folds, or those that a column of the table
        names: models are cloned and fitted again, predictions were made out of fold, and the table
        holds all rows.
    trust_pickle : bool
        Load pickles, which run any code that is in them: only files that you made.
    config : GenerateConfig, optional
        How the columns are read (``source``), and what orders or groups the rows (``split``).
    quiet : bool
        Say nothing, on standard error, of how the table was read.

    Returns
    -------
    ModelComparison

    Raises
    ------
    HardsynthError
        As :func:`amlb_ext.comparison.compare.compare`, or a file that cannot be read.
    """
    # before any file is read
    check_refits(refits)
    config = config or GenerateConfig()
    hardness = hardness_config(rule, alpha)
    options = config.source
    labelled = read_labelled_table(table, target, options)
    if kind is None and options.read_as.get(target) == "category":
        kind = "classification"
    files = {"F": baseline, **candidates}
    given = {name: read_model(file, trust_pickle) for name, file in files.items()}
    names = {name: Path(file).name for name, file in files.items()}
    models = _join_all(given, labelled, names)
    known = pd.concat([labelled.features, labelled.left_out], axis=1)
    named = read_segments(segments, known)
    needed: set[str] = set()
    for model in models.values():
        needed.update(columns_of_model(model, known.columns)[0] or ())
    labelled, order = with_order(labelled, config.split, needed)
    folds: Any = cv
    if cv is not None and cv.isdecimal():
        folds = int(cv)
    elif cv is not None:
        folds = read_fold_column(cv, known)
        features = labelled.features.drop(columns=cv, errors="ignore")
        labelled = dataclasses.replace(labelled, features=features)
    old, old_order = None, None
    if train is not None:
        old = read_labelled_table(train, target, options)
        old, old_order = with_order(old, config.split, needed)
    F = models.pop("F")
    if not quiet:
        reading = describe_table(labelled, model=F, kind=kind)
        notes = (f"note: {note}" for note in labelled.notes)
        print(reading_text([reading]), *notes, sep="\n", file=sys.stderr)
    return compare_labelled(
        F,
        models,
        labelled.features,
        labelled.target,
        train=None if old is None else (old.features, old.target),
        kind=kind,
        config=hardness,
        claim=claim,
        refits=refits,
        level=level,
        seed=seed,
        loss=read_costs(loss) if loss is not None else None,
        segments=named,
        cv=folds,
        order=order,
        train_order=old_order,
        declared=labelled.declared,
        about={
            "F": Path(baseline).name,
            "table": f"{table.name}, {len(labelled.target)} rows",
        },
    )


def read_costs(loss: str) -> str | pd.DataFrame:
    """Return the name of a loss as it is, and the costs of a file as a table by label.

    Raises
    ------
    SourceError
        The file cannot be read.
    """
    if not loss.endswith(".csv"):
        return loss
    try:
        with Path(loss).open(encoding="utf-8-sig") as handle:
            separator = ";" if ";" in handle.readline() else ","
        costs = pd.read_csv(loss, index_col=0, sep=separator, dtype=str)
        # numbers between semicolons may have a decimal comma
        if separator == ";":
            costs = costs.map(lambda text: text.replace(",", "."), na_action="ignore")
        costs = costs.astype(float)
    except (OSError, ValueError) as error:
        raise SourceError(
            f"cannot read the costs of {loss}: {error}",
            "give a .csv file with true labels in its first column and decisions in its head",
        ) from None
    costs.index = costs.index.map(str)
    return costs


@dataclass(frozen=True, kw_only=True)
class LabelledTable:
    """A table from a file, as the models are given it.

    Attributes
    ----------
    name : str
    features : DataFrame of shape (n, d)
    target : Series of shape (n,)
    left_out : DataFrame of shape (n, c)
        Columns that the user leaves out.
    declared : tuple of str
        Classes in the order in which the source lists them; empty where it lists none.
    index : Index of shape (n,)
        Labels of the rows, as the file has them.
    reading : Reading
    notes : tuple of str
    """

    name: str
    features: pd.DataFrame
    target: pd.Series
    left_out: pd.DataFrame
    declared: tuple[str, ...]
    index: pd.Index
    reading: Reading
    notes: tuple[str, ...]


def read_labelled_table(
    path: Path, target: str, options: SourceConfig | None = None
) -> LabelledTable:
    """Read a table and its target as the user says.

    Parameters
    ----------
    path : Path
    target : str
    options : SourceConfig, optional
        ``read_as``, ``drop``, ``sep`` and ``decimal`` are used.

    Raises
    ------
    SourceError, DataError
        The file cannot be read, or has no such column.
    ConfigError
        An option names a column that the table lacks, or leaves out the target.
    """
    options = options or SourceConfig()
    table = read_table(path, csv_format(options))
    names = [str(name) for name in table.frame.columns]
    if target not in names:
        raise DataError(
            f"{path.name} has no column {target!r}", suggest_nearest(target, names)
        )
    options = split_column_lists(options, names)
    for flag, named in (("--drop", options.drop), ("--as", options.read_as)):
        for name in named:
            if name not in names:
                raise ConfigError(
                    f"{flag} names {name!r}, but {path.name} has no such column",
                    suggest_nearest(name, names),
                )
    left_out = columns_left_out(options)
    if target in options.drop:
        raise ConfigError(f"--drop names {target!r}, the target", "name a feature")
    left_out_columns = table.frame[left_out]
    table = apply_roles(table, options, [target])
    return LabelledTable(
        name=path.name,
        # a column that is both left out and read as a date has gone with the dates
        features=table.frame.drop(columns=[target, *left_out], errors="ignore"),
        target=table.frame[target],
        left_out=left_out_columns,
        declared=tuple(table.categories.get(target, ())),
        index=pd.RangeIndex(len(table.frame)) if table.index is None else table.index,
        reading=Reading("given", table.named, table.dates),
        notes=table.notes,
    )


def with_order(
    table: LabelledTable, split: SplitConfig, needed: Collection[str] = ()
) -> tuple[LabelledTable, RowOrder | None]:
    """Return a table without the columns that order its rows, and the order.

    Parameters
    ----------
    table : LabelledTable
    split : SplitConfig
        ``time``, ``group``, ``cluster_by`` and ``gap`` are used.
    needed : collection of str
        Columns that a model was fitted on, which stay.

    Raises
    ------
    ConfigError, DataError
        As :func:`amlb_ext.core.row_order.read_order`.
    """
    order = read_order(
        OrderedTable(
            name=table.name,
            frame=table.features,
            target=str(table.target.name),
            row_ids=np.arange(len(table.features)),
            dates=table.reading.dates,
        ),
        time=split.time,
        group=split.group,
        gap=split.gap,
        cluster_by=split.cluster_by,
    )
    names = (split.time, split.group, split.cluster_by)
    dropped = order_columns(list(table.features), names)
    features = table.features.drop(columns=sorted(dropped - set(needed)))
    return dataclasses.replace(table, features=features), order


def _join_all(
    given: Mapping[str, Any], table: LabelledTable, names: Mapping[str, str]
) -> dict[str, Any]:
    """Return models and predictions, the latter in the order of the table.

    Raises
    ------
    ModelError
        One file has an id and another order, and of another file nothing tells the order; or see
        :func:`amlb_ext.models.predictions.join_by_shared_columns`.
    """
    joined, moved, placed = dict(given), [], []
    beside = pd.concat([table.features, table.left_out], axis=1)
    for name, model in given.items():
        if not isinstance(model, pd.DataFrame):
            continue
        in_order = join_by_shared_columns(model, beside, names[name], index=table.index)
        if in_order is not model:
            moved.append(names[name])
        elif not beside.columns.intersection(model.columns).size:
            placed.append(names[name])
        # what its own labels told has been used
        joined[name] = in_order.reset_index(drop=True)
    if moved and placed:
        raise ModelError(
            f"{moved[0]} stands in another order than {table.name} and tells its rows by an id; "
            f"{placed[0]} has none, so it is not clear which row is which",
            f"add the id to {placed[0]}",
        )
    return joined


def describe_table(
    table: LabelledTable, *, model: Any, kind: str | None
) -> TableReading:
    """Describe how a table was read; see :mod:`amlb_ext.sources.reading`."""
    rows = read_labelled_rows(
        table.features, table.target, models=[ModelAdapter(model, "F")], kind=kind
    )
    task = dataclasses.replace(rows.task, reading=table.reading).renamed(table.name)
    reading = describe_reading(task)
    ignored = [
        ColumnReading(
            name=str(name),
            read_as="ignored",
            levels=int(values.nunique()),
            missing=int(values.isna().sum()),
            example="",
            warning="left out, as you said",
        )
        for name, values in table.left_out.items()
    ]
    return dataclasses.replace(reading, columns=(*reading.columns, *ignored))
