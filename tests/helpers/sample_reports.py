"""Reports made up of random numbers, complete to the last column: for tests of what shows them."""

import numpy as np
import pandas as pd

from amlb_ext.core.unit import ROW
from amlb_ext.report.glossary import comparison_glossary
from amlb_ext.report.model import (
    Chart,
    ChartSeries,
    FrameworkRanks,
    SuiteReport,
    TaskReport,
)
from amlb_ext.validity import Certificate
from amlb_ext.validity.measures import plan_measure

FRAMEWORKS = ("AutoGluon", "FLAML", "H2OAutoML", "LightAutoML", "RandomForest")
PARTS = ("full", "region", "bad", "ga", "synthetic", "evaluation")
KINDS = ("binary", "multiclass", "regression")
REASONS = {
    "rank": "Models may be ranked on synthetic rows. Where the agreement of the real rows they "
    "stand for, among themselves, counts 1, synthetic rows reach 0.97 (lower limit 0.88, "
    "required 0.65). Their labels are not shown to be worse than "
    "real ones, nor F's twins to beat it.",
    "describe": "Made rows are not shown to order models as the real rows they stand for. Where "
    "the agreement of the real rows they stand for, among themselves, counts 1, synthetic rows "
    "reach 0.31 (lower limit 0.12, required 0.65). Decide on the whole fold, "
    "and read the region for where and how much.",
    "stress-test only": "No region of failure is shown: features are not shown to foresee where F "
    "fails better than chance (AUC 0.52), so its bad rows may be noise.",
}


def sample_report(
    n_tasks=3,
    seed=0,
    results=True,
    names=None,
    points=200,
    frameworks=FRAMEWORKS,
    jobs=4,
):
    """Return a report on ``n_tasks`` tasks.

    ``results``: whether any framework has run; ``names`` replaces the names of the first tasks,
    which then appear as title, target, label and reason too; ``points`` per chart; ``jobs``
    without a score.
    """
    rng = np.random.default_rng(seed)
    task_names = [f"bank-{number}" for number in range(1, n_tasks + 1)]
    suite = "bank-suite"
    if names:
        task_names[: len(names)] = names
        suite = names[0]
    tasks = []
    for position, name in enumerate(task_names):
        task = sample_task(
            rng,
            name,
            position,
            results=results,
            points=points,
            frameworks=frameworks,
        )
        tasks.append(task)
    tasks = tuple(tasks)
    about = {
        "Suite": suite,
        "Made with": "hardsynth 0.3.0, seed 0",
        "Baseline F": "RandomForest(max_depth=8), 5 folds",
        "Bad rows": "the 6 % with the largest loss",
        "Tasks": f"{n_tasks}",
    }
    shared = {
        "name": suite,
        "question": "Which framework really improves where F fails?",
        "unit": ROW,
        "glossary": comparison_glossary(ROW),
        "about": about,
        "tasks": tasks,
        "level": 0.95,
    }
    if not results:
        return SuiteReport(
            **shared,
            verdict=(),
            warnings=("No job has run yet.",),
            frameworks=pd.DataFrame(),
            jobs=pd.DataFrame(columns=["status"]),
            commands=(f"hardsynth run {suite}",),
        )
    best = frameworks[0]
    return SuiteReport(
        **shared,
        verdict=(
            f"{best} really improves where F fails: better on {n_tasks} of {n_tasks} tasks.",
            "On average it saves 18 % of F's loss in the failure region.",
            "RandomForest cannot be told apart from a re-fit of F.",
        ),
        warnings=(
            "2 of 60 jobs failed and 1 was refused: their frameworks stand incomplete.",
        ),
        overall=_overall(rng, n_tasks, frameworks),
        ranks=_ranks(rng, [task.name for task in tasks], frameworks),
        frameworks=_frameworks(rng, frameworks, 3 * n_tasks),
        jobs=_jobs(rng, frameworks, [task.name for task in tasks], jobs),
        commands=(
            f"hardsynth run {suite} --framework FLAML --task bank-1",
            f"hardsynth run {suite} --framework H2OAutoML --task bank-2 --fold 1",
        ),
        charts=(
            _forest("overall", "Loss relative to F, over all tasks", rng, frameworks),
        ),
        notes=("p-values over the suite are adjusted for all tasks and frameworks.",),
    )


def sample_task(rng, name, position=0, results=True, points=200, frameworks=FRAMEWORKS):
    """Return one task; position 1, 2, ... differ in kind, certificate and what is missing."""
    kind = KINDS[position % 3]
    verdict = ("rank", "describe", "stress-test only")[position % 3]
    labels = (
        ()
        if kind == "regression"
        else tuple(f"{name[:24]} {k}" for k in range(2 + position % 3))
    )
    empty = pd.DataFrame()
    charts = _charts(rng, f"t{position}", points, frameworks)
    return TaskReport(
        name=name,
        title=f"{name} (the source's own title)",
        unit=ROW,
        kind=kind,
        target=name,
        labels=labels,
        rows={"full": 4521, "bad": 271, "ga": 1355, "synthetic": 2000},
        folds=3,
        certificate=None if position == 4 else _certificate(rng, name, kind, verdict),
        loss="squared error of the scaled target"
        if kind == "regression"
        else "Brier loss",
        weighting="Real rows are weighted by P(F fails | x): their effective size is 612 rows.",
        no_claim="Its certificate allows stress tests only."
        if position % 3 == 2
        else "",
        warnings=("H2OAutoML lacks predictions for fold 2.",)
        if position % 3 == 0
        else (),
        contrasts=_contrasts(rng, name, frameworks, position % 3 == 2)
        if results
        else empty,
        pairs=_pairs(rng, name, frameworks) if results else empty,
        scores=_scores(rng, name, kind, frameworks) if results else empty,
        slices=_slices(rng, name) if position % 2 == 0 else _slices(rng, name)[:0],
        uncertified="The task was not certified.",
        composition=("weighted",),
        charts=charts if results else charts[:2],
        notes=("Folds are those of AMLB.",),
    )


def _certificate(rng, name, kind, verdict):
    auc, tau = rng.uniform(0.55, 0.9), rng.uniform(0.2, 1)
    measures = (
        plan_measure("region", "ours", ">=", 0.5).found(
            auc,
            "how well features alone foresee F's failures",
            low=auc - 0.04,
            high=auc + 0.04,
        ),
        plan_measure("synthetic: order", "docs/validity.md", ">=", 0.65).found(
            tau, "agreement of two rankings", low=tau - 0.2
        ),
        plan_measure("synthetic: z2", "docs/validity.md").found(
            rng.uniform(0.2, 3), "gains on synthetic and on real rows"
        ),
        plan_measure("effective size", "docs/validity.md", ">=", 50.0).found(
            612.4, "distinct real rows that the weights are worth"
        ),
        plan_measure("solvability", "ours", ">=", 0.0).missing(
            "not enough rows: 7 distinct real rows"
        ),
        plan_measure("clustered width", "docs/validity.md").found(
            2.31, "information only"
        ),
    )
    return Certificate(
        name,
        kind,
        verdict,
        REASONS[verdict],
        measures,
        ROW,
        {"full": 4521, "bad": 271},
        notes=("One candidate could not be fitted.",),
    )


def _contrasts(rng, name, frameworks, no_claim):
    rows = []
    for where in ("all rows", "region"):
        for k, framework in enumerate(frameworks):
            loss_f = rng.uniform(0.15, 0.3)
            difference = rng.normal(-0.02, 0.02)
            half = np.nan if k == 2 else rng.uniform(0.005, 0.03)
            verdict, reason = "undecided", "The interval holds zero."
            if no_claim:
                verdict, reason = (
                    "no claim",
                    "Its certificate allows stress tests only.",
                )
            elif k == 2:
                verdict, reason = (
                    "incomplete",
                    "No interval: fold 2 has no predictions.",
                )
            elif abs(difference) > half:
                verdict, reason = (
                    ("better" if difference < 0 else "worse"),
                    "p (adjusted) below 0.05.",
                )
            rows.append(
                {
                    "task": name,
                    "framework": framework,
                    "where": where,
                    "folds": 2 if k == 2 else 3,
                    "rows": 4521,
                    "loss": loss_f + difference,
                    "loss_f": loss_f,
                    "difference": difference,
                    "low": difference - half,
                    "high": difference + half,
                    "relative": difference / loss_f,
                    "p": rng.uniform(0, 0.2) ** 2,
                    "p_adjusted": np.nan
                    if k == 2
                    else 0.01
                    if abs(difference) > half
                    else 0.4,
                    "effective_size": 612.4,
                    "weighted": where == "region" and k != 2,
                    "null_difference": rng.normal(0, 0.002),
                    "null_se": 0.0021,
                    "p_null": rng.uniform(),
                    "from_region": np.nan,
                    "from_elsewhere": np.nan,
                    "rmse": np.nan,
                    "rmse_f": np.nan,
                    "by": "capped",
                    "verdict": verdict,
                    "reason": reason,
                }
            )
    return pd.DataFrame(rows)


def _pairs(rng, name, frameworks):
    rows = []
    for i, framework in enumerate(frameworks):
        for other in frameworks[i + 1 :]:
            d, half = rng.normal(0, 0.02), rng.uniform(0.005, 0.03)
            rows.append(
                {
                    "task": name,
                    "framework": framework,
                    "other": other,
                    "folds": 3,
                    "rows": 4521,
                    "weighted": True,
                    "difference": d,
                    "low": d - half,
                    "high": d + half,
                    "p": 0.2,
                    "p_holm": 0.4,
                    "null_spread": 0.004,
                    "p_null": 0.5,
                    "verdict": "undecided",
                    "reason": "The interval holds zero.",
                }
            )
    columns = [
        "task",
        "framework",
        "other",
        "folds",
        "rows",
        "weighted",
        "difference",
        "low",
        "high",
        "p",
        "p_holm",
        "null_spread",
        "p_null",
        "verdict",
        "reason",
    ]
    return pd.DataFrame(rows, columns=columns)


def _scores(rng, name, kind, frameworks):
    metrics = (
        {"rmse": "lower", "r2": "higher"}
        if kind == "regression"
        else {"auc": "higher", "logloss": "lower", "balacc": "higher"}
    )
    rows = [
        {
            "task": name,
            "framework": framework,
            "part": part,
            "metric": metric,
            "value": np.nan if (k, part) == (1, "ga") else rng.uniform(0.5, 0.95),
            "low": 0.4 if part == "full" else np.nan,
            "high": 0.97 if part == "full" else np.nan,
            "rows": 4521 if part in ("full", "region") else 271,
            "folds": 2 if k == 2 else 3,
            "direction": direction,
        }
        for metric, direction in metrics.items()
        for k, framework in enumerate(("F", *frameworks))
        for part in PARTS
        if (k, part) != (2, "evaluation")
    ]
    return pd.DataFrame(rows)


def _slices(rng, name):
    rows = [
        {
            "task": name,
            "slice": text,
            "rows": 240,
            "bad": 61,
            "share": 0.254,
            "low": 0.203,
            "high": 0.313,
            "base": 0.06,
            "lift": 4.2,
            "p": 1e-9,
            "p_holm": 3e-9,
            "n_features": 2,
        }
        for text in ("age > 60 and balance <= 0", f"{name} is one of (a, b, “c, d”)")
    ]
    return pd.DataFrame(rows)


def _forest(key, title, rng, frameworks):
    d, half = (
        rng.normal(-0.1, 0.1, len(frameworks)),
        rng.uniform(0.02, 0.1, len(frameworks)),
    )
    half[2:3] = np.nan
    rows = tuple(
        ChartSeries(
            framework,
            "intervals",
            d[k : k + 1],
            np.array([float(k)]),
            f"c{k % 8}",
            (d - half)[k : k + 1],
            (d + half)[k : k + 1],
            (f"{framework}: {d[k]:.3f}",),
        )
        for k, framework in enumerate(frameworks)
    )
    return Chart(
        key,
        title,
        "Left of the line is less loss than F.",
        "difference to F",
        "",
        rows,
        y_categories=tuple(frameworks),
        guides=("zero",),
    )


def _charts(rng, key, n, frameworks):
    roles = ("good", "bad", "ga", "synthetic")
    cloud = tuple(
        ChartSeries(
            role,
            "points",
            rng.normal(k, 1, max(n // 4, 1)),
            rng.normal(0, 1, max(n // 4, 1)),
            role,
            text=[f"row {i}, loss {i / 997:.3f}" for i in range(max(n // 4, 1))],
            symbol=k,
        )
        for k, role in enumerate(roles)
    )
    edges = np.linspace(0, 1, 21)
    bars = tuple(
        ChartSeries(role, "bars", edges, rng.dirichlet(np.ones(20)), role)
        for role in ("good", "bad")
    )
    grid = np.linspace(0, 1, 50)
    lines = tuple(
        ChartSeries(framework, "line", grid, np.sort(rng.uniform(size=50)), f"c{k % 8}")
        for k, framework in enumerate(frameworks)
    )
    scatter = ChartSeries(
        "rows", "points", rng.uniform(size=n), rng.uniform(size=n), "f"
    )
    return (
        Chart(
            f"{key}-map",
            "Map of the rows",
            "Bad rows lie to the right.",
            "",
            "",
            cloud,
        ),
        Chart(f"{key}-loss", "Loss of F", "Bad rows lose more.", "loss", "share", bars),
        _forest(f"{key}-forest", "Contrasts with F in the region", rng, frameworks),
        Chart(
            f"{key}-curve",
            "Calibration",
            "Curves near the diagonal are calibrated.",
            "predicted",
            "observed",
            lines,
            guides=("diagonal",),
        ),
        Chart(
            f"{key}-rows",
            "Loss of F and of the best framework",
            "Below the line F loses more.",
            "loss of F",
            "loss of the best",
            (scatter,),
            guides=("diagonal",),
        ),
        Chart(
            f"{key}-parts",
            "Score by part",
            "All fall on bad rows.",
            "part",
            "auc",
            tuple(
                ChartSeries(
                    f, "bars", np.arange(4.0), rng.uniform(0.5, 1, 4), f"c{k % 8}"
                )
                for k, f in enumerate(frameworks)
            ),
            x_categories=("full", "bad", "ga", "synthetic"),
        ),
    )


def _overall(rng, n_tasks, frameworks):
    count = len(frameworks)
    relative = np.sort(rng.normal(-0.1, 0.1, count))
    half = np.full(count, np.nan if n_tasks < 3 else 0.12)
    better = rng.integers(0, n_tasks + 1, count)
    return pd.DataFrame(
        {
            "framework": frameworks,
            "tasks": n_tasks,
            "overall_better": better,
            "overall_worse": 0,
            "overall_undecided": n_tasks - better,
            "overall_withheld": 0,
            "overall_better_family": better // 2,
            "overall_relative": relative,
            "overall_low": relative - half,
            "overall_high": relative + half,
            "better": better,
            "worse": 0,
            "undecided": n_tasks - better,
            "withheld": 0,
            "better_family": better // 2,
            "relative": relative,
            "low": relative - half,
            "high": relative + half,
            "larger": better // 3,
            "mean_rank": 1.0 + np.arange(count),
        }
    )


def _ranks(rng, tasks, frameworks):
    names = [*frameworks, "F"]
    if len(tasks) < 3:
        return FrameworkRanks(
            pd.Series(1.0 + np.arange(len(names)), index=names),
            tuple(tasks),
            {},
            np.nan,
            pd.DataFrame(),
            "Fewer than 3 tasks are shared, so ranks were not tested.",
        )
    p = pd.DataFrame(0.2, index=names, columns=names)
    p.loc[names[0], names[-1]] = p.loc[names[-1], names[0]] = 0.004
    mean = pd.Series(1.3 + 0.8 * np.arange(len(names)), index=names)
    left_out = {tasks[-1]: "H2OAutoML has no score on it."}
    return FrameworkRanks(
        mean, tuple(tasks[:-1]), left_out, 0.012, p, "Friedman's test, then Nemenyi's."
    )


def _frameworks(rng, frameworks, runs):
    return pd.DataFrame(
        {
            "framework": frameworks,
            "name": frameworks,
            "constraint": "1h8c",
            "version": "stable",
            "runs": runs,
            "scored": runs - 1,
            "failed": 1,
            "missing": 0,
            "refused": 0,
            "not_run": 0,
            "minutes": rng.uniform(10, 2000, len(frameworks)),
        }
    )


def _jobs(rng, frameworks, tasks, count):
    status = ("failed", "missing", "refused", "not run")
    return pd.DataFrame(
        {
            "framework": [frameworks[i % len(frameworks)] for i in range(count)],
            "amlb_task": [
                f"{tasks[i % len(tasks)]}_full" if tasks else "none"
                for i in range(count)
            ],
            "fold": [i % 3 for i in range(count)],
            "status": [status[i % 4] for i in range(count)],
            "reason": [
                f"TimeoutError: {tasks[i % len(tasks)] if tasks else ''} took too long"
                for i in range(count)
            ],
        }
    )
