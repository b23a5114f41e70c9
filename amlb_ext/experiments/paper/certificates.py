"""What each reproduced row may be used for: a suite by the same settings, and its certificate."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from amlb_ext.core.config import GenerateConfig, build_config
from amlb_ext.core.errors import HardsynthError
from amlb_ext.core.files import write_file
from amlb_ext.core.parallel import Execution
from amlb_ext.core.task import Task
from amlb_ext.experiments.paper.settings import Experiment, Setting
from amlb_ext.pipeline import Request, generate_suite

#: Folds of a suite, whose rows its certificate pools.
FOLDS = 2
#: Most rows of a suite's table: its certificate fits a zoo of models to them.
MOST_ROWS = 5_000


def certify_rows(
    experiment: Experiment,
    tasks: dict[str, tuple[Task, list[Setting]]],
    out: Path,
    *,
    workers: int = 0,
    quiet: bool = True,
) -> list[dict[str, Any]]:
    """Make a suite per row with the pipeline and return what its certificate says.

    The settings are the row's own, so F, K, search and synthesizer are the paper's; the table is
    cut to :data:`MOST_ROWS` rows. Suites stand in ``suites/`` and are continued, not made again.

    Returns
    -------
    list of dict
        ``data, row, verdict, reason, checks``, and ``rows`` of the table; ``verdict`` is
        ``none`` where no suite could be made, and ``reason`` says why.
    """
    certificates = []
    for data, (task, settings) in tasks.items():
        n_rows = min(len(task), MOST_ROWS)
        path = out / "data" / f"{data}.csv"
        if not path.exists():
            _write_table(path, task, n_rows)
        for setting in settings:
            request = Request(
                sources=(str(path),),
                config=_suite_config(task, setting),
                out=out / "suites" / f"{data}_{setting.name}",
                execution=Execution(workers),
                force=True,  # other settings than those of an earlier run: made anew
                quiet=quiet,
            )
            entry = {"data": data, "row": setting.name, "rows": n_rows}
            certificates.append(entry | _suite_verdict(request))
    return certificates


def _write_table(path: Path, task: Task, n_rows: int) -> None:
    table = task.features.assign(**{task.target_name: task.target}).iloc[:n_rows]
    write_file(path, lambda part: table.to_csv(part, index=False))


def _suite_config(task: Task, setting: Setting) -> GenerateConfig:
    # what a suite needs besides: where the table is, and how it is split
    layer = setting.config.model_dump(exclude={"source", "split", "name"})
    source = {"target": task.target_name, "kind": str(task.kind)}
    return build_config(layer, {"source": source, "split": {"folds": FOLDS}})


def _suite_verdict(request: Request) -> dict[str, Any]:
    """Make the suite; return what its certificate says, or why there is none."""
    try:
        report = generate_suite(request)
    except HardsynthError as error:
        return {"verdict": "none", "reason": str(error), "checks": {}}
    if not report.verdicts:
        reason = "no suite was made"
        if report.failures:
            reason = report.failures[0]["reason"]
        return {"verdict": "none", "reason": reason, "checks": {}}
    # the table is the suite's only task
    return dict(next(iter(report.verdicts.values())))
