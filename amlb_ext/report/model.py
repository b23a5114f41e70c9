"""What a report is made of: charts, one part per task, and the whole.

All tables are tidy: one observation per row, named columns, plain text and numbers. Text may
come from the user's data and is never trusted: whoever shows it escapes it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import pandas as pd

from amlb_ext.core.errors import HardsynthError
from amlb_ext.core.unit import Unit
from amlb_ext.report.glossary import GlossarySection
from amlb_ext.stats.heavy_tails import BY_PLAIN
from amlb_ext.swap.answer import SwapAnswer
from amlb_ext.validity import Certificate

#: Colours of the candidates.
CandidateColour = Literal["c0", "c1", "c2", "c3", "c4", "c5", "c6", "c7"]
#: Named colours; the page maps each to a light and a dark one.
ColourRole = Literal["ink", "bad", "f", "null", CandidateColour]
#: Lines that help to read a chart: ``zero`` is vertical at x = 0, ``level`` horizontal at y = 0;
#: on ``break-even`` x + y = 0.
ChartGuide = Literal["zero", "level", "diagonal", "break-even"]


@dataclass(frozen=True)
class ChartSeries:
    """One set of marks.

    Attributes
    ----------
    name : str
        For the legend; plain text.
    kind : {'points', 'line', 'intervals', 'violin'}
        ``intervals``: a mark at (x, y) with a bar from ``low`` to ``high`` along x, NaN where there
        is none; ``violin``: points at the height ``y``, and their density.
    x, y : ndarray
    role : str
        See :data:`ColourRole`.
    low, high : ndarray, optional
    text : sequence of str
        What each mark is called where the pointer rests on it; empty for none.
    symbol : int
        Shape of points, 0 to 5 (circle, square, diamond, triangle up, cross, triangle down).
    """

    name: str
    kind: Literal["points", "line", "intervals", "violin"]
    x: np.ndarray
    y: np.ndarray
    role: ColourRole = "ink"
    low: np.ndarray | None = None
    high: np.ndarray | None = None
    text: Sequence[str] = ()
    symbol: int = 0


@dataclass(frozen=True)
class Chart:
    """One picture, before it is drawn.

    Attributes
    ----------
    key : str
        Unique in the page; letters, digits, ``-`` and ``_``.
    title : str
        Plain text.
    about : str
        Description in words, for those who cannot see the picture; plain text.
    x_label, y_label : str
    series : tuple of Series
    y_categories : tuple of str
        Names of the positions 0, 1, ... of an axis that has no numbers; position 0 is at the top.
    guides : tuple of {'zero', 'level', 'diagonal', 'break-even'}
        With a diagonal one unit is equally long on both axes.
    drawn : str
        The still picture as SVG, where it is drawn already.
    """

    key: str
    title: str
    about: str
    x_label: str = ""
    y_label: str = ""
    series: tuple[ChartSeries, ...] = ()
    y_categories: tuple[str, ...] = ()
    guides: tuple[ChartGuide, ...] = ()
    drawn: str = ""


@dataclass(frozen=True, kw_only=True)
class ReportSection:
    """A table with what one kind of suite shows beside what all have in common.

    Attributes
    ----------
    key : str
        The table's file is ``<key>.csv``; those of one key are stacked over the tasks.
    title, about : str
        Plain text.
    table : DataFrame
    shown : DataFrame, optional
        What readers see in its place, row by row.
    charts : tuple of Chart
    percents : tuple of str
        Columns of shares.
    links : str
        Column of paths that a reader may open; empty for none.
    verbatim : tuple of str
        Columns that are names of frameworks: their headings stay as they are.
    most : int
        Rows that are shown; the file has all of them.
    is_for_papers : bool
        Whether the table is written as LaTeX, too, and its charts as files of SVG.
    """

    key: str
    title: str
    about: str
    table: pd.DataFrame
    shown: pd.DataFrame | None = None
    charts: tuple[Chart, ...] = ()
    percents: tuple[str, ...] = ()
    links: str = ""
    verbatim: tuple[str, ...] = ()
    most: int = 30
    is_for_papers: bool = False

    @property
    def readable(self) -> pd.DataFrame:
        """The table as readers see it."""
        return self.table if self.shown is None else self.shown


@dataclass(frozen=True)
class FrameworkRanks:
    """Frameworks ranked over tasks; rank 1 is the smallest loss on the untouched test folds.

    Attributes
    ----------
    mean : Series
        Mean rank by entrant, best first; empty when no two entrants share a task.
    tasks : tuple of str
        Tasks on which every entrant is scored.
    left_out : dict of str to str
        Tasks that are not, and why.
    friedman_p : float
        p-value of Friedman's test; NaN when it cannot be computed.
    p : DataFrame
        Nemenyi's p-values between entrants; empty when they cannot be computed.
    about : str
        What was tested, or why nothing could be; one or two sentences.
    """

    mean: pd.Series
    tasks: tuple[str, ...]
    left_out: dict[str, str]
    friedman_p: float
    p: pd.DataFrame
    about: str


NO_RANKS = FrameworkRanks(
    mean=pd.Series(dtype=float),
    tasks=(),
    left_out={},
    friedman_p=float("nan"),
    p=pd.DataFrame(),
    about="There is nothing to rank: fewer than two entrants share a task on which "
    "claims may be made.",
)


@dataclass(frozen=True)
class TaskReport:
    """Results on one task.

    Attributes
    ----------
    name, title : str
        The suite's name, and the source's, which may be any text.
    unit : Unit
        What is counted.
    kind, target : str
        The target is empty where it has no name.
    labels : tuple of str
        Class labels of the source; empty for regression.
    rows : dict of str to int
        Rows by part (``full``, ``bad``, ``ga``, ``synthetic``), all folds together.
    folds : int
    certificate : Certificate or None
    loss : str
        What contrasts are measured in, with its unit: ``Brier loss``, ``squared error of the
        scaled target``, or the loss that was asked for.
    metric : str
        The metric of the scores that goes with it; empty for the usual one of the kind.
    capping : str
        Beyond which size errors count no more in contrasts, pairs and ranks; empty for classes,
        whose losses are bounded.
    weighting : str
        How real rows are weighted for the contrasts, and why.
    weighted : bool
        Whether they are, for comparisons on all folds; each contrast and pair says so for itself.
    no_claim : str
        Why no claim about candidates may be made where F fails; empty when it may.
    warnings : tuple of str
        What is wrong with results on this task, each one sentence.
    contrasts : DataFrame
        One row per framework and ``where`` (``all rows``, ``region``; ``region minus elsewhere``
        where one of them has found a difference): ``task``, ``framework``, ``where``, ``folds``,
        ``rows``, ``loss``, ``loss_f``, ``difference`` (framework minus F), ``low``, ``high``,
        ``relative`` (difference / loss_f), ``p`` (against F), ``p_adjusted`` (what the verdict
        rests on), ``effective_size``, ``weighted``, ``null_difference``, ``null_se``, ``p_null``
        (against F's re-fits), ``from_region`` and ``from_elsewhere`` (of all rows: the parts of
        ``relative`` that come from where F fails and from elsewhere), ``rmse`` and ``rmse_f``
        (in the target's unit), ``by`` (``capped`` or ``plain`` figures), ``verdict`` (``better``,
        ``worse``, ``undecided``, ``incomplete``, ``no claim``; ``larger`` and ``smaller`` gains
        in the region), ``reason``.
    pairs : DataFrame
        One row per unordered pair, on the region: ``task``, ``framework``, ``other``, ``folds``,
        ``rows``, ``weighted``,
        ``difference`` (framework minus other), ``low``, ``high``, ``p``, ``p_holm``,
        ``null_spread`` (how far two fits of F differ), ``p_null``, ``verdict``, ``reason``.
    scores : DataFrame
        ``task``, ``framework``, ``part``, ``metric``, ``value``, ``low``, ``high`` (NaN where no
        interval holds), ``rows``, ``folds``, ``direction`` (``lower`` or ``higher`` is better).
    slices : DataFrame
        Where F fails, see :mod:`amlb_ext.units.slices`.
    slice_losses : DataFrame
        F and each candidate inside each slice, see :mod:`amlb_ext.units.slices`.
    charts : tuple of Chart
    notes : tuple of str
        What happened while the source was read, and in the folds.
    alarm : str
        That the F which was run is not the F of the suite, where and by how much; else empty.
    left_out : int
        Test rows left out of all folds, since no training row has their class.
    replaced : dict of str to int
        Test cells by column, in which another value stands, since no training row has theirs.
    relations : DataFrame
        What made rows keep, see :mod:`amlb_ext.report.task`.
    rejected : int
        Made rows that were rejected, since they broke a relation.
    composition : tuple of str
        The parts that the main task's test rows are of; empty where there is no main task.
    swap : SwapAnswer
        What replacing F by each framework does.
    uncertified : str
        What is said where there is no certificate; empty where none is wanted.
    sections : tuple of ReportSection
    """

    name: str
    title: str
    unit: Unit
    kind: str = ""
    target: str = ""
    labels: tuple[str, ...] = ()
    rows: dict[str, int] = field(default_factory=dict)
    folds: int = 0
    certificate: Certificate | None = None
    loss: str = ""
    weighting: str = ""
    no_claim: str = ""
    warnings: tuple[str, ...] = ()
    contrasts: pd.DataFrame = field(default_factory=pd.DataFrame)
    pairs: pd.DataFrame = field(default_factory=pd.DataFrame)
    scores: pd.DataFrame = field(default_factory=pd.DataFrame)
    slices: pd.DataFrame = field(default_factory=pd.DataFrame)
    charts: tuple[Chart, ...] = ()
    notes: tuple[str, ...] = ()
    weighted: bool = True
    alarm: str = ""
    left_out: int = 0
    replaced: dict[str, int] = field(default_factory=dict)
    relations: pd.DataFrame = field(default_factory=pd.DataFrame)
    rejected: int = 0
    capping: str = ""
    slice_losses: pd.DataFrame = field(default_factory=pd.DataFrame)
    composition: tuple[str, ...] = ()
    uncertified: str = ""
    sections: tuple[ReportSection, ...] = ()
    metric: str = ""
    swap: SwapAnswer = field(default_factory=SwapAnswer)

    @property
    def shown_name(self) -> str:
        """The task's name as a reader knows it."""
        return self.title or self.name

    def asked(self, where: str) -> pd.DataFrame:
        """Return the contrasts of one question; none where nothing was compared."""
        # a table of nothing may have no column to ask for
        if not len(self.contrasts):
            return self.contrasts
        return self.contrasts[self.contrasts["where"] == where]

    @property
    def heavy_tail(self) -> str:
        """Why capped losses do not decide for some candidate; empty where they do for all."""
        if not self.capping or not len(self.contrasts):
            return ""
        plain = self.contrasts[self.contrasts["by"] == BY_PLAIN]
        plain = plain[plain["verdict"] == "no claim"]
        if not len(plain):
            return ""
        first = plain.iloc[0]
        return f"{first['framework']} against F: {first['reason']}"

    @property
    def changes(self) -> str:
        """What was left out of the test folds and replaced in them; empty for nothing."""
        sentences = []
        if self.left_out:
            sentences.append(
                f"{self.left_out} test rows whose class no training row has are left out."
            )
        if self.replaced:
            by_column = [f"{name} {count}" for name, count in self.replaced.items()]
            counts = ", ".join(by_column)
            n_cells = sum(self.replaced.values())
            sentences.append(
                f"{n_cells} test cells whose value no training row has are "
                f"replaced, by column: {counts}."
            )
        return " ".join(sentences)


@dataclass(frozen=True, kw_only=True)
class BuiltTask:
    """A task's part of the report, and what the whole report needs of it.

    Attributes
    ----------
    report : TaskReport
    losses : DataFrame of shape (n, frameworks)
        Losses on the untouched test folds, capped as in contrasts, NaN where there is none.
    loss_f : ndarray of shape (n,)
        F's losses.
    lacking : dict of str to HardsynthError
        Segments that the task has not, and why.
    duels : DataFrame
        Every two candidates on all units.
    gains : sequence of dict
        What is left to gain.
    refused : dict of int to str
        Predictions that could not be used, by index in the table of jobs.
    unfit : HardsynthError or None
        Why the loss that a user named does not fit the task.
    """

    report: TaskReport
    losses: pd.DataFrame
    loss_f: np.ndarray
    lacking: Mapping[str, HardsynthError]
    duels: pd.DataFrame
    gains: Sequence[dict[str, Any]]
    refused: dict[int, str] = field(default_factory=dict)
    unfit: HardsynthError | None = None


@dataclass(frozen=True, kw_only=True)
class SuiteReport:
    """The answer to: which framework really improves where F fails?

    Attributes
    ----------
    name : str
        Name of the suite.
    question : str
        What the report answers.
    unit : Unit
        What is counted.
    glossary : dict of str to GlossarySection
        Its words; keys of sections and terms are anchors in the page.
    noun : str
        What the tasks are a part of: a suite, or a benchmark.
    has_baseline : bool
        Whether frameworks are set against an F.
    about : dict of str to str
        Suite overview: what it was made with, by label.
    verdict : tuple of str
        The answer: on which tasks F is beaten, then one sentence per candidate.
    caveats : tuple of str
        How the answer is to be used, then what stands behind it and limits it, a sentence each.
    warnings : tuple of str
        What must be known before anything is believed: refused, failed and missing jobs.
    sections : tuple of ReportSection
        Over all tasks.
    tasks : tuple of TaskReport
    overall : DataFrame
        One row per framework: ``framework``, ``tasks``, ``better``, ``worse``, ``undecided``,
        ``withheld`` (incomplete or no claim), ``better_family`` (better with p-values adjusted
        over all tasks and frameworks), ``relative`` (geometric mean over tasks of the change of
        F's loss), ``low``, ``high`` (interval over tasks; NaN below three), all of them where F
        fails; the same over all rows, each name with ``overall_`` before it; ``larger`` (tasks on
        which the gain is larger where F fails), ``mean_rank``.
    ranks : FrameworkRanks
    frameworks : DataFrame
        ``framework``, ``name``, ``constraint``, ``version``, ``runs``, ``scored``, ``failed``,
        ``missing``, ``refused``, ``not_run``, ``minutes``.
    jobs : DataFrame
        Jobs without a usable score: ``framework``, ``amlb_task``, ``fold``, ``status``
        (``failed``, ``missing``, ``refused``, ``not run``), ``reason``.
    commands : tuple of str
        Commands that run just those again.
    needed : tuple of str
        Commands that run what a verdict needs and nobody has run: the untouched test folds of
        tasks on which a framework was scored on other rows alone.
    charts : tuple of Chart
        Over all tasks.
    level : float
        Nominal coverage of intervals.
    notes : tuple of str
    """

    name: str
    question: str
    unit: Unit
    glossary: Mapping[str, GlossarySection]
    about: dict[str, str]
    verdict: tuple[str, ...]
    warnings: tuple[str, ...]
    tasks: tuple[TaskReport, ...]
    frameworks: pd.DataFrame
    jobs: pd.DataFrame
    level: float
    overall: pd.DataFrame = field(default_factory=pd.DataFrame)
    ranks: FrameworkRanks = NO_RANKS
    noun: str = "suite"
    has_baseline: bool = True
    sections: tuple[ReportSection, ...] = ()
    commands: tuple[str, ...] = ()
    needed: tuple[str, ...] = ()
    charts: tuple[Chart, ...] = ()
    notes: tuple[str, ...] = ()
    caveats: tuple[str, ...] = ()

    @property
    def is_complete(self) -> bool:
        """Whether every job has a result, and no verdict needs jobs that have not been run."""
        has_no_result = self.jobs["status"].isin(["failed", "missing", "refused"])
        return not has_no_result.any() and not self.needed
