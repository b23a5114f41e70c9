"""Reports made up of random numbers, complete to the last column: for tests of what shows them."""

from dataclasses import replace
from itertools import combinations, product

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
#: Its predictions of a fold are missing.
INCOMPLETE = "H2OAutoML"
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


def sample_report(n_tasks=3, *, results=True, names=None, jobs=4):
    """Return a report on ``n_tasks`` tasks.

    ``results``: whether any framework has run; ``names`` replaces the names of the first tasks,
    which then appear as title, target, label and reason too; ``jobs`` without a score.
    """
    rng = np.random.default_rng(0)
    task_names = [f"bank-{number}" for number in range(1, n_tasks + 1)]
    suite = "bank-suite"
    if names:
        task_names[: len(names)] = names
        suite = names[0]
    tasks = tuple(
        _task(rng, name, position, results=results)
        for position, name in enumerate(task_names)
    )
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
    return SuiteReport(
        **shared,
        verdict=(
            f"AutoGluon really improves where F fails: better on {n_tasks} of {n_tasks} tasks.",
            "On average it saves 18 % of F's loss in the failure region.",
            "RandomForest cannot be told apart from a re-fit of F.",
        ),
        warnings=(
            "2 of 60 jobs failed and 1 was refused: their frameworks stand incomplete.",
        ),
        overall=_overall(rng, n_tasks),
        ranks=_ranks(task_names),
        frameworks=_frameworks(rng, 3 * n_tasks),
        jobs=_jobs(task_names, jobs),
        commands=(
            f"hardsynth run {suite} --framework FLAML --task bank-1",
            f"hardsynth run {suite} --framework H2OAutoML --task bank-2 --fold 1",
        ),
        charts=(sample_charts("Loss relative to F", "overall")["forest"],),
        notes=("p-values over the suite are adjusted for all tasks and frameworks.",),
    )


def _task(rng, name, position, *, results):
    """Return one task; position 1, 2, ... differ in kind, certificate and what is missing."""
    kind = KINDS[position % 3]
    verdict = ("rank", "describe", "stress-test only")[position % 3]
    labels = (
        ()
        if kind == "regression"
        else tuple(f"{name[:24]} {k}" for k in range(2 + position % 3))
    )
    empty = pd.DataFrame()
    charts = tuple(sample_charts(name, f"t{position}").values())
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
        contrasts=_contrasts(rng, name, position % 3 == 2) if results else empty,
        pairs=_pairs(rng, name) if results else empty,
        scores=_scores(rng, name, kind) if results else empty,
        slices=_slices(name) if position % 2 == 0 else _slices(name)[:0],
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


def points(n=50, name="p", **more):
    """Return a cloud of points as a series."""
    rng = np.random.default_rng(n)
    return ChartSeries(name, "points", rng.normal(size=n), rng.normal(size=n), **more)


def sample_charts(text="name", key="k"):
    """Return a chart for each kind of marks, with one text wherever a user's may stand."""
    edges = np.linspace(0, 1, 6)
    spots = np.arange(3.0)
    gap = np.array([0.1, np.nan, 0.3])
    intervals = ChartSeries(
        text, "intervals", gap, spots, "f", low=gap - 1, high=gap + 1
    )
    hollow = replace(
        intervals, x=spots, low=np.full(3, np.nan), name=text + "2", role="bad"
    )
    given = {"title": text, "about": text, "x_label": text, "y_label": text}
    names = (text + " a", text + " b", "c")
    return {
        "map": Chart(
            f"{key}-map",
            **given,
            series=tuple(
                points(20, f"{text}{i}", role=f"c{i}", symbol=i, text=[text] * 20)
                for i in range(6)
            ),
        ),
        "line": Chart(
            f"{key}-line",
            **given,
            guides=("diagonal",),
            series=tuple(
                ChartSeries(f"{text}{i}", "line", spots, spots**i, role=f"c{i}")
                for i in range(3)
            ),
        ),
        "violins": Chart(
            f"{key}-violins",
            **given,
            y_categories=names,
            series=tuple(
                ChartSeries(f"{text}{i}", "violin", edges, edges * 0 + i, role="null")
                for i in range(3)
            ),
        ),
        "forest": Chart(
            f"{key}-forest",
            **given,
            y_categories=names,
            guides=("zero",),
            series=(intervals, hollow),
        ),
    }


def _contrasts(rng, name, no_claim):
    same = {"task": name, "rows": 4521, "effective_size": 612.4, "null_se": 0.0021}
    same |= dict.fromkeys(("from_region", "from_elsewhere", "rmse", "rmse_f"), np.nan)
    rows = []
    for where, framework in product(("all rows", "region"), FRAMEWORKS):
        is_whole = framework != INCOMPLETE
        loss_f = rng.uniform(0.15, 0.3)
        difference = rng.normal(-0.02, 0.02)
        half = rng.uniform(0.005, 0.03) if is_whole else np.nan
        is_shown = abs(difference) > half
        verdict, reason = "undecided", "The interval holds zero."
        if no_claim:
            verdict, reason = "no claim", "Its certificate allows stress tests only."
        elif not is_whole:
            verdict, reason = "incomplete", "No interval: fold 2 has no predictions."
        elif is_shown:
            verdict = "better" if difference < 0 else "worse"
            reason = "p (adjusted) below 0.05."
        row = {
            "framework": framework,
            "where": where,
            "folds": 3 if is_whole else 2,
            "loss": loss_f + difference,
            "loss_f": loss_f,
            "difference": difference,
            "low": difference - half,
            "high": difference + half,
            "relative": difference / loss_f,
            "p": rng.uniform(0, 0.2) ** 2,
            "p_adjusted": (0.01 if is_shown else 0.4) if is_whole else np.nan,
            "weighted": where == "region" and is_whole,
            "null_difference": rng.normal(0, 0.002),
            "p_null": rng.uniform(),
            "by": "capped",
            "verdict": verdict,
            "reason": reason,
        }
        rows.append({**same, **row})
    return pd.DataFrame(rows)


def _pairs(rng, name):
    same = {"task": name, "folds": 3, "rows": 4521, "weighted": True, "p": 0.2}
    same |= {"p_holm": 0.4, "null_spread": 0.004, "p_null": 0.5}
    same |= {"verdict": "undecided", "reason": "The interval holds zero."}
    rows = []
    for framework, other in combinations(FRAMEWORKS, 2):
        d, half = rng.normal(0, 0.02), rng.uniform(0.005, 0.03)
        row = {"framework": framework, "other": other, "difference": d}
        rows.append({**same, **row, "low": d - half, "high": d + half})
    return pd.DataFrame(rows)


def _scores(rng, name, kind):
    metrics = {"auc": "higher", "logloss": "lower", "balacc": "higher"}
    if kind == "regression":
        metrics = {"rmse": "lower", "r2": "higher"}
    rows = []
    for metric, framework, part in product(metrics, ("F", *FRAMEWORKS), PARTS):
        if (framework, part) == ("FLAML", "evaluation"):
            continue
        is_full = part == "full"
        value = rng.uniform(0.5, 0.95)
        row = {
            "task": name,
            "framework": framework,
            "part": part,
            "metric": metric,
            "value": np.nan if (framework, part) == ("AutoGluon", "ga") else value,
            "low": 0.4 if is_full else np.nan,
            "high": 0.97 if is_full else np.nan,
            "rows": 4521 if part in ("full", "region") else 271,
            "folds": 2 if framework == "FLAML" else 3,
            "direction": metrics[metric],
        }
        rows.append(row)
    return pd.DataFrame(rows)


def _slices(name):
    same = {"task": name, "rows": 240, "bad": 61, "share": 0.254, "low": 0.203}
    same |= {"high": 0.313, "base": 0.06, "lift": 4.2, "p": 1e-9, "p_holm": 3e-9}
    texts = ("age > 60 and balance <= 0", f"{name} is one of (a, b, “c, d”)")
    return pd.DataFrame([{**same, "slice": text, "n_features": 2} for text in texts])


def _overall(rng, n_tasks):
    count = len(FRAMEWORKS)
    relative = np.sort(rng.normal(-0.1, 0.1, count))
    half = np.full(count, np.nan if n_tasks < 3 else 0.12)
    better = rng.integers(0, n_tasks + 1, count)
    table = pd.DataFrame({"framework": FRAMEWORKS, "tasks": n_tasks})
    for sign in ("overall_", ""):
        table[f"{sign}better"] = better
        table[f"{sign}worse"] = 0
        table[f"{sign}undecided"] = n_tasks - better
        table[f"{sign}withheld"] = 0
        table[f"{sign}better_family"] = better // 2
        table[f"{sign}relative"] = relative
        table[f"{sign}low"] = relative - half
        table[f"{sign}high"] = relative + half
    return table.assign(larger=better // 3, mean_rank=1.0 + np.arange(count))


def _ranks(tasks):
    names = [*FRAMEWORKS, "F"]
    mean = pd.Series(1.3 + 0.8 * np.arange(len(names)), index=names)
    if len(tasks) < 3:
        why = "Fewer than 3 tasks are shared, so ranks were not tested."
        return FrameworkRanks(mean, tuple(tasks), {}, np.nan, pd.DataFrame(), why)
    p = pd.DataFrame(0.2, index=names, columns=names)
    p.loc[names[0], names[-1]] = p.loc[names[-1], names[0]] = 0.004
    left_out = {tasks[-1]: "H2OAutoML has no score on it."}
    about = "Friedman's test, then Nemenyi's."
    return FrameworkRanks(mean, tuple(tasks[:-1]), left_out, 0.012, p, about)


def _frameworks(rng, runs):
    counts = {"runs": runs, "scored": runs - 1, "failed": 1}
    counts |= dict.fromkeys(("missing", "refused", "not_run"), 0)
    table = pd.DataFrame({"framework": FRAMEWORKS, "name": FRAMEWORKS})
    table = table.assign(constraint="1h8c", version="stable", **counts)
    return table.assign(minutes=rng.uniform(10, 2000, len(FRAMEWORKS)))


def _jobs(tasks, count):
    status = ("failed", "missing", "refused", "not run")
    rows = []
    for i in range(count):
        task = tasks[i % len(tasks)]
        row = {
            "framework": FRAMEWORKS[i % len(FRAMEWORKS)],
            "amlb_task": f"{task}_full",
        }
        row |= {"fold": i % 3, "status": status[i % 4]}
        rows.append({**row, "reason": f"TimeoutError: {task} took too long"})
    return pd.DataFrame(rows)


def row_of(table, **where):
    """Return the one row of a table that has these values."""
    for column, value in where.items():
        table = table[table[column] == value]
    (row,) = table.to_dict("records")
    return row
