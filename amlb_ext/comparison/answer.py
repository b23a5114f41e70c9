"""The answer of a comparison: its numbers, its sentences, and both as text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from amlb_ext.core.display import format_number, format_percent, is_known, text_table
from amlb_ext.stats.claims import (
    CONCENTRATED,
    CONCENTRATIONS,
    OVERALL,
    REGION,
    verdict_text,
)


@dataclass(frozen=True, kw_only=True)
class ComparisonAnswer:
    """Which model is better than F: over all rows, and where F fails.

    Attributes
    ----------
    contrasts : DataFrame
        One row for each model and ``question`` (``overall``, ``where F fails``, ``gain where F
        fails minus gain overall``): ``rows``, ``loss`` and ``loss_f`` (means), ``difference``
        (model minus F, negative is better), ``low``, ``high``, ``relative`` (difference /
        loss_f), ``p`` (against F), ``p_adjusted`` (over both questions and all models),
        ``effective_size``, ``weighted``, ``null_difference``, ``null_se``, ``p_null`` (against F
        fitted again), ``rmse`` and ``rmse_f`` (of numbers, in the target's unit, no error
        capped), ``by`` (whether the other figures are of ``capped`` losses or ``plain`` ones),
        ``verdict``, ``reason``. The third question has a row where one of the first two has found
        a difference.
    slices : DataFrame
        Where F fails, and each model there; see
        :func:`amlb_ext.comparison.slices.compare_on_slices`.
    loss_name : str
        What is compared.
    capping : str
        Beyond which size errors count no more; empty where all count as they are.
    unit : str
        What a row is called: ``rows`` of a table, ``windows`` of series.
    verb : str
        What F does on bad rows: ``fails``, or ``is unsure`` under the rule ``band``.
    n_rows, n_bad : int
        Rows, and those that the rule calls bad.
    rule : str
        The rule that calls a row bad, with its threshold and why.
    weighting : str
        How rows count where F fails.
    level : float
        Coverage of the intervals.
    refits : int
        How often F was fitted again.
    seed : int
    notes : tuple of str
    about : mapping of str to str
        What was compared, by label: F, the table, when and by which version.
    worst : DataFrame
        The rows on which F loses most, as the user gave them, with F's loss.
    """

    contrasts: pd.DataFrame
    slices: pd.DataFrame
    loss_name: str
    n_rows: int
    n_bad: int
    rule: str
    weighting: str
    level: float
    refits: int
    seed: int
    notes: tuple[str, ...] = ()
    capping: str = ""
    unit: str = "rows"
    verb: str = "fails"
    about: Mapping[str, str] = field(default_factory=dict)
    worst: pd.DataFrame = field(default_factory=pd.DataFrame)

    @property
    def advice(self) -> str:
        """How the answer is to be used."""
        return (
            f"Decide on all {self.unit}. The column '{self.place}' shows where a change comes "
            "from, and how large it is there."
        )

    @property
    def place(self) -> str:
        """The bad rows' place, in words: ``where F fails``, or where it is unsure."""
        return f"where F {self.verb}"

    @property
    def loss_text(self) -> str:
        """What is compared, and beyond which size errors count no more."""
        return f"{self.loss_name}; {self.capping}" if self.capping else self.loss_name

    @property
    def table(self) -> pd.DataFrame:
        """One row for each model, indexed by its name.

        ``overall`` and ``where_f_fails`` hold the verdicts; ``*_change`` is the change of F's
        loss (-0.2: 20 % less loss than F), ``*_low`` and ``*_high`` its interval;
        ``concentrated`` says whether the gain is larger where F fails; ``not asked`` where no
        difference from F is shown.
        """
        records = {}
        for model in self.models:
            record: dict[str, Any] = {}
            for question, name in ((OVERALL, "overall"), (REGION, "where_f_fails")):
                row = self.row(model, question)
                record[name] = row["verdict"]
                record[f"{name}_change"] = row["relative"]
                # an F without any loss has no change of it
                scale = row["loss_f"] or float("nan")
                record[f"{name}_low"] = row["low"] / scale
                record[f"{name}_high"] = row["high"] / scale
            unasked = (
                "no claim" if record["where_f_fails"] == "no claim" else "not asked"
            )
            concentration = self.row(model, CONCENTRATED)
            record["concentrated"] = concentration.get("verdict", unasked)
            records[model] = record
        return pd.DataFrame.from_dict(records, orient="index").rename_axis("model")

    @property
    def models(self) -> list[str]:
        """Names of the candidates, in the order given."""
        return list(dict.fromkeys(self.contrasts["model"]))

    @property
    def rmse_f(self) -> float:
        """RMSE of F over all rows in the target's unit; NaN where there is none."""
        overall = self.contrasts.loc[self.contrasts["question"] == OVERALL, "rmse_f"]
        return float(overall.iloc[0])

    def verdict(self, row: dict[str, Any]) -> str:
        """Return a verdict, and by which losses where those of some rows may be capped."""
        by = f" ({row['by']})" if self.capping and row["by"] else ""
        said = row["verdict"]
        if row["question"] != CONCENTRATED:
            said = verdict_text(row, self.level)
        return f"{said}{by}"

    def row(self, model: str, question: str) -> dict[str, Any]:
        """Return what is known of one model and question; empty where it was not asked."""
        chosen = (self.contrasts["model"] == model) & (
            self.contrasts["question"] == question
        )
        records = self.contrasts[chosen].to_dict("records")
        return {str(key): value for key, value in records[0].items()} if records else {}

    def headline(self) -> list[str]:
        """Return one sentence for each model: better or worse, where, and by how much."""
        return [_headline_sentence(self, model) for model in self.models]

    def text(self) -> str:
        """Return the answer as text, for a terminal."""
        interval = f"{self.level:.0%} interval"
        headers = [
            "model",
            f"change of F's loss, all {self.unit} ({interval})",
            f"{self.place} ({interval})",
            "there against elsewhere",
        ]
        has_rmse = is_known(self.rmse_f)
        if has_rmse:
            headers.append(f"RMSE (F {format_number(self.rmse_f, digits=4)})")
        rows = []
        for model in self.models:
            overall = self.row(model, OVERALL)
            cells = [
                model,
                _verdict_text(self, overall),
                _verdict_text(self, self.row(model, REGION)),
                self.table.loc[model, "concentrated"],
            ]
            if has_rmse:
                cells.append(format_number(overall["rmse"], digits=4))
            rows.append(cells)
        lines = [
            *self.headline(),
            self.advice,
            "",
            text_table(headers, rows),
            "",
            "; ".join(f"{label}: {value}" for label, value in self.about.items()),
            f"{self.loss_text}; {self.n_rows} {self.unit}, "
            f"F {self.verb} on {self.n_bad} ({self.rule})",
            self.weighting,
            *(f"note: {note}" for note in self.notes),
        ]
        if len(self.slices):
            lines += ["", *_slice_lines(self.slices, self.verb)]
        return "\n".join(lines) + "\n"

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        return self.text()


def _headline_sentence(answer: ComparisonAnswer, model: str) -> str:
    overall = answer.row(model, OVERALL)
    region = answer.row(model, REGION)
    if overall["verdict"] == "no claim":
        said = f"{model}: no verdict over all {answer.unit}. {_plain_sentence(overall)}"
        if region["verdict"] != "no claim":
            there = f"W{answer.place[1:]}"
            return f"{said} {there} it is {_verdict_phrase(region)}."
        # the largest errors decide there, too: once is enough
        why = "" if region["by"] == overall["by"] else f": {region['reason']}"
        return f"{said} Nor is there one {answer.place}{why}."
    said = f"{model} is {_verdict_phrase(overall)} over all {answer.unit}"
    if region["verdict"] == "no claim":
        return f"{said}. Nothing is claimed {answer.place}: {region['reason']}."
    joint = ", but" if overall["verdict"] != region["verdict"] else ", and"
    sentence = f"{said}{joint} {_verdict_phrase(region)} {answer.place}"
    concentration = answer.row(model, CONCENTRATED).get("verdict")
    if concentration in CONCENTRATIONS:
        size, change = concentration.split()
        sentence += f"; its {change} is {size} there than elsewhere"
    return f"{sentence}."


def _plain_sentence(row: dict[str, Any]) -> str:
    """Return what plain losses say where the largest errors decide, and why that is no verdict."""
    if not (is_known(row["relative"]) and is_known(row["rmse"])):
        return f"{row['reason'][0].upper()}{row['reason'][1:]}."
    change = format_percent(abs(row["relative"]))
    word = "less" if row["relative"] < 0 else "more"
    return (
        f"By the plain squared error it has {change} {word} loss than F ({rmse_text(row)}), but "
        f"{row['reason']}."
    )


def rmse_text(row: Mapping[str, Any]) -> str:
    """Return the RMSE of F and of a model; empty where it is not known.

    Examples
    --------
    >>> rmse_text({"rmse": 78.04, "rmse_f": 865.2})
    'RMSE 78.04, F 865.2'
    """
    if not is_known(row.get("rmse_f")):
        return ""
    rmse = "too large for a number"
    if is_known(row["rmse"]):
        rmse = format_number(row["rmse"], digits=4)
    return f"RMSE {rmse}, F {format_number(row['rmse_f'], digits=4)}"


def _verdict_phrase(row: dict[str, Any]) -> str:
    if not is_known(row["relative"]) and row["verdict"] == "worse":
        return "worse than F (which has no loss at all)"
    change = format_percent(abs(row["relative"]))
    if row["verdict"] == "better":
        return f"better than F ({change} less loss)"
    if row["verdict"] == "worse":
        return f"worse than F ({change} more loss)"
    return "not shown to differ from F"


def _verdict_text(answer: ComparisonAnswer, row: dict[str, Any]) -> str:
    if not is_known(row["relative"]):  # too few rows where F fails
        return answer.verdict(row)
    return f"{change_text(row)}  {answer.verdict(row)}"


def change_text(row: dict[str, Any]) -> str:
    """Return the change of F's loss with its interval, in percent and with its sign.

    Examples
    --------
    >>> change_text({"relative": -0.2, "low": -0.03, "high": -0.01, "loss_f": 0.1})
    '-20 % (-30 to -10)'
    """
    change = _signed_percent(row["relative"])
    if not (is_known(row["low"]) and is_known(row["high"])):
        return f"{change} (no interval)"
    # no model can save more than all of F's loss
    low = _signed_percent(max(row["low"] / row["loss_f"], -1.0)).removesuffix(" %")
    high = _signed_percent(row["high"] / row["loss_f"]).removesuffix(" %")
    return f"{change} ({low} to {high})"


def _signed_percent(share: float) -> str:
    return format_percent(share, sign=True).replace("−", "-")


def _slice_lines(slices: pd.DataFrame, verb: str) -> list[str]:
    lines = []
    for text, part in slices.groupby("slice", sort=False):
        first = part.iloc[0]
        mending = part.loc[part["verdict"] == "better", "model"].tolist()
        mends = "no model is shown to be better there"
        if mending:
            mends = f"better there: {', '.join(mending)}"
        withheld = part.loc[part["verdict"] == "no claim", "model"].tolist()
        if withheld:
            mends += (
                f"; the largest errors decide, so no verdict: {', '.join(withheld)}"
            )
        lift = first["share"] / first["base"]
        lines.append(
            f"where {text}: F {verb} on {format_percent(first['share'])} of {first['rows']} "
            f"rows, {lift:.1f} times as often as on all; {mends}"
        )
    return lines
