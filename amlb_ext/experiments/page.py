"""One page of all that was reproduced in a folder: tables, figures, certificates.

It loads nothing, so it opens from disk; the templates escape whatever they print, and marked as
safe are our own style and the drawings of :mod:`~amlb_ext.experiments.paper.figures`.
"""

from __future__ import annotations

import base64
import json
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
from amlb_ext.experiments.osyn import TABLES, page_blocks
from amlb_ext.experiments.paper.cells import MEASURES, PARTS, agreement_word, format_number
from amlb_ext.experiments.paper.data import DATA
from amlb_ext.experiments.paper.settings import EXPERIMENTS

PAGE = "index.html"
RESULT = "result.json"
#: Tone of a badge, beside its word.
TONES = {"within": "yes", "outside": "no", "rank": "yes", "describe": "some",
         "stress-test only": "no", "none": "none"}  # fmt: skip


def write_page(out: Path) -> Path:
    """Write ``index.html`` of every experiment that has a result in ``out``; return its path.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     write_page(Path(folder)).name
    'index.html'
    """
    found = [_entry(out / name) for name in EXPERIMENTS if (out / name / RESULT).is_file()]
    seeds = [_seed_entry(out / name) for name in TABLES if (out / name / RESULT).is_file()]
    style = asset_path("resources", "report", "report.css").read_text("utf-8")
    template = _environment().get_template("page.html.j2")
    text = template.render(
        experiments=found,
        seeds=seeds,
        style=Markup(style),
        version=__version__,
        seconds=sum(entry["seconds"] for entry in [*found, *seeds]),
    )
    write_text(out / PAGE, text)
    return out / PAGE


def _entry(folder: Path) -> dict[str, Any]:
    """Return what the template needs of one experiment."""
    result = json.loads((folder / RESULT).read_text(encoding="utf-8"))
    experiment = EXPERIMENTS[result["name"]]
    cells = pd.DataFrame(result["cells"])
    tables = []
    for data in experiment.rows:
        part = cells[cells["data"] == data] if len(cells) else cells
        if len(part):
            of = [share for share in result["shares"] if share["data"] == data]
            tables.append({"data": data, "about": DATA[data], "rows": _rows(part), "shares": of})
    return result | {
        "title": experiment.title,
        "tables": tables,
        "drawings": [(_caption(name, result), _image(folder / name)) for name in result["figures"]],
        "differ": _disagreements(result),
    }


def _seed_entry(folder: Path) -> dict[str, Any]:
    """Return what the template needs of one table of the seed paper."""
    result = json.loads((folder / RESULT).read_text(encoding="utf-8"))
    table = TABLES[result["name"]]
    blocks = page_blocks.table_blocks(table, pd.DataFrame(result["cells"]))
    return result | {
        "title": table.title,
        "blocks": blocks,
        "notes": page_blocks.table_notes(table),
    }


def _rows(part: pd.DataFrame) -> list[dict[str, Any]]:
    """Return one line per row, model and part, with a cell for each measure of the table."""
    names = list(dict.fromkeys(part["measure"]))
    lines = []
    for (row, model, rows_of), group in part.groupby(["row", "model", "part"], sort=False):
        by = {cell.measure: cell for cell in group.itertuples()}
        cells = [_shown(by[name]) if name in by else None for name in names]
        lines.append({"row": row, "model": model, "part": PARTS[rows_of], "cells": cells})
    return [{"measures": [MEASURES[name] for name in names], "lines": lines}]


def _shown(cell: Any) -> dict[str, str]:
    return {
        "paper": format_number(_float(cell.paper), _float(cell.paper_std)),
        "ours": format_number(_float(cell.ours), _float(cell.ours_std)),
        "mark": agreement_word(cell.within),
    }


def _float(value: Any) -> float:
    return float("nan") if value is None else float(value)


def _caption(name: str, result: dict[str, Any]) -> str:
    data = name.removeprefix(f"{result['name']}_").removesuffix(".svg")
    return DATA[data].text if data in DATA else data


def _image(path: Path) -> str:
    """Return a picture as an address that holds it."""
    return "data:image/svg+xml;base64," + base64.b64encode(path.read_bytes()).decode()


def _disagreements(result: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the hypotheses of each data set with cells outside, with how many there are."""
    found = []
    known = tested_hypotheses().get(result["name"], {})
    cells = pd.DataFrame(result["cells"])
    for data in EXPERIMENTS[result["name"]].rows if len(cells) else ():
        part = cells[(cells["data"] == data) & cells["within"].isin([False])]
        if len(part):
            names = [
                f"{c.row}: {c.model} on {PARTS[c.part]}, {MEASURES[c.measure]}"
                for c in part.itertuples()
            ]
            found.append({"data": DATA[data].text, "cells": names, "tested": known.get(data, [])})
    return found


@lru_cache(maxsize=1)
def tested_hypotheses() -> dict[str, Any]:
    """Return what was tested where cells disagree: experiment → data set → list of texts."""
    path = asset_path("resources", "reproduce", "hypotheses.yaml")
    return dict(yaml.safe_load(path.read_text(encoding="utf-8")))


@lru_cache(maxsize=1)
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(asset_path("resources", "reproduce")),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        tone=lambda word: TONES.get(str(word), "none"),
        percent=lambda x: "–" if x is None else f"{100 * float(x):.3g} %",
        minutes=lambda s: f"{float(s) / 60:.1f} min" if s >= 60 else f"{float(s):.1f} s",
    )
    return environment
