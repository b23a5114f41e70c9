"""What the draws of a study say: each method's figures, and the declared contrasts, paired.

Notation
--------
d_k : one number per draw k, that is per table and seed

The small samples of one draw share its pool and its models, so they are not independent: they
are averaged into one d_k. A mean is the mean of d_k over draws, its s.e. ``sd / sqrt(draws)``.
The mean over all tables is over draws too; with equally many draws per table it is the mean of
the tables' means. Draws of one table share a population: the s.e. over all draws says how sure
the mean is *for these tables*, not for tables at large. So the number of tables whose own mean
has the same sign stands beside it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import t as student

from amlb_ext.core.files import write_text
from amlb_ext.experiments.fidelity.judge import ALL_TABLES, FIGURES, Record
from amlb_ext.experiments.fidelity.protocol import REFERENCES, Contrast, Phase, Protocol
from amlb_ext.stats.weighted_mean import holm_adjusted

_NAN = float("nan")
_LEVELS = ["reference", "table", "n", "method", "figure", "mean", "se", "draws"]
_PAIRED = [
    *(
        "table",
        "n",
        "primary",
        "method",
        "against",
        "reference",
        "difference",
        "se",
        "p",
        "p_holm",
    ),
    *("draws", "left_out", "agree", "tables"),
]


def summarize_levels(records: Sequence[Record], reference: str) -> pd.DataFrame:
    """Return each method's mean figures against one reference.

    Parameters
    ----------
    records : sequence of dict
        From :func:`~amlb_ext.experiments.fidelity.run.run_study`.
    reference : str
        One of :data:`~amlb_ext.experiments.fidelity.protocol.REFERENCES`.

    Returns
    -------
    DataFrame
        One row per table (:data:`ALL` first), n, method and figure of
        :data:`~amlb_ext.experiments.fidelity.judge.FIGURES`, and ``rows``, the rows the answer
        rests on: ``mean``, ``se`` (NaN for one draw) and ``draws``, those in which it has a value.

    Examples
    --------
    >>> rows = [{"table": "a", "seed": s, "n": 9, "first": 0, "answers":
    ...          {"whole": {"rows": 9, "all": {"tau": v}}}} for s, v in enumerate([.25, .75])]
    >>> print(summarize_levels(rows, "all").iloc[0][["table", "figure", "mean", "se"]].to_string())
    table     all tables
    figure           tau
    mean             0.5
    se              0.25
    """
    methods = list(dict.fromkeys(name for r in records for name in r["answers"]))

    def reader(method: str, figure: str) -> Callable[[Record], float]:
        def read(record: Record) -> float:
            answer = record["answers"].get(method)
            if answer is None:
                return _NAN
            return _number(
                answer["rows"] if figure == "rows" else answer[reference].get(figure)
            )

        return read

    rows: list[list[Any]] = []
    for method in methods:
        for figure in (*FIGURES, "rows"):
            for table, n, draws in _groups(_per_draw(records, reader(method, figure))):
                values = draws[np.isfinite(draws)]
                mean, se = mean_and_se(values)
                rows.append(
                    [reference, table, n, method, figure, mean, se, len(values)]
                )
    return _sorted(pd.DataFrame(rows, columns=_LEVELS))


def paired_contrasts(
    records: Sequence[Record], contrasts: Iterable[Contrast]
) -> pd.DataFrame:
    """Return the declared contrasts: by how much more one method agrees than another.

    Within each sample tau(method) - tau(against) on the contrast's reference, averaged over the
    samples of a draw, then over draws.

    Parameters
    ----------
    records : sequence of dict
    contrasts : iterable of Contrast

    Returns
    -------
    DataFrame
        One row per table (:data:`ALL` first), n and contrast: ``difference``, ``se``, ``p`` of a
        two-sided t test over draws, ``p_holm`` over all rows of the same table (every contrast
        at every n; primary contrasts and the others are families of their own), ``draws`` used,
        ``left_out`` draws in which either method has no answer, and ``agree`` of ``tables``
        whose own mean has the sign of the difference. The s.e. over all tables treats draws of
        one table as independent; read it with ``agree``.

    Examples
    --------
    >>> def record(seed, few, whole):
    ...     answers = {"few_bad": few, "whole": whole}
    ...     return {"table": "a", "seed": seed, "n": 9, "first": 0, "answers":
    ...             {k: {"rows": 9, "all": {"tau": v}} for k, v in answers.items()}}
    >>> rows = [record(0, .5, .75), record(1, .25, 1.)]
    >>> c = Contrast(method="whole", against="few_bad", reference="all")
    >>> first = paired_contrasts(rows, [c]).iloc[0]
    >>> print(first[["difference", "se", "draws", "agree"]].to_string())
    difference     0.5
    se            0.25
    draws            2
    agree            1
    """
    rows: list[list[Any]] = []
    for c in contrasts:

        def gap(record: Record, c: Contrast = c) -> float:
            both = [record["answers"].get(name) for name in (c.method, c.against)]
            if None in both:
                return _NAN
            one, other = (_number(answer[c.reference]["tau"]) for answer in both)
            return one - other

        found = list(_groups(_per_draw(records, gap)))
        for table, n, draws in found:
            used = draws[np.isfinite(draws)]
            mean, se = mean_and_se(used)
            parts = [d for other, m, d in found if m == n and other == table]
            if table == ALL_TABLES:
                parts = [d for other, m, d in found if m == n and other != ALL_TABLES]
            signs = [
                np.sign(np.mean(d[np.isfinite(d)]))
                for d in parts
                if np.isfinite(d).any()
            ]
            agree = sum(bool(s == np.sign(mean)) for s in signs) if mean else 0
            rows.append(
                [
                    *(table, n, c.primary, c.method, c.against, c.reference, mean, se),
                    *(
                        t_test(mean, se, len(used)),
                        _NAN,
                        len(used),
                        len(draws) - len(used),
                    ),
                    *(agree, len(signs)),
                ]
            )
    out = _sorted(pd.DataFrame(rows, columns=_PAIRED))
    for _, part in out.groupby(["table", "primary"], sort=False):
        out.loc[part.index, "p_holm"] = holm_adjusted(part["p"].to_numpy(dtype=float))
    return out


def mean_and_se(values: np.ndarray) -> tuple[float, float]:
    """Return the mean and its s.e.; NaN where there is none.

    Examples
    --------
    >>> mean_and_se(np.array([1.0, 3.0])), mean_and_se(np.array([2.0]))
    ((2.0, 1.0), (2.0, nan))
    """
    if not len(values):
        return _NAN, _NAN
    se = (
        float(np.std(values, ddof=1) / math.sqrt(len(values)))
        if len(values) > 1
        else _NAN
    )
    return float(np.mean(values)), se


def t_test(mean: float, se: float, draws: int) -> float:
    """Return the two-sided p-value of mean 0; NaN without a spread to judge by.

    Examples
    --------
    >>> round(t_test(0.5, 0.25, 2), 4)  # t = 2 with 1 degree of freedom
    0.2952
    """
    if not se > 0:
        return 1.0 if mean == 0 and se == 0 else _NAN
    return float(2 * student.sf(abs(mean) / se, draws - 1))


def write_phase(
    out: Path, phase: Phase, records: Sequence[Record], protocol: Protocol
) -> list[Path]:
    """Write a phase's tables and its figure; return their paths.

    Parameters
    ----------
    out : Path
    phase : {'exploratory', 'confirmatory'}
    records : sequence of dict
    protocol : Protocol

    Returns
    -------
    list of Path
        ``<phase>.md``, ``<phase>_contrasts.csv``, ``<phase>_levels.csv``, and ``<phase>.svg``
        when a contrast is declared.
    """
    from amlb_ext.experiments.fidelity.page_text import phase_markdown

    found = paired_contrasts(records, protocol.contrasts)
    every = pd.concat(
        [summarize_levels(records, r) for r in REFERENCES], ignore_index=True
    )
    text, figure = out / f"{phase}.md", out / f"{phase}.svg"
    paths = [text]
    write_text(text, phase_markdown(phase, records, protocol, found, every))
    for name, frame in (("contrasts", found), ("levels", every)):
        path = out / f"{phase}_{name}.csv"
        # rounded: the last bits of a sum differ between machines
        write_text(path, frame.round(6).to_csv(index=False, lineterminator="\n"))
        paths.append(path)
    if len(found):
        from amlb_ext.experiments.fidelity.plot import forest_plot

        write_text(figure, forest_plot(found, f"{protocol.name}, {phase}"))
        return [*paths, figure]
    figure.unlink(missing_ok=True)  # of an earlier run that had contrasts
    return paths


def _number(value: Any) -> float:
    return _NAN if value is None else float(value)


def _per_draw(
    records: Sequence[Record], value: Callable[[Record], float]
) -> dict[tuple[int, str, int], float]:
    """Return ``(n, table, seed)`` to the mean over its samples that have a value."""
    each: dict[tuple[int, str, int], list[float]] = {}
    for record in records:
        key = (int(record["n"]), str(record["table"]), int(record["seed"]))
        each.setdefault(key, []).append(value(record))
    out = {}
    for key in sorted(each):
        known = [v for v in each[key] if math.isfinite(v)]
        out[key] = float(np.mean(known)) if known else _NAN
    return out


def _groups(
    per_draw: Mapping[tuple[int, str, int], float],
) -> Iterator[tuple[str, int, np.ndarray]]:
    """Yield table, n and one number per draw; all tables together first."""
    tables = list(dict.fromkeys(table for _, table, _ in per_draw))
    for n in sorted({n for n, _, _ in per_draw}):
        for table in (ALL_TABLES, *tables):
            picked = [
                v
                for (m, t, _), v in per_draw.items()
                if m == n and table in (ALL_TABLES, t)
            ]
            if picked:
                yield table, n, np.array(picked)


def _sorted(frame: pd.DataFrame) -> pd.DataFrame:
    """Sort by table, all of them first, and n; keep the declared order of the rest."""
    first = frame["table"].ne(ALL_TABLES)
    out = frame.assign(_first=first).sort_values(
        ["_first", "table", "n"], kind="stable"
    )
    return out.drop(columns="_first").reset_index(drop=True)
