"""A comparison of forecasters as one HTML page."""

from __future__ import annotations

from markupsafe import Markup

from amlb_ext.comparison.page import comparison_environment
from amlb_ext.comparison.plot import comparison_svg
from amlb_ext.core.assets import asset_path
from amlb_ext.forecasting.pictures import worst_windows_svg
from amlb_ext.forecasting.result import ForecastComparison


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
