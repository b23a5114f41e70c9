"""The certificate of a task: its measures, one verdict, one sentence why; as JSON and as text."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from amlb_ext.core.errors import SuiteError
from amlb_ext.core.unit import UNITS, Unit
from amlb_ext.suite.read_record import record_from_json
from amlb_ext.suite.sealed_json import json_text
from amlb_ext.validity.measures import NOT_SHOWN, NOTHING, Measure, contradiction_in

Verdict = Literal["rank", "describe", "stress-test only"]
#: Incremented when the form changes; no other form is read.
FORMAT = 4
#: Characters of a measure's name in the table.
_NAME_WIDTH = 28


@dataclass(frozen=True)
class Certificate:
    """What a task may be used for.

    Attributes
    ----------
    task, kind : str
    verdict : {'rank', 'describe', 'stress-test only'}
        ``rank``: candidates may be ranked on every made part, as on the whole test folds.
        ``describe``: estimates on weighted real rows hold, but made rows and rows chosen by
        realised error must not rank. ``stress-test only``: no claim about models, only about
        robustness.
    reason : str
        One sentence that names the deciding measure.
    measures : tuple of Measure
    unit : Unit
        What it counts: rows of a table, or windows of series.
    rows : dict of str to int
        Units per part, all folds together.
    candidates : dict of str to dict
        Mean loss of each candidate on each part; ``region`` is all units weighted by P(bad | x),
        ``reducible`` all rows weighted by v(x) = (T - F)^2.
    null : dict of str to dict
        Per part F's mean loss and those of its twins, to set later results against.
    dropped : dict of str to str
        Candidates that could not be fitted, and why.
    notes : tuple of str
    size : str
        Of the zoo: ``quick``, ``full`` or ``own``.
    refits, seed : int
    """

    task: str
    kind: str
    verdict: Verdict
    reason: str
    measures: tuple[Measure, ...]
    unit: Unit
    rows: dict[str, int] = field(default_factory=dict)
    candidates: dict[str, dict[str, float | None]] = field(default_factory=dict)
    null: dict[str, dict[str, Any]] = field(default_factory=dict)
    dropped: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    size: str = "quick"
    refits: int = 3
    seed: int = 0

    def __getitem__(self, name: str) -> Measure:
        """Return a measure by name."""
        return {measure.name: measure for measure in self.measures}[name]

    @property
    def failed(self) -> tuple[str, ...]:
        """Names of the measures that lie on the wrong side of their limit, as they stand."""
        return tuple(measure.name for measure in self.measures if _has_failed(measure))

    @property
    def ranked_parts(self) -> tuple[str, ...]:
        """The made parts on which models may be ranked."""
        if self.verdict != "rank":
            return ()
        return tuple(_part_of(measure) for measure in _orders(self.measures))

    @property
    def no_region(self) -> str:
        """Why nothing may be said of where F fails: it is not shown to be foreseen; else empty."""
        for measure in self.measures:
            if measure.name == "region" and _has_failed(measure):
                return f"{self.unit.features} are not shown to foresee where F fails"
            if measure.name == "region" and not measure.passed:
                return measure.text
        return ""

    @property
    def checks(self) -> str:
        """The outcome of all limits, in words: ``3 of 17 checks failed``."""
        return self._count_checks()

    def _count_checks(self, names: str = "") -> str:
        """Return the outcome of all limits, with the names of those that failed."""
        judged = [measure for measure in self.measures if measure.passed is not None]
        n_missing = sum(measure.value is None for measure in judged)
        text = f"{len(self.failed)} of {len(judged)} checks failed{names}"
        if n_missing:
            text += f"; {n_missing} could not be measured"
        return text

    def contradiction(self, *, is_searched: bool = False) -> str:
        """Return what the certificate says against itself; empty where it was written like this.

        Parameters
        ----------
        is_searched : bool
            Whether made units were searched for.
        """
        for measure in self.measures:
            if clause := contradiction_in(measure):
                return f"of its measure {measure.name!r}, {clause}"
        for no_twins in ("", *self.notes, f"F has no {self.unit.refits}"):
            decided = decide_verdict(
                self.measures,
                self.unit,
                n_real=self.rows.get("full"),
                no_twins=no_twins,
                is_searched=is_searched,
            )
            if decided == (self.verdict, self.reason):
                return ""
        return "its verdict and reason do not follow from its measures"

    def to_json(self) -> dict[str, Any]:
        """Return the certificate as plain mappings and lists."""
        return {
            **vars(self),
            "format": FORMAT,
            "unit": self.unit.one,
            "measures": [dict(vars(measure)) for measure in self.measures],
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
            unit = UNITS.get(entry.get("unit", ""))
            if unit is None:
                raise ValueError("unit: it is neither 'row' nor 'window'")
            return record_from_json(cls, {**entry, "unit": vars(unit)})
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            fault = "it names no format" if isinstance(error, KeyError) else str(error)
            raise SuiteError(f"the certificate is damaged: {fault}", remedy) from None

    def text(self) -> str:
        """Return the certificate as a table."""
        # in this order, which that of the JSON's keys need not be
        parts = [
            part for part in ("full", "bad", "ga", "synthetic") if part in self.rows
        ]
        counts = ", ".join(f"{self.rows[part]} {part}" for part in parts)
        names = f": {', '.join(self.failed)}" if self.failed else ""
        lines = [f"{self.task} ({self.kind}): {self.verdict}"]
        lines += _wrapped(self.reason, 96, indent=2, hanging=2)
        lines += _wrapped(self._count_checks(names), 96, indent=2, hanging=4)
        lines += [
            f"  {self.unit.many}: {counts}; {len(self.candidates)} candidates, {self.size} zoo",
            "",
        ]
        lines.append(
            f"  {'measure':<{_NAME_WIDTH}}{'value':>9}  {'95 % interval':<20}{'limit':<11}"
        )
        for measure in self.measures:
            lines += _measure_lines(measure)
        for note in self.notes:
            lines += _wrapped(f"note: {note}", 96, indent=2, hanging=4)
        return "\n".join(line.rstrip() for line in lines) + "\n"


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
    for measure in measures:
        # a record of another tool may hold the finding without its limit
        if measure.finding == NOTHING and measure.high is not None:
            return (
                "There is no region of failure to mend: no candidate tried saves more than "
                f"{100 * measure.high:.1f} % of F's loss there (upper end of the 95 % interval "
                "for the best)."
            )
    return ""


def _number_text(value: float | None) -> str:
    return "none" if value is None else f"{value:.3g}"


def decide_verdict(
    measures: Sequence[Measure],
    unit: Unit,
    *,
    n_real: int | None = None,
    no_twins: str = "",
    is_searched: bool = False,
) -> tuple[Verdict, str]:
    """Return the verdict and the sentence that gives the reason.

    Rules, the first that applies: windows that lost their order in time or that AMLB cannot score,
    no region, wrong labels, copies → ``stress-test only``; what was made from failures asks the
    wrong question, any made part that is not shown to order candidates as well as the whole test
    folds do, little left to mend, where that is shown, or anything else that ranking rests on and
    that fails or could not be measured, or a synthesizer that searches for hard rows →
    ``describe``. That a candidate's saving is not shown decides nothing.

    Parameters
    ----------
    measures : sequence of Measure
    unit : Unit
        What they count.
    n_real : int, optional
        Real units that are tested.
    no_twins : str
        Why nothing was measured of F's twins; empty where that is not known.
    is_searched : bool
        Whether made units were searched for.

    Examples
    --------
    >>> from amlb_ext.core.unit import ROW
    >>> from amlb_ext.validity.measures import plan_measure
    >>> wrong = plan_measure("label support", "", ">=", 0.0).found(-0.3, "")
    >>> decide_verdict([wrong], ROW)[0]
    'stress-test only'
    """
    by_name = {measure.name: measure for measure in measures}
    orders = _orders(measures)
    decide = f"Decide on {unit.everything}."
    if "region" in by_name and by_name["region"].passed:
        decide = (
            f"Decide on {unit.everything}, and read the region for where and how much."
        )
    failed = {name: found for name, found in by_name.items() if _has_failed(found)}
    failed_orders = [order for order in orders if _has_failed(order)]
    for name, sentence in {**_FORBIDDING, **_DESCRIBING}.items():
        verdict: Verdict = "stress-test only" if name in _FORBIDDING else "describe"
        if name == _ORDER and failed_orders:
            text = _orders_text(failed_orders, unit)
            return verdict, sentence.format(unit=unit, decide=decide, orders=text)
        if name == "solvability":
            # a saving that is not shown, or not large, decides nothing
            if unbeaten := nothing_to_mend(measures):
                return verdict, unbeaten
        elif name in failed:
            measure = failed[name]
            # where the weights leave too little
            instead = f"rank on the whole {unit.folds}, all {unit.many} alike"
            if n_real is not None and n_real < (measure.threshold or 0.0):
                instead = (
                    f"do not rank here: the {unit.folds} hold only {n_real} {unit.many} in all; "
                    f"{unit.more}"
                )
            return verdict, sentence.format(
                unit=unit,
                decide=decide,
                v=_number_text(measure.value),
                t=_number_text(measure.threshold),
                instead=instead,
                Many=unit.many.capitalize(),
            )
    needed = ["region", "target check", "null on region"]
    if orders:
        # a made part that exists counts, whatever the others say
        needed += [order.name for order in orders]
        needed += ["label support", "exact copies"]
    for name in [*needed, "effective size"]:
        if name not in by_name or by_name[name].value is None:
            why = "it was not taken"
            if name in by_name:
                why = by_name[name].text
            elif name == "null on region" and no_twins:
                why = no_twins
            reason = f"The measure '{name}' is missing ({why}): rank no models here."
            return "describe", reason
    if not orders:
        return "describe", (
            f"There are no made {unit.many}, or too few candidates to compare them with real ones. "
            f"{decide}"
        )
    if is_searched:
        return "describe", (
            "A swarm looks for rows that models get wrong, so its rows rank no models, whatever is "
            f"measured. {decide}"
        )
    # every measure that a ranking rests on was taken, and none has failed
    parts = _and(_part_of(order) for order in orders)
    reason = (
        f"Models may be ranked on {parts} {unit.many}. {_orders_text(orders, unit)} Their labels "
        f"are not shown to be worse than real ones, nor F's {unit.refits} to beat it."
    )
    # a reader finds them in the table below, marked as failed
    if idle := [measure.name for measure in measures if _has_failed(measure)]:
        reason += f" What failed besides has no say in this: {', '.join(idle)}."
    return "rank", reason


def _has_failed(measure: Measure) -> bool:
    """Whether a measure lies on the wrong side; what was not measured lies on none."""
    return measure.passed is False and measure.value is not None


def _orders(measures: Iterable[Measure]) -> list[Measure]:
    """Return the measures of the order of candidates, one for each made part."""
    return [measure for measure in measures if measure.name.endswith(_ORDER)]


def _part_of(order: Measure) -> str:
    """Return the made part that a measure of the order speaks of."""
    return order.name.removesuffix(_ORDER)


def _orders_text(orders: Sequence[Measure], unit: Unit) -> str:
    """Return by how much made parts order candidates better, the lower limit, and the least."""
    texts = []
    for number, order in enumerate(orders):
        verb = "" if number else " is"
        texts.append(
            f"that of {_part_of(order)} {unit.many}{verb} {_number_text(order.value)} (lower limit "
            f"{_number_text(order.low)}, required {_number_text(order.threshold)})"
        )
    return (
        f"Beside the agreement (tau) that the whole {unit.folds} reach with all real {unit.many}, "
        f"{_and(texts)}."
    )


def _and(words: Iterable[str]) -> str:
    """Return words as a list in a sentence.

    Examples
    --------
    >>> _and(["bad", "ga", "synthetic"]), _and(["ga"])
    ('bad, ga and synthetic', 'ga')
    """
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last


#: How the name of a measure of the order of candidates ends, after the made part.
_ORDER = ": order"
#: What is said where a measure fails; the first that fails decides. These forbid any claim about
#: models. ``v`` is the value, ``t`` the limit, ``orders`` what :func:`_orders_text` returns,
#: ``instead`` what to rank on.
_FORBIDDING: dict[str, str] = {
    "time order": (
        "Made windows are other series than real ones: an autocorrelation is {v} standard errors "
        "off; at most {t} is allowed."
    ),
    "AMLB's scale": (
        "AMLB cannot score every made window: a share of {v} has a scale; all must."
    ),
    "region": (
        "No region of failure is shown: {unit.features} are not shown to foresee where F fails "
        "better than chance (AUC {v}), so its bad {unit.many} may be noise."
    ),
    "label agreement": (
        "Labels of made {unit.many} are wrong too often: {unit.judge} supports a share of {v}; at "
        "least {t} is required, by the real bad {unit.many}."
    ),
    "label support": (
        "Labels of made {unit.many} are less plausible than those of real bad {unit.many} (by {v}; "
        "at least {t} is required)."
    ),
    "exact copies": (
        "Made {unit.many} repeat the {unit.features} of real ones: a share of {v} are exact "
        "copies; at most {t} is allowed."
    ),
    "contradictions": (
        "Made rows contradict real ones: a share of {v} have the features of a real "
        "row and another target; at most {t} is allowed."
    ),
    "closest record": (
        "Made {unit.many} are near copies: their distance to real {unit.many} is {v} of the "
        "distance that real bad {unit.many} keep among themselves; at least {t} is required."
    ),
}
#: The same of those that forbid a ranking on what was made, or by weight; what asks the wrong
#: question comes first.
_DESCRIBING: dict[str, str] = {
    "target check": (
        "{Many} chosen by F's errors ask another question than the region does (their "
        "rankings agree at tau {v}; at least {t} is required). So do the {unit.many} made from "
        "them: rank on none of bad, ga and synthetic {unit.many}. {decide}"
    ),
    _ORDER: (
        "Made {unit.many} are not shown to order models as well as the whole {unit.folds} do. "
        "{orders} {decide}"
    ),
    "infeasible rows": (
        "Made rows could not exist: a share of {v} break relations between columns that "
        "hold on every real row; at most {t} is allowed. Rank no models on them."
    ),
    "written form": (
        "Made rows are not written as real ones: a share of {v} hold a number with more "
        "decimals than any real one, or a number that no real row has. Rank no models on "
        "them."
    ),
    "solvability": "",
    "null on region": (
        "F's own twins seem to beat it on the weighted real {unit.many} (by {v} standard errors), "
        "so a candidate's gain over F proves nothing here; rank candidates with each other only."
    ),
    "effective size": (
        "The weighted real {unit.many} are worth only {v} {unit.many}; at least {t} are required "
        "to rank on them. Describe them, and {instead}."
    ),
}
