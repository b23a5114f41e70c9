"""One page of all that was reproduced in a folder: tables, figures, certificates.

It loads nothing, so it opens from disk; the templates escape whatever they print, and marked as
safe are our own style and the drawings of :mod:`~amlb_ext.experiments.paper.figures`.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import Any

import pandas as pd
import yaml
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from amlb_ext.core.assets import asset_path
from amlb_ext.core.files import write_text
from amlb_ext.core.version import __version__
from amlb_ext.experiments.agreement import agreement_word
from amlb_ext.experiments.osyn import TABLES, page_blocks
from amlb_ext.experiments.paper.cells import MEASURES, PARTS, format_printed
from amlb_ext.experiments.paper.data import DATA
from amlb_ext.experiments.paper.settings import EXPERIMENTS, Experiment
from amlb_ext.experiments.swarms import TABLES as SWARM_TABLES
from amlb_ext.experiments.swarms.page_blocks import PAPER as SWARM_PAPER
from amlb_ext.experiments.swarms.pictures import CAPTIONS as SWARM_CAPTIONS

#: The page, and the file of each experiment that it is made from.
PAGE = "index.html"
RESULT = "result.json"
OSYN_PAPER = (
    "Hoang Thanh, Nguyen, The Tran, Than, “Using Synthetic Data to estimate the True Error is "
    "theoretically and practically doable”"
)
#: Tone of a badge, beside its word.
TONES = {
    "within": "yes",
    "outside": "no",
    "rank": "yes",
    "describe": "some",
    "stress-test only": "no",
    "none": "none",
}


def write_page(out: Path) -> Path:
    """Write ``index.html`` of every experiment that has a result in ``out``; return its path.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     write_page(Path(folder)).name
    'index.html'
    """
    experiments = [
        _paper_entry(folder) for folder in _folders_with_result(out, EXPERIMENTS)
    ]
    tables = [_osyn_entry(folder) for folder in _folders_with_result(out, TABLES)]
    swarm_folders = _folders_with_result(out, SWARM_TABLES)
    tables += [_swarm_entry(folder) for folder in swarm_folders]
    # the style of the report stands in the page, which so opens without a server
    style = asset_path("resources", "report", "report.css").read_text("utf-8")
    template = _template_environment().get_template("page.html.j2")
    text = template.render(
        experiments=experiments,
        seeds=tables,
        style=Markup(style),
        version=__version__,
        seconds=sum(entry["seconds"] for entry in [*experiments, *tables]),
    )
    write_text(out / PAGE, text)
    return out / PAGE


def _folders_with_result(out: Path, names: Iterable[str]) -> list[Path]:
    return [out / name for name in names if (out / name / RESULT).is_file()]


def _paper_entry(folder: Path) -> dict[str, Any]:
    """Return what the template needs of one table or figure of the paper."""
    result = json.loads((folder / RESULT).read_text(encoding="utf-8"))
    experiment = EXPERIMENTS[result["name"]]
    cells = pd.DataFrame(result["cells"])
    # an experiment that could not be had, or a figure, has no cells, and no columns then
    tables = _data_tables(experiment, cells, result["shares"]) if len(cells) else []
    drawings = []
    for name in result["figures"]:
        caption = _figure_caption(name, result["name"])
        drawings.append((caption, _image_address(folder / name)))
    return result | {
        "title": experiment.title,
        "tables": tables,
        "drawings": drawings,
        "differ": _disagreements(experiment, cells) if len(cells) else [],
    }


def _osyn_entry(folder: Path) -> dict[str, Any]:
    """Return what the template needs of one table of the seed paper."""
    result = json.loads((folder / RESULT).read_text(encoding="utf-8"))
    table = TABLES[result["name"]]
    blocks = page_blocks.table_blocks(table, pd.DataFrame(result["cells"]))
    return result | {
        "title": table.title,
        "paper": OSYN_PAPER,
        "unit": "repetitions",
        "blocks": blocks,
        "notes": page_blocks.table_notes(table),
        "drawings": [],
    }


def _swarm_entry(folder: Path) -> dict[str, Any]:
    """Return what the template needs of one table of the swarm paper."""
    result = json.loads((folder / RESULT).read_text(encoding="utf-8"))
    drawings = []
    for name in result["figures"]:
        drawings.append((SWARM_CAPTIONS[name], _image_address(folder / name)))
    return result | {
        "title": SWARM_TABLES[result["name"]].title,
        "paper": SWARM_PAPER,
        "unit": "draws",
        "drawings": drawings,
    }


def _data_tables(
    experiment: Experiment, cells: pd.DataFrame, shares: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Return one table per data set that has cells, and its shares of bad points."""
    tables = []
    for data in experiment.rows:
        data_cells = cells[cells["data"] == data]
        # a data set that could not be had has no table
        if not len(data_cells):
            continue
        table = {
            "data": data,
            "about": DATA[data],
            "rows": _cell_blocks(data_cells),
            "shares": [share for share in shares if share["data"] == data],
        }
        tables.append(table)
    return tables


def _cell_blocks(cells: pd.DataFrame) -> list[dict[str, Any]]:
    """Return one line per row, model and part, with a cell for each measure of the table."""
    # a part without a measure of the table has an empty cell
    measures = list(dict.fromkeys(cells["measure"]))
    lines = []
    for (row, model, part), group in cells.groupby(
        ["row", "model", "part"], sort=False
    ):
        by_measure = {str(cell.measure): cell for cell in group.itertuples()}
        entries = [
            _cell_entry(by_measure[measure]) if measure in by_measure else None
            for measure in measures
        ]
        lines.append(
            {"row": row, "model": model, "part": PARTS[part], "cells": entries}
        )
    return [{"measures": [MEASURES[measure] for measure in measures], "lines": lines}]


def _cell_entry(cell: Any) -> dict[str, str]:
    return {
        "paper": format_printed(cell.paper, cell.paper_std),
        "ours": format_printed(cell.ours, cell.ours_std),
        "mark": agreement_word(cell.within),
    }


def _figure_caption(file_name: str, experiment: str) -> str:
    """Return the text of a figure's data set, which its file is named after."""
    data = file_name.removeprefix(f"{experiment}_").removesuffix(".svg")
    return DATA[data].text if data in DATA else data


def _image_address(path: Path) -> str:
    """Return an address that holds the picture itself, so that the page loads nothing."""
    return "data:image/svg+xml;base64," + base64.b64encode(path.read_bytes()).decode()


def _disagreements(experiment: Experiment, cells: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the hypotheses of each data set with cells outside, and the names of these cells."""
    disagreements = []
    hypotheses = read_hypotheses().get(experiment.name, {})
    # None stands beside True and False in this column: `== False` would be lost on it
    outside = cells[cells["within"].isin([False])]
    for data in experiment.rows:
        data_cells = outside[outside["data"] == data]
        if not len(data_cells):
            continue
        names = []
        for cell in data_cells.itertuples():
            measure = MEASURES[str(cell.measure)]
            rows = PARTS[str(cell.part)]
            names.append(f"{cell.row}: {cell.model} on {rows}, {measure}")
        disagreement = {
            "data": DATA[data].text,
            "cells": names,
            "tested": hypotheses.get(data, []),
        }
        disagreements.append(disagreement)
    return disagreements


@lru_cache(maxsize=1)
def read_hypotheses() -> dict[str, Any]:
    """Return what was tested where cells disagree: experiment → data set → list of texts."""
    path = asset_path("resources", "reproduce", "hypotheses.yaml")
    return dict(yaml.safe_load(path.read_text(encoding="utf-8")))


@lru_cache(maxsize=1)
def _template_environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(asset_path("resources", "reproduce")),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        tone=_badge_tone, percent=_format_share, minutes=_format_seconds
    )
    return environment


def _badge_tone(word: Any) -> str:
    return TONES.get(str(word), "none")


def _format_share(share: float | None) -> str:
    # null in the result: the paper prints no share, or no split could be run
    return "–" if share is None else f"{100 * float(share):.3g} %"


def _format_seconds(seconds: float) -> str:
    if seconds >= 60:
        return f"{float(seconds) / 60:.1f} min"
    return f"{float(seconds):.1f} s"
