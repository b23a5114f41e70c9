"""The page of a suite of swarms: what was searched, what was found, and what that is worth.

Its first line says what a reader must know before the numbers: of literal presets how many labels
an auditor rejects, of honest ones whether real rows confirm what was found.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from amlb_ext.core.display import (
    format_decimals,
    format_percent,
    markdown_table,
    text_table,
)
from amlb_ext.swarm.audit import LEAST_SUPPORTED
from amlb_ext.validity.swarm_certificate import is_confirmed

#: Names of the generators and row sets of the table, for people.
NAMES = {
    "chosen": "the swarm's choice",
    "initial": "best initial generator",
    "base": "one generator of all rows",
    "uniform soup": "uniform soup",
    "soups": "random soups",
    "affine": "random affine",
    "cma": "CMA-ES",
    "pso": "particle swarm (paper)",
    "regret": "rows redrawn by regret",
    "autobencher": "autobencher (real rows)",
    "elicitation": "task elicitation",
    "breeder": "breeder",
    "code": "particle swarm (code)",
}
#: The two lines of real rows that stand below.
CHOSEN_BY_X, ALL_REAL = "real rows chosen by features alone", "all real rows"


def page_text(records: Mapping[str, Sequence[Mapping[str, Any]]]) -> str:
    """Return the page in Markdown.

    Parameters
    ----------
    records : mapping of str to sequence of mapping
        By task, one record per fold, see :func:`amlb_ext.swarm.fold.swarm_fold`.
    """
    blocks = [first_line([fold for folds in records.values() for fold in folds])]
    for task, folds in records.items():
        for number, record in enumerate(folds):
            blocks.append(_fold_text(task, number, record))
    blocks.append(_READING)
    return "\n\n".join(blocks) + "\n"


def short_text(records: Mapping[str, Sequence[Mapping[str, Any]]]) -> str:
    """Return the gist of the page for a terminal; arguments as :func:`page_text`."""
    first = first_line([fold for folds in records.values() for fold in folds])
    blocks = [first.replace("**", "")]
    for task, folds in records.items():
        for number, record in enumerate(folds):
            fresh = format_decimals(record["chosen"]["fresh"])
            head = (
                f"{task}, fold {number}: {record['objective']} as the search reported it "
                f"{format_decimals(record['reported'])}, on fresh rows {fresh}."
            )
            blocks.append(f"{head} {_proof_text(record['proof'])}")
            blocks.append(_short_table(record))
    return "\n\n".join(blocks) + "\n"


def first_line(folds: Sequence[Mapping[str, Any]]) -> str:
    """Return the line that stands before everything else.

    Parameters
    ----------
    folds : sequence of mapping
        Records of all folds.
    """
    chosen = [fold["chosen"] for fold in folds]
    rejected = np.mean([audit["labels"]["rejected"] for audit in chosen])
    supported = np.mean([audit["supported"] for audit in chosen])
    facts = (
        f"labels rejected by an auditor {format_percent(float(rejected))}, rows near real "
        f"rows {format_percent(float(supported))}"
    )
    preset = folds[0]["preset"]
    if preset != "honest":
        return (
            f"**{facts}**: preset {preset}, objective and labels as in the paper. "
            "Use it as a stress test, not as a ranking."
        )
    verdict = "real rows do not confirm what was found: a stress test, not a ranking"
    if all(is_confirmed(fold) for fold in folds):
        verdict = (
            "real rows and unseen models confirm what was found: it describes weak "
            "spots and does not rank models"
        )
    return f"**{verdict}**; {facts}."


def _fold_text(task: str, number: int, record: Mapping[str, Any]) -> str:
    chosen = record["chosen"]
    searches = " and ".join(NAMES.get(name, name) for name in record["searches"])
    lines = [
        f"## {task}, fold {number}",
        "",
        f"Objective: {record['objective']}; labels: {record['labels']}; search: {searches}, "
        f"{record['evaluations']} evaluations of mixtures of {record['generators']} generators "
        f"({record['generators'] - 1} free numbers; {record['weights_per_generator']} weights "
        "each).",
        "",
        f"Models tested (takers): {', '.join(record['takers'])}. "
        f"Models that the search never saw (unseen): {', '.join(record['unseen'])}.",
        "",
        f"The search reported {format_decimals(record['reported'])}; a fresh sample of the same "
        f"generator gives {format_decimals(chosen['fresh'])}.",
        "",
        _proof_text(record["proof"]),
        "",
        "Fresh generated rows. Difficulty is by the labels of the search. Excess is what the best "
        "model loses to the teacher:",
        "",
        _audit_table(record),
        "",
        "Real rows with their true labels. The gain is the auditor's accuracy (in regression 1 − "
        "squared error of the scaled target) minus that of the best taker, ± its standard error. "
        "Above zero, a better model could gain something there:",
        "",
        _real_table(record),
        "",
        _rows_text(record["rows"]),
    ]
    return "\n".join(lines)


def _proof_text(proof: Mapping[str, float | None]) -> str:
    gain = format_decimals(proof["gain"], sign=True)
    return (
        f"Before the search, on real rows: the auditor's gain over the best taker is {gain} ± "
        f"{format_decimals(proof['se'])}."
    )


def _sources(record: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    sources: dict[str, Mapping[str, Any]] = {}
    sources["chosen"] = {"reported": record["reported"], **record["chosen"]}
    baselines = record.get("baselines", {})
    # in the order of the names: a record read back has its keys sorted
    for name in NAMES:
        if name in baselines:
            sources[name] = baselines[name]
    return sources


def _short_table(record: Mapping[str, Any]) -> str:
    """Return what families that no search saw could mend: by the teacher, and on real rows."""
    headers = ["rows of", "excess", "supported", "rejected", "real rows there: gain"]
    rows = []
    for name, audit in _sources(record).items():
        real = audit["real"]
        rows.append(
            [
                NAMES[name],
                format_decimals(audit["unseen"]["excess"]),
                format_percent(audit["supported"]),
                format_percent(audit["labels"]["rejected"]),
                _why_no_real_rows(audit)
                if real is None
                else _gain_text(real["unseen"]),
            ]
        )
    by_x = record["real_rows_by_x"]["unseen"]
    rows.append([CHOSEN_BY_X, "", "", "", _gain_text(by_x)])
    rows.append([ALL_REAL, "", "", "", _gain_text(by_x["all_rows"])])
    return text_table(headers, rows)


def _audit_table(record: Mapping[str, Any]) -> str:
    headers = [
        "generator",
        "reported",
        "fresh",
        "difficulty: takers",
        "re-fits",
        "unseen",
        "excess: takers",
        "unseen",
        "labels rejected",
        "plausibility",
        "supported",
    ]
    rows = []
    for name, audit in _sources(record).items():
        rows.append(
            [
                NAMES[name],
                format_decimals(audit["reported"]),
                format_decimals(audit["fresh"]),
                format_decimals(audit["seen"]["difficult"]),
                format_decimals(audit["refits"]["difficult"]),
                format_decimals(audit["unseen"]["difficult"]),
                format_decimals(audit["seen"]["excess"]),
                format_decimals(audit["unseen"]["excess"]),
                format_percent(audit["labels"]["rejected"]),
                format_decimals(audit["labels"]["plausibility"]),
                format_percent(audit["supported"]),
            ]
        )
    return markdown_table(headers, rows)


def _real_table(record: Mapping[str, Any]) -> str:
    headers = [
        "real rows of",
        "effective size",
        "difficulty: unseen",
        "auditor's gain: takers",
        "unseen",
        "tau made : real, unseen",
    ]
    by_x = record["real_rows_by_x"]
    rows = []
    for name, audit in _sources(record).items():
        real = audit["real"]
        if real is None:
            rows.append([NAMES[name], _why_no_real_rows(audit), "-", "-", "-", "-"])
            continue
        rows.append(
            [
                NAMES[name],
                f"{audit['effective_size']:.0f}",
                format_decimals(real["unseen"]["difficult"]),
                _gain_text(real["seen"]),
                _gain_text(real["unseen"]),
                format_decimals(real["unseen"]["tau"]),
            ]
        )
    rows.append(
        [
            CHOSEN_BY_X,
            str(by_x["rows"]),
            format_decimals(by_x["unseen"]["difficult"]),
            _gain_text(by_x["seen"]),
            _gain_text(by_x["unseen"]),
            "-",
        ]
    )
    rows.append(
        [
            ALL_REAL,
            "-",
            "-",
            _gain_text(by_x["seen"]["all_rows"]),
            _gain_text(by_x["unseen"]["all_rows"]),
            "-",
        ]
    )
    return markdown_table(headers, rows)


def _why_no_real_rows(audit: Mapping[str, Any]) -> str:
    """Return why nothing is said of real rows: none stand there, or too few of the test rows."""
    if audit["supported"] < LEAST_SUPPORTED:
        return "none there"
    return "too few there"


def _gain_text(values: Mapping[str, float | None]) -> str:
    gain = format_decimals(values["gain"], sign=True)
    return f"{gain} ± {format_decimals(values['se'])}"


def _rows_text(counts: Mapping[str, Any]) -> str:
    return (
        f"Written: {counts['written']} of {counts['drawn']} drawn rows. Left out: "
        f"{counts['broken']} that break a relation of the table, {counts['unsupported']} with no "
        f"real rows nearby, {counts['repeated']} that repeat a row."
    )


_READING = """## How to read this

- *Reported* is the best of many noisy values, so it is partly luck. Believe *fresh*.
- Difficulty is noise plus excess. A better model can gain only the excess. The first table
  estimates it with a teacher, which may be wrong; the second table asks real rows.
- *Plausibility* is the probability that the auditor gives the labels, minus what it would give to
  labels drawn from its own beliefs. Below −.02 labels are wrong.
  In regression it is 1 − the squared error of the labels in units of the auditor's own.
- *Effective size* is how many real test rows the region amounts to. Below 50 they are too few to
  say anything.
- If a swarm does not beat *real rows chosen by features alone*, use those rows instead."""
