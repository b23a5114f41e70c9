"""Check a finished suite against its manifest and against AMLB's loader rules."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.parquet as pq
import yaml

from amlb_ext.amlb.loader_rules import check_pair, read_fields
from amlb_ext.core.assets import asset_path
from amlb_ext.core.errors import SuiteError
from amlb_ext.core.estimators import find_unlisted
from amlb_ext.core.files import TEMPORARY_SUFFIX, sha256_file
from amlb_ext.core.yaml_reader import read_yaml
from amlb_ext.suite.copy_counts import CopyCounts, fold_copies
from amlb_ext.suite.fold_record import FoldRecord
from amlb_ext.suite.layout import (
    INTEGRATION,
    Layout,
    amlb_name,
    files_below,
    is_note,
    is_plain_name,
    is_written_later,
)
from amlb_ext.suite.manifest import AmlbTask, Manifest, open_manifest
from amlb_ext.suite.own_frameworks import (
    is_own_entry,
    is_suite_part_whole,
    own_modules,
)
from amlb_ext.suite.reader import SuiteFiles, unfinished_error
from amlb_ext.suite.sealed_json import SealedFile, open_sealed
from amlb_ext.suite.shared_files import definition_entries

#: Begins sentences that tell of something odd but harmless.
WARNING = "warning: "
#: A safe loader, the fast one where PyYAML was built with it: suites can have thousands of tasks.
_YAML = yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader
#: What a sentence says of a file whose bytes are not those that were recorded.
CHANGED = "was changed after it was written"

#: What a suite states of a framework. AMLB knows more keys, such as ``setup_cmd``, which it runs.
_FRAMEWORK_KEYS = {"module", "version", "description", "params"}
#: Keys with which AMLB runs a command of a shell.
_SHELL_KEYS = frozenset({"setup_cmd", "setup_script"})


def verify_suite(directory: str | Path) -> list[str]:
    """Return what is wrong with a suite.

    Checks the sha256 of every file, the seals of the manifest and of the certificates, files
    that are missing or foreign, what the frameworks name, the definitions against the manifest,
    that paths are relative, every pair of files against AMLB's loader rules, that each test row
    has its provenance, and that no made row repeats a real row or another made one, nor a training
    row of ``_hard`` a test row. Suites made before that was held to get a warning for it.

    Parameters
    ----------
    directory : str or Path

    Returns
    -------
    list of str
        One sentence each, those that begin with :data:`WARNING` being harmless; empty when
        the suite is whole.
    """
    layout = Layout(Path(directory))
    problem = unfinished_error(layout)
    if problem is not None:
        return [str(problem)]
    try:
        suite = SuiteFiles.load(directory)
    except SuiteError as error:
        return [str(error)]
    manifest = suite.manifest
    opened = open_manifest(layout.manifest)
    # whatever a changed manifest says of the other files cannot be trusted
    if opened.content is None:
        return [f"{layout.relative(layout.manifest)} {CHANGED} (its seal is broken)."]
    sentences = []
    if not opened.sealed:
        sentences.append(_unsealed_warning(layout, layout.manifest))
    sentences += _file_faults(layout, manifest)
    for name in suite.tasks:
        sentences += damaged_certificate(layout, name).values()
        certificate = open_certificate(layout, name)
        if certificate.content is not None and not certificate.sealed:
            path = layout.task_certificate(name)
            sentences.append(_unsealed_warning(layout, path))
    # what stands in the files, after what stands of them
    sentences += _framework_faults(layout, manifest)
    sentences += _foreign_code(layout, manifest)
    sentences += _definition_faults(layout, manifest)
    sentences += _pair_faults(layout, manifest)
    sentences += _repeated_rows(suite)
    return sentences


def damaged_files(layout: Layout, manifest: Manifest) -> dict[str, str]:
    """Return one sentence for each file of a manifest that is missing or changed.

    Parameters
    ----------
    layout : Layout
    manifest : Manifest

    Returns
    -------
    dict of str to str
        By relative path.
    """
    present = set(files_below(layout.root))
    sentences = {}
    for relative, digest in sorted(manifest.files.items()):
        if relative not in present:
            sentences[relative] = f"{relative} is missing."
        elif not _is_as_recorded(layout, relative, digest):
            sentences[relative] = f"{relative} {CHANGED} (its sha256 differs)."
    return sentences


def _is_as_recorded(layout: Layout, relative: str, digest: str) -> bool:
    """Whether a file has its recorded sha256; frameworks of the user's own may stand beside."""
    path = layout.at(relative)
    if path == layout.frameworks:
        return is_suite_part_whole(path, digest)
    return sha256_file(path) == digest


def open_certificate(layout: Layout, task: str) -> SealedFile:
    """Return a task's stored certificate with its seal checked."""
    return open_sealed(layout.task_certificate(task), {"key", "certificate"})


def damaged_certificate(layout: Layout, task: str) -> dict[str, str]:
    """Return one sentence for each file of a task's certificate that is missing or changed.

    A suite need not have certificates, so none at all is no damage.
    """
    certificate = layout.task_certificate(task)
    null = layout.task_null(task)
    certificate_name = layout.relative(certificate)
    null_name = layout.relative(null)
    if not certificate.is_file():
        if not null.is_file():
            return {}
        sentence = f"{certificate_name} is missing beside {null_name}."
        return {certificate_name: sentence}
    opened = open_certificate(layout, task)
    # its content does not give the bytes that its seal was made of
    if opened.content is None:
        sentence = f"{certificate_name} {CHANGED} (its seal is broken)."
        return {certificate_name: sentence}
    # of an older version: nothing says what the other file should be
    if not opened.sealed:
        return {}
    if not null.is_file():
        return {null_name: f"{null_name} is missing."}
    if sha256_file(null) != opened.content.get("null"):
        return {null_name: f"{null_name} {CHANGED} (its sha256 differs)."}
    return {}


def _unsealed_warning(layout: Layout, path: Path) -> str:
    relative = layout.relative(path)
    return f"{WARNING}{relative} is of an older version and has no seal, so it was not checked."


def _file_faults(layout: Layout, manifest: Manifest) -> Iterator[str]:
    """Yield a sentence for each file that is missing, changed or foreign."""
    yield from damaged_files(layout, manifest).values()
    known = {layout.relative(layout.manifest), *manifest.files}
    for task, files in _waiting_files(layout, manifest).items():
        known |= files
        folds = sum(relative.endswith("/record.json") for relative in files)
        yield (
            f"{WARNING}{task} is not a task of the suite: its table could not be read when the "
            f"suite was made. Its finished folds ({folds}) are kept; run the command again when "
            "the table is back."
        )
    own_folders = own_modules(_read_frameworks(layout) or {})
    for relative in sorted(set(files_below(layout.root)) - known):
        if is_written_later(relative):
            continue
        steps = relative.split("/")
        if steps[0] == layout.extensions.name and steps[1] in own_folders:
            yield (
                f"{WARNING}{relative} belongs to a framework of the user's own; read it where the "
                "suite is not yours."
            )
            continue
        # a run that was killed may leave its temporary files; the next one sweeps them
        is_harmless = is_note(relative) or relative.endswith(TEMPORARY_SUFFIX)
        prefix = WARNING if is_harmless else ""
        yield f"{prefix}{relative} is not part of the suite."


def _waiting_files(layout: Layout, manifest: Manifest) -> dict[str, set[str]]:
    """Return the files of finished, unchanged folds of tasks that the suite does not have."""
    by_task: dict[str, set[str]] = {}
    for path in sorted(layout.own.glob("*/fold_*/record.json")):
        task = path.parent.parent.name
        if task in manifest.tasks:
            continue
        # a record that cannot be read, or whose files differ, is no finished fold: its files are
        # then named as no part of the suite
        try:
            entry = json.loads(path.read_text(encoding="utf-8"))
            record = FoldRecord.from_json(entry)
            digests = {file: sha256_file(layout.at(file)) for file in record.files}
        except (OSError, ValueError):
            continue
        is_whole = digests == record.files
        if is_whole and record.task == task:
            files = by_task.setdefault(task, set())
            files.update(record.files)
            files.add(layout.relative(path))
    return by_task


def _read_frameworks(layout: Layout) -> dict[str, dict[str, Any]] | None:
    """Return the entries of ``frameworks.yaml`` by name; None where it cannot be read."""
    # read with limits: the file may be anybody's
    entries: dict[str, dict[str, Any]] = {}
    try:
        content = read_yaml(layout.frameworks, SuiteError) or {}
        for name, entry in content.items():
            entries[str(name)] = dict(entry)
    except (OSError, ValueError, TypeError, AttributeError, SuiteError):
        return None
    return entries


def _framework_faults(layout: Layout, manifest: Manifest) -> Iterator[str]:
    """Yield what hardsynth would not write into ``frameworks.yaml``: AMLB and `score` run it."""
    where = layout.relative(layout.frameworks)
    if not layout.frameworks.is_file():
        return
    entries = _read_frameworks(layout)
    if entries is None:
        yield f"{where} cannot be read."
        return
    for name, entry in sorted(entries.items()):
        if not is_plain_name(name):
            yield f"{where} names the framework {name!r}, which is not a plain name."
        if is_own_entry(name) and _is_run_by_amlb_or_suite(entry):
            yield (
                f"{WARNING}{where}: {name} is an entry of the user's own; AMLB runs it, so read it "
                "where the suite is not yours."
            )
            if entry.get("module") != INTEGRATION:
                # whose entry it is nobody can tell, so what runs a shell is damage in any
                for key in sorted(_SHELL_KEYS & set(entry)):
                    yield f"{where}: {name} has {key!r}, which runs a command of a shell."
                continue
        if entry.get("module") != INTEGRATION:
            yield f"{where}: {name} is run by {entry.get('module')!r}, not by {INTEGRATION}."
            continue
        unexpected_keys = set(entry) - _FRAMEWORK_KEYS
        for key in sorted(unexpected_keys):
            yield f"{where}: {name} has {key!r}, which no framework of a suite has."
        yield from _unlisted_models(
            where,
            name,
            params=entry.get("params"),
            manifest=manifest,
        )


def _is_run_by_amlb_or_suite(entry: dict[str, Any]) -> bool:
    """Whether a framework is AMLB's own, builds on one, or has its code in ``extensions/``."""
    module = str(entry.get("module") or "")
    package, _, _ = module.partition(".")
    return package in ("frameworks", "extensions") or (
        not module and bool(entry.get("extends"))
    )


def _unlisted_models(
    where: str, name: str, *, params: Any, manifest: Manifest
) -> Iterator[str]:
    """Yield the models of a framework that are not on the list of what a suite may name."""
    if not isinstance(params, dict):
        return
    baseline = manifest.config.get("baseline")
    baseline_model = str(baseline.get("model")) if isinstance(baseline, dict) else ""
    for kind in ("classifier", "regressor"):
        path = str(params.get(kind) or "")
        model_params = params.get(f"{kind}_params") or {}
        fault = find_unlisted(path, model_params) if path else ""
        if not fault:
            continue
        # harmless where the suite was made with a baseline of the user's own; ":" parts it from
        # its parameters
        baseline_path, _, _ = baseline_model.partition(":")
        prefix = WARNING if path == baseline_path else ""
        yield (
            f"{prefix}{where}: {name} names {fault}, which is not on the list of what a suite may "
            "name; hardsynth score and certify run it only with --trust-suite."
        )


def _foreign_code(layout: Layout, manifest: Manifest) -> Iterator[str]:
    """Yield the code of a suite that differs from what this version would copy into it."""
    for relative in sorted(manifest.files):
        steps = relative.split("/")
        # a text for readers is no code
        if steps[0] != layout.extensions.name or relative.endswith(".md"):
            continue
        # a file that this version does not have is foreign code too
        try:
            packaged = asset_path("frameworks", *steps[1:])
            ours = sha256_file(packaged)
        except OSError:
            ours = ""
        if manifest.files[relative] != ours:
            yield (
                f"{WARNING}{relative} is other code than that of this version of hardsynth; AMLB "
                "runs it, so read it where the suite is not your own."
            )


def _definition_faults(layout: Layout, manifest: Manifest) -> Iterator[str]:
    """Yield where the benchmark definitions differ from the manifest."""
    wanted = definition_entries(
        layout,
        name=manifest.name,
        amlb_tasks=list(manifest.amlb_tasks.values()),
        pair=manifest.pair,
    )
    for path, entries in wanted.items():
        where = layout.relative(path)
        try:
            text = path.read_text(encoding="ascii")
            content = yaml.load(text, Loader=_YAML)
        except (OSError, yaml.YAMLError, ValueError, RecursionError):
            yield f"{where} cannot be read."
            continue
        written = _entries_by_name(content)
        expected = _entries_by_name(entries)
        on_one_side = set(written) ^ set(expected)
        for name in sorted(on_one_side):
            side = "the manifest" if name in expected else where
            yield f"The task {name} stands only in {side}."
        on_both_sides = set(written) & set(expected)
        for name in sorted(on_both_sides):
            if written[name] != expected[name]:
                yield f"{where} and the manifest differ in the task {name}."


def _entries_by_name(definition: Any) -> dict[str, dict[str, Any]]:
    """Return the entries of a definition, leaving out whatever is none."""
    entries = {}
    if isinstance(definition, list):
        for entry in definition:
            if isinstance(entry, dict):
                entries[str(entry.get("name"))] = entry
    return entries


def _repeated_rows(suite: SuiteFiles) -> Iterator[str]:
    """Yield, per task, what made rows repeat; unreadable files are reported elsewhere."""
    tasks_with_strange_files = set()
    for entry in suite.amlb_tasks.values():
        paths = {*entry.train, *entry.test, *entry.provenance}
        if any(path not in suite.manifest.files for path in paths):
            tasks_with_strange_files.add(entry.task)
    for name, task in suite.tasks.items():
        if name in tasks_with_strange_files:
            continue
        counts = CopyCounts()
        for fold in task.folds:
            try:
                counts += fold_copies(suite, name, fold)
            except (OSError, ValueError, LookupError, SuiteError):
                continue
        if counts.any:
            # folds made since the rule holds say how many rows it cost them; in others it is odd
            # but harmless that rows repeat
            summaries = [entry.get("summary", {}) for entry in task.folds.values()]
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


def _pair_faults(layout: Layout, manifest: Manifest) -> Iterator[str]:
    """Check every pair of files against AMLB's loader rules.

    Fold by fold, so that the training file that the parts of a task share is read once.
    """
    # a cache of one file: training files are large, and one follows the other
    read_train = lru_cache(maxsize=1)(read_fields)
    by_task: dict[str, list[AmlbTask]] = {}
    for amlb_task in manifest.amlb_tasks.values():
        by_task.setdefault(amlb_task.task, []).append(amlb_task)
    for _, parts in sorted(by_task.items()):
        most_folds = max(len(part.folds) for part in parts)
        for index in range(most_folds):
            for part in parts:
                if index < len(part.folds):
                    yield from _faults_of_pair(
                        layout,
                        manifest,
                        part,
                        index=index,
                        read_train=read_train,
                    )


def _faults_of_pair(
    layout: Layout,
    manifest: Manifest,
    amlb_task: AmlbTask,
    *,
    index: int,
    read_train: Callable[[Path], pd.DataFrame | str],
) -> Iterator[str]:
    """Check the files of one of AMLB's folds, ``index`` in the lists of the entry."""
    where = f"{amlb_task.name}, fold {index}"
    paths = [amlb_task.train[index], amlb_task.test[index], amlb_task.provenance[index]]
    strange = [path for path in paths if path not in manifest.files]
    if strange:
        yield f"{where}: {strange[0]} is not among the files of the suite."
        return
    train, test, provenance = (layout.at(path) for path in paths)
    # that a file is missing was said with its checksum
    if not (train.is_file() and test.is_file() and provenance.is_file()):
        return
    faults = check_pair(
        train,
        test,
        amlb_task.target,
        amlb_task.type.value,
        read_train=read_train,
    )
    for sentence in faults:
        yield f"{where}: {sentence}"
    rows = _provenance_rows(provenance)
    if rows is None:
        yield f"{where}: the provenance cannot be read."
        return
    recorded_rows = amlb_task.test_rows[index]
    if rows != recorded_rows or rows != _csv_rows(test, amlb_task, manifest):
        yield f"{where}: the provenance has {rows} rows, not those of the test file."


def _provenance_rows(path: Path) -> int | None:
    # pyarrow's errors derive from these two
    try:
        return int(pq.read_metadata(path).num_rows)
    except (OSError, ValueError):
        return None


def _csv_rows(path: Path, amlb_task: AmlbTask, manifest: Manifest) -> int:
    """Return the rows of a test file, -1 where it cannot be read."""
    coding = manifest.tasks[amlb_task.task].coding
    try:
        return len(coding.read_csv(path))
    except (ValueError, SuiteError):
        return -1
