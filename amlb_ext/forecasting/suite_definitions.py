"""The definitions of a suite of forecasting tasks: AMLB's, its hard twin's, and fev's.

They name the place where the suite stands, since neither AMLB nor fev looks beside a definition for
the files of series. So their bytes are in no checksum; they are made anew from the manifest.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from amlb_ext.forecasting.fev_files import fev_definition_path, fev_entries
from amlb_ext.forecasting.series_twin import twin_entries
from amlb_ext.forecasting.suite_files import ForecastSuite, definition_entries
from amlb_ext.suite.definition import yaml_text


def amlb_definitions(
    suite: ForecastSuite, root: Path | None = None
) -> dict[str, list[dict[str, Any]]]:
    """Return the entries of each of AMLB's definitions by its name, the main one first.

    Parameters
    ----------
    suite : ForecastSuite
    root : Path, optional
        Where the suite stands; without it paths are those in the suite.
    """
    contents: dict[str, list[dict[str, Any]]] = {
        suite.name: [],
        f"{suite.name}_all": [],
    }
    for table in suite.tables:
        contents[suite.name] += definition_entries(table, table.main_tasks, root)
        contents[f"{suite.name}_all"] += definition_entries(table, table.tasks, root)
    pair = suite.manifest.pair
    if pair is not None:
        every = {entry["name"]: entry for entry in contents[f"{suite.name}_all"]}
        contents[pair.name] = twin_entries(pair, every)
    return contents


def definitions(suite: ForecastSuite, root: Path) -> dict[Path, str]:
    """Return the text of each definition of a suite that stands at ``root``, by its file."""
    texts = {}
    for name, entries in amlb_definitions(suite, root).items():
        texts[suite.layout.definition(name)] = yaml_text(entries)
    texts[fev_definition_path(suite.layout)] = yaml_text(fev_entries(suite, root))
    return texts
