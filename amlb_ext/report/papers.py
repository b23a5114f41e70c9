"""What of a report goes into a paper: tables as LaTeX, pictures as files of SVG."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

import pandas as pd

from amlb_ext.core.assets import asset_path
from amlb_ext.core.files import write_text
from amlb_ext.report.model import SuiteReport
from amlb_ext.report.ranks import draw_rank_diagram
from amlb_ext.report.still import draw_chart

#: Names of files, without ending, that one report has and the next may lack.
_SOMETIMES = ("ranks", "wins", "left_to_gain")
_COLOUR = re.compile(r"var\((--c-[\w-]+)\)")


def write_paper_files(report: SuiteReport, folder: Path) -> dict[str, str]:
    """Write the files into the folder of the report's tables.

    Parameters
    ----------
    report : SuiteReport
    folder : Path

    Returns
    -------
    dict of str to str
        Names of files by what they hold.
    """
    for name in _SOMETIMES:
        for ending in ("tex", "svg"):
            # that of an earlier report would be taken for one of this
            (folder / f"{name}.{ending}").unlink(missing_ok=True)
    written = {}
    for name, title, text in _paper_files(report):
        write_text(folder / name, text)
        written[f"{name}: {title}"] = name
    return written


def _paper_files(report: SuiteReport) -> Iterator[tuple[str, str, str]]:
    """Yield name, title and content of each file."""
    diagram = draw_rank_diagram(report.ranks, "ranks")
    if diagram:
        ranks = report.ranks.mean.rename("mean rank").rename_axis("framework")
        table = ranks.round(2).reset_index()
        yield "ranks.tex", "mean ranks", table_as_latex(table, "Mean ranks", "ranks")
        yield "ranks.svg", "mean ranks", standalone_svg(diagram)
    for section in report.sections:
        if not section.is_for_papers:
            continue
        text = table_as_latex(section.readable, section.title, section.key)
        yield f"{section.key}.tex", section.title, text
        for chart in section.charts:
            picture = standalone_svg(chart.drawn or draw_chart(chart))
            yield f"{chart.key}.svg", chart.title, picture


def table_as_latex(table: pd.DataFrame, caption: str, label: str) -> str:
    r"""Return a table for LaTeX with the package ``booktabs``; signs of LaTeX in it are escaped.

    Examples
    --------
    >>> print(table_as_latex(pd.DataFrame({"task": ["a_b"]}), "Tasks", "tasks").splitlines()[7])
    a\_b \\
    """
    # a minus sign of its own is no letter of LaTeX's fonts
    texts = table.map(lambda value: str(value).replace("−", "-").replace("–", "--"))
    return texts.to_latex(
        index=False, escape=True, caption=caption, label=f"tab:{label}"
    )


def standalone_svg(svg: str) -> str:
    """Return an ``<svg>`` element of a page as a file, in the page's colours for daylight.

    Examples
    --------
    >>> standalone_svg('<svg viewBox="0 0 9 4"><path style="fill:var(--c-ink)"/></svg>')
    '<svg width="9pt" height="4pt" font-family="sans-serif" viewBox="0 0 9 4"><path \
style="fill:#1b2025"/></svg>\\n'
    """
    colours = _daylight()
    text = _COLOUR.sub(lambda found: colours[found[1]], svg)
    width, height = re.search(r'viewBox="0 0 (\S+) (\S+)"', text).groups()  # type: ignore[union-attr]
    size = f'<svg width="{width}pt" height="{height}pt" font-family="sans-serif"'
    return text.replace("<svg", size, 1) + "\n"


@lru_cache(maxsize=1)
def _daylight() -> dict[str, str]:
    """Return the colours that the page's style sheet names first, those for a light page."""
    style = asset_path("resources", "report", "report.css").read_text("utf-8")
    colours: dict[str, str] = {}
    for name, value in re.findall(r"(--c-[\w-]+): (#\w+);", style):
        colours.setdefault(name, value)
    return colours
