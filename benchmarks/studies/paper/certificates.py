"""What the paper's settings may be used for: a suite for each row, and its certificate."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import ClassVar

import pandas as pd
from pydantic import Field

from amlb_ext.core.config import build_config
from amlb_ext.core.files import write_file
from amlb_ext.core.parallel import Execution
from amlb_ext.core.task import Task
from amlb_ext.pipeline import Request, generate_suite
from benchmarks.studies.engine import Cell, Plan, Rows, Study
from benchmarks.studies.page import Part, Table
from benchmarks.studies.paper import settings
from benchmarks.studies.paper.data import PaperSettings
from benchmarks.studies.paper.settings import Setting, row_settings
from benchmarks.studies.paper.tables import load_tasks

TABLES = {
    "table-1": settings.PRICE_LEVELS,
    "table-a1": settings.TOYS,
    "table-a2": settings.PRICES,
    "table-a3": settings.PATIENTS,
}
#: Folds of a suite, whose rows its certificate pools.
FOLDS = 2


class CertificateSettings(PaperSettings):
    """The settings of the paper's tables, and which of them.

    Attributes
    ----------
    tables : tuple of str
    most_rows : int
        Of a suite's table: its certificate fits a zoo of models to them.
    """

    chooses: ClassVar[frozenset[str]] = frozenset({"draws", "data", "tables"})

    tables: tuple[str, ...] = tuple(TABLES)
    most_rows: int = Field(5_000, ge=100)


def _plan(chosen: CertificateSettings, folder: Path | None) -> Plan:
    names = dict.fromkeys(data for table in chosen.tables for data in TABLES[table])
    tasks, left_out = load_tasks(list(names), chosen, folder)
    cells = []
    for table in chosen.tables:
        for data, layers in TABLES[table].items():
            if data not in tasks:
                continue
            task = tasks[data]
            for setting in row_settings(layers, data, chosen):
                cells.append(
                    Cell(
                        labels={"table": table, "data": data, "row": setting.name},
                        compute=certify_row,
                        arguments=(task, setting, chosen.most_rows),
                        content=task.content_hash,
                    )
                )
    return Plan(cells=cells, left_out=left_out)


def certify_row(task: Task, setting: Setting, most_rows: int) -> Rows:
    """Return the verdict on a suite that the pipeline makes by a row's settings."""
    table = task.features.assign(**{task.target_name: task.target}).iloc[:most_rows]
    layer = setting.config.model_dump(exclude={"source", "split", "name"})
    source = {"target": task.target_name, "kind": str(task.kind)}
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / f"{task.name}.csv"
        write_file(path, lambda part: table.to_csv(part, index=False))
        report = generate_suite(
            Request(
                sources=(str(path),),
                config=build_config(
                    layer, {"source": source, "split": {"folds": FOLDS}}
                ),
                out=Path(name) / "suite",
                execution=Execution(1),
                quiet=True,
            )
        )
    verdict = {"verdict": "none", "reason": "no suite was made"}
    if report.verdicts:
        # the table is the suite's only task
        verdict = next(iter(report.verdicts.values()))
    elif report.failures:
        verdict["reason"] = report.failures[0]["reason"]
    reason = str(verdict["reason"])
    return [{"verdict": verdict["verdict"], "reason": reason, "value": len(table)}]


def _summarize(rows: pd.DataFrame, chosen: CertificateSettings) -> list[Part]:
    columns = ["table", "data", "row", "verdict", "reason", "value"]
    frame = rows[columns].rename(columns={"value": "rows"})
    return [Table(heading="Certificates", frame=frame, file="certificates.csv")]


STUDIES = (
    Study(
        name="certificates",
        title="What the certificates say of suites by the settings of Tables 1 and A1 to A3",
        group="paper",
        settings=CertificateSettings(),
        plan=_plan,
        summarize=_summarize,
        small={
            "tables": ("table-a1",),
            "data": ("toy_10",),
            "most_rows": 300,
            "config": {
                "synthesizer": {"epochs": 1, "times": 1},
                "search": {"copies": 1, "generations": 2},
            },
        },
        files=True,
    ),
)
