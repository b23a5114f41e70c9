"""The swarm paper's tables as text: claims first, then the printed numbers beside ours."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import pandas as pd

from amlb_ext.core.display import format_decimals, format_percent, format_with_spread
from benchmarks.studies.swarms.adversarial import ARMS
from benchmarks.studies.swarms.cells import (
    PRINTED_TAKERS,
    list_figures,
    printed_numbers,
)
from benchmarks.studies.swarms.choices import SwarmChoice, SwarmTable
from benchmarks.studies.swarms.claims import Claim, judge_claims
from benchmarks.studies.swarms.data import TEXT
from benchmarks.studies.swarms.hull import GENERATORS
from benchmarks.studies.swarms.methods import METHODS
from benchmarks.studies.swarms.run import DrawResult
from benchmarks.studies.text_blocks import Block
from amlb_ext.swarm.prepare import PROOF_ERRORS

PAPER = (
    "Feng, Wang, Shi, Tsvetkov, “Data Swarms: Optimizable Generation of Synthetic "
    "Evaluation Data”"
)
#: What a form is, for people.
FORM_TEXT = {
    "literal": "literal, by the generator's own labels",
    "honest": "honest, excess under a teacher on supported rows",
    "fitted": "honest, under a fitted teacher",
    "own": "the generators' own labels",
    "teacher": "the teacher's labels",
}
TRUTH_FORM_TEXT = {
    "literal": "searched by the truth's labels",
    "honest": "searched for excess under the truth, on supported rows",
    "fitted": "searched for excess under a fitted teacher, on supported rows",
}
#: Columns of Tables 2 and 3 of one table of data: figure → heading.
TABLE_2_COLUMNS = {
    "reported": "reported",
    "fresh": "fresh",
    "seen": "takers",
    "refits": "re-fits",
    "unseen": "unseen families",
    "unseen excess": "excess, unseen",
    "rejected": "labels rejected",
    "supported": "supported",
    "real": "real rows there, unseen",
    "real gain": "auditor's gain there",
    "tau": "τ made : real",
}
TABLE_3_COLUMNS = {
    "seen difficult": "difficult",
    "unseen difficult": "difficult, unseen",
    "noise": "noise",
    "seen excess": "excess",
    "unseen excess": "excess, unseen",
    "supported": "supported",
}
SHARES = {"rejected", "supported"}
NOTES = {
    "swarm-table-1": (
        "The paper's columns are texts and language models: what can be compared is the order of "
        "methods, not a number. Figures on fresh rows, mean ± standard error over draws; "
        "'as reported' is the best value that the search saw.",
        "Compositions are scaled by their spread over the initial generators, so their numbers "
        "have no unit.",
    ),
    "swarm-table-2": (
        "Difficulty 1 − best accuracy. Reported: what the search saw; fresh: its own measure on "
        "new rows; re-fits: the takers fitted on other rows; the last columns are real test rows "
        "weighted to where the made rows are, with true labels ('-': too few real rows there).",
    ),
    "swarm-table-3": (
        "All figures by the known truth: difficulty is noise plus excess, and only excess can be "
        "mended. On the straight line the linear taker is the truth, so every excess there is "
        "error of fitting.",
    ),
    "swarm-adversarial": (
        "Accuracy on the untouched test fold. 'Contradicted' is the share of made rows whose label "
        "the teacher contradicts.",
    ),
    "swarm-hull": (
        "The grid stands in the draw's file under draws/: c1, c2, literal, honest, supported, "
        "excess by the truth.",
    ),
}


def table_notes(table: SwarmTable, choice: SwarmChoice, draws: int) -> list[str]:
    """Return what must be known to read a table: its notes, then the sizes."""
    if table.name == "swarm-hull":
        choice = dataclasses.replace(choice, generators=GENERATORS)
    rows = choice.evaluation_rows or "200 (literal) and 300 (honest)"
    sizes = (
        f"{draws} {'draw' if draws == 1 else 'draws'}; N = {choice.generators}, "
        f"K = {choice.iterations}, {choice.budget} evaluations of {rows} rows for every search, "
        f"{choice.rows} fresh rows; at most {choice.most_rows} rows of a table; takers "
        f"{', '.join(choice.takers)}."
    )
    return [*NOTES[table.name], sizes]


def claim_block(claims: Sequence[Claim]) -> list[Block]:
    """Return the claims as one table, none where a table speaks of none."""
    if not claims:
        return []
    lines = []
    for claim in claims:
        lines.append([claim.code, claim.text, claim.printed, claim.ours, claim.verdict])
    head = ["claim", "asked", "the paper", "here", "verdict"]
    return [Block(heading="Claims", head=head, lines=lines)]


def table_blocks(table: SwarmTable, done: Sequence[DrawResult]) -> list[Block]:
    """Return the claims, then the figures, each as one table of text."""
    figures = list_figures(table.name, done)
    if not len(figures):
        return []
    blocks = claim_block(judge_claims(table.name, figures))
    if table.name == "swarm-table-1":
        return [*blocks, *_table_1_blocks(figures)]
    if table.name == "swarm-table-2":
        printed = [_proof_block(done), _printed_takers_block()]
        return [*blocks, *printed, *_data_blocks(figures, TABLE_2_COLUMNS, FORM_TEXT)]
    if table.name == "swarm-table-3":
        return [*blocks, *_table_3_blocks(figures)]
    if table.name == "swarm-adversarial":
        return [*blocks, *_adversarial_blocks(figures)]
    return [_hull_block(figures)]


def _shown(values: pd.Series, figure: str = "") -> str:
    """Return mean ± standard error of a figure over draws."""
    if not len(values):
        return "-"
    if figure in SHARES:
        return format_percent(float(values.mean()))
    error = values.std(ddof=1) / math.sqrt(len(values)) if len(values) > 1 else math.nan
    return format_with_spread(float(values.mean()), float(error))


def _pick(figures: pd.DataFrame, **place: str) -> pd.DataFrame:
    chosen = figures
    for column, value in place.items():
        chosen = chosen[chosen[column] == value]
    return chosen


def _table_1_blocks(figures: pd.DataFrame) -> list[Block]:
    blocks = []
    data = list(dict.fromkeys(figures["data"]))
    for objective in dict.fromkeys(figures["objective"]):
        printed = printed_numbers()["swarm-table-1"].get(objective, {})
        sets = list(printed.get("pso", {}))
        for form in dict.fromkeys(figures["form"]):
            here = _pick(figures, objective=objective, form=form)
            lines = []
            for method, text in METHODS.items():
                of_method = _pick(here, method=method)
                if not len(of_method):
                    continue
                entries = [
                    _printed_entry(printed.get(method, {}), name) for name in sets
                ]
                fresh = _pick(of_method, figure="fresh")
                entries += [_shown(_pick(fresh, data=name)["value"]) for name in data]
                lines.append([text, *entries])
                if method == "pso":
                    told = _pick(of_method, figure="reported")
                    ours = [_shown(_pick(told, data=name)["value"]) for name in data]
                    lines.append(["the same, as reported", *[""] * len(sets), *ours])
            head = ["method", *(f"paper: {name}" for name in sets)]
            head += [TEXT[name] for name in data]
            heading = f"{objective}; {FORM_TEXT[form]}"
            blocks.append(Block(heading=heading, head=head, lines=lines))
    return blocks


def _printed_entry(entry: dict[str, list[float]], name: str) -> str:
    numbers = entry.get(name)
    if numbers is None:
        return "/"
    return " ± ".join(format_decimals(number, 4) for number in numbers)


def _proof_block(done: Sequence[DrawResult]) -> Block:
    """Return what can be found on each table before any search, as ``hardsynth swarm`` asks."""
    lines = []
    for data in dict.fromkeys(draw.data for draw in done):
        shown, refused = [], 0
        proofs = [draw.rows["proof"] for draw in done if draw.data == data]
        for proof in proofs:
            gain, error = proof["gain"], proof["se"]
            shown.append(format_with_spread(gain, error, sign=True))
            if gain is None or error is None or gain <= PROOF_ERRORS * error:
                refused += 1
        lines.append([TEXT[data], ", ".join(shown), f"{refused} of {len(proofs)}"])
    head = ["table", "an auditor's gain over the best taker", "draws it would refuse"]
    heading = "Can anything be found? Real rows, before a search"
    return Block(heading=heading, head=head, lines=lines)


def _printed_takers_block() -> Block:
    printed = printed_numbers()["swarm-table-2"]
    methods = list(printed["qwen"])
    head = [
        "method",
        *(
            f"{takers}: {name}"
            for takers in PRINTED_TAKERS
            for name in printed[takers]["pso"]
        ),
    ]
    lines = []
    for method in methods:
        entries = []
        for takers in PRINTED_TAKERS:
            numbers = printed[takers][method].values()
            entries += [format_decimals(number) for number in numbers]
        lines.append([METHODS[method], *entries])
    return Block(heading="What the paper prints", head=head, lines=lines)


def _data_blocks(
    figures: pd.DataFrame, columns: dict[str, str], texts: dict[str, str]
) -> list[Block]:
    """Return one table for each form and table of data, methods down, figures across."""
    blocks = []
    for form in dict.fromkeys(figures["form"]):
        for data in dict.fromkeys(figures["data"]):
            here = _pick(figures, form=form, data=data)
            lines = []
            for method, text in METHODS.items():
                of_method = _pick(here, method=method)
                if not len(of_method):
                    continue
                entries = []
                for figure in columns:
                    values = _pick(of_method, figure=figure)["value"]
                    entries.append(_shown(values, figure))
                lines.append([text, *entries])
            heading = f"{TEXT[data]}; {texts[form]}"
            head = ["method", *columns.values()]
            blocks.append(Block(heading=heading, head=head, lines=lines))
    return blocks


def _table_3_blocks(figures: pd.DataFrame) -> list[Block]:
    printed = printed_numbers()["swarm-table-3"]
    lines = [
        [
            METHODS[method],
            format_decimals(printed["difficult"][method]),
            format_decimals(printed["separate"][method]),
        ]
        for method in printed["difficult"]
    ]
    first = Block(
        heading="What the paper prints (graph problems)",
        head=["method", "difficult", "separate"],
        lines=lines,
    )
    blocks = [first]
    difficult = _pick(figures, objective="difficult")
    blocks += _data_blocks(difficult, TABLE_3_COLUMNS, TRUTH_FORM_TEXT)
    separate = _pick(figures, objective="separate")
    columns = {"seen separate": "separate", "unseen separate": "separate, unseen"}
    for block in _data_blocks(separate, columns, TRUTH_FORM_TEXT):
        heading = f"{block.heading} (objective: separate)"
        blocks.append(Block(heading=heading, head=block.head, lines=block.lines))
    return blocks


def _adversarial_blocks(figures: pd.DataFrame) -> list[Block]:
    blocks = []
    data = list(dict.fromkeys(figures["data"]))
    for labels in dict.fromkeys(figures["form"]):
        here = _pick(figures, form=labels)
        accuracy = _pick(here, figure="accuracy")
        lines = []
        for arm, text in ARMS.items():
            of_arm = _pick(accuracy, method=arm)
            values = [_shown(_pick(of_arm, data=name)["value"]) for name in data]
            lines.append([text, *values])
        against = _pick(here, figure="contradicted")
        shares = [
            format_percent(float(_pick(against, data=name)["value"].mean()))
            for name in data
        ]
        lines.append(["made labels contradicted", *shares])
        head = ["arm", *(TEXT[name] for name in data)]
        heading = f"Accuracy on real rows; {FORM_TEXT[labels]}"
        blocks.append(Block(heading=heading, head=head, lines=lines))
    return blocks


def _hull_block(figures: pd.DataFrame) -> Block:
    columns = {
        "reported": "the swarm reports",
        "soups": "largest of the soups",
        "anywhere": "largest in the square",
        "truth": "correlation with the excess by the truth",
    }
    lines = []
    for form in dict.fromkeys(figures["form"]):
        here = _pick(figures, form=form)
        values = [_shown(_pick(here, figure=name)["value"]) for name in columns]
        lines.append([FORM_TEXT[form], *values])
    return Block(
        heading="The plane of three generators",
        head=["objective: difficult", *columns.values()],
        lines=lines,
    )
