"""The losses of windows: their numbers by hand, a user's own, and the page that lists them."""

from pathlib import Path

import numpy as np
import pytest

from amlb_ext.comparison.forecasts import compare_forecasts
from amlb_ext.core.errors import ConfigError, DataError
from amlb_ext.models.forecasters import LEVELS, Forecasts
from amlb_ext.sources.bundled_series import simulate_series
from amlb_ext.stats.window_losses import (
    WINDOW_LOSSES,
    ForecastWindows,
)

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "forecasting.md"
COLUMNS = {"series": "item_id", "time": "timestamp", "target": "target", "horizon": 6}


def two_windows(quantiles=None, y=((3.0, 5.0), (0.0, 4.0))):
    """Return windows of scales 2 and 4, root mean square scales 4 and 5."""
    y = np.array(y)
    return ForecastWindows(
        y=y,
        forecast=Forecasts(
            mean=np.array([[2.0, 8.0], [0.0, 0.0]]), quantiles=quantiles
        ),
        levels=np.array([0.9]),
        scale=np.array([2.0, 4.0]),
        rms_scale=np.array([4.0, 5.0]),
        mean_size=float(np.abs(y).mean()),
    )


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        # errors 1, 3 and 0, 4
        ("mase", [2 / 2, 2 / 4]),
        ("mae", [2, 2]),
        ("rmsse", [5**0.5 / 4, 8**0.5 / 5]),
        # forecast 1 above, twice; then 1 above and 3 below: 2 (.1 gap) and 2 (.9 gap)
        ("crps", [0.2, (0.2 + 5.4) / 2]),
        ("sql", [0.1, 0.7]),
        # the mean size of 3, 5, 0, 4 is 3
        ("wql", [0.2 / 3, 2.8 / 3]),
    ],
)
def test_each_loss_is_the_number_computed_by_hand(name, expected):
    quantiles = np.array([[[4.0], [6.0]], [[1.0], [1.0]]])
    assert WINDOW_LOSSES[name](two_windows(quantiles)) == pytest.approx(expected)


def test_the_wql_of_zeros_alone_is_no_number():
    quantiles = np.zeros((2, 2, 1))
    nothing = two_windows(quantiles, y=np.zeros((2, 2)))
    assert np.isnan(WINDOW_LOSSES["wql"](nothing)).all()


def compare(loss, candidates=None, table=None, **how):
    return compare_forecasts(
        simulate_series(30, 60) if table is None else table,
        "seasonal_naive",
        candidates or {"drift": "drift"},
        loss=loss,
        learning=1,
        twins=2,
        **how,
        **COLUMNS,
    )


def absolute(y, forecast):
    assert forecast.quantiles.shape == (*y.shape, len(LEVELS))
    return np.abs(y - forecast.mean).mean(axis=1)


def test_an_own_loss_gives_the_answer_of_the_named_one():
    named, own = compare("mae"), compare(absolute)
    assert own.loss_name == "your loss absolute"
    for figure in ("difference", "low", "high", "loss_f"):
        assert own.contrasts[figure].to_numpy() == pytest.approx(
            named.contrasts[figure].to_numpy(), nan_ok=True
        )
    assert own.scores["own"].to_numpy() == pytest.approx(named.scores["mae"].to_numpy())
    assert "own_drift" in own.windows
    assert "your loss" in own.text()


@pytest.mark.parametrize(
    ("loss", "error", "message"),
    [
        ("rmse", ConfigError, "did you mean 'rmsse'"),
        (3, ConfigError, "3 is no loss"),
        (lambda y, forecast: y, DataError, r"shape \(30, 6\) for 30 windows"),
        (lambda y, forecast: y - forecast, DataError, "raises TypeError"),
        (lambda y, forecast: -(y[:, 0] ** 2), DataError, "is negative on"),
    ],
)
def test_what_is_no_loss_of_windows_is_refused(loss, error, message):
    with pytest.raises(error, match=message):
        compare(loss)


def test_a_loss_of_quantiles_is_refused_where_a_forecaster_has_none():
    table = simulate_series(30, 60)
    times = np.sort(table["timestamp"].unique())[-6:]
    forecasts = table[table["timestamp"].isin(times)].rename(columns={"target": "mean"})
    with pytest.raises(
        DataError, match="new forecasts no quantiles, so it has no CRPS"
    ):
        compare("crps", {"new": forecasts}, table)


def test_where_most_values_are_0_the_answer_names_losses_that_do_not_favour_zeros():
    table = simulate_series(30, 60)
    is_sold = np.random.default_rng(0).random(len(table)) < 0.2
    table["target"] = table["target"].abs().where(is_sold, 0)
    by_mase, by_wql = compare("mase", table=table), compare("wql", table=table)
    (note,) = [
        note for note in by_mase.notes if "of the values to forecast are 0" in note
    ]
    assert "--loss wql, rmsse or sql, which do not" in note
    (note,) = [
        note for note in by_wql.notes if "of the values to forecast are 0" in note
    ]
    assert "--loss" not in note
    assert f"F {by_wql.scores.loc['F', 'wql']:.2f}" in note


def test_the_page_lists_every_loss_as_it_is():
    lines = PAGE.read_text().splitlines()
    begin = lines.index("## The loss")
    end = next(k for k in range(begin + 1, len(lines)) if lines[k].startswith("## "))
    rows = {}
    for line in lines[begin:end]:
        cells = line.replace(r"\|", "\0").strip("|").split("|")
        cells = [cell.replace("\0", "|").strip() for cell in cells]
        if len(cells) > 1 and cells[0].startswith("`") and "=" not in cells[0]:
            rows[cells[0].split("`")[1]] = cells[1:]
    units = {"scales": "scales", "target": "the target's", "": ""}
    assert rows == {
        name: [
            f"`{loss.formula}`",
            units[loss.unit],
            loss.basis,
            "yes" if loss.basis == "quantiles" else "no",
        ]
        for name, loss in WINDOW_LOSSES.items()
    }
