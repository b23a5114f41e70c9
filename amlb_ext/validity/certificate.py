"""The certificate of a task: its measures, one verdict, one sentence why; as JSON and as text."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from amlb_ext.core.errors import SuiteError
from amlb_ext.suite.read_record import record_from_json
from amlb_ext.suite.sealed_json import json_text
from amlb_ext.validity.measures import NOT_SHOWN, NOTHING, Measure

Verdict = Literal["rank", "describe", "stress-test only"]
#: Incremented when the form changes; no other form is read.
FORMAT = 3
#: Characters of a measure's name in the table.
_NAME_WIDTH = 28


@dataclass(frozen=True)
class Certificate:
    """What a task may be used for.

    Attributes
    ----------
    task, kind : str
    verdict : {'rank', 'describe', 'stress-test only'}
        ``rank``: candidates may be ranked on every made part and on weighted real rows.
        ``describe``: estimates on weighted real rows hold, but made rows and rows chosen by
        realised error must not rank. ``stress-test only``: no claim about models, only about
        robustness.
    reason : str
        One sentence that names the deciding measure.
    measures : tuple of Measure
    rows : dict of str to int
        Rows per part, all folds together.
    candidates : dict of str to dict
        Mean loss of each candidate on each part; ``region`` is all rows weighted by P(bad | x),
        ``reducible`` all rows weighted by v(x) = (T - F)^2.
    null : dict of str to dict
        Per part F's mean loss and those of its twins, to set later results against.
    dropped : dict of str to str
        Candidates that could not be fitted, and why.
    notes : tuple of str
    size : str
        Of the zoo: ``quick``, ``full`` or ``own``.
    refits, seed : int
    powered : dict of str to dict
        With unlabelled rows: per candidate its weighted mean loss minus F's, without them
        (``difference``, ``low``, ``high``) and with them (``ppi_difference``, ``ppi_low``,
        ``ppi_high``), and the power-tuning factor ``lam``.
    """

    task: str
    kind: str
    verdict: Verdict
    reason: str
    measures: tuple[Measure, ...]
    rows: dict[str, int] = field(default_factory=dict)
    candidates: dict[str, dict[str, float | None]] = field(default_factory=dict)
    null: dict[str, dict[str, Any]] = field(default_factory=dict)
    dropped: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    size: str = "quick"
    refits: int = 3
    seed: int = 0
    powered: dict[str, dict[str, float | None]] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Measure:
        """Return a measure by name."""
        return {measure.name: measure for measure in self.measures}[name]

    @property
    def failed(self) -> tuple[str, ...]:
        """Names of the measures that lie on the wrong side of their limit, as they stand."""
        names = []
        for measure in self.measures:
            # what could not be measured has not passed, but lies on no side
            if measure.passed is False and measure.value is not None:
                names.append(measure.name)
        return tuple(names)

    @property
    def checks(self) -> str:
        """The outcome of all limits, in words: ``3 of 17 checks failed``."""
        judged = [measure for measure in self.measures if measure.passed is not None]
        n_missing = sum(measure.value is None for measure in judged)
        text = f"{len(self.failed)} of {len(judged)} checks failed"
        if n_missing:
            text += f"; {n_missing} could not be measured"
        return text

    def to_json(self) -> dict[str, Any]:
        """Return the certificate as plain mappings and lists."""
        return {
            **vars(self),
            "format": FORMAT,
            "measures": [measure.to_json() for measure in self.measures],
            "notes": list(self.notes),
        }

    def json(self) -> str:
        """Return deterministic JSON, ``null`` for what is no number."""
        return json_text(self.to_json())

    @classmethod
    def from_json(cls, entry: Mapping[str, Any]) -> Certificate:
        """Return the certificate that :meth:`to_json` has written.

        Raises
        ------
        SuiteError
            It is damaged, or of another format.
        """
        remedy = "hardsynth certify DIR writes it again"
        try:
            if entry["format"] != FORMAT:
                raise SuiteError(
                    f"the certificate has format {entry['format']}, this version of hardsynth "
                    f"reads {FORMAT}",
                    remedy,
                )
            return record_from_json(cls, entry)
        except (KeyError, TypeError, ValueError) as error:
            fault = "it names no format" if isinstance(error, KeyError) else str(error)
            raise SuiteError(f"the certificate is damaged: {fault}", remedy) from None

    def text(self) -> str:
        """Return the certificate as a table."""
        # in this order, which that of the JSON's keys need not be
        parts = [
            part
            for part in ("full", "bad", "ga", "synthetic", "population")
            if part in self.rows
        ]
        counts = ", ".join(f"{self.rows[part]} {part}" for part in parts)
        checks = self.checks
        if self.failed:
            checks = checks.replace("failed", f"failed: {', '.join(self.failed)}", 1)
        lines = [f"{self.task} ({self.kind}): {self.verdict}"]
        lines += _wrapped(self.reason, 96, indent=2, hanging=2)
        lines += _wrapped(checks, 96, indent=2, hanging=4)
        lines += [
            f"  rows: {counts}; {len(self.candidates)} candidates, {self.size} zoo",
            "",
        ]
        lines.append(
            f"  {'measure':<{_NAME_WIDTH}}{'value':>9}  {'95 % interval':<20}{'limit':<11}"
        )
        for measure in self.measures:
            lines += _measure_lines(measure)
        lines += self._powered_lines()
        for note in self.notes:
            lines += _wrapped(f"note: {note}", 96, indent=2, hanging=4)
        return "\n".join(line.rstrip() for line in lines) + "\n"

    def _powered_lines(self) -> list[str]:
        """Return the table of both intervals per candidate; nothing without unlabelled rows."""
        if not self.powered:
            return []
        head = f"{'candidate - F on the region':<30}{'labelled rows alone':<34}"
        lines = ["", f"  {head}{'with unlabelled rows':<34}lambda"]
        for name, values in self.powered.items():
            alone = _estimate_text(values, "")
            powered = _estimate_text(values, "ppi_")
            factor = _number_text(values["lam"])
            lines.append(f"  {name[:28]:<30}{alone:<34}{powered:<34}{factor}")
        return lines


def _estimate_text(values: Mapping[str, float | None], prefix: str) -> str:
    """Return a difference and its interval, of those with this prefix."""
    difference = _number_text(values[f"{prefix}difference"])
    interval = _interval_text(values[f"{prefix}low"], values[f"{prefix}high"])
    return f"{difference:<11}{interval}"


def _measure_lines(measure: Measure) -> list[str]:
    """Return a measure's row of the table and its text below."""
    interval = _interval_text(measure.low, measure.high)
    limit = ""
    if measure.threshold is not None:
        limit = f"{measure.sense} {_number_text(measure.threshold)}"
    # "passed" alone would not do: None is information, or a saving that is not shown
    if measure.value is None:
        mark = "n/a"
    elif measure.finding == NOT_SHOWN:
        mark = "not shown"
    else:
        mark = {True: "pass", False: "FAIL", None: "-"}[measure.passed]
    value = _number_text(measure.value)
    row = f"  {measure.name:<{_NAME_WIDTH}}{value:>9}  {interval:<20}{limit:<11}{mark}"
    return [row, *_wrapped(measure.text, 92, indent=6, hanging=6)]


def _wrapped(text: str, width: int, *, indent: int, hanging: int) -> list[str]:
    return textwrap.wrap(
        text, width, initial_indent=" " * indent, subsequent_indent=" " * hanging
    )


def _interval_text(low: float | None, high: float | None) -> str:
    if low is None:
        return ""
    if high is None:  # a one-sided limit
        return f"{_number_text(low)} or more"
    return f"{_number_text(low)} to {_number_text(high)}"


def nothing_to_mend(measures: Sequence[Measure]) -> str:
    """Return the sentence that no candidate can save much; empty unless that is shown."""
    by_name = {measure.name: measure for measure in measures}
    solvability = by_name.get("solvability")
    if solvability is None or solvability.finding != NOTHING:
        return ""
    # a record of another tool may hold the finding without its limit
    if solvability.high is None:
        return ""
    return dict(_DESCRIBE)["solvability"].format(h=f"{100 * solvability.high:.1f} %")


def _number_text(value: float | None) -> str:
    return "none" if value is None else f"{value:.3g}"


def decide_verdict(
    measures: Sequence[Measure],
    notes: Sequence[str] = (),
    real_rows: int | None = None,
    *,
    is_searched: bool = False,
) -> tuple[Verdict, str]:
    """Return the verdict and the sentence that gives the reason.

    Rules, the first that applies: no region, wrong labels, copies → ``stress-test only``; rows
    made from failures that ask the wrong question, any made part that does not order candidates
    as real rows do, little left to mend, where that is shown, or anything else that ranking rests
    on and that fails or could not be measured, or a synthesizer that searches for hard rows →
    ``describe``. That a candidate's saving is not shown decides nothing.

    Examples
    --------
    >>> from amlb_ext.validity.measures import make_measure
    >>> decide_verdict([make_measure("label support", -0.3, "", "", threshold=0.0, sense=">=")])[0]
    'stress-test only'
    """
    by_name = {measure.name: measure for measure in measures}
    orders = [measure for measure in measures if measure.name.endswith(_ORDER)]
    rules: list[tuple[Verdict, str, str]] = [
        *(("stress-test only", name, sentence) for name, sentence in _STRESS),
        *(("describe", name, sentence) for name, sentence in _DESCRIBE),
    ]
    for verdict, name, sentence in rules:
        if name == _ORDER:
            if unsound := _unsound_orders(orders):
                return verdict, sentence.format(parts=unsound)
            continue
        measure = by_name.get(name)
        if measure is None or measure.value is None:
            continue
        # rows made for the region do not stand for realised failures
        if name == "target check" and _are_all_of_region(orders):
            continue
        if name == "solvability":
            # a saving that is not shown, or not large, decides nothing
            if unbeaten := nothing_to_mend([measure]):
                return verdict, unbeaten
        elif measure.passed is False:
            instead = ""
            if name == "effective size":
                instead = _what_to_rank_on(real_rows, measure.threshold)
            return verdict, sentence.format(
                v=_number_text(measure.value),
                t=_number_text(measure.threshold),
                then=instead,
            )
    for name in _needed_measures(orders):
        if name not in by_name or by_name[name].value is None:
            why = by_name[name].text if name in by_name else "it was not taken"
            # the null is left out silently; the first note says why F has no twins
            if notes and name == "null on region" and name not in by_name:
                why = notes[0]
            reason = f"The measure '{name}' is missing ({why}): rank no models here."
            return "describe", reason
    if not orders:
        return "describe", (
            "There are no made rows, or too few candidates to compare them with real ones. "
            f"{_DECIDE}."
        )
    if is_searched:
        return "describe", (
            "A swarm looks for rows that models get wrong, so its rows rank no models, whatever "
            f"is measured. {_DECIDE}."
        )
    # every measure that a ranking rests on was taken, and none has failed
    parts = _and(_part_of(order) for order in orders)
    return "rank", (
        f"Models may be ranked on {parts} rows. {_SCALE}, {_order_figures(orders)}. Their labels "
        "hold, and F's twins gain nothing."
    )


def _part_of(order: Measure) -> str:
    """Return the made part that a measure of the order speaks of."""
    return order.name.removesuffix(_ORDER)


def _are_all_of_region(orders: Sequence[Measure]) -> bool:
    """Whether rows were made, and none of them from failures."""
    return bool(orders) and all(_part_of(order) == "population" for order in orders)


def _order_figures(orders: Sequence[Measure]) -> str:
    """Return the relative agreement of made parts, its lower limit and what it must reach."""
    texts = []
    for number, order in enumerate(orders):
        verb = "" if number else " reach"
        texts.append(
            f"{_part_of(order)} rows{verb} {_number_text(order.value)} "
            f"(lower limit {_number_text(order.low)}, required "
            f"{_number_text(order.threshold)})"
        )
    return _and(texts)


def _unsound_orders(orders: Sequence[Measure]) -> str:
    """Return what made parts reach whose order is not shown to be that of real rows, if any."""
    unsound = []
    for order in orders:
        if order.passed is False and order.value is not None:
            unsound.append(order)
    if not unsound:
        return ""
    return _order_figures(unsound)


def _and(words: Iterable[str]) -> str:
    """Return words as a list in a sentence.

    Examples
    --------
    >>> _and(["ga", "synthetic", "population"]), _and(["ga"])
    ('ga, synthetic and population', 'ga')
    """
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last


def _needed_measures(orders: Sequence[Measure]) -> list[str]:
    """Return the measures without which nothing may rank, in the order in which they are named."""
    from_failures = not _are_all_of_region(orders)
    needed = ["region"]
    if from_failures:
        needed.append("target check")
    needed.append("null on region")
    # a made part that exists counts, whatever the others say
    needed += [order.name for order in orders]
    if from_failures and orders:
        needed.append("label support")
    if any(_part_of(order) == "population" for order in orders):
        needed.append("population: label support")
    if orders:
        needed.append("exact copies")
    return [*needed, "effective size"]


def _what_to_rank_on(real_rows: int | None, least: float | None) -> str:
    """Return what to rank on where the weights leave too few rows."""
    if real_rows is None or real_rows >= (least or 0.0):
        return "rank on the whole test folds, all rows alike"
    return (
        f"do not rank here: the test folds hold only {real_rows} rows in all; run more folds or "
        "take a larger table"
    )


#: How the name of a measure of the order of candidates ends, after the made part.
_ORDER = ": order"
#: What to do where made rows may not rank.
_DECIDE = "Decide on the whole fold, and read the region for where and how much"
#: The scale on which made rows agree with real ones.
_SCALE = (
    "Where the agreement of the real rows they stand for, among themselves, counts 1"
)
#: Measures that forbid any claim about models, and what is said where one fails; the first that
#: fails decides. ``v`` is the value, ``t`` the threshold.
_STRESS = (
    (
        "region",
        "No region of failure is shown: features are not shown to foresee where F fails better "
        "than chance (AUC {v}), so its bad rows may be noise.",
    ),
    (
        "label agreement",
        "Labels of made rows are wrong too often: a fresh oracle supports a share of {v}; at "
        "least {t} is required, by the real bad rows.",
    ),
    (
        "label support",
        "Labels of made rows are less plausible than those of real bad rows (by {v}; at least "
        "{t} is required).",
    ),
    (
        "population: label agreement",
        "Labels of population rows are wrong too often: a fresh oracle supports a share of {v}; "
        "at least {t} is required, by the weighted real rows.",
    ),
    (
        "population: label support",
        "Labels of population rows are less plausible than those of the weighted real rows (by "
        "{v}; at least {t} is required).",
    ),
    (
        "exact copies",
        "Made rows repeat the features of real ones: a share of {v} are exact copies; at most {t} "
        "is allowed.",
    ),
    (
        "contradictions",
        "Made rows contradict real ones: a share of {v} have the features of a real row and "
        "another target; at most {t} is allowed.",
    ),
    (
        "closest record",
        "Synthetic rows are near copies: their distance to real rows is {v} of the distance that "
        "real bad rows keep among themselves; at least {t} is required.",
    ),
)
#: The same for measures that forbid a ranking on made rows, or on weighted ones. ``h`` is the
#: upper limit of solvability, ``then`` what :func:`_what_to_rank_on` returns, ``parts`` what
#: :func:`_unsound_orders` returns. What asks the wrong question comes first.
_DESCRIBE = (
    (
        "target check",
        "Rows chosen by F's errors ask another question than the region does (their rankings agree "
        "at tau {v}; at least {t} is required). So do the rows made from them: rank on none of "
        f"bad, ga and synthetic rows. {_DECIDE}.",
    ),
    (
        _ORDER,
        "Made rows are not shown to order models as the real rows they stand for. "
        f"{_SCALE}, {{parts}}. {_DECIDE}.",
    ),
    (
        "infeasible rows",
        "Made rows could not exist: a share of {v} break relations between columns that hold on "
        "every real row; at most {t} is allowed. Rank no models on them.",
    ),
    (
        "written form",
        "Made rows are not written as real ones: a share of {v} hold a number with more decimals "
        "than any real one, or a number that no real row has. Rank no models on them.",
    ),
    (
        "solvability",
        "There is no region of failure to mend: no candidate tried saves more than {h} of F's loss "
        "there (upper end of the 95 % interval for the best).",
    ),
    (
        "null on region",
        "F's own twins seem to beat it on the weighted real rows (by {v} standard errors), so a "
        "candidate's gain over F proves nothing here; rank candidates with each other only.",
    ),
    (
        "effective size",
        "The weighted real rows are worth only {v} rows; at least {t} are required to rank on "
        "them. Describe them, and {then}.",
    ),
)
