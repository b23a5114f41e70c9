"""Check a finished suite against its manifest and against AMLB's loader rules."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from operator import itemgetter
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.parquet as pq

from amlb_ext.amlb.definition import is_series_task
from amlb_ext.amlb.loader_rules import check_pair, has_cells_of, read_fields
from amlb_ext.amlb.series_rules import check_series_task
from amlb_ext.core.errors import SuiteError
from amlb_ext.core.files import sha256_file
from amlb_ext.suite.contradictions import KnownRows, fold_faults, record_faults
from amlb_ext.suite.copy_counts import CopyCounts, fold_copies, fold_reader
from amlb_ext.suite.fold_record import FoldRecord
from amlb_ext.suite.folder_faults import (
    CHANGED,
    WARNING,
    SuiteContents,
    folder_faults,
)
from amlb_ext.suite.layout import Layout, amlb_name, is_fold_file
from amlb_ext.suite.manifest import AmlbTask
from amlb_ext.suite.reader import Suite, SuiteFiles, open_suite
from amlb_ext.suite.sealed_json import open_sealed
from amlb_ext.suite.shared_files import stale_definitions


def verify_suite(directory: str | Path, *, where_it_stands: bool = True) -> list[str]:
    """Return what is wrong with a suite.

    Checks the sha256 of every file, the seals of the manifest and of the certificates, files
    that are missing or foreign, what the frameworks name, the definitions against the manifest,
    that paths are relative where AMLB takes such, and every data file against AMLB's loader rules.
    Of a suite of tables it checks also that the manifest says what the records of its folds say,
    that each row has its provenance and is what that tells of it, and that no made row
    repeats a real row or another made one, nor a training row of ``_hard`` a test row. Suites made
    before that was held to get a warning for it.

    Parameters
    ----------
    directory : str or Path
    where_it_stands : bool
        Whether AMLB may be run on the folder as it stands: definitions that name the suite's folder
        name the one where it is now, and what was derived from tables holds their cells. A run
        gives AMLB copies of the former, and removes the latter.

    Returns
    -------
    list of str
        One sentence each, those that begin with :data:`WARNING` being harmless; empty when
        the suite is whole.
    """
    # whatever a changed manifest says of the other files cannot be trusted
    try:
        suite = open_suite(directory)
    except SuiteError as error:
        return [str(error)]
    waiting = _waiting_files(suite)
    sentences = [*folder_faults(_suite_contents(suite, waiting))]
    sentences += stale_definitions(suite, where_it_stands=where_it_stands)
    for task, files in waiting.items():
        folds = sum(relative.endswith("/record.json") for relative in files)
        sentences.append(
            f"{WARNING}{task} is not a task of the suite: its table could not be read when the "
            f"suite was made. Its finished folds ({folds}) are kept; run the command again when "
            "the table is back."
        )
    # what stands in the files, after what stands of them
    for name in suite.tasks:
        sentences += damaged_certificate(suite.layout, name).values()
    sentences += _pair_faults(suite)
    if where_it_stands:
        sentences += _derived_faults(suite)
    sentences += _croissant_faults(suite)
    if isinstance(suite, SuiteFiles):
        is_whole = all(map(_is_harmless, sentences))
        if is_whole:
            contradictions = [*record_faults(suite)]
            sentences += contradictions
            # a file that a record names needs no row that tells of it
            is_whole = not contradictions
        sentences += _row_faults(suite, is_whole=is_whole)
    if all(map(_is_harmless, sentences)):
        # what AMLB would fail on or mis-score of tasks in long tables
        for entry in suite.definition_entries().get(f"{suite.name}_all", ()):
            if is_series_task(entry):
                problems = check_series_task(entry["name"], entry)
                sentences += [f"task {entry['name']}: {said}" for said in problems]
    return sentences


def _is_harmless(sentence: str) -> bool:
    return sentence.startswith(WARNING)


def _suite_contents(suite: Suite, waiting: Mapping[str, set[str]]) -> SuiteContents:
    """Return what stands in a suite, folds that wait for their table included."""
    layout, manifest = suite.layout, suite.manifest
    texts = {layout.config: suite.configuration()}
    # without a checksum
    unlisted = {layout.relative(layout.manifest)}.union(*waiting.values())
    if layout.croissant.is_file():
        # a card stands beside it, which whoever uploads it may add to
        unlisted |= {layout.relative(layout.croissant), "README.md"}
    if manifest.names_its_folder:
        unlisted |= {layout.relative(path) for path in suite.definition_texts()}
    else:
        texts |= suite.definition_texts()
    return SuiteContents(
        layout=layout,
        files=manifest.files,
        needed=frozenset(manifest.own_files),
        may_list=manifest.may_list(),
        texts=texts,
        unlisted=frozenset(unlisted),
        baseline=manifest.baseline,
        constraints=manifest.constraints,
    )


def open_certificate(layout: Layout, task: str) -> dict[str, Any] | None:
    """Return a task's stored certificate; None where its seal is broken."""
    return open_sealed(layout.task_certificate(task))


def damaged_certificate(layout: Layout, task: str) -> dict[str, str]:
    """Return one sentence for each file of a task's certificate that is missing or changed.

    A suite need not have certificates, so none at all is no damage.
    """
    certificate, null = layout.task_certificate(task), layout.task_null(task)
    opened = open_certificate(layout, task)
    path, what = certificate, ""
    if not certificate.is_file():
        if null.is_file():
            what = f"is missing beside {layout.relative(null)}"
    # its content does not give the bytes that its seal was made of
    elif opened is None:
        what = f"{CHANGED} (its seal is broken)"
    elif not null.is_file():
        path, what = null, "is missing"
    elif sha256_file(null) != opened.get("null"):
        path, what = null, f"{CHANGED} (its sha256 differs)"
    name = layout.relative(path)
    return {name: f"{name} {what}."} if what else {}


def _croissant_faults(suite: Suite) -> Iterator[str]:
    """Yield what the metadata for a hub says otherwise than the manifest."""
    path = suite.layout.croissant
    if not path.is_file():
        return
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        stated = {
            file["contentUrl"]: file["sha256"] for file in content["distribution"]
        }
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        yield f"{path.name} cannot be read."
        return
    for file, digest in sorted(suite.manifest.files.items()):
        if stated.get(file) != digest:
            yield f"{path.name} does not describe {file} as it is in the manifest."


def _waiting_files(suite: Suite) -> dict[str, set[str]]:
    """Return the files of finished, unchanged folds of tasks that the suite does not have."""
    layout = suite.layout
    by_task: dict[str, set[str]] = {}
    for path in sorted(layout.own.glob("*/fold_*/record.json")):
        task = path.parent.parent.name
        # a record that cannot be read, or whose files differ, is no finished fold: its files are
        # then named as no part of the suite
        record = None if task in suite.tasks else FoldRecord.read(path)
        if record is None or record.task != task:
            continue
        # a record of somebody else may name code, which is not let pass for a fold's
        if all(map(is_fold_file, record.files)) and record.is_whole(layout):
            by_task.setdefault(task, set()).update(
                record.files, [layout.relative(path)]
            )
    return by_task


def _row_faults(suite: SuiteFiles, *, is_whole: bool) -> Iterator[str]:
    """Yield, per task, what contradicts the provenance of its rows, and what made rows repeat.

    Parameters
    ----------
    suite : SuiteFiles
    is_whole : bool
        Whether all files are as they were written: those that are not contradict others anyway,
        and were named.
    """
    tasks_with_strange_files = set()
    for entry in suite.amlb_tasks.values():
        if not {*entry.data_files, *entry.provenance} <= set(suite.manifest.files):
            tasks_with_strange_files.add(entry.task)
    for name, task in suite.tasks.items():
        if name in tasks_with_strange_files:
            continue
        counts = CopyCounts()
        known = KnownRows()
        for fold in sorted(task.folds):
            read = fold_reader(suite, name, fold)
            if is_whole:
                yield from fold_faults(suite, name, fold, read, known)
            try:
                counts += fold_copies(read)
            except (OSError, ValueError, LookupError, SuiteError):
                continue
        if counts.any:
            # folds held to the rule say how many rows it cost them; in those of a swarm it is odd
            # but harmless that rows repeat
            summaries = [entry.summary for entry in task.folds.values()]
            is_under_rule = all("dropped" in summary for summary in summaries)
            prefix = "" if is_under_rule else WARNING
            yield f"{prefix}{_repeated_text(name, counts)}"


def _repeated_text(task: str, counts: CopyCounts) -> str:
    sentences = []
    if counts.copies or counts.repeated:
        sentences.append(
            f"{task}: of {counts.made} made rows {counts.copies} repeat the features of a real row "
            f"({counts.contradictions} with another target) and {counts.repeated} those of another "
            "made row."
        )
    if counts.on_both_sides:
        sentences.append(
            f"{amlb_name(task, 'hard')}: {counts.on_both_sides} of {counts.hard_training} training "
            "rows have the features of a test row."
        )
    return " ".join(sentences)


def _pair_faults(suite: Suite) -> Iterator[str]:
    """Check every pair of files against AMLB's loader rules.

    Fold by fold, so that the training file that the parts of a task share is read once.
    """
    # a cache of one file: training files are large, and one follows the other
    read_train = lru_cache(maxsize=1)(read_fields)
    pairs = []
    for number, amlb_task in enumerate(suite.manifest.pairs):
        for index in range(len(amlb_task.folds)):
            pairs.append((amlb_task.task, index, number, amlb_task))
    for _, index, _, amlb_task in sorted(pairs, key=itemgetter(0, 1, 2)):
        yield from _faults_of_pair(suite, amlb_task, index, read_train)


def _derived_faults(suite: Suite) -> Iterator[str]:
    """Yield what AMLB would use in place of a table, and which is not shown to hold its cells."""
    again = "remove it: AMLB makes it again, and hardsynth run removes it first"
    for table in sorted((suite.root / "data").glob("*/*.csv")):
        parquet, arff = table.with_suffix(".parquet"), table.with_suffix(".arff")
        if parquet.is_file() and not has_cells_of(parquet, table):
            yield (
                f"{suite.layout.relative(parquet)} does not hold the cells of {table.name}, in "
                f"whose place AMLB would use it; {again}."
            )
        if arff.is_file():
            yield (
                f"{WARNING}{suite.layout.relative(arff)} may be used by AMLB in place of "
                f"{table.name}, and is not compared with it; where AMLB did not make it, {again}."
            )


def _faults_of_pair(
    suite: Suite,
    amlb_task: AmlbTask,
    index: int,
    read_train: Callable[[Path], pd.DataFrame | str],
) -> Iterator[str]:
    """Check the files of one of AMLB's folds, ``index`` in the lists of the entry."""
    where = f"{amlb_task.name}, fold {index}"
    files = (amlb_task.train[index], amlb_task.test[index])
    provenance = amlb_task.provenance[index : index + 1]
    # that a file has no checksum, or is missing, was said with the files
    for file in (*files, *provenance):
        if file not in suite.manifest.files or not suite.layout.at(file).is_file():
            return
    train, test = map(suite.layout.at, files)
    kind = amlb_task.type.value
    for sentence in check_pair(
        train, test, amlb_task.target, kind, read_train=read_train
    ):
        yield f"{where}: {sentence}"
    for file in provenance:
        # pyarrow's errors derive from these two
        try:
            rows = pq.read_metadata(suite.layout.at(file)).num_rows
        except (OSError, ValueError):
            yield f"{where}: the provenance cannot be read."
            continue
        # whether these are the rows of the test file, their contents tell
        if rows != amlb_task.test_rows[index]:
            yield f"{where}: the provenance has {rows} rows, not those of the test file."
