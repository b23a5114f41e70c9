"""Compare forecasters with F: over all windows, where F fails, and which of the two."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
import pandas as pd

from amlb_ext.core.checked_call import (
    Count,
    CountOrNone,
    Level,
    Seed,
    Text,
    check_candidates,
    checked_call,
)
from amlb_ext.core.display import format_decimals, format_percent
from amlb_ext.core.errors import ConfigError, DataError
from amlb_ext.core.frames import to_pandas
from amlb_ext.forecasting.failing_windows import (
    FailingWindows,
    describe_heavy_windows,
    describe_left_out,
    find_failing_windows,
)
from amlb_ext.forecasting.forecasters import (
    Forecaster,
    forecasts_from_table,
    make_forecaster,
)
from amlb_ext.forecasting.origins import plan_origins
from amlb_ext.forecasting.panel import PanelRoles, read_panel
from amlb_ext.forecasting.region import FEWEST_SERIES
from amlb_ext.forecasting.result import ForecastComparison
from amlb_ext.forecasting.rolling import RolledForecasts, roll_forecaster
from amlb_ext.forecasting.wording import of_windows
from amlb_ext.stats.claims import COLUMNS as CONTRAST_COLUMNS
from amlb_ext.stats.claims import (
    NUMBERS,
    OVERALL,
    REGION,
    answer_questions,
    why_no_region,
)
from amlb_ext.stats.contrasts import ComparedRows, choose_weighting
from amlb_ext.stats.diebold_mariano import FEWEST_ORIGINS, diebold_mariano
from amlb_ext.stats.heavy_tails import BY_PLAIN
from amlb_ext.stats.weighted_mean import holm_adjusted, p_value

#: Loss that is compared, and how an answer calls it.
LOSSES = {
    "mase": "MASE: mean absolute error of a window over its scale",
    "sql": "SQL: mean pinball loss of a window over its scale",
}
Loss = Literal["mase", "sql"]


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
    rule: str = "mase",
    alpha: float | None = None,
    loss: Loss = "mase",
    origins: Count = 1,
    learning: CountOrNone = 3,
    step: Count | None = None,
    cutoff: str | None = None,
    first_cutoff: str | None = None,
    twins: CountOrNone = 4,
    level: Level = 0.95,
    seed: Seed = 0,
) -> ForecastComparison:
    """Compare forecasters with F on the last windows of many series.

    Three questions are answered side by side for each candidate: is it better than F over all
    windows, is it better where F fails, and is its gain larger there than elsewhere? "Where F
    fails" weights each window by its chance to be a bad window of F, learnt from the pasts of other
    series at earlier origins.

    Parameters
    ----------
    table : DataFrame
        Long: one row for each series and time.
    baseline : str, Forecaster or DataFrame
        F: the name of a baseline (``theta``, ``ets``, ``seasonal_naive``, ``drift``, ``ridge``,
        ``boosting``), ``module:Class`` of yours, or its forecasts as a long table with the columns
        of series and time, ``mean``, and ``0.1`` to ``0.9`` where there are quantiles. F's
        forecasts are needed at test *and* learning origins, those of candidates at test origins.
    candidates : mapping of str to str, Forecaster or DataFrame
    series, time, target : str
        Columns of the table.
    horizon : int
        H, steps to forecast.
    season : int, optional
        m; what is usual for the frequency when omitted.
    frequency : str, optional
        As pandas spells it, old or new; seen from the times when omitted.
    rule, alpha : str, float, optional
        The rule that calls a window of F bad, and its threshold: ``mase``, ``sql``, ``quantile``
        (alpha is the worst share) or ``reducible``. Without alpha the threshold is that of the
        worst tenth of F's windows at learning origins.
    loss : {'mase', 'sql'}
        What is compared.
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
    level : float
        Coverage of the intervals.
    seed : int
        Same input and seed, same numbers.

    Returns
    -------
    ForecastComparison
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
    >>> from amlb_ext.forecasting.bundled_series import simulate_series
    >>> table = simulate_series(40, 96)
    >>> columns = {"series": "item_id", "time": "timestamp", "target": "target"}
    >>> result = compare_forecasts(
    ...     table, "theta", {"naive": "drift"}, horizon=12, learning=1, twins=0, **columns)
    >>> result.table["overall"].tolist()
    ['worse']
    """
    _check_settings(candidates, twins)
    table = to_pandas(table, what="table")
    roles = PanelRoles(
        series=series,
        time=time,
        target=target,
        horizon=horizon,
        season=season,
        frequency=frequency,
    )
    panel = read_panel(table, roles)
    forecaster = as_forecaster(baseline, "F", roles)
    others = {str(n): as_forecaster(c, str(n), roles) for n, c in candidates.items()}
    planned = plan_origins(
        panel,
        test=origins,
        learning=learning,
        step=step,
        cutoff=cutoff,
        first_cutoff=first_cutoff,
    )
    failing = find_failing_windows(
        forecaster, panel, planned, rule=rule, alpha=alpha, seed=seed
    )
    rolled = {}
    for name, other in others.items():
        rolled[name] = roll_forecaster(other, panel, failing.tests, seed)
    twin_forecasts = []
    # few series are compared over time alone, which needs no twin
    n_series = len(np.unique(failing.items))
    count = twins if n_series >= FEWEST_SERIES else 0
    for twin in forecaster.twins(count, panel.season):
        twin_forecasts.append(
            roll_forecaster(twin, panel, failing.tests, seed, keep_quantiles=False)
        )
    return answer_comparison(
        failing, rolled, twin_forecasts, loss=loss, level=level, seed=seed
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
    if isinstance(given, pd.DataFrame):
        return forecasts_from_table(given, name, series=roles.series, time=roles.time)
    raise ConfigError(
        f"{name} is a {type(given).__name__}",
        "give the name of a baseline, module:Class, or a table of forecasts",
    )


def answer_comparison(
    failing: FailingWindows,
    rolled: Mapping[str, RolledForecasts],
    twins: list[RolledForecasts],
    *,
    loss: Loss = "mase",
    level: float = 0.95,
    seed: int = 0,
) -> ForecastComparison:
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
        Too few series and origins, or a forecaster without quantiles where SQL is compared.
    """
    loss_f = _known_loss(failing.forecasts, "F", loss)
    losses = pd.DataFrame(
        {name: _known_loss(forecasts, name, loss) for name, forecasts in rolled.items()}
    )
    refits = None
    if twins:
        columns = [_known_loss(twin, "a twin of F", loss) for twin in twins]
        refits = pd.DataFrame(dict(enumerate(columns)))
    n_series = len(np.unique(failing.items))
    if n_series >= FEWEST_SERIES:
        answers, weighting = _answer_by_series(failing, losses, loss_f, refits, level)
    else:
        answers, weighting = _answer_over_time(failing, losses, loss_f, level, n_series)
    answers["relative"] = answers["difference"] / answers["loss_f"]
    return ForecastComparison(
        contrasts=answers.rename(columns={"candidate": "model"}),
        slices=pd.DataFrame(),
        loss_name=LOSSES[loss],
        unit="windows",
        n_rows=len(loss_f),
        n_bad=int(failing.is_bad.sum()),
        rule=failing.rule.text,
        weighting=weighting,
        level=level,
        refits=len(twins),
        seed=seed,
        notes=_notes(failing, n_series, len(twins)),
        failing=failing,
        forecasts=dict(rolled),
    )


def _check_settings(candidates: Any, twins: int) -> None:
    check_candidates(candidates, '{"ets": "ets"}')
    if twins == 1:
        raise ConfigError(f"{twins} twins", "give 2 or more, or 0 for none")


def _known_loss(forecasts: RolledForecasts, name: str, loss: str) -> np.ndarray:
    known = forecasts.loss(loss)
    if known is None:
        raise DataError(
            f"{name} forecasts no quantiles, so it has no SQL",
            "give quantiles (columns 0.1 to 0.9), or compare with loss 'mase'",
        )
    return known


def _answer_by_series(
    failing: FailingWindows,
    losses: pd.DataFrame,
    loss_f: np.ndarray,
    refits: pd.DataFrame | None,
    level: float,
) -> tuple[pd.DataFrame, str]:
    """Return the answers, clustered by series, and how windows count where F fails."""
    weights = failing.weighting.weights
    items = failing.items
    rows = ComparedRows(
        loss_f=loss_f,
        weights=weights,
        reweighted=failing.weighting.reweighted,
        clusters=items,
        refits=refits,
        level=level,
        calendar=failing.cutoffs,
    )
    answers = answer_questions(losses, rows, no_claim=failing.weighting.reason)
    weighting = choose_weighting(weights, items)
    text = failing.weighting.reason or why_no_region(weighting) or weighting.reason
    answers["reason"] = answers["reason"].map(of_windows)
    return answers, of_windows(text)


def _answer_over_time(
    failing: FailingWindows,
    losses: pd.DataFrame,
    loss_f: np.ndarray,
    level: float,
    n_series: int,
) -> tuple[pd.DataFrame, str]:
    """Return the answers of the Diebold-Mariano test over origins, for few series."""
    tests = failing.origins.test
    if len(tests) < FEWEST_ORIGINS:
        plural = "s" if len(tests) > 1 else ""
        raise DataError(
            f"{n_series} series at {len(tests)} origin{plural}: nothing valid can be said of so "
            "few",
            f"give {FEWEST_SERIES} series or more, or ask for {FEWEST_ORIGINS} or more test "
            "origins (--origins 30 --step 1)",
        )
    overlap = -(-failing.panel.horizon // failing.origins.step)
    records = []
    origin_of = np.searchsorted(np.array(tests), failing.cutoffs)
    counts = np.bincount(origin_of, minlength=len(tests))
    for name in losses.columns:
        differences = losses[name].to_numpy() - loss_f
        by_origin = np.bincount(origin_of, differences, minlength=len(tests)) / counts
        estimate = diebold_mariano(by_origin, overlap, level)
        records.append(
            {
                "candidate": name,
                "question": OVERALL,
                "rows": len(loss_f),
                "loss": float(losses[name].mean()),
                "loss_f": float(loss_f.mean()),
                "difference": estimate.point,
                "low": estimate.low,
                "high": estimate.high,
                "p": p_value(estimate),
                "effective_size": float(len(tests)),
                "weighted": False,
                "by": BY_PLAIN,
                "reason": estimate.reason,
            }
        )
    adjusted = holm_adjusted(np.array([record["p"] for record in records]))
    for record, p in zip(records, adjusted, strict=True):
        is_shown = p < 1 - level
        word = "better" if record["difference"] < 0 else "worse"
        record["p_adjusted"] = p
        record["verdict"] = word if is_shown else "undecided"
        said = f"significantly {word} than F over {len(tests)} origins"
        record["reason"] = (
            said if is_shown else record["reason"] or "no significant difference from F"
        )
    reason = failing.weighting.reason
    for name in losses.columns:
        records.append(
            {
                "candidate": name,
                "question": REGION,
                "rows": len(loss_f),
                "weighted": False,
                "by": "",
                "verdict": "no claim",
                "reason": reason,
            }
        )
    table = pd.DataFrame(records, columns=CONTRAST_COLUMNS)
    return table.astype(dict.fromkeys(NUMBERS, float)), reason


def _notes(failing: FailingWindows, n_series: int, n_twins: int) -> tuple[str, ...]:
    panel, origins = failing.panel, failing.origins
    cutoffs = [panel.time_text(cutoff) for cutoff in origins.test]
    first = cutoffs[0] if len(cutoffs) == 1 else f"{cutoffs[0]} to {cutoffs[-1]}"
    plural = "" if len(cutoffs) == 1 else "s"
    notes = [
        f"{n_series} series, {len(cutoffs)} test origin{plural} (last value seen: {first}), "
        f"{len(origins.learning)} origins before to learn from; horizon {panel.horizon}, season "
        f"{panel.season}, frequency {panel.frequency}",
        *panel.notes,
        *describe_left_out(failing.left_out),
        *describe_heavy_windows(failing),
    ]
    if n_twins:
        notes.append(
            f"null control: {n_twins} twins of F, the same method on less of the past or on halves "
            "of the series; where F fails a model must differ from F and from its twins"
        )
    elif n_series >= FEWEST_SERIES:
        notes.append(
            "F has no twin: without this null control no model is called better where F fails"
        )
    bad = failing.is_bad
    share = format_percent(float(bad.mean()))
    mean = format_decimals(float(failing.forecasts.mase[bad].mean()), 2)
    notes.append(f"F's MASE on its bad windows ({share} of all) is {mean}")
    return tuple(notes)
