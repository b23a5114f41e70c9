"""A comparison drawn, as one HTML page, and as what a notebook shows."""

from __future__ import annotations

import io
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from amlb_ext.comparison.result import ModelComparison, change_text
from amlb_ext.core.assets import asset_path
from amlb_ext.core.display import (
    format_decimals,
    format_interval,
    format_level,
    format_number,
    format_p_value,
    format_percent,
    is_known,
)
from amlb_ext.stats.claims import OVERALL, REGION
from amlb_ext.swap.answer import Swap
from amlb_ext.swap.plot import (
    draw_change,
    draw_curve,
    draw_segments,
    finish_forest,
    new_axes,
)

#: Columns that the page has room for.
MOST_COLUMNS = 12
#: Pictures of the windows on which F is worst.
MOST_PICTURES = 6
#: Colour and mark of each question.
_STYLE = {OVERALL: ("#2f3842", "o"), REGION: ("#c2371e", "D")}


def render_comparison(result: ModelComparison) -> str:
    """Return the page."""
    style = (asset_path("resources", "report") / "report.css").read_text("utf-8")
    windows = ""
    if result.draw_worst is not None:
        figure = result.draw_worst(MOST_PICTURES, Figure(layout="constrained"))
        windows = _figure_as_svg(figure, salt="windows")
    page = _environment().get_template("comparison.html.j2")
    return page.render(
        result=result,
        style=Markup(style),
        picture=_comparison_svg(result),
        worst=Markup(_worst_table(result)),
        windows=windows,
    )


def _worst_table(result: ModelComparison) -> str:
    """Return the rows on which F loses most as an HTML table; pandas escapes what it prints."""
    shown = result.worst.iloc[:, -MOST_COLUMNS:]
    table = shown.to_html(border=0, na_rep="", float_format=format_number)
    caption = f"<caption>The {result.unit.many} on which F loses most"
    if shown.shape[1] < result.worst.shape[1]:
        caption += f"; the last {MOST_COLUMNS} of {result.worst.shape[1]} columns"
    return table.replace("<thead>", f"{caption}</caption><thead>", 1)


def _curve_svg(swap: Swap) -> Markup:
    """Return the picture of a swap's rate curve."""
    figure = Figure((6.0, 3.2), layout="constrained")
    draw_curve(swap, figure.subplots())
    return _figure_as_svg(figure, salt=f"curve {swap.name}")


def _forest_svg(result: ModelComparison) -> Markup:
    """Return the picture of the user's segments."""
    figure = Figure((7.0, 1.2 + 0.3 * len(result.segments)), layout="constrained")
    draw_segments(result.segments, result.base, figure.subplots())
    return _figure_as_svg(figure, salt="segments")


def render_summary(result: ModelComparison) -> str:
    """Return the headline, the table and the picture, for a notebook's cell."""
    summary = _environment().get_template("summary.html.j2")
    return summary.render(result=result, picture=_comparison_svg(result))


@lru_cache(maxsize=1)
def _environment() -> Environment:
    """Return the environment of the templates in ``resources/comparison``."""
    environment = template_environment("comparison")
    environment.filters["change"] = change_text
    environment.globals.update(
        curve=_curve_svg, forest=_forest_svg, OVERALL=OVERALL, REGION=REGION
    )
    return environment


def template_environment(
    folder: str, finalize: Callable[[Any], Any] | None = None
) -> Environment:
    """Return an environment of the templates in a folder of ``resources``."""
    environment = Environment(
        loader=FileSystemLoader(asset_path("resources", folder)),
        autoescape=True,
        # A name that a template has wrong is an error, not an empty place on the page.
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=finalize,
    )
    environment.filters.update(
        decimals=format_decimals,
        estimate=format_interval,
        known=is_known,
        number=format_number,
        p_value=format_p_value,
        percent=format_percent,
    )
    return environment


def draw_comparison(result: ModelComparison, ax: Axes | None = None) -> Axes:
    """Draw the change of F's loss with its interval, for each model and question.

    Parameters
    ----------
    result : ModelComparison
    ax : Axes, optional
        Drawn on a new figure when omitted.
    """
    ax = ax or new_axes(*_size(result))
    named: set[str] = set()
    labels = {OVERALL: OVERALL, REGION: result.where_f_fails}
    for place, model in enumerate(reversed(result.models)):
        for offset, question in ((0.14, OVERALL), (-0.14, REGION)):
            row = result.row(model, question)
            if not is_known(row["relative"]):
                continue
            colour, mark = _STYLE[question]
            draw_change(
                ax,
                row,
                row["loss_f"],
                place + offset,
                fmt=mark,
                color=colour,
                label=None if question in named else labels[question],
            )
            named.add(question)
    ax.set_yticks(range(len(result.models)), list(reversed(result.models)))
    ax.set_ylim(-0.6, len(result.models) - 0.4)
    ax.set_xlabel(
        f"change of F's loss, {format_level(result.level)} interval (left of 0: better than F)"
    )
    if named:
        ax.legend(loc="best", frameon=False)
    return finish_forest(ax)


def _size(result: ModelComparison) -> tuple[float, float]:
    return 7.0, 1.4 + 0.6 * len(result.models)


def _comparison_svg(result: ModelComparison) -> Markup:
    """Return the picture; the same result gives the same text."""
    figure = Figure(_size(result), layout="constrained")
    draw_comparison(result, figure.subplots())
    return _figure_as_svg(figure, salt="comparison")


def _figure_as_svg(figure: Figure, *, salt: str) -> Markup:
    """Return a figure as SVG for a page: its text stays text, and the bytes are reproducible.

    The salt is of the identifiers in it, so that two pictures on one page have others.
    """
    FigureCanvasSVG(figure)
    written = io.StringIO()
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": salt}):
        figure.savefig(
            written,
            format="svg",
            metadata=dict.fromkeys(("Date", "Creator", "Format", "Type")),
            transparent=True,
        )
    # an SVG inside a page has no XML declaration
    text = written.getvalue()
    return Markup(text[text.index("<svg") :])
