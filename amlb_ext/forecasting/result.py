"""What a comparison of forecasters returns: the answer, the windows, pictures and a page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from markupsafe import Markup

from amlb_ext.comparison.page import comparison_environment
from amlb_ext.comparison.plot import comparison_svg
from amlb_ext.comparison.result import ModelComparison
from amlb_ext.core.assets import asset_path
from amlb_ext.core.display import text_table
from amlb_ext.core.files import write_text
from amlb_ext.forecasting.pictures import worst_windows_svg

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from amlb_ext.forecasting.failing_windows import FailingWindows
    from amlb_ext.forecasting.rolling import RolledForecasts


@dataclass(frozen=True, kw_only=True, repr=False)
class ForecastComparison(ModelComparison):
    """Which forecaster is better than F; see :class:`~amlb_ext.comparison.ModelComparison`.

    Attributes
    ----------
    failing : FailingWindows
        The windows, F's forecasts, which are bad and what they count.
    forecasts : mapping of str to RolledForecasts
        Of the candidates.
    """

    failing: FailingWindows
    forecasts: Mapping[str, RolledForecasts] = field(default_factory=dict)

    @property
    def scores(self) -> pd.DataFrame:
        """Mean MASE and SQL of F and each model: over all windows, where F fails, on bad ones.

        ``region`` columns are weighted means; those of ``bad`` were chosen by F's own errors, which
        flatters every other model.
        """
        weights = self.failing.weighting.weights
        records = {}
        for name, rolled in {"F": self.failing.forecasts, **self.forecasts}.items():
            record = {}
            for loss in ("mase", "sql"):
                values = rolled.loss(loss)
                if values is None:
                    values = np.full(len(rolled.mase), np.nan)
                record[loss] = values.mean()
                record[f"{loss}_region"] = np.nan
                if weights is not None:
                    record[f"{loss}_region"] = np.average(values, weights=weights)
                record[f"{loss}_bad"] = values[self.failing.is_bad].mean()
            records[name] = record
        return pd.DataFrame.from_dict(records, orient="index").rename_axis("model")

    @property
    def windows(self) -> pd.DataFrame:
        """One row for each window: series, cutoff, scale, bad, weight, losses of each model."""
        table = self.failing.table()
        for name, rolled in {"F": self.failing.forecasts, **self.forecasts}.items():
            table[f"mase_{name}"] = rolled.mase
            if rolled.sql is not None:
                table[f"sql_{name}"] = rolled.sql
        return table

    def summary(self) -> dict[str, Any]:
        """Return the answer for JSON: verdicts, contrasts, scores, notes, without forecasts."""
        return {
            "table": self.table.reset_index().to_dict("records"),
            "contrasts": self.contrasts.to_dict("records"),
            "scores": self.scores.reset_index().to_dict("records"),
            "windows": self.n_rows,
            "bad": self.n_bad,
            "rule": self.rule,
            "weighting": self.weighting,
            "level": self.level,
            "notes": list(self.notes),
        }

    def text(self) -> str:
        """Return the answer as text, for a terminal."""
        scores = self.scores
        rows = []
        for name, record in scores.iterrows():
            values = [record["mase"], record["mase_region"], record["mase_bad"]]
            rows.append([str(name), *values, record["sql"]])
        headers = ["model", "MASE", "where F fails", "bad windows of F", "SQL"]
        worst = self.failing.table().nlargest(3, "hardness")
        named = [f"{row.series} ({row.hardness:.2f})" for row in worst.itertuples()]
        lines = [
            super().text(),
            text_table(headers, rows),
            "bad windows were chosen by F's errors, which flatters every other model",
            "",
            f"worst windows of F: {', '.join(named)}",
        ]
        return "\n".join(lines) + "\n"

    def plot_worst(self, count: int = 6) -> Figure:
        """Draw F's worst windows: the past, what came, and what F and the models forecast.

        Parameters
        ----------
        count : int
        """
        from amlb_ext.forecasting.pictures import draw_worst_windows

        return draw_worst_windows(self, count)

    def to_html(self, path: str | Path | None = None) -> str:
        """Return the answer as one HTML page that loads nothing, and write it where asked.

        Parameters
        ----------
        path : path, optional
            The file to write, e.g. ``report.html``.
        """

        page = render_forecast_comparison(self)
        if path is not None:
            write_text(Path(path), page)
        return page


def render_forecast_comparison(result: ForecastComparison) -> str:
    """Return the page."""
    style = (asset_path("resources", "report") / "report.css").read_text("utf-8")
    template = comparison_environment().get_template("forecasts.html.j2")
    return template.render(
        result=result,
        style=Markup(style),
        picture=Markup(comparison_svg(result)),
        windows=Markup(worst_windows_svg(result)),
    )
