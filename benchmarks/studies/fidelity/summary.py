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

from collections.abc import Iterable
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy.stats import t as student

from amlb_ext.stats.weighted_mean import holm_adjusted
from benchmarks.studies.fidelity.protocol import REFERENCES, Contrast
from benchmarks.studies.fidelity.sample import FIGURES
from benchmarks.studies.page import STYLE, format_with_spread

#: What stands for every table together.
ALL_TABLES = "all tables"
#: A sample of a draw.
_SAMPLE = ["n", "data", "draw", "first"]
_DRAW = _SAMPLE[:3]
READING = """A difference is the mean over draws of tau(method) - tau(against) within the same
draw, ± its standard error. The samples of one draw are averaged first. Draws of one table share a
population, so the ± over all tables holds for these tables only; "agree" counts those whose own
difference has the same sign. p is a two-sided t test over draws, p_holm is adjusted over all
rows of its table, the primary contrasts (*) and the others apart."""
LEVELS = """Mean over draws ± standard error, all tables together. A figure's mean is over the
draws in which it exists. Coverage is fair only against the reference a method aims at.

""" + "\n".join(f"- {name}: {text}" for name, text in FIGURES.items())


def summarize_levels(rows: pd.DataFrame) -> pd.DataFrame:
    """Return each method's mean figures against each reference.

    Parameters
    ----------
    rows : DataFrame
        ``data, draw, n, first, method, reference, figure, value``.

    Returns
    -------
    DataFrame
        One row per table (:data:`ALL_TABLES` first), n, method, reference and figure: ``mean``,
        ``se`` (NaN for one draw) and ``draws``, those in which it has a value.

    Examples
    --------
    >>> rows = [{"data": "a", "draw": d, "n": "9", "first": "0", "method": "whole", "reference":
    ...          "all", "figure": "tau", "value": v} for d, v in (("0", .25), ("1", .75))]
    >>> print(summarize_levels(pd.DataFrame(rows)).iloc[0][["table", "mean", "se"]].to_string())
    table    all tables
    mean            0.5
    se             0.25
    """
    answers = rows[rows["reference"].isin(REFERENCES)]
    keys = ["n", "method", "reference", "figure"]
    draws = answers.groupby(["data", "draw", *keys], sort=False)["value"].mean()
    per_draw = draws.reset_index()
    both = pd.concat([per_draw.assign(data=ALL_TABLES), per_draw])
    levels = both.groupby(["data", *keys], sort=False)["value"].agg(
        mean="mean", se="sem", draws="count"
    )
    return levels.reset_index().rename(columns={"data": "table"})


def paired_contrasts(rows: pd.DataFrame, contrasts: Iterable[Contrast]) -> pd.DataFrame:
    """Return the declared contrasts: by how much more one method agrees than another.

    Within each sample tau(method) - tau(against) on the contrast's reference, averaged over the
    samples of a draw, then over draws.

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
    >>> rows = [{"data": "a", "draw": d, "n": "9", "first": "0", "method": m, "reference": "all",
    ...          "figure": "tau", "value": v} for d, m, v in (("0", "few_bad", .5),
    ...         ("0", "whole", .75), ("1", "few_bad", .25), ("1", "whole", 1.))]
    >>> c = Contrast(method="whole", against="few_bad", reference="all")
    >>> first = paired_contrasts(pd.DataFrame(rows), [c]).iloc[0]
    >>> print(first[["difference", "se", "draws", "agree"]].to_string())
    difference     0.5
    se            0.25
    draws            2
    agree            1
    """
    samples = rows[_SAMPLE].drop_duplicates().set_index(_SAMPLE).index
    tau = rows[rows["figure"] == "tau"].pivot_table(
        index=_SAMPLE, columns=["reference", "method"], values="value", sort=False
    )
    lines: list[dict[str, Any]] = []
    for contrast in contrasts:
        ours, other = (
            tau.get((contrast.reference, method), pd.Series(dtype=float)).reindex(
                samples
            )
            for method in (contrast.method, contrast.against)
        )
        gaps = (
            (ours - other)
            .groupby(level=_DRAW, sort=False)
            .mean()
            .reset_index(name="gap")
        )
        for n, of_size in gaps.groupby("n", sort=False):
            signs = np.sign(of_size.groupby("data", sort=False)["gap"].mean())
            groups = [(ALL_TABLES, of_size), *of_size.groupby("data", sort=False)]
            for table, group in groups:
                line = {"table": table, "n": n, **contrast.model_dump()}
                known = group["gap"].dropna()
                # a table stands for itself
                own = signs.dropna() if table == ALL_TABLES else signs[[table]].dropna()
                mean, se = known.mean(), known.sem() if len(known) > 1 else np.nan
                lines.append(
                    line
                    | {
                        "difference": mean,
                        "se": se,
                        "p": t_test(mean, se, len(known)),
                        "draws": len(known),
                        "left_out": len(group) - len(known),
                        "agree": int((own == np.sign(mean)).sum()) if mean else 0,
                        "tables": len(own),
                    }
                )
    table = pd.DataFrame(lines)
    if not len(table):
        return table
    table["p_holm"] = np.nan
    # primary contrasts are what a study is for, so the others do not weaken them
    for _, family in table.groupby(["table", "primary"], sort=False):
        p_values = family["p"].to_numpy(dtype=float)
        table.loc[family.index, "p_holm"] = holm_adjusted(p_values)
    is_single = table["table"] != ALL_TABLES
    in_order = table.assign(single=is_single, size=table["n"].astype(int)).sort_values(
        ["single", "table", "size"], kind="stable"
    )
    return in_order.drop(columns=["single", "size"]).reset_index(drop=True)


def t_test(mean: float, se: float, draws: int) -> float:
    """Return the two-sided p-value of mean 0; NaN without a spread to judge by.

    Examples
    --------
    >>> round(t_test(0.5, 0.25, 2), 4)  # t = 2 with 1 degree of freedom
    0.2952
    """
    # differences that are all 0 give no evidence; equal ones that are not 0 have no t
    if not se > 0:
        return 1.0 if mean == 0 and se == 0 else float("nan")
    return float(2 * student.sf(abs(mean) / se, draws - 1))


def contrast_frame(contrasts: pd.DataFrame) -> pd.DataFrame:
    """Return contrasts as people read them; a star marks the primary ones."""
    stars = contrasts["primary"].map({True: "*", False: ""})
    return pd.DataFrame(
        {
            "n": contrasts["n"],
            "method": stars + contrasts["method"],
            "against": contrasts["against"],
            "reference": contrasts["reference"],
            "difference in tau": [
                format_with_spread(line.difference, line.se, sign=True)
                for line in contrasts.itertuples()
            ],
            "p": contrasts["p"],
            "p_holm": contrasts["p_holm"],
            "draws": contrasts["draws"],
            "left out": contrasts["left_out"],
            "agree": contrasts["agree"].astype(str)
            + "/"
            + contrasts["tables"].astype(str),
        }
    )


def level_frame(levels: pd.DataFrame, n: str) -> pd.DataFrame:
    """Return methods down, figures across, over all tables at one n.

    Agreement and coverage depend on what a method aims at, so they stand against every reference.
    """
    part = levels[(levels["table"] == ALL_TABLES) & (levels["n"] == n)]
    is_shown = part["figure"].isin(["tau", "coverage"]) | (
        part["reference"] == REFERENCES[0]
    )
    part = part[is_shown]
    texts = [format_with_spread(line.mean, line.se) for line in part.itertuples()]
    columns = part["figure"] + ", " + part["reference"]
    wide = part.assign(text=texts, column=columns).pivot_table(
        index="method", columns="column", values="text", aggfunc="first", sort=False
    )
    return wide.fillna("").reset_index()


def draw_intervals(
    frame: pd.DataFrame, *, value: str, lines: str, series: str, label: str
) -> Figure:
    """Return means ± 1.96 s.e., one panel per n, one line per contrast or table.

    Parameters
    ----------
    frame : DataFrame
        With ``n`` and ``se``.
    value, lines, series : str
        Columns: the mean, what a line shows, and what tells its marks apart.
    label : str
        Of the axis.
    """
    sizes = list(dict.fromkeys(frame["n"]))
    line_names = list(dict.fromkeys(frame[lines]))
    names = list(dict.fromkeys(frame[series]))
    offsets = np.linspace(-0.3, 0.3, len(names)) if len(names) > 1 else np.zeros(1)
    height = 1.4 + (0.25 + 0.08 * len(names)) * len(line_names)
    with matplotlib.rc_context(STYLE):
        figure = Figure((2.6 + 3.0 * len(sizes), height), layout="constrained")
        [panels] = figure.subplots(
            1, len(sizes), sharex=True, sharey=True, squeeze=False
        )
        for axes, n in zip(panels, sizes, strict=True):
            axes.axvline(0, color="#555555", linewidth=0.8)
            for index, name in enumerate(names):
                part = frame[(frame["n"] == n) & (frame[series] == name)]
                places = [
                    line_names.index(line) + offsets[index] for line in part[lines]
                ]
                axes.errorbar(
                    part[value],
                    places,
                    # one draw has no spread
                    xerr=1.96 * part["se"].fillna(0.0),
                    fmt="osD^vPX*"[index % 8],
                    color=f"C{index % 10}",
                    markersize=4,
                    linewidth=1.0,
                    label=name,
                )
            axes.set_title(f"n = {n}")
            axes.set_xlabel(label, fontsize=8)
            axes.grid(axis="x", color="#e4e4e4", linewidth=0.6)
        panels[0].set_yticks(np.arange(len(line_names)), line_names)
        # from the first line at the top to the last
        panels[0].set_ylim(len(line_names) - 0.5, -0.5)
        handles, labels = panels[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=3)
    return figure
