"""The claims of the swarm paper, C1 to C8, each with what was found and a verdict.

A difference is taken within each draw and averaged over draws and tables of data; its interval is
clustered by the table where there are three or more, since what is asked is whether it holds on
another table. A claim *holds* where the interval lies above zero, *does not hold* where it lies
below, and is *open* otherwise. Fewer than ten draws explore, whatever their interval says.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from amlb_ext.core.display import format_decimals
from benchmarks.studies.swarms.choices import COMPOSITIONS
from benchmarks.studies.swarms.methods import AGNOSTIC, GUIDED
from amlb_ext.stats.weighted_mean import MIN_CLUSTERS, weighted_mean_interval

#: Draws that a verdict needs to be more than exploration.
ENOUGH_DRAWS = 10
#: Share of the settings of Table 1 that the swarm must win for C1, and at least for "in part".
C1_SHARE, C1_PART = 15 / 16, 0.5
#: Objectives of Table 1.
TABLE_1 = ("difficult", "separate", "novel", "consistent")
#: Baselines of Tables 2 and 3.
FEW_BASELINES = ("dev", "held_out", "elicitation", "breeder")
#: A breeder of rows keeps each row by its own label, so it is sure to find wrong or doubtful ones;
#: a breeder of prompts cannot. Comparisons stand with and without it.
BASELINE_SETS = {
    "the best baseline": FEW_BASELINES,
    "the best baseline but the breeder": ("dev", "held_out", "elicitation"),
}
#: What the base is tuned on in figure 3, beside the adversarial swarm.
TUNED_ARMS = ("base", "dev", "initial", "swarm_rows", "best_generator")


@dataclass(frozen=True, kw_only=True)
class Claim:
    """One claim, or one reading of it.

    Attributes
    ----------
    code : str
        C1 to C8.
    text : str
        What is asked, in our words.
    printed, ours : str
    verdict : str
        ``holds``, ``does not hold``, ``in part`` or ``open``, with ``exploratory`` where few
        draws stand behind it.
    """

    code: str
    text: str
    printed: str
    ours: str
    verdict: str


def judge_claims(table: str, figures: pd.DataFrame) -> list[Claim]:
    """Return the claims that a table of the paper speaks of.

    Parameters
    ----------
    table : str
    figures : DataFrame
        See :func:`~benchmarks.studies.swarms.cells.list_figures`.
    """
    if not len(figures):
        return []
    judges = {
        "swarm-table-1": _judge_table_1,
        "swarm-table-2": _judge_table_2,
        "swarm-table-3": _judge_table_3,
        "swarm-adversarial": _judge_adversarial,
    }
    return judges[table](figures) if table in judges else []


# --- what the verdicts rest on ---


def _wide(figures: pd.DataFrame, **place: str) -> pd.DataFrame:
    """Return methods in columns and (data, draw) in rows, of one figure."""
    chosen = figures
    for column, value in place.items():
        chosen = chosen[chosen[column] == value]
    return chosen.pivot_table(
        index=["data", "number"], columns="method", values="value", sort=False
    )


def _best_of(wide: pd.DataFrame, methods: Sequence[str]) -> pd.Series:
    """Return the largest value of some methods; those that a table lacks are left out."""
    return wide[[name for name in methods if name in wide]].max(axis=1)


def _estimate(differences: pd.Series) -> tuple[float, float, float, float]:
    """Return mean, standard error, and the ends of the interval; NaN where there is none."""
    known = differences.dropna()
    data = known.index.get_level_values("data")
    clusters = np.unique(data, return_inverse=True)[1]
    if clusters.size == 0 or clusters.max() + 1 < MIN_CLUSTERS:
        # of one table or two, the spread over draws is all there is
        clusters = np.arange(len(known))
    estimate = weighted_mean_interval(known.to_numpy(), None, clusters)
    return estimate.point, estimate.se, estimate.low, estimate.high


def _n_draws(figures: pd.DataFrame) -> int:
    return int(figures.groupby("data")["number"].nunique().min())


def _with_care(verdict: str, figures: pd.DataFrame) -> str:
    n = _n_draws(figures)
    if n >= ENOUGH_DRAWS:
        return verdict
    return f"{verdict}; exploratory, {n} {'draw' if n == 1 else 'draws'}"


def _difference_claim(
    code: str,
    text: str,
    printed: str,
    differences: pd.Series,
    figures: pd.DataFrame,
    *,
    percent: bool = False,
) -> Claim:
    point, se, low, high = _estimate(differences)
    factor, unit, decimals = (100, " %", 1) if percent else (1, "", 4)
    shown = format_decimals(factor * point, decimals, sign=True)
    if not math.isnan(se):
        shown += f" ± {format_decimals(factor * se, decimals)}"
    verdict = "open"
    if low > 0:
        verdict = "holds"
    elif high < 0:
        verdict = "does not hold"
    return Claim(
        code=code,
        text=text,
        printed=printed,
        ours=shown + unit,
        verdict=_with_care(verdict, figures),
    )


def _relative(first: pd.Series, second: pd.Series) -> pd.Series:
    # nothing to compare with where the second is zero
    return (first - second) / second.where(second > 0)


# --- table by table ---


def _judge_table_1(figures: pd.DataFrame) -> list[Claim]:
    claims = []
    present = set(figures["objective"])
    for form in ("literal", "honest"):
        claims.append(_count_wins(figures, form))
    for form in ("literal", "honest"):
        if "difficult" not in present:
            continue
        wide = _wide(figures, form=form, objective="difficult", figure="fresh")
        for rival, text in (("soup", "uniform soup"), ("soups", "random soups")):
            claims.append(
                _difference_claim(
                    "C2",
                    f"swarm against {text}, difficult, {form}",
                    "+.151 on average",
                    wide["pso"] - wide[rival],
                    figures,
                )
            )
        claims.append(
            _difference_claim(
                "C3",
                f"guided baselines against agnostic ones, difficult, {form}",
                "+35.9 %",
                _relative(
                    wide[list(GUIDED)].mean(axis=1), wide[list(AGNOSTIC)].mean(axis=1)
                ),
                figures,
                percent=True,
            )
        )
    for form in ("literal", "honest"):
        claims += _judge_compositions(figures, form)
        claims += _judge_other_objectives(figures, form)
    return claims


def _count_wins(figures: pd.DataFrame, form: str) -> Claim:
    """Return C1: in how many settings the swarm's mean is above that of all eight baselines."""
    fresh = figures[(figures["form"] == form) & (figures["figure"] == "fresh")]
    means = fresh.groupby(["data", "objective", "method"])["value"].mean().unstack()
    baselines = [name for name in (*AGNOSTIC, *GUIDED) if name in means]
    is_asked = means.index.get_level_values("objective").isin(TABLE_1)
    means = means[is_asked]
    won = means["pso"] > means[baselines].max(axis=1)
    # a breeder of rows knows the label of each row that it keeps, one of prompts does not
    others = [name for name in baselines if name != "breeder"]
    without = means["pso"] > means[others].max(axis=1)
    share = float(won.mean())
    verdict = "does not hold"
    if share >= C1_SHARE:
        verdict = "holds"
    elif share >= C1_PART:
        verdict = "in part"
    return Claim(
        code="C1",
        text=f"swarm above all eight baselines, {form}",
        printed="15 of 16 settings",
        ours=f"{int(won.sum())} of {len(won)}; without the breeder {int(without.sum())}",
        verdict=_with_care(verdict, figures),
    )


def _judge_compositions(figures: pd.DataFrame, form: str) -> list[Claim]:
    differences = []
    for objective in COMPOSITIONS:
        wide = _wide(figures, form=form, objective=objective, figure="fresh")
        if len(wide):
            differences.append(wide["pso"] - _best_of(wide, (*AGNOSTIC, *GUIDED)))
    if not differences:
        return []
    return [
        _difference_claim(
            "C6",
            f"swarm against the best baseline, compositions, in units of spread, {form}",
            "+.062 (unscaled)",
            # three compositions of one draw are no three draws
            pd.concat(differences).groupby(level=["data", "number"]).mean(),
            figures,
        )
    ]


def _judge_other_objectives(figures: pd.DataFrame, form: str) -> list[Claim]:
    claims = []
    printed = {"consistent": "+.0060 on average", "personalised": "+8.4 %"}
    for objective, said in printed.items():
        wide = _wide(figures, form=form, objective=objective, figure="fresh")
        if not len(wide):
            continue
        best = _best_of(wide, (*AGNOSTIC, *GUIDED))
        is_relative = objective == "personalised"
        difference = _relative(wide["pso"], best) if is_relative else wide["pso"] - best
        claims.append(
            _difference_claim(
                "C8",
                f"swarm against the best baseline, {objective}, {form}",
                said,
                difference,
                figures,
                percent=is_relative,
            )
        )
    copies = _wide(figures, form=form, objective="personalised", figure="copies")
    if len(copies):
        claims.append(
            _difference_claim(
                "C8",
                f"copies of a user's rows, swarm against one generator, {form} "
                "(above zero: more copies)",
                "not asked",
                copies["pso"] - copies["base"],
                figures,
                percent=True,
            )
        )
    return claims


def _judge_table_2(figures: pd.DataFrame) -> list[Claim]:
    claims = []
    names = {"refits": ("re-fits", "+4.6 %"), "unseen": ("families", "+16.0, +22.4 %")}
    for form in ("literal", "honest"):
        for figure, (text, printed) in names.items():
            wide = _wide(figures, form=form, figure=figure)
            for rivals, baselines in BASELINE_SETS.items():
                claims.append(
                    _difference_claim(
                        "C4",
                        f"swarm against {rivals}, unseen {text}, {form}",
                        printed,
                        _relative(wide["pso"], _best_of(wide, baselines)),
                        figures,
                        percent=True,
                    )
                )
        real = _wide(figures, form=form, figure="real gain")
        if {"pso", "by_x"} <= set(real):
            claims.append(
                _difference_claim(
                    "C4",
                    "what a better model could mend on real rows of the region: swarm against "
                    f"real rows chosen by features alone, unseen families, {form}",
                    "not asked",
                    real["pso"] - real["by_x"],
                    figures,
                )
            )
    return claims


def _judge_table_3(figures: pd.DataFrame) -> list[Claim]:
    claims = []
    printed = {"difficult": "+.065", "separate": "+.062"}
    texts = {
        "literal": "by the truth's labels",
        "honest": "excess under the truth, supported rows",
        "fitted": "excess under a fitted teacher, supported rows",
    }
    for form, text in texts.items():
        for objective, said in printed.items():
            wide = _wide(
                figures, form=form, objective=objective, figure=f"seen {objective}"
            )
            for rivals, baselines in BASELINE_SETS.items():
                claims.append(
                    _difference_claim(
                        "C5",
                        f"swarm against {rivals}, {objective} by the truth; searched: {text}",
                        said,
                        wide["pso"] - _best_of(wide, baselines),
                        figures,
                    )
                )
        excess = _wide(
            figures, form=form, objective="difficult", figure="unseen excess"
        )
        rivals_by_rows = {
            "dev": "the dev set",
            "by_x": "real rows by features",
            "regret": "rows of all generators redrawn by regret",
        }
        for rival, name in rivals_by_rows.items():
            claims.append(
                _difference_claim(
                    "C5",
                    f"excess of unseen families by the truth, swarm against {name}; "
                    f"searched: {text}",
                    "not asked",
                    excess["pso"] - excess[rival],
                    figures,
                )
            )
    return claims


def _judge_adversarial(figures: pd.DataFrame) -> list[Claim]:
    claims = []
    for labels in ("own", "teacher"):
        wide = _wide(figures, form=labels, figure="accuracy")
        claims.append(
            _difference_claim(
                "C7",
                f"adversarial swarm against the best tuned base, {labels} labels",
                "+8.2 %",
                _relative(wide["adversarial"], _best_of(wide, TUNED_ARMS)),
                figures,
                percent=True,
            )
        )
        for rival, text in (
            ("best_taker", "the best taker it started with"),
            ("real_teacher", "the control, real rows with the teacher's labels"),
        ):
            claims.append(
                _difference_claim(
                    "C7",
                    f"adversarial swarm against {text}, {labels} labels",
                    "not asked",
                    wide["adversarial"] - wide[rival],
                    figures,
                )
            )
    return claims
