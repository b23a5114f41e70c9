"""What a published data set, task and suite say of themselves: texts within limits, and XML."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from types import ModuleType

from amlb_ext.core.errors import PublishError
from amlb_ext.core.files import sha256_file
from amlb_ext.publish.limits import DATA, STUDY, Licence, ascii_text, cut_text
from amlb_ext.publish.rows import AllRows
from amlb_ext.publish.unit import DataSet, PublishUnit
from amlb_ext.suite import Suite, SuiteFiles
from amlb_ext.suite.verify import open_certificate

# The texts are whole sentences with their numbers in place, so that they read here as on the
# server; that makes these lines denser than those of other modules.

PAPER = "Zakharov, Boukhanovsky (2025), doi:10.3390/make7040148"


def certificate_verdict(suite: Suite, task: str) -> str:
    """Return the verdict of the task's certificate in one line, or that there is none."""
    # a damaged certificate counts as none: nothing that it says can be passed on
    try:
        certificate = (open_certificate(suite.layout, task) or {})["certificate"]
        return f"{certificate['verdict']}: {certificate['reason']}"
    except (KeyError, TypeError):
        return "no certificate: nothing was measured of what this task may be used for"


def describe_split(unit: PublishUnit) -> str:
    """Return how the rows were chosen, in words.

    The numbers are N and M, what was kept of them, and how often a test row is sent.
    """
    rows = unit.rows
    procedure = rows.procedure
    n_train = unit.amlb_task.train_rows[unit.fold]
    n_test = unit.amlb_task.test_rows[unit.fold]
    sent_train, sent_test = len(rows.train), len(rows.test)
    if isinstance(rows, AllRows):
        return (
            f"{len(rows)} rows: all {n_train} training rows, then all {n_test} test rows. The "
            "split file beside it splits them as the file suite does."
        )
    repeated = f", each of them {rows.repeats} times" if rows.repeats > 1 else ""
    text = (
        f"{len(rows)} rows: {sent_train} of {n_train} training rows and {sent_test} of "
        f"{n_test} test rows{repeated}, so that OpenML's estimation procedure "
        f"{procedure.id}, '{procedure.name}', splits them exactly as the file suite does."
    )
    if sent_train < n_train or sent_test < n_test:
        text += " What was left out was drawn at random in proportion to labels and origins."
    if repeated:
        text += " Repeating every test row equally often changes no mean and no AUC."
    return text


def data_description(unit: PublishUnit, licence: Licence, url: str) -> str:
    """Return the whole description of a data set, before it is cut.

    Parameters
    ----------
    unit : PublishUnit
    licence : Licence
    url : str
        Where the file suite can be had; may be empty.
    """
    suite, task = unit.suite, unit.amlb_task
    manifest = suite.manifest
    manifest_digest = sha256_file(suite.layout.manifest)
    entry = suite.tasks[task.task]
    origin = entry.origin
    ids = [f"{key} {value}" for key, value in sorted(origin.ids.items())]
    stated_places = [origin.spec, ", ".join(ids), origin.url]
    place = "; ".join(text for text in stated_places if text)
    row, split, origin_column, source = unit.own_columns
    suite_place = f"It is at {url}. " if url else ""
    paragraphs = [
        f"A model-aware hard benchmark made by hardsynth {manifest.version}: {task.description}. "
        f"AMLB task {task.name}, AMLB fold {unit.fold} (fold {task.folds[unit.fold]} of the "
        "source).",
        f"Rows. {describe_split(unit)}",
        f"Columns. '{unit.target}' is the target. Ignored columns: {row} names side and row of the "
        f"suite's file (and the repetition), {split} the side, {origin_column} where the row comes "
        "from (good and bad: real test rows that the baseline model predicts well or badly; ga and "
        f"synthetic: made rows), {source} the row of the source table, for made rows the row of "
        "the failure they follow. Made rows are not independent of each other: cluster intervals "
        f"by {source}.",
        f"Certificate. {certificate_verdict(suite, task.task)}\n"
        "Never rank models on made rows alone; rows chosen by the baseline's errors flatter "
        "every other model.",
        f"Source. {entry.source_name} ({place}). Licence: {licence_terms(licence)}. "
        f"Citation: {origin.citation or 'none stated'}. Method: {PAPER}.",
        # what ties the data set to the file suite: the command, the checksums, the address
        f"Made by: {manifest.command} (hardsynth {manifest.version}, seed {manifest.seed}). The "
        "file suite is the authoritative form: all rows, exact splits at any ratio, provenance, "
        f"certificates. {suite_place}Its manifest has the sha256 {manifest_digest}.\n"
        f"Content: {unit.label}, sha256 of the data file {unit.sha256}.",
        # last, since these lists may be long and a long description is cut at its end
        "\n".join(_original_names(unit)),
    ]
    text = "\n\n".join(paragraphs)
    return text.strip() + "\n"


def licence_terms(licence: Licence) -> str:
    """Return a licence, and whether the source does not say it itself."""
    return licence.text + (" (stated by the publisher)" if licence.stated else "")


def _original_names(unit: PublishUnit) -> list[str]:
    """Return the original names and values of all that is written otherwise."""
    coding = unit.suite.coding(unit.amlb_task.name)
    originals = [column.name for column in coding.columns]
    originals.append(coding.target)
    written_names = [column.written for column in coding.columns]
    written_names.append(coding.written_target)
    # names change twice: for the suite's files, and again where the server would refuse them
    server_names = [unit.renamed.get(name, name) for name in written_names]

    changes = {
        "labels": _list_changes(coding.written_labels, coding.labels),
        "column names": _list_changes(server_names, originals),
    }
    for name, column in zip(server_names[:-1], coding.columns, strict=True):
        changes[f"values of {name}"] = _list_changes(column.values, column.categories)
    return [f"Original {what}: {listed}." for what, listed in changes.items() if listed]


def _list_changes(written: Sequence[str], original: Sequence[str]) -> str:
    """Return what is written otherwise than it was, as ``new = 'old'``."""
    pairs = zip(written, original, strict=True)
    # the original is quoted: it may end in a space, or hold a comma
    return ", ".join(f"{new} = {old!r}" for new, old in pairs if new != old)


def fit_texts(
    suite: SuiteFiles, task: str, licence: Licence, *, description: str
) -> tuple[dict[str, str], list[str]]:
    """Return the texts of a data set within the limits, and what was cut or changed for them.

    Parameters
    ----------
    suite : SuiteFiles
    task : str
        Of the suite.
    licence : Licence
    description : str

    Returns
    -------
    texts : dict of str to str
        ``description``, ``citation``, ``creator``, ``licence``, ``original_data_url``.
    notes : list of str
    """
    origin = suite.tasks[task].origin
    # a file's path or a source's short name is no address, and half an address leads nowhere: one
    # that is too long is left out
    is_address = origin.url.startswith(("http://", "https://"))
    is_short = len(origin.url) <= DATA["original_data_url"].length
    full_texts = {
        "description": description,
        "citation": origin.citation or PAPER,
        "creator": f"hardsynth {suite.manifest.version}",
        "licence": licence.text,
        "original_data_url": origin.url if is_address and is_short else "",
    }
    notes = []
    for field, text in full_texts.items():
        # in ASCII first: a character may become several
        plain = ascii_text(text)
        full_texts[field] = cut_text(plain, DATA[field].length)
        if full_texts[field] != plain:
            most = DATA[field].length
            notes.append(f"{field} was cut from {len(plain)} to {most} characters")
        if plain != text:
            notes.append(f"{field} was written in ASCII")
    return full_texts, notes


def suite_texts(
    suite: SuiteFiles, units: Sequence[PublishUnit], url: str
) -> dict[str, str]:
    """Return name and description of the suite of these units.

    Parameters
    ----------
    suite : SuiteFiles
    units : sequence of PublishUnit
        Those whose split the server made as wanted.
    url : str
    """
    manifest = suite.manifest
    manifest_digest = sha256_file(suite.layout.manifest)
    # each fold is a task on the server, and all folds have one source task
    tasks = list(dict.fromkeys(unit.amlb_task.task for unit in units))
    place = f": {url}" if url else ""
    lines = [
        f"Model-aware hard benchmark made by hardsynth {manifest.version}: {len(units)} tasks, one "
        f"per fold, from {len(tasks)} source tasks. Each task's data set tells its rows, split, "
        f"licence and source. Method: {PAPER}.",
        f"Made by: {manifest.command}. The file suite is the authoritative form{place}; its "
        f"manifest has the sha256 {manifest_digest}.",
        "What each may be used for:",
    ]
    lines += [f"{task}: {certificate_verdict(suite, task)}" for task in tasks]
    names = ", ".join(tasks[:5])
    if len(tasks) > 5:
        names += ", ..."
    texts = {
        "name": f"{manifest.name}: hard rows of {names}",
        "description": "\n".join(lines),
    }
    return {
        field: cut_text(ascii_text(text), STUDY[field].length)
        for field, text in texts.items()
    }


# The XML of data sets, tasks and suites, written by the OpenML client's own objects.


TAG = "hardsynth"


def openml_client() -> ModuleType:
    """Import the client, which reads the user's configuration and makes its cache folder."""
    try:
        import openml
    except OSError as error:
        raise PublishError(
            f"the OpenML client cannot create its cache folder: {error}",
            "set OPENML_CACHE_DIR to a folder that you may write",
        ) from None
    return openml


def data_set_xml(
    data: DataSet,
    texts: Mapping[str, str],
    *,
    target: str,
    row_id: str,
    ignored: Sequence[str],
) -> str:
    """Return the description of a data set.

    Parameters
    ----------
    data : DataSet
    texts : mapping
        As :func:`fit_texts` gives them.
    target, row_id : str
    ignored : sequence of str
        Columns that are no features.
    """
    # The client has no public way to the XML but to send it, which it does without a timeout: so
    # its private one is used here and below.
    data_set = openml_client().datasets.OpenMLDataset(
        name=data.name,
        data_format="arff",
        default_target_attribute=target,
        row_id_attribute=row_id,
        ignore_attribute=list(ignored),
        version_label=data.label,
        # the server's schema refuses an empty element
        **{field: text or None for field, text in texts.items()},
        # the file travels beside the description
        dataset="",
    )
    return str(data_set._to_xml())


def task_xml(unit: PublishUnit, data_id: int) -> str:
    """Return the inputs of a unit's task on a data set of the server."""
    openml = openml_client()
    procedure = unit.rows.procedure
    task = openml.tasks.create_task(
        task_type=openml.tasks.TaskType(procedure.task_type),
        dataset_id=data_id,
        estimation_procedure_id=procedure.id,
        target_name=unit.target,
        evaluation_measure=unit.measure,
    )
    return str(task._to_xml())


def suite_xml(texts: Mapping[str, str], alias: str, task_ids: Sequence[int]) -> str:
    """Return the description of a suite of tasks on the server."""
    suite = openml_client().study.create_benchmark_suite(
        name=texts["name"],
        description=texts["description"],
        task_ids=list(task_ids),
        alias=alias,
    )
    return str(suite._to_xml())


def alias_of(units: Iterable[PublishUnit], task_ids: Iterable[int] = ()) -> str:
    """Return the alias of a suite: the same units, with the same measures, give the same.

    Parameters
    ----------
    units : iterable of PublishUnit
    task_ids : iterable of int, optional
        Set where a suite of this content stands on the server already, but with other tasks,
        since some were removed there and sent again: aliases cannot be used twice.
    """
    # the measure is a task's, so that a unit's key does not tell it
    contents = [[unit.key, unit.measure or ""] for unit in units]
    content = json.dumps(sorted(contents))
    for number in sorted(task_ids):
        content += f" {number}"
    digest = hashlib.sha256(content.encode()).hexdigest()
    return f"hardsynth-{digest[:12]}"
