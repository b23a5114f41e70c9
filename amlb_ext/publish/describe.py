"""What a published data set and suite say of themselves, within the server's limits."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from amlb_ext.core.files import sha256_file
from amlb_ext.publish.licence import Licence
from amlb_ext.publish.limits import DATA, STUDY, ascii_text, cut
from amlb_ext.publish.unit import PublishUnit
from amlb_ext.suite import Suite

PAPER = "Zakharov, Boukhanovsky (2025), doi:10.3390/make7040148"


def verdict(suite: Suite, task: str) -> str:
    """Return what the task's certificate says, in one line, or that there is none."""
    path = suite.layout.task_certificate(task)
    try:
        entry = json.loads(path.read_text(encoding="utf-8"))["certificate"]
        return f"{entry['verdict']}: {entry['reason']}"
    except (OSError, ValueError, KeyError, TypeError):
        return "no certificate: nothing was measured of what this task may be used for"


def split_words(unit: PublishUnit) -> str:
    """Return how the rows were chosen, in words.

    The numbers are N and M, what was kept of them, and how often a test row is sent.
    """
    rows, task = unit.rows, unit.amlb_task
    n, m = task.train_rows[unit.fold], task.test_rows[unit.fold]
    often = f", each of them {rows.repeats} times" if rows.repeats > 1 else ""
    left = len(rows.train) < n or len(rows.test) < m
    why = " What was left out was drawn at random in proportion to labels and origins." * left
    again = " Repeating every test row equally often changes no mean and no AUC." * bool(often)
    return (
        f"{len(rows)} rows: {len(rows.train)} of {n} training rows and {len(rows.test)} of {m} "
        f"test rows{often}, so that OpenML's estimation procedure {rows.procedure.id}, "
        f"'{rows.procedure.name}', splits them exactly as the file suite does.{why}{again}"
    )


def data_text(unit: PublishUnit, licence: Licence, url: str) -> str:
    """Return the whole description of a data set, before it is cut.

    Parameters
    ----------
    unit : Unit
    licence : Licence
    url : str
        Where the file suite can be had; may be empty.
    """
    suite, task = unit.suite, unit.amlb_task
    entry, manifest = suite.tasks[task.task], suite.manifest
    origin = entry.origin
    row, split, of, source = unit.own
    ids = ", ".join(f"{key} {value}" for key, value in sorted(origin.ids.items()))
    says = licence.text + (" (stated by the publisher)" if licence.stated else "")
    lines = [
        f"A model-aware hard benchmark made by hardsynth {manifest.version}: {task.description}. "
        f"AMLB task {task.name}, AMLB fold {unit.fold} (fold {task.folds[unit.fold]} of the "
        "source).",
        "",
        f"Rows. {split_words(unit)}",
        "",
        f"Columns. '{unit.target}' is the target. Ignored columns: {row} names side and row of the "
        f"suite's file (and the repetition), {split} the side, {of} where the row comes from (good "
        "and bad: real test rows that the baseline model predicts well or badly; ga and "
        f"synthetic: made rows), {source} the row of the source table, for made rows the row of "
        "the failure they follow. Made rows are not independent of each other: cluster intervals "
        f"by {source}.",
        "",
        f"Certificate. {verdict(suite, task.task)}",
        "Never rank models on made rows alone; rows chosen by the baseline's errors flatter "
        "every other model.",
        "",
        f"Source. {entry.source_name} ({origin.spec}{'; ' + ids if ids else ''}"
        f"{'; ' + origin.url if origin.url else ''}). Licence: {says}. "
        f"Citation: {origin.citation or 'none stated'}. Method: {PAPER}.",
        "",
        f"Made by: {manifest.command} (hardsynth {manifest.version}, seed {manifest.seed}). The "
        "file suite is the authoritative form: all rows, exact splits at any ratio, provenance, "
        f"certificates. {'It is at ' + url + '. ' if url else ''}Its manifest has the sha256 "
        f"{sha256_file(suite.layout.manifest)}.",
        f"Content: {unit.label}, sha256 of the data file {unit.sha256}.",
    ]
    lines += ["", *_way_back(unit)]
    return "\n".join(lines).strip() + "\n"


def _way_back(unit: PublishUnit) -> list[str]:
    """Original names and values of all that is written otherwise; long lists last."""
    coding = unit.suite.coding(unit.amlb_task.name)
    lines = []
    pairs = zip(coding.labels, coding.written_labels, strict=True)
    labels = {new: old for old, new in pairs if old != new}
    if labels:
        lines.append(f"Original labels: {_listed(labels)}.")
    written = [
        *((c.written, c.name) for c in coding.columns),
        (coding.written_target, coding.target),
    ]
    names = {unit.renamed.get(new, new): old for new, old in written}
    renamed = {new: old for new, old in names.items() if new != old}
    if renamed:
        lines.append(f"Original column names: {_listed(renamed)}.")
    for column in coding.columns:
        pairs = zip(column.categories, column.values, strict=True)
        values = {new: old for old, new in pairs if old != new}
        if values:
            name = unit.renamed.get(column.written, column.written)
            lines.append(f"Original values of {name}: {_listed(values)}.")
    return lines


def _listed(pairs: Mapping[str, str]) -> str:
    return ", ".join(f"{new} = {old!r}" for new, old in pairs.items())


def fitted(unit: PublishUnit, licence: Licence, url: str) -> tuple[dict[str, str], list[str]]:
    """Return the texts of a data set within the limits, and what was cut or changed for them.

    Parameters
    ----------
    unit : Unit
    licence : Licence
    url : str

    Returns
    -------
    dict of str to str
        ``description``, ``citation``, ``creator``, ``licence``, ``original_data_url``.
    list of str
    """
    origin = unit.suite.tasks[unit.amlb_task.task].origin
    link = origin.url if origin.url.startswith(("http://", "https://")) else ""
    whole = {
        "description": data_text(unit, licence, url),
        "citation": origin.citation or PAPER,
        "creator": f"hardsynth {unit.suite.manifest.version}",
        "licence": licence.text,
        "original_data_url": link if len(link) <= DATA["original_data_url"].length else "",
    }
    texts, notes = {}, []
    for field, text in whole.items():
        plain = ascii_text(text)
        texts[field] = cut(plain, DATA[field].length)
        if len(plain) > DATA[field].length:
            notes.append(f"{field} was cut from {len(plain)} to {len(texts[field])} characters")
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
        *(f"{task}: {verdict(suite, task)}" for task in tasks),
    ]
    names = ", ".join(tasks[:5]) + (", ..." if len(tasks) > 5 else "")
    return {
        "name": cut(ascii_text(f"{manifest.name}: hard rows of {names}"), STUDY["name"].length),
        "description": cut(ascii_text("\n".join(lines)), STUDY["description"].length),
    }
