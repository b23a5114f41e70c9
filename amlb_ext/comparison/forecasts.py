"""Compare forecasters with F: over all windows, where F fails, and which of the two."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from amlb_ext.comparison.answer import answer_units
from amlb_ext.comparison.result import ModelComparison
from amlb_ext.comparison.window_pictures import draw_worst_windows
from amlb_ext.core.checked_call import (
    Count,
    CountOrNone,
    Level,
    Seed,
    Text,
    check_candidates,
    check_refits,
    checked_call,
)
from amlb_ext.core.display import format_decimals, format_percent
from amlb_ext.core.errors import ConfigError, DataError
from amlb_ext.core.frames import to_pandas
from amlb_ext.core.losses import Loss
from amlb_ext.core.task import Column
from amlb_ext.core.unit import WINDOW
from amlb_ext.models.columns import list_names
from amlb_ext.models.forecast_files import forecasts_from_table
from amlb_ext.models.forecasters import (
    LEVELS,
    Forecaster,
    describe_known,
    forecaster_of,
    make_forecaster,
)
from amlb_ext.sources.panel import Gaps, PanelRoles, read_panel
from amlb_ext.stats.contrasts import ComparedUnits
from amlb_ext.stats.diebold_mariano import fewest_origins
from amlb_ext.stats.window_losses import (
    MASE,
    WINDOW_LOSSES,
    read_window_loss,
)
from amlb_ext.swap.answer import Side, SwapRows
from amlb_ext.swap.segments import read_segments
from amlb_ext.units.failing_windows import (
    FailingWindows,
    describe_heavy_windows,
    describe_left_out,
    describe_zeros,
    find_failing_windows,
)
from amlb_ext.units.judged import FEWEST_CLUSTERS, Judged
from amlb_ext.units.origins import plan_origins
from amlb_ext.units.rolling import RolledForecasts, roll_forecaster
from amlb_ext.units.window_rules import window_rule_text

#: Windows on which F is worst that an answer holds.
MOST_WORST = 10
#: Losses whose means stand in every answer, whatever is compared.
SHOWN_LOSSES = ("mase", "sql", "wql")


@checked_call
def compare_forecasts(
    table: Any,
    baseline: Any,
    candidates: Any,
    *,
    series: Text,
    time: Text,
    target: Text,
    horizon: Count,
    season: Count | None = None,
    frequency: str | None = None,
    known: Sequence[str] = (),
    gaps: Gaps = "refuse",
    rule: str = "mase",
    alpha: float | None = None,
    loss: Any = "mase",
    origins: Count = 1,
    learning: CountOrNone = 3,
    step: Count | None = None,
    cutoff: str | None = None,
    first_cutoff: str | None = None,
    twins: CountOrNone = 4,
    segments: Any = None,
    level: Level = 0.95,
    seed: Seed = 0,
) -> ModelComparison:
    """Compare forecasters with F on the last windows of many series.

    The verdict is over all windows. Where F fails, the fifth of the windows where that is foreseen
    most from the pasts of other series at earlier origins, each candidate's change is described,
    and whether it differs from that elsewhere, as a share of F's loss.

    Parameters
    ----------
    table : DataFrame
        Long: one row for each series and time.
    baseline : str, class, object or DataFrame
        F: the name of a baseline (``theta``, ``ets``, ``seasonal_naive``, ``drift``, ``ridge``,
        ``boosting``), ``module:Class`` of yours, the class or an object of it with ``fit(past)``
        and ``predict(horizon)``, or its forecasts as a long table with the columns
        of series and time, ``mean``, and ``0.1`` to ``0.9`` where there are quantiles; where
        origins overlap, also ``cutoff``, the last time seen. F's forecasts are needed at test
        *and* learning origins, those of candidates at test origins.
    candidates : mapping of str to str, class, object or DataFrame
    series, time, target : str
        Columns of the table.
    horizon : int
        H, steps to forecast.
    season : int, optional
        m; what is usual for the frequency when omitted.
    frequency : str, optional
        As pandas spells it, old or new; seen from the times when omitted.
    known : sequence of str
        Columns that are known beforehand, for the forecasters that take them: numbers.
    gaps : {'refuse', 'zero', 'last', 'trim'}
        What becomes of missing steps and values: refused, 0, the value before, or the series begins
        behind its last gap.
    rule, alpha : str, float, optional
        The rule that calls a window of F bad, and its threshold: ``mase``, ``sql``, ``quantile``
        (alpha is the worst share) or ``reducible``. Without alpha the threshold is that of the
        worst tenth of F's windows at learning origins.
    loss : {'mase', 'rmsse', 'mae', 'sql', 'wql', 'crps'} or callable
        What is compared: a name of :data:`amlb_ext.stats.window_losses.WINDOW_LOSSES`, or a
        function of the values that came, ``(n, H)``, and a forecast with ``mean`` of that shape
        and ``quantiles``, ``(n, H, 9)`` or None, which returns a loss for each window, ``(n,)``.
    origins, learning : int
        Test origins, and origins before them on which F's failures are learnt.
    step : int, optional
        Steps between test origins; the horizon when omitted.
    cutoff : str, optional
        Time of the last value that is seen at the last test origin.
    first_cutoff : str, optional
        The same of the first test origin, where ``cutoff`` is not given.
    twins : int
        How many null twins F is given: the same method without its oldest seasons, or learnt from
        halves of the series. 0 for none; then nothing is called better where F fails.
    segments : optional
        Groups of windows that matter to you: conditions on ``series``, ``cutoff`` or a feature of
        the past, or masks; see :func:`amlb_ext.swap.segments.read_segments`.
    level : float
        Coverage of the intervals.
    seed : int
        Same input and seed, same numbers.

    Returns
    -------
    ModelComparison
        ``table``, ``scores``, ``windows``, ``plot()``, ``plot_worst()``, ``to_html()``.

    Raises
    ------
    DataError
        The table cannot be read, too few series or origins, no or only bad windows.
    ModelError
        A forecaster fails.
    ConfigError
        A setting that is not allowed.

    Notes
    -----
    Losses of one series are alike from origin to origin, so intervals are clustered by series; from
    ten test origins on by calendar, too, and the wider interval counts. At least 30 series are
    asked for. Fewer are compared over time: the Diebold-Mariano test over at least 30 test origins.

    Examples
    --------
    >>> from amlb_ext.sources.bundled_series import simulate_series
    >>> table = simulate_series(40, 96)
    >>> columns = {"series": "item_id", "time": "timestamp", "target": "target"}
    >>> result = compare_forecasts(
    ...     table, "theta", {"naive": "drift"}, horizon=12, learning=1, twins=0, **columns)
    >>> result.table["overall"].tolist()
    ['worse']
    """
    check_candidates(candidates, '{"ets": "ets"}')
    check_refits(twins, "twins")
    compared = read_window_loss(loss)
    table = to_pandas(table, what="table")
    roles = PanelRoles(
        series=series,
        time=time,
        target=target,
        horizon=horizon,
        season=season,
        frequency=frequency,
        known=tuple(known),
        gaps=gaps,
    )
    panel = read_panel(table, roles)
    forecaster = as_forecaster(baseline, "F", roles)
    others = {str(n): as_forecaster(c, str(n), roles) for n, c in candidates.items()}
    notes = (*panel.notes, *describe_known(panel, {"F": forecaster, **others}))
    panel = replace(panel, notes=notes)
    planned = plan_origins(
        panel,
        test=origins,
        learning=learning,
        step=step,
        cutoff=cutoff,
        first_cutoff=first_cutoff,
    )
    # all windows are compared, whether or not F fails on some
    failing = find_failing_windows(
        forecaster, panel, planned, rule=rule, alpha=alpha, seed=seed, needs_bad=False
    )
    rolled = {}
    for name, other in others.items():
        forecasts = roll_forecaster(other, panel, failing.tests, seed)
        rolled[name] = forecasts.with_loss(compared, failing.tests)
    own = failing.forecasts.with_loss(compared, failing.tests)
    failing = replace(failing, forecasts=own)
    twin_forecasts = []
    count = twins if failing.n_series >= FEWEST_CLUSTERS else 0
    for twin in forecaster.twins(count, panel.season):
        again = roll_forecaster(
            twin,
            panel,
            failing.tests,
            seed,
            # a function of the user's own may look at them
            keep_quantiles=compared.name not in WINDOW_LOSSES,
        )
        again = again.with_loss(compared, failing.tests)
        twin_forecasts.append(replace(again, quantiles=None))
    return answer_comparison(
        failing,
        rolled,
        twin_forecasts,
        loss=compared,
        segments=segments,
        level=level,
        seed=seed,
    )


def as_forecaster(given: Any, name: str, roles: PanelRoles) -> Forecaster:
    """Return the forecaster that a name, a table of forecasts or an object stands for.

    Raises
    ------
    ModelError
        The name is unknown, or the table lacks a column.
    """
    if isinstance(given, Forecaster):
        return given
    if isinstance(given, str):
        return make_forecaster(given, name)
    if hasattr(given, "columns"):
        table = to_pandas(given, what=f"the forecasts {name}")
        return forecasts_from_table(
            table, name, series=roles.series, time=roles.time, target=roles.target
        )
    if hasattr(given, "fit"):
        return forecaster_of(given, name, name)
    raise ConfigError(
        f"{name} is a {type(given).__name__}",
        "give the name of a baseline, a class or an object with fit(past) and predict(horizon), "
        "or a table of forecasts",
    )


def judge_windows(
    failing: FailingWindows,
    twins: Sequence[RolledForecasts],
    *,
    loss: Loss = MASE,
    level: float = 0.95,
) -> Judged:
    """Return the windows as F was judged on them, with the losses of its twins.

    Raises
    ------
    DataError
        Too few series and origins, or no quantiles where a loss of them is compared.
    """
    n_series, n_origins = failing.n_series, len(failing.origins.test)
    # too few to compare across, at origins too few to compare over
    if n_series < FEWEST_CLUSTERS and n_origins < fewest_origins(failing.overlap):
        plural = "s" if n_origins > 1 else ""
        # origins one step apart reach least far back
        advised = fewest_origins(failing.panel.horizon)
        lost = failing.panel.left_out
        counted = f", beside {len(lost)} that were left out" if lost else ""
        first = f"; {lost[0].series}: {lost[0].reason}" if lost else ""
        raise DataError(
            f"{n_series} series at {n_origins} origin{plural}{counted}: nothing valid can be said "
            f"of so few{first}",
            f"give {FEWEST_CLUSTERS} series or more, or ask for {advised} or more test origins "
            f"(--origins {advised} --step 1)",
        )
    refits = None
    if twins:
        columns = [known_loss(twin, "a twin of F", loss) for twin in twins]
        refits = pd.DataFrame(dict(enumerate(columns)))
    return Judged(
        compared=ComparedUnits(
            loss_f=known_loss(failing.forecasts, "F", loss),
            weights=failing.weighting.inside,
            clusters=failing.items,
            refits=refits,
            level=level,
            calendar=failing.cutoffs,
            unit=WINDOW,
        ),
        is_bad=failing.is_bad,
        risk=failing.weighting.weights,
        rule=window_rule_text(failing.rule),
        no_claim=failing.weighting.reason,
        overlap=failing.overlap,
    )


def answer_comparison(
    failing: FailingWindows,
    rolled: Mapping[str, RolledForecasts],
    twins: list[RolledForecasts],
    *,
    loss: Loss = MASE,
    segments: Any = None,
    level: float = 0.95,
    seed: int = 0,
) -> ModelComparison:
    """Answer the three questions from forecasts that are known.

    Parameters
    ----------
    failing : FailingWindows
    rolled : mapping of str to RolledForecasts
        Of the candidates, at the test origins.
    twins : list of RolledForecasts
        F's null twins.

    Raises
    ------
    DataError
        Too few series and origins, or a forecaster without quantiles where a loss of them is
        compared.
    """
    sides = {
        name: Side(losses=known_loss(forecasts, name, loss))
        for name, forecasts in rolled.items()
    }
    judged = judge_windows(failing, twins, loss=loss, level=level)
    known = failing.known_beforehand()
    everyone = {"F": failing.forecasts, **rolled}
    windows = windows_with_losses(failing, everyone, loss.name)
    return answer_units(
        SwapRows.of_losses(judged, known, no_refits="give twins"),
        sides,
        columns=[Column(name, "numeric") for name in known],
        segments=read_segments(segments, pd.concat([failing.table(), known], axis=1)),
        seed=seed,
        loss_name=loss.text(),
        notes=window_notes(failing, rolled, len(twins), loss),
        rows=windows,
        worst=windows.nlargest(MOST_WORST, "hardness"),
        scores=_scores(failing, everyone, loss.name),
        draw_worst=partial(draw_worst_windows, failing, dict(rolled)),
    )


def windows_with_losses(
    failing: FailingWindows, everyone: Mapping[str, RolledForecasts], compared: str
) -> pd.DataFrame:
    """Return the windows, with what F and each forecaster lose on them."""
    windows = failing.table()
    for name, forecasts in everyone.items():
        for loss in dict.fromkeys(["mase", "sql", compared]):
            if loss in forecasts.losses:
                windows[f"{loss}_{name}"] = forecasts.losses[loss]
    return windows


def known_loss(forecasts: RolledForecasts, name: str, loss: Loss) -> np.ndarray:
    """Return a forecaster's losses, ``(n,)``.

    Raises
    ------
    DataError
        It has no quantiles where the loss needs them, or the loss is no number.
    """
    known = forecasts.losses.get(loss.name)
    without = [
        other.name for other in WINDOW_LOSSES.values() if other.basis != "quantiles"
    ]
    if known is None:
        raise DataError(
            f"{name} forecasts no quantiles{forecasts.in_other_columns}, so it has no {loss.title}",
            f"give nine quantiles (columns 0.1 to 0.9), or compare by loss {', '.join(without)}",
        )
    if np.isnan(known).any():
        raise DataError(
            f"all values to forecast are 0, so {loss.title} is no number",
            f"compare by another loss: {', '.join(without)}",
        )
    return known


def _scores(
    failing: FailingWindows, forecasts: Mapping[str, RolledForecasts], compared: str
) -> pd.DataFrame:
    """Return mean losses by model: over all windows, where F fails, and on F's bad windows.

    What is compared comes first. A WQL where F fails is a share of the sizes of all windows, as it
    is over all of them.
    """
    inside = failing.weighting.inside
    is_bad = failing.is_bad
    records: dict[str, dict[str, float]] = {}
    for name, rolled in forecasts.items():
        record = records[name] = {}
        unknown = np.full(len(rolled.mase), np.nan)
        for loss in dict.fromkeys([compared, *SHOWN_LOSSES]):
            values = rolled.losses.get(loss, unknown)
            record[loss] = values.mean()
            record[f"{loss}_region"] = np.nan
            if inside is not None:
                record[f"{loss}_region"] = np.average(values, weights=inside)
            record[f"{loss}_bad"] = values[is_bad].mean() if is_bad.any() else np.nan
    return pd.DataFrame.from_dict(records, orient="index").rename_axis("model")


def window_notes(
    failing: FailingWindows,
    rolled: Mapping[str, RolledForecasts],
    n_twins: int,
    loss: Loss = MASE,
) -> tuple[str, ...]:
    """Return what stands behind an answer on windows, a sentence each."""
    panel, origins = failing.panel, failing.origins
    n_series = failing.n_series
    cutoffs = [panel.time_text(cutoff) for cutoff in origins.test]
    first = " to ".join(dict.fromkeys((cutoffs[0], cutoffs[-1])))
    plural = "" if len(cutoffs) == 1 else "s"
    notes = [
        f"{n_series} series, {len(cutoffs)} test origin{plural} (last value seen: {first}), "
        f"{len(origins.learning)} origins before to learn from; horizon {panel.horizon}, season "
        f"{panel.season}, frequency {panel.frequency}",
        *panel.notes,
        *describe_left_out(failing.left_out),
        *describe_zeros(failing, rolled, loss),
    ]
    if n_twins:
        notes.append(
            f"null control: {n_twins} twins of F, the same method on less of the past or on halves "
            "of the series; where F fails a model must differ from F and from its twins"
        )
    elif n_series >= FEWEST_CLUSTERS:
        notes.append(
            "F has no twin: without this null control no model is called better where F fails"
        )
    bad = failing.is_bad
    if bad.any():
        share = format_percent(float(bad.mean()))
        mean = format_decimals(float(failing.forecasts.mase[bad].mean()), 2)
        notes.append(f"F's MASE on its bad windows ({share} of all) is {mean}")
    if n_series >= FEWEST_CLUSTERS:
        notes.append(
            "windows of one series are alike, so intervals are clustered by series; from ten test "
            "origins on by calendar, too"
        )
    for name, own in {"F": failing.forecasts, **rolled}.items():
        if own.unread:
            notes.append(
                f"{name}: nothing is read from its columns {list_names(own.unread)}; quantiles are "
                f"the columns {LEVELS[0]} to {LEVELS[-1]}, all {len(LEVELS)} of them"
            )
        if own.quantiles is not None:
            crossed = (np.diff(own.quantiles, axis=-1) < 0).any(axis=-1).mean()
            if crossed:
                notes.append(
                    f"{name}: quantiles cross in {format_percent(float(crossed))} of the steps, "
                    "and are scored as they are"
                )
    return (*notes, *describe_heavy_windows(failing, rolled, loss))
