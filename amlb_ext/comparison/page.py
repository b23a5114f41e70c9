"""A comparison as one HTML page, and as what a notebook shows."""

from __future__ import annotations

from functools import lru_cache

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from amlb_ext.comparison.plot import comparison_svg, worst_svg
from amlb_ext.comparison.result import ModelComparison, change_text
from amlb_ext.core.assets import asset_path
from amlb_ext.core.display import (
    format_decimals,
    format_interval,
    format_number,
    format_p_value,
    format_percent,
    is_known,
)
from amlb_ext.stats.claims import CONCENTRATED, OVERALL, REGION

#: Columns that the page has room for.
MOST_COLUMNS = 12


def render_comparison(result: ModelComparison) -> str:
    """Return the page."""
    style = (asset_path("resources", "report") / "report.css").read_text("utf-8")
    return (
        _environment()
        .get_template("comparison.html.j2")
        .render(
            result=result,
            style=Markup(style),
            picture=Markup(comparison_svg(result)),
            worst=Markup(_worst_table(result)),
            windows=Markup(worst_svg(result)),
        )
    )


def _worst_table(result: ModelComparison) -> str:
    """Return the rows on which F loses most as an HTML table; pandas escapes what it prints."""
    shown = result.worst.iloc[:, -MOST_COLUMNS:]
    table = shown.to_html(border=0, na_rep="", float_format=format_number)
    caption = f"<caption>The {result.unit.many} on which F loses most"
    if shown.shape[1] < result.worst.shape[1]:
        caption += f"; the last {MOST_COLUMNS} of {result.worst.shape[1]} columns"
    return table.replace("<thead>", f"{caption}</caption><thead>", 1)


def render_summary(result: ModelComparison) -> str:
    """Return the headline, the table and the picture, for a notebook's cell."""
    return (
        _environment()
        .get_template("summary.html.j2")
        .render(result=result, picture=Markup(comparison_svg(result)))
    )


@lru_cache(maxsize=1)
def _environment() -> Environment:
    """Return the environment of the templates in ``resources/comparison``."""
    environment = Environment(
        loader=FileSystemLoader(asset_path("resources", "comparison")),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        change=change_text,
        decimals=format_decimals,
        estimate=format_interval,
        known=is_known,
        number=format_number,
        p_value=format_p_value,
        percent=format_percent,
    )
    environment.globals.update(
        OVERALL=OVERALL, REGION=REGION, CONCENTRATED=CONCENTRATED
    )
    return environment
