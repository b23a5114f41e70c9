"""What frameworks that AMLB ran do on made windows, beside F, and what may be said of that."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pandas as pd

from amlb_ext.core.display import text_table
from amlb_ext.forecasting.forecasters import Forecasts
from amlb_ext.forecasting.losses import scaled_errors
from amlb_ext.forecasting.made_files import read_made_windows, read_provenance
from amlb_ext.forecasting.made_parts import GA
from amlb_ext.forecasting.origins import Windows
from amlb_ext.forecasting.stored_certificates import read_certificates
from amlb_ext.forecasting.suite_files import ForecastSuite, ForecastTable
from amlb_ext.stats.weighted_mean import weighted_mean_interval

#: Answers of frameworks to a task, by name; a text says why one cannot be used.
ReadAnswers = Callable[[str, Windows], Mapping[str, Forecasts | str]]
COLUMNS = ["task", "framework", "mase", "mase_f", "difference", "low", "high", "use"]


def score_made_windows(
    suite: ForecastSuite,
    table: ForecastTable,
    read_answers: ReadAnswers,
    level: float = 0.95,
) -> pd.DataFrame:
    """Return one row for each framework and made task that it ran.

    Parameters
    ----------
    suite : ForecastSuite
    table : ForecastTable
        Of the suite.
    read_answers : callable
    level : float

    Returns
    -------
    DataFrame
        ``task``, ``framework``, its ``mase`` and that of F, their ``difference`` with limits
        ``low`` and ``high``, clustered by the series that windows were made of, and ``use``: the
        certificate's verdict, or ``not certified``.
    """
    records = []
    tasks = [task for task in table.tasks if task.kind == GA]
    if not tasks:
        return pd.DataFrame(columns=COLUMNS)
    provenance = read_provenance(table)
    certificates = read_certificates(suite)
    for task in tasks:
        rows = provenance[provenance["task"] == task.name]
        windows = read_made_windows(suite.layout, task, rows, table.horizon)
        loss_f = rows["f_mase"].to_numpy(dtype=float)
        for framework, answer in read_answers(task.name, windows).items():
            if isinstance(answer, str):
                nothing = dict.fromkeys(COLUMNS[2:-1], float("nan"))
                about = {"task": task.name, "framework": framework, "use": answer}
                records.append({**about, **nothing})
                continue
            loss = scaled_errors(windows.future, answer.mean, windows.scale)
            gap = weighted_mean_interval(
                loss - loss_f, None, windows.items, level=level
            )
            certificate = certificates.get(task.name)
            records.append(
                {
                    "task": task.name,
                    "framework": framework,
                    "mase": float(loss.mean()),
                    "mase_f": float(loss_f.mean()),
                    "difference": gap.point,
                    "low": gap.low,
                    "high": gap.high,
                    "use": certificate.verdict if certificate else "not certified",
                }
            )
    return pd.DataFrame(records, columns=COLUMNS)


def made_text(made: pd.DataFrame) -> str:
    """Return the table for a terminal, with what it may not be used for; empty without rows."""
    if made.empty:
        return ""
    rows = []
    for record in made.to_dict("records"):
        limits = f"{record['low']:+.3f} to {record['high']:+.3f}"
        numbers = [record["mase"], record["mase_f"], record["difference"], limits]
        rows.append([record["task"], record["framework"], *numbers, record["use"]])
    headers = ["made windows", "framework", "MASE", "F", "difference", "95 %", "use"]
    lines = [
        text_table(headers, rows),
        "frameworks saw made pasts alone, F learnt from real ones; 'rank' alone may order models",
    ]
    return "\n".join(lines) + "\n"
