"""The files of a report: a table, a JSON document, a picture."""

from __future__ import annotations

from pathlib import Path

from amlb_ext.core.errors import ConfigError
from amlb_ext.core.files import write_file, write_text
from amlb_ext.estimate.answers import EstimateReport
from amlb_ext.estimate.plot import draw_estimates
from amlb_ext.suite.sealed_json import json_text


def write_report(report: EstimateReport, folder: Path) -> None:
    """Write ``estimates.csv``, ``estimate.json``, ``estimate.svg``, and what OSYN explored.

    Raises
    ------
    ConfigError
        The folder is a file.
    """
    if folder.exists() and not folder.is_dir():
        raise ConfigError(f"{folder} is a file", "choose a folder with -o")
    folder.mkdir(parents=True, exist_ok=True)
    write_text(folder / "estimates.csv", report.table().to_csv(index=False))
    write_text(folder / "estimate.json", json_text(report.to_json()))
    picture = draw_estimates(report)
    write_file(folder / "estimate.svg", lambda path: path.write_bytes(picture))
    if report.osyn is not None and report.osyn.sweep is not None:
        write_text(folder / "explore.csv", report.osyn.sweep.to_csv(index=False))
