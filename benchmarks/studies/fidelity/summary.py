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
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import t as student

from amlb_ext.core.files import write_text
from benchmarks.studies.agreement import float_or_nan
from benchmarks.studies.fidelity.judge import ALL_TABLES, FIGURES, Record
from benchmarks.studies.fidelity.protocol import REFERENCES, Contrast, Phase, Protocol
from amlb_ext.stats.weighted_mean import holm_adjusted

_NAN = float("nan")
#: Columns of :func:`summarize_levels`, and of :func:`paired_contrasts`.
_LEVELS = ["reference", "table", "n", "method", "figure", "mean", "se", "draws"]
_PAIRED = [
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
    "draws",
    "left_out",
    "agree",
    "tables",
]

#: n, table and seed: the samples of one draw that are averaged.
_DrawKey = tuple[int, str, int]


@dataclass(frozen=True, kw_only=True)
class _Group:
    """One number per draw, of one table or of :data:`ALL_TABLES`, at one n; NaN for none."""

    table: str
    n: int
    draws: np.ndarray

    @property
    def finite_draws(self) -> np.ndarray:
        """The draws that have a number."""
        return self.draws[np.isfinite(self.draws)]


def summarize_levels(records: Sequence[Record], reference: str) -> pd.DataFrame:
    """Return each method's mean figures against one reference.

    Parameters
    ----------
    records : sequence of dict
        From :func:`~benchmarks.studies.fidelity.run.run_study`.
    reference : str
        One of :data:`~benchmarks.studies.fidelity.protocol.REFERENCES`.

    Returns
    -------
    DataFrame
        One row per table (:data:`ALL_TABLES` first), n, method and figure of
        :data:`~benchmarks.studies.fidelity.judge.FIGURES`, and ``rows``, the rows the answer
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
    # in the order in which they first answer; a dictionary keeps it, a set would not
    methods: dict[str, None] = {}
    for record in records:
        methods |= dict.fromkeys(record["answers"])
    rows: list[dict[str, Any]] = []
    for method in methods:
        for figure in (*FIGURES, "rows"):
            read = partial(
                _read_figure, method=method, figure=figure, reference=reference
            )
            for group in _group_draws(_average_samples(records, read)):
                values = group.finite_draws
                mean, se = mean_and_se(values)
                rows.append(
                    {
                        "reference": reference,
                        "table": group.table,
                        "n": group.n,
                        "method": method,
                        "figure": figure,
                        "mean": mean,
                        "se": se,
                        "draws": len(values),
                    }
                )
    return _sort_tables(pd.DataFrame(rows, columns=_LEVELS))


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
        One row per table (:data:`ALL_TABLES` first), n and contrast: ``difference``, ``se``,
        ``p`` of a two-sided t test over draws, ``p_holm`` over all rows of the same table (every
        contrast at every n; primary contrasts are a family of their own), ``draws`` used,
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
    rows: list[dict[str, Any]] = []
    for contrast in contrasts:
        read = partial(_read_gap, contrast=contrast)
        groups = list(_group_draws(_average_samples(records, read)))
        for group in groups:
            rows.append(_contrast_row(contrast, group, groups))
    table = _sort_tables(pd.DataFrame(rows, columns=_PAIRED))
    # primary contrasts are what a study is for, so the others do not weaken them
    for _, family in table.groupby(["table", "primary"], sort=False):
        p_values = family["p"].to_numpy(dtype=float)
        table.loc[family.index, "p_holm"] = holm_adjusted(p_values)
    return table


def _contrast_row(
    contrast: Contrast, group: _Group, groups: Sequence[_Group]
) -> dict[str, Any]:
    """Return one row of :func:`paired_contrasts`; ``groups`` are those of the same contrast."""
    differences = group.finite_draws
    mean, se = mean_and_se(differences)
    signs = []
    for other in groups:
        # all tables together are compared with each of them; one table stands for itself
        is_part = other.table == group.table
        if group.table == ALL_TABLES:
            is_part = other.table != ALL_TABLES
        if other.n == group.n and is_part and len(other.finite_draws):
            signs.append(np.sign(np.mean(other.finite_draws)))
    agree = 0
    if mean:
        agree = sum(bool(sign == np.sign(mean)) for sign in signs)
    return {
        "table": group.table,
        "n": group.n,
        "primary": contrast.primary,
        "method": contrast.method,
        "against": contrast.against,
        "reference": contrast.reference,
        "difference": mean,
        "se": se,
        "p": t_test(mean, se, len(differences)),
        "p_holm": _NAN,  # needs the p-values of the whole family
        "draws": len(differences),
        "left_out": len(group.draws) - len(differences),
        "agree": agree,
        "tables": len(signs),
    }


def mean_and_se(values: np.ndarray) -> tuple[float, float]:
    """Return the mean and its s.e.; NaN where there is none.

    Examples
    --------
    >>> mean_and_se(np.array([1.0, 3.0])), mean_and_se(np.array([2.0]))
    ((2.0, 1.0), (2.0, nan))
    """
    if not len(values):
        return _NAN, _NAN
    mean = float(np.mean(values))
    if len(values) == 1:
        return mean, _NAN
    deviation = np.std(values, ddof=1)
    return mean, float(deviation / math.sqrt(len(values)))


def t_test(mean: float, se: float, draws: int) -> float:
    """Return the two-sided p-value of mean 0; NaN without a spread to judge by.

    Examples
    --------
    >>> round(t_test(0.5, 0.25, 2), 4)  # t = 2 with 1 degree of freedom
    0.2952
    """
    # differences that are all 0 give no evidence; equal ones that are not 0 have no t
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
        ``<phase>.md``, ``<phase>_contrasts.csv``, ``<phase>_levels.csv``; when a contrast is
        declared, ``<phase>.svg`` and, for each reference of a contrast,
        ``<phase>_tau_<reference>.svg``.
    """
    from benchmarks.studies.fidelity.page_text import phase_markdown

    contrasts = paired_contrasts(records, protocol.contrasts)
    levels = pd.concat(
        [summarize_levels(records, reference) for reference in REFERENCES],
        ignore_index=True,
    )
    text_path = out / f"{phase}.md"
    text = phase_markdown(
        phase,
        records,
        protocol=protocol,
        contrasts=contrasts,
        levels=levels,
    )
    write_text(text_path, text)
    paths = [text_path]
    for name, frame in (("contrasts", contrasts), ("levels", levels)):
        path = out / f"{phase}_{name}.csv"
        # rounded: the last bits of a sum differ between machines
        write_text(path, frame.round(6).to_csv(index=False, lineterminator="\n"))
        paths.append(path)
    figure_path = out / f"{phase}.svg"
    if not len(contrasts):
        for old_path in (figure_path, *out.glob(f"{phase}_tau_*.svg")):
            old_path.unlink(missing_ok=True)  # of an earlier run that had contrasts
        return paths
    # matplotlib takes a second to import, and a study without contrasts needs none
    from benchmarks.studies.fidelity.plot import forest_plot, levels_plot

    title = f"{protocol.name}, {phase}"
    write_text(figure_path, forest_plot(contrasts, title))
    paths.append(figure_path)
    for reference in dict.fromkeys(contrasts["reference"]):
        of_reference = levels[levels["reference"] == reference]
        levels_path = out / f"{phase}_tau_{reference}.svg"
        write_text(
            levels_path, levels_plot(of_reference, f"{title}, reference: {reference}")
        )
        paths.append(levels_path)
    return paths


def _read_figure(record: Record, *, method: str, figure: str, reference: str) -> float:
    """Return a figure of a method on one sample; NaN where it has no answer or no value."""
    answer = record["answers"].get(method)
    if answer is None:
        return _NAN
    if figure == "rows":
        return float_or_nan(answer["rows"])
    return float_or_nan(answer[reference].get(figure))


def _read_gap(record: Record, *, contrast: Contrast) -> float:
    """Return tau(method) - tau(against) on one sample; NaN where either has no answer."""
    answer = record["answers"].get(contrast.method)
    other = record["answers"].get(contrast.against)
    if answer is None or other is None:
        return _NAN
    tau = float_or_nan(answer[contrast.reference]["tau"])
    other_tau = float_or_nan(other[contrast.reference]["tau"])
    return tau - other_tau


def _average_samples(
    records: Sequence[Record], read: Callable[[Record], float]
) -> dict[_DrawKey, float]:
    """Return the mean of each draw over its samples that have a value, in order of the keys."""
    # samples of one draw share its pool and its models: they are not independent
    values: dict[_DrawKey, list[float]] = {}
    for record in records:
        key = (int(record["n"]), str(record["table"]), int(record["seed"]))
        values.setdefault(key, []).append(read(record))
    means = {}
    for key in sorted(values):
        finite = [value for value in values[key] if math.isfinite(value)]
        means[key] = float(np.mean(finite)) if finite else _NAN
    return means


def _group_draws(per_draw: Mapping[_DrawKey, float]) -> Iterator[_Group]:
    """Yield the draws of each table by n; all tables together first."""
    sizes = sorted({n for n, _, _ in per_draw})
    tables = list(dict.fromkeys(table for _, table, _ in per_draw))
    for size in sizes:
        for table in (ALL_TABLES, *tables):
            draws = []
            for (n, draw_table, _), value in per_draw.items():
                if n == size and table in (ALL_TABLES, draw_table):
                    draws.append(value)
            if draws:
                yield _Group(table=table, n=size, draws=np.array(draws))


def _sort_tables(frame: pd.DataFrame) -> pd.DataFrame:
    """Sort by table, all of them first, and n; keep the declared order of the rest."""
    is_single = frame["table"].ne(ALL_TABLES)
    ordered = frame.assign(_is_single=is_single).sort_values(
        ["_is_single", "table", "n"], kind="stable"
    )
    return ordered.drop(columns="_is_single").reset_index(drop=True)
