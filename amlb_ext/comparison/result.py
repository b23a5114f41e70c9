"""What a comparison returns: its numbers, its sentences, a picture and a page; rows or windows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from scipy.stats import norm

from amlb_ext.comparison.place import Place
from amlb_ext.core.display import (
    escape_latex,
    format_level,
    format_number,
    format_p_value,
    format_percent,
    is_known,
    text_table,
)
from amlb_ext.core.errors import ConfigError, suggest_nearest
from amlb_ext.core.files import write_text
from amlb_ext.core.json_values import to_json_values
from amlb_ext.core.unit import ROW, Unit
from amlb_ext.stats.claims import (
    CONCENTRATED,
    CONCENTRATIONS,
    OVERALL,
    REGION,
    verdict_text,
)
from amlb_ext.stats.window_losses import WINDOW_LOSSES
from amlb_ext.swap.answer import FEWEST_ROWS, Swap, SwapAnswer
from amlb_ext.swap.remedy import Remedy
from amlb_ext.swap.segments import rows_for, unjudged_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: More rows than this are no number that anybody will label.
MOST_ROWS = 1e7
#: Units that a terminal names among those on which F is worst.
_WORST_NAMED = 3


@dataclass(frozen=True, kw_only=True, repr=False)
class ModelComparison:
    """Which model is better than F over all units, and where a change comes from.

    Units are rows of a table, or windows of series.

    Attributes
    ----------
    contrasts : DataFrame
        One row for each model and ``question`` (``overall``, ``where F fails``, ``change where F
        fails minus change elsewhere``): ``rows``, ``loss`` and ``loss_f`` (means), ``difference``
        (model minus F, negative is better; of the third question, of shares of F's loss),
        ``low``, ``high``, ``relative`` (difference / loss_f), ``p`` (against F), ``p_adjusted``
        (over all models), ``effective_size``, ``weighted``, ``null_difference``, ``null_se``,
        ``p_null`` (against F fitted again), ``rmse`` and ``rmse_f`` (of numbers, in the target's
        unit, no error capped), ``by`` (whether the other figures are of ``capped`` losses or
        ``plain`` ones), ``verdict``, ``reason``. The third question has a row where the first has
        found a difference.
    loss_name : str
        What is compared.
    n_rows, n_bad : int
        Units, and those that the rule calls bad.
    rule : str
        The rule that calls a unit bad, with its threshold and why.
    weighting : str
        Which units are where F fails, or why nothing is said there.
    level : float
        Coverage of the intervals.
    refits : int
        How often F was fitted again.
    seed : int
    notes : tuple of str
    capping : str
        Beyond which size errors count no more; empty where all count as they are.
    unit : Unit
        What was compared on: rows, or windows.
    verb : str
        What F does on bad units: ``fails``, or ``is unsure`` under the rule ``band``.
    about : mapping of str to str
        What was compared, by label: F, the table, when and by which version.
    slices : DataFrame
        Where F fails, and each model there; see
        :func:`amlb_ext.comparison.failures.compare_on_slices`.
    rows : DataFrame
        One row for each unit. Of a table, by its index in X: ``is_bad``, ``risk`` (the chance that
        F fails on it, by features alone; missing where they do not foresee it),
        ``where_f_fails``, and the losses of ``F`` and of each model by name. Of series:
        ``series``, ``cutoff``, ``scale``, ``hardness``, ``bad``, ``risk``, and ``mase_*``,
        ``sql_*`` and what else is compared, of F and of each model; a function's is ``own_*``.
    worst : DataFrame
        The units on which F is worst: rows as the user gave them, with F's loss.
    scores : DataFrame
        Of windows, by model: the mean loss that is compared, MASE, SQL and AMLB's WQL, over all
        windows, where F fails (``*_region``, weighted) and on bad windows (``*_bad``), which were
        chosen by F's own errors, so that they flatter every other model. Without rows for a table.
    draw_worst : callable, optional
        Draws the windows on which F is worst, from their number and the figure to draw on; see
        :meth:`plot_worst`.
    swap : SwapAnswer
        Who is harmed and who gains where a model replaces F; see ``harm``, ``segments``,
        ``flips`` and ``remedy``.
    place : Place or None
        Where F fails, described; None where nothing foresees it.
    claim : {'models', 'recipes'}
        What the verdict over all units is of.
    """

    contrasts: pd.DataFrame
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
    unit: Unit = ROW
    verb: str = "fails"
    about: Mapping[str, str] = field(default_factory=dict)
    slices: pd.DataFrame = field(default_factory=pd.DataFrame)
    rows: pd.DataFrame = field(default_factory=pd.DataFrame)
    worst: pd.DataFrame = field(default_factory=pd.DataFrame)
    scores: pd.DataFrame = field(default_factory=pd.DataFrame)
    draw_worst: Callable[..., Any] | None = None
    swap: SwapAnswer = field(default_factory=SwapAnswer)
    place: Place | None = None
    claim: str = "models"

    @property
    def harm(self) -> dict[str, Swap]:
        """What replacing F by each model does to the units where it is foreseen to do most."""
        return self.swap.swaps

    @property
    def remedy(self) -> dict[str, Remedy]:
        """What to do instead of replacing F outright, by model; ``.model`` is an estimator."""
        return {
            name: swap.remedy
            for name, swap in self.harm.items()
            if swap.remedy is not None
        }

    @property
    def segments(self) -> pd.DataFrame:
        """The user's segments; see :func:`amlb_ext.swap.segments.judge_segments`."""
        return self.swap.segments

    @property
    def flips(self) -> pd.DataFrame:
        """Decisions that change; see :func:`amlb_ext.swap.flips.count_flips`."""
        return self.swap.flips

    def rows_of(self, segment: str) -> pd.DataFrame:
        """Return the units of a segment, a row each, with the losses of all models.

        Raises
        ------
        ConfigError
            No segment is called so.
        """
        if segment not in self.swap.masks:
            raise ConfigError(
                f"no segment is called {segment!r}",
                suggest_nearest(segment, self.swap.masks),
            )
        return self.rows[self.swap.masks[segment]]

    @property
    def rows_needed(self) -> pd.DataFrame:
        """How many units would decide each question that is open, were its estimate true.

        ``model``, ``question`` (all units, a segment, or harm) and ``rows`` of the whole table;
        infinite where no number of them would.
        """
        records = []
        for model in self.models:
            overall = self.row(model, OVERALL)
            if overall["verdict"] == "undecided":
                tail = 1 - self.level
                half = (overall["high"] - overall["low"]) / 2
                se = half / float(norm.ppf(1 - tail / 2))
                needed = float("nan")
                if is_known(se):
                    n = int(overall["rows"])
                    needed = rows_for(overall["difference"], se, n, tail)
                question = f"all {self.unit.many}"
                records.append({"model": model, "question": question, "rows": needed})
        for row in self.segments.to_dict("records"):
            if is_known(row["rows_needed"]):
                whole = row["rows_needed"] / row["share"]
                records.append(
                    {"model": row["model"], "question": row["segment"], "rows": whole}
                )
        for name, swap in self.harm.items():
            if swap.verdict in ("not shown", "ordinary") and swap.harm.judged.value > 0:
                records.append(
                    {"model": name, "question": "harm", "rows": swap.rows_needed}
                )
        table = pd.DataFrame(records, columns=["model", "question", "rows"])
        return table.astype({"rows": float}).round()

    def to_frame(self) -> pd.DataFrame:
        """Return one row for each model: verdicts, changes with intervals, harm and remedy."""
        table = self.table
        for name, swap in self.harm.items():
            table.loc[name, "harm"] = swap.verdict
            shares = swap.shares(swap.harm.judged)
            for what, share in zip(("change", "low", "high"), shares, strict=True):
                table.loc[name, f"worst_fifth_{what}"] = share
            table.loc[name, "bound"] = swap.share(swap.bound)
            if swap.remedy is not None:
                table.loc[name, "remedy"] = swap.remedy.formula(name)
                change = swap.share(swap.remedy.change.value)
                table.loc[name, "remedy_change"] = change
        return table

    def to_dict(self) -> dict[str, Any]:
        """Return the whole answer as JSON values, without what is known of each unit."""
        values: dict[str, Any] = to_json_values(self.summary())
        return values

    def to_latex(self) -> str:
        """Return the table of models as LaTeX, for a paper; it needs the package booktabs."""
        rows = [["model", "change of F's loss", "verdict"]]
        rows[0] += ["harm"] if self.harm else []
        for model in self.models:
            overall = self.row(model, OVERALL)
            cells = [model, change_text(overall), self.verdict(overall)]
            if model in self.harm:
                cells.append(self.harm[model].verdict)
            rows.append([escape_latex(cell) for cell in cells])
        header, *lines = (" & ".join(cells) + r" \\" for cells in rows)
        begin = rf"\begin{{tabular}}{{{'l' * len(rows[0])}}}"
        top = [begin, r"\toprule", header, r"\midrule"]
        return "\n".join([*top, *lines, r"\bottomrule", r"\end{tabular}", ""])

    @property
    def windows(self) -> pd.DataFrame:
        """The same as ``rows``, under the name that windows have."""
        return self.rows

    @property
    def advice(self) -> str:
        """How the answer is to be used."""
        of = "these models as they were fitted"
        if self.claim == "recipes":
            of = "the recipes, on training rows like these"
        return (
            f"Decide on all {self.unit.many}; that verdict is of {of}. The column "
            f"'{self.where_f_fails}' describes where a change comes from."
        )

    @property
    def where_f_fails(self) -> str:
        """What the place is called: ``where F fails``, or where it is unsure."""
        return f"where F {self.verb}"

    @property
    def place_text(self) -> str:
        """Where F fails and how often, in a sentence; or why nothing is said of that."""
        if self.place is None:
            return f"{self.weighting[0].upper()}{self.weighting[1:]}."
        return self.place.sentence(self.unit, self.verb)

    @property
    def loss_text(self) -> str:
        """What is compared, and beyond which size errors count no more."""
        return f"{self.loss_name}; {self.capping}" if self.capping else self.loss_name

    @property
    def table(self) -> pd.DataFrame:
        """One row for each model, indexed by its name.

        ``overall`` and ``where_f_fails`` hold the verdicts; ``*_change`` is the change of F's
        loss (-0.2: 20 % less loss than F), ``*_low`` and ``*_high`` its interval;
        ``concentrated`` says whether a gain or a loss, as a share of F's loss, is larger where F
        fails than elsewhere; ``not asked`` where no difference from F is shown.
        """
        by_question = dict(iter(self.contrasts.set_index("model").groupby("question")))
        table = pd.DataFrame(index=pd.Index(self.models, name="model"))
        for question, name in ((OVERALL, "overall"), (REGION, "where_f_fails")):
            rows = by_question[question]
            # an F without any loss has no change of it
            scale = rows["loss_f"].replace(0.0, np.nan)
            table[name] = rows["verdict"]
            table[f"{name}_change"] = rows["relative"]
            table[f"{name}_low"] = rows["low"] / scale
            table[f"{name}_high"] = rows["high"] / scale
        table["concentrated"] = "not asked"
        if CONCENTRATED in by_question:
            asked = by_question[CONCENTRATED]["verdict"]
            table.loc[asked.index, "concentrated"] = asked
        return table

    @property
    def models(self) -> list[str]:
        """Names of the candidates, in the order given."""
        return list(dict.fromkeys(self.contrasts["model"]))

    @property
    def rmse_f(self) -> float:
        """RMSE of F over all rows in the target's unit; NaN where there is none."""
        overall = self.contrasts.loc[self.contrasts["question"] == OVERALL, "rmse_f"]
        return float(overall.iloc[0])

    def rmse_cell(self, row: Mapping[str, Any]) -> str:
        """Return a model's RMSE, and the change of the plain squared error, no error capped."""
        rmse = format_number(row["rmse"], digits=4)
        if not (is_known(row["rmse"]) and row["rmse_f"] > 0):
            return rmse
        change = (row["rmse"] / row["rmse_f"]) ** 2 - 1
        return f"{rmse} ({_signed_percent(change)} squared error)"

    def verdict(self, row: dict[str, Any]) -> str:
        """Return a verdict, and by which losses where those of some rows may be capped."""
        by = f" ({row['by']})" if self.capping and row["by"] else ""
        said = row["verdict"]
        if row["question"] != CONCENTRATED:
            said = verdict_text(row, self.level, self.unit)
        return f"{said}{by}"

    def row(self, model: str, question: str) -> dict[str, Any]:
        """Return what is known of one model and question; empty where it was not asked."""
        asked = self.contrasts[["model", "question"]].eq([model, question]).all(axis=1)
        records: list[dict[Any, Any]] = self.contrasts[asked].to_dict("records")
        return records[0] if records else {}

    def headline(self) -> list[str]:
        """Return one sentence for each model: better or worse, where, and by how much."""
        return [_headline_sentence(self, model) for model in self.models]

    def text(self) -> str:
        """Return the answer as text, for a terminal."""
        interval = f"{format_level(self.level)} interval"
        headers = [
            "model",
            f"change of F's loss, all {self.unit.many} ({interval})",
            f"{self.where_f_fails} ({interval})",
            "there against elsewhere",
        ]
        has_rmse = is_known(self.rmse_f)
        if has_rmse:
            headers.append(f"RMSE (F {format_number(self.rmse_f, digits=4)})")
        rows = []
        for model, concentrated in self.table["concentrated"].items():
            cells = [str(model)]
            for question in (OVERALL, REGION):
                row = self.row(cells[0], question)
                # too few rows where F fails have none
                change = f"{change_text(row)}  " if is_known(row["relative"]) else ""
                cells.append(change + self.verdict(row))
            cells.append(concentrated)
            if has_rmse:
                cells.append(self.rmse_cell(self.row(cells[0], OVERALL)))
            rows.append(cells)
        about = "; ".join(f"{label}: {value}" for label, value in self.about.items())
        lines = [
            *self.headline(),
            self.place_text,
            self.advice,
            *self.swap_lines(),
            "",
            text_table(headers, rows),
            "",
            *([about] if about else []),
            f"{self.loss_text}; {self.unit.count(self.n_rows)}, "
            f"F {self.verb} on {self.n_bad} ({self.rule})",
            *(f"note: {note}" for note in self.notes),
        ]
        if len(self.slices):
            lines += ["", *_slice_lines(self.slices, self.verb, self.unit)]
        if len(self.scores):
            lines += ["", *self._score_lines()]
        return "\n".join(lines) + "\n"

    def swap_lines(self) -> list[str]:
        """Return what is said of the swap: harm, segments, flips, rows needed."""
        lines = []
        for name, swap in self.harm.items():
            lines += ["", f"{name} instead of F:"]
            lines += [f"  {sentence}" for sentence in swap.sentences()]
        if self.harm:
            lines.append(f"  (percent of F's mean loss over all {self.unit.many})")
        if not self.harm and self.n_rows < FEWEST_ROWS:
            lines.append(
                f"Who is harmed is not asked: {self.n_rows} {self.unit.many}, at least "
                f"{FEWEST_ROWS} are needed."
            )
        if len(self.segments):
            lines += ["", *self._segment_lines()]
        if len(self.flips):
            lines += ["", *self._flip_lines()]
        needed = self.rows_needed
        if len(needed):
            said = []
            for row in needed.to_dict("records"):
                count = "no number of"
                if row["rows"] < MOST_ROWS:
                    count = format_number(row["rows"])
                of_what = f"{row['model']}, {row['question']}"
                said.append(f"{of_what}: {count} {self.unit.many}")
            lines += ["", "would decide, were the estimates true: " + "; ".join(said)]
        return lines

    def _segment_lines(self) -> list[str]:
        """Return the table of segments."""
        rows = []
        base = self.base
        for row in self.segments.to_dict("records"):
            change = _signed_percent(row["difference"] / base)
            if is_known(row["low"]):
                limits = (row["low"] / base, row["high"] / base)
                change += _limits_text(*limits, least=-row["loss_f"] / base)
            verdict = unjudged_text(row, self.unit) or row["verdict"]
            cells = [row["segment"], row["model"], row["rows"], row["loss_f"]]
            rows.append([*cells, row["loss"], change, verdict])
        interval = f"{format_level(self.level)} simultaneous interval"
        headers = ["segment", "model", self.unit.many, "loss of F", "loss"]
        everywhere = f"change, of F's mean loss over all {self.unit.many}"
        headers += [f"{everywhere} ({interval})", "verdict"]
        return [text_table(headers, rows)]

    @property
    def base(self) -> float:
        """F's mean loss over all units, of which changes are shares."""
        overall = self.contrasts[self.contrasts["question"] == OVERALL]
        return float(overall["loss_f"].iloc[0]) or float("nan")

    def _flip_lines(self) -> list[str]:
        """Return the table of decisions that change."""
        rows = []
        for row in self.flips.to_dict("records"):
            n = row["rows"]
            again = format_percent(row["refits"]) if is_known(row["refits"]) else "–"
            negative = f"{row['negative']} ({format_percent(row['negative'] / n)})"
            positive = f"{row['positive']} ({format_percent(row['positive'] / n)})"
            cells = [row["model"], row["segment"], n, negative, positive]
            rows.append([*cells, format_p_value(row["p"]), again])
        headers = ["model", "where", self.unit.many, "right, then wrong"]
        headers += ["wrong, then right", "p (McNemar)", "F fitted again"]
        return [text_table(headers, rows)]

    def _score_lines(self) -> list[str]:
        compared = self.scores.columns[0]
        beside = [name for name in ("mase", "sql", "wql") if name != compared]
        rows = []
        for name, record in self.scores.iterrows():
            values = [record[compared + part] for part in ("", "_region", "_bad")]
            rows.append([str(name), *values, *record[beside]])
        many = self.unit.many
        title = compared.upper() if compared in WINDOW_LOSSES else "your loss"
        headers = ["model", title, self.where_f_fails, f"bad {many} of F"]
        headers += [name.upper() for name in beside]
        named = []
        for row in self.worst.head(_WORST_NAMED).itertuples():
            named.append(f"{row.series} ({row.hardness:.2f})")
        return [
            text_table(headers, rows),
            f"bad {many} were chosen by F's errors, which flatters every other model",
            "",
            f"worst {many} of F: {', '.join(named)}",
        ]

    def summary(self) -> dict[str, Any]:
        """Return the answer for JSON, without what is known of each unit."""
        known = {own.name: getattr(self, own.name) for own in fields(self)}
        for name in ("rows", "draw_worst", "unit", "scores", "swap", "place"):
            known.pop(name)
        return {
            "table": self.table.reset_index(),
            **known,
            "place": None if self.place is None else vars(self.place),
            "scores": self.scores.reset_index(),
            "unit": self.unit.many,
            self.unit.many: self.n_rows,
            "bad": self.n_bad,
            "harm": {name: swap.to_dict() for name, swap in self.harm.items()},
            "segments": self.segments,
            "flips": self.flips,
            "rows_needed": self.rows_needed,
        }

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the change of F's loss with its interval, for each model and question.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Drawn on a new figure when omitted.

        Returns
        -------
        Axes
        """
        from amlb_ext.comparison.page import draw_comparison

        return draw_comparison(self, ax)

    def plot_segments(self, ax: Axes | None = None) -> Axes:
        """Draw the change of loss in each segment with its interval, a forest plot.

        Raises
        ------
        ConfigError
            No segments were named.
        """
        from amlb_ext.swap.plot import draw_segments

        if self.segments.empty:
            raise ConfigError("no segments were named", "give hs.compare segments=...")
        return draw_segments(self.segments, self.base, ax)

    def plot_curve(self, model: str, ax: Axes | None = None) -> Axes:
        """Draw a model's change of loss over the units where it is foreseen worst, few to all."""
        from amlb_ext.swap.plot import draw_curve

        return draw_curve(self._swap_of(model), ax)

    def plot_ranks(self, model: str, ax: Axes | None = None) -> Axes:
        """Draw a model's change of loss by the rank of what was foreseen."""
        from amlb_ext.swap.plot import draw_ranks

        swap = self._swap_of(model)
        d = (self.rows[model] - self.rows["F"]).to_numpy()
        return draw_ranks(swap, d, ax)

    def _swap_of(self, model: str) -> Swap:
        if model not in self.harm:
            raise ConfigError(
                f"nothing is said of replacing F by {model!r}",
                suggest_nearest(model, list(self.harm)),
            )
        return self.harm[model]

    def plot_worst(self, count: int = 6) -> Figure:
        """Draw F's worst windows: the past, what came, and what F and the models forecast.

        Parameters
        ----------
        count : int

        Raises
        ------
        ConfigError
            Rows of a table have no such picture.
        """
        if self.draw_worst is None:
            raise ConfigError(
                f"{self.unit.many} have no picture each", "look at result.worst"
            )
        figure: Figure = self.draw_worst(count, None)
        return figure

    def to_html(self, path: str | Path | None = None) -> str:
        """Return the answer as one HTML page that loads nothing, and write it where asked.

        Parameters
        ----------
        path : path, optional
            The file to write, e.g. ``report.html``.
        """
        from amlb_ext.comparison.page import render_comparison

        page = render_comparison(self)
        if path is not None:
            write_text(Path(path), page)
        return page

    def _repr_html_(self) -> str:
        from amlb_ext.comparison.page import render_summary

        return render_summary(self)

    def __repr__(self) -> str:
        return self.text()


def _headline_sentence(answer: ModelComparison, model: str) -> str:
    overall, many = answer.row(model, OVERALL), answer.unit.many
    is_known_change = is_known(overall["relative"])
    change = _loss_text(overall["relative"]) if is_known_change else ""
    if overall["verdict"] == "no claim":
        # what plain losses say where the largest errors decide, and why that is no verdict
        why = f"{overall['reason'][0].upper()}{overall['reason'][1:]}."
        if is_known_change and is_known(overall["rmse"]):
            why = (
                f"By the plain squared error it has {change} than F ({rmse_text(overall)}), but "
                f"{overall['reason']}."
            )
        said = f"{model}: no verdict over all {many}. {why}"
        return f"{said} Nor is there one {answer.where_f_fails}."
    whose, f = model, "F"
    if answer.claim == "recipes":
        whose, f = f"{model}'s recipe", "F's"
    verdict = f"not shown to differ from {f}"
    if overall["verdict"] in ("better", "worse"):
        beside = change or "which has no loss at all"
        verdict = f"{overall['verdict']} than {f} ({beside})"
    # where the figure is of capped losses the plain one stands beside it
    rmse = rmse_text(overall) if answer.capping else ""
    said = f"{whose} is {verdict} over all {many}{f' ({rmse})' if rmse else ''}."
    region = answer.row(model, REGION)
    where = f"Where F {answer.verb}"
    if not is_known(region["low"]):
        return f"{said} {where}: no figures, since {region['reason']}."
    elsewhere = answer.row(model, CONCENTRATED).get("verdict", "")
    beside = {
        "opposite": ", the other way round than elsewhere",
        "undecided": ", relative to F's loss not shown to differ from elsewhere",
    }.get(elsewhere, "")
    if elsewhere in CONCENTRATIONS:
        beside = f", a {elsewhere} than elsewhere relative to F's loss"
    return f"{said} {where} it has {_change_phrase(region)}{beside}."


def _change_phrase(row: Mapping[str, Any]) -> str:
    """Return a change with its interval: ``33 % less loss (25 to 41 % less)``."""
    base = row["loss_f"]
    if not base > 0:
        return f"a loss of {format_number(row['loss'])}, and F none"
    change, high = row["relative"], row["high"] / base
    # no model can save more than all of F's loss
    low = max(row["low"] / base, -1.0)
    if low == high == 0:
        return "the same loss"
    text = _loss_text(change)
    if low * high > 0:
        near, far = sorted((abs(low), abs(high)))
        return f"{text} ({format_percent(near, '')} to {format_percent(far)})"
    return (
        f"{text} ({format_percent(abs(low))} less to {format_percent(abs(high))} more)"
    )


def _loss_text(change: float) -> str:
    """Return a change in words: ``33 % less loss``."""
    return f"{format_percent(abs(change))} {'less' if change < 0 else 'more'} loss"


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
    return change + _limits_text(
        row["low"] / row["loss_f"], row["high"] / row["loss_f"]
    )


def _limits_text(low: float, high: float, least: float = -1.0) -> str:
    """Return the limits of a change in percent: `` (-41 to -25)``.

    No model can save more than all of F's loss: there is no change below ``least``.
    """
    limits = [_signed_percent(max(x, least)).removesuffix(" %") for x in (low, high)]
    return f" ({' to '.join(limits)})"


def _signed_percent(share: float) -> str:
    return format_percent(share, sign=True).replace("−", "-")


def _slice_lines(slices: pd.DataFrame, verb: str, unit: Unit) -> list[str]:
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
            f"{unit.many}, {lift:.1f} times as often as on all; {mends}"
        )
    return lines
