"""What the paper's settings may be used for: a suite for each row, and its certificate."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import pandas as pd
from pydantic import Field

from amlb_ext.core.config import build_config
from amlb_ext.core.files import write_file
from amlb_ext.core.parallel import Execution
from amlb_ext.core.task import Task
from amlb_ext.pipeline import Request, generate_suite
from benchmarks.studies.engine import Labels, Rows, Study, asked_of
from benchmarks.studies.page import Part, Table
from benchmarks.studies.paper import settings
from benchmarks.studies.paper.data import PaperSettings
from benchmarks.studies.paper.settings import row_settings
from benchmarks.studies.paper.tables import load_task

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


def _cells(chosen: CertificateSettings, _: Path | None) -> Iterator[Labels]:
    for table in chosen.tables:
        for data in asked_of(TABLES[table], chosen.data):
            for row in TABLES[table][data]:
                yield {"table": table, "data": data, "row": row}


def certify_row(
    chosen: CertificateSettings, task: Task, *, table: str, data: str, row: str
) -> Rows:
    """Return the verdict on a suite that the pipeline makes by a row's settings."""
    [setting] = row_settings({row: TABLES[table][data][row]}, data, chosen)
    rows = task.features.assign(**{task.target_name: task.target})
    rows = rows.iloc[: chosen.most_rows]
    layer = setting.config.model_dump(exclude={"source", "split", "name"})
    source = {"target": task.target_name, "kind": str(task.kind)}
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / f"{task.name}.csv"
        write_file(path, lambda part: rows.to_csv(part, index=False))
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
    return [{"verdict": verdict["verdict"], "reason": reason, "value": len(rows)}]


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
        cells=_cells,
        load=load_task,
        compute=certify_row,
        summarize=_summarize,
        small={
            "tables": ("table-a1",),
            "data": ("toy_10",),
            "most_rows": 300,
            "config": settings.QUICK,
        },
        files=True,
    ),
)
