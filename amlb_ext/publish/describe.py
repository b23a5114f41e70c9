"""What a published data set and suite say of themselves, within the server's limits."""

from __future__ import annotations

import json
from collections.abc import Sequence

from amlb_ext.core.files import sha256_file
from amlb_ext.publish.licence import Licence
from amlb_ext.publish.limits import DATA, STUDY, ascii_text, cut_text
from amlb_ext.publish.unit import PublishUnit
from amlb_ext.suite import Suite

PAPER = "Zakharov, Boukhanovsky (2025), doi:10.3390/make7040148"


def certificate_verdict(suite: Suite, task: str) -> str:
    """Return the verdict of the task's certificate in one line, or that there is none."""
    path = suite.layout.task_certificate(task)
    try:
        entry = json.loads(path.read_text(encoding="utf-8"))["certificate"]
        return f"{entry['verdict']}: {entry['reason']}"
    except (OSError, ValueError, KeyError, TypeError):
        return "no certificate: nothing was measured of what this task may be used for"


def describe_split(unit: PublishUnit) -> str:
    """Return how the rows were chosen, in words.

    The numbers are N and M, what was kept of them, and how often a test row is sent.
    """
    rows, task = unit.rows, unit.amlb_task
    n_train, n_test = task.train_rows[unit.fold], task.test_rows[unit.fold]
    repeated = f", each of them {rows.repeats} times" if rows.repeats > 1 else ""
    text = (
        f"{len(rows)} rows: {len(rows.train)} of {n_train} training rows and {len(rows.test)} of "
        f"{n_test} test rows{repeated}, so that OpenML's estimation procedure "
        f"{rows.procedure.id}, '{rows.procedure.name}', splits them exactly as the file suite does."
    )
    if len(rows.train) < n_train or len(rows.test) < n_test:
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
    paragraphs = [
        f"A model-aware hard benchmark made by hardsynth {manifest.version}: {task.description}. "
        f"AMLB task {task.name}, AMLB fold {unit.fold} (fold {task.folds[unit.fold]} of the "
        "source).",
        "",
        f"Rows. {describe_split(unit)}",
        "",
        _describe_columns(unit),
        "",
        f"Certificate. {certificate_verdict(suite, task.task)}",
        "Never rank models on made rows alone; rows chosen by the baseline's errors flatter "
        "every other model.",
        "",
        _describe_source(unit, licence),
        "",
        f"Made by: {manifest.command} (hardsynth {manifest.version}, seed {manifest.seed}). The "
        "file suite is the authoritative form: all rows, exact splits at any ratio, provenance, "
        f"certificates. {'It is at ' + url + '. ' if url else ''}Its manifest has the sha256 "
        f"{sha256_file(suite.layout.manifest)}.",
        f"Content: {unit.label}, sha256 of the data file {unit.sha256}.",
        "",
        # last, since these lists may be long and a long description is cut at its end
        *_original_names(unit),
    ]
    return "\n".join(paragraphs).strip() + "\n"


def _describe_columns(unit: PublishUnit) -> str:
    row, split, origin, source = unit.own_columns
    return (
        f"Columns. '{unit.target}' is the target. Ignored columns: {row} names side and row of the "
        f"suite's file (and the repetition), {split} the side, {origin} where the row comes from "
        "(good and bad: real test rows that the baseline model predicts well or badly; ga and "
        f"synthetic: made rows), {source} the row of the source table, for made rows the row of "
        "the failure they follow. Made rows are not independent of each other: cluster intervals "
        f"by {source}."
    )


def _describe_source(unit: PublishUnit, licence: Licence) -> str:
    entry = unit.suite.tasks[unit.amlb_task.task]
    origin = entry.origin
    ids = ", ".join(f"{key} {value}" for key, value in sorted(origin.ids.items()))
    place = "; ".join(filter(None, [origin.spec, ids, origin.url]))
    terms = licence.text + (" (stated by the publisher)" if licence.stated else "")
    return (
        f"Source. {entry.source_name} ({place}). Licence: {terms}. "
        f"Citation: {origin.citation or 'none stated'}. Method: {PAPER}."
    )


def _original_names(unit: PublishUnit) -> list[str]:
    """Return the original names and values of all that is written otherwise."""
    coding = unit.suite.coding(unit.amlb_task.name)
    lines = []
    labels = _changed(coding.written_labels, coding.labels)
    if labels:
        lines.append(f"Original labels: {labels}.")
    written = [*(column.written for column in coding.columns), coding.written_target]
    originals = [*(column.name for column in coding.columns), coding.target]
    names = _changed([unit.renamed.get(name, name) for name in written], originals)
    if names:
        lines.append(f"Original column names: {names}.")
    for column in coding.columns:
        values = _changed(column.values, column.categories)
        if values:
            name = unit.renamed.get(column.written, column.written)
            lines.append(f"Original values of {name}: {values}.")
    return lines


def _changed(written: Sequence[str], original: Sequence[str]) -> str:
    """List what is written otherwise than it was."""
    pairs = dict(zip(written, original, strict=True))
    # the original is quoted: it may end in a space, or hold a comma
    return ", ".join(f"{new} = {old!r}" for new, old in pairs.items() if new != old)


def fit_texts(
    unit: PublishUnit, licence: Licence, url: str
) -> tuple[dict[str, str], list[str]]:
    """Return the texts of a data set within the limits, and what was cut or changed for them.

    Parameters
    ----------
    unit : PublishUnit
    licence : Licence
    url : str
        Where the file suite can be had; may be empty.

    Returns
    -------
    texts : dict of str to str
        ``description``, ``citation``, ``creator``, ``licence``, ``original_data_url``.
    notes : list of str
    """
    origin = unit.suite.tasks[unit.amlb_task.task].origin
    # a file's path or a source's short name is no address
    link = origin.url if origin.url.startswith(("http://", "https://")) else ""
    full_texts = {
        "description": data_description(unit, licence, url),
        "citation": origin.citation or PAPER,
        "creator": f"hardsynth {unit.suite.manifest.version}",
        "licence": licence.text,
        # half an address leads nowhere: one that is too long is left out
        "original_data_url": link
        if len(link) <= DATA["original_data_url"].length
        else "",
    }
    texts, notes = {}, []
    for field, text in full_texts.items():
        plain = ascii_text(text)
        texts[field] = cut_text(plain, DATA[field].length)
        if len(plain) > DATA[field].length:
            notes.append(
                f"{field} was cut from {len(plain)} to {len(texts[field])} characters"
            )
        if plain != text:
            notes.append(f"{field} was written in ASCII")
    return texts, notes


def suite_texts(suite: Suite, units: Sequence[PublishUnit], url: str) -> dict[str, str]:
    """Return name and description of the suite of these units.

    Parameters
    ----------
    suite : Suite
    units : sequence of Unit
        Those whose split the server made as wanted.
    url : str
    """
    manifest = suite.manifest
    tasks = list(dict.fromkeys(unit.amlb_task.task for unit in units))
    lines = [
        f"Model-aware hard benchmark made by hardsynth {manifest.version}: {len(units)} tasks, one "
        f"per fold, from {len(tasks)} source tasks. Each task's data set tells its rows, split, "
        f"licence and source. Method: {PAPER}.",
        f"Made by: {manifest.command}. The file suite is the authoritative form"
        f"{': ' + url if url else ''}; its manifest has the sha256 "
        f"{sha256_file(suite.layout.manifest)}.",
        "What each may be used for:",
        *(f"{task}: {certificate_verdict(suite, task)}" for task in tasks),
    ]
    names = ", ".join(tasks[:5]) + (", ..." if len(tasks) > 5 else "")
    name, description = f"{manifest.name}: hard rows of {names}", "\n".join(lines)
    return {
        "name": cut_text(ascii_text(name), STUDY["name"].length),
        "description": cut_text(ascii_text(description), STUDY["description"].length),
    }
