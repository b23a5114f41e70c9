"""One repetition of a table: every estimate of every model."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from amlb_ext.core.rng import derive_seed, random_stream
from amlb_ext.core.task import Task
from amlb_ext.estimate.osyn.explore import sweep_settings
from amlb_ext.estimate.osyn.regions import Regions
from amlb_ext.estimate.osyn.tallies import RegionTally, drawn_batches, tally_regions
from amlb_ext.estimate.osyn.theorem import OsynSettings
from amlb_ext.experiments.five_gaussians import SHARES, draw_class_rows, draw_rows
from amlb_ext.experiments.osyn.arms import (
    Evidence,
    algorithm_1,
    evaluate_model,
    feasible_widths,
    nearest_below,
    tune_together,
)
from amlb_ext.experiments.osyn.case import SEED, Case
from amlb_ext.experiments.osyn.choices import SHIFTS, TABLES, Choice, models_of
from amlb_ext.experiments.osyn.models import fit_model
from amlb_ext.experiments.osyn.simulation import kl_divergence
from amlb_ext.hardening.baseline.estimator import fill_missing

#: NOTE[DIFF]: the paper names no classes. The printed gaps of Table 1 are met with S from the
#: fifth class and without a sphere; Table 2 with S from the first and fourth, k = 10.
ONE, TWO, SPHERE = (4,), (0, 3), 10

Rows = dict[str, dict[str, float]]


class _Simulated:
    """D_train, D_oracle and S of one repetition (Appendix B.1.1)."""

    def __init__(
        self, choice: Choice, repetition: int, classes: tuple[int, ...]
    ) -> None:
        self.choice, self.key = choice, ("simulation", len(classes), repetition)
        self.X, self.y = draw_rows(choice.train, self.rng("train"))
        self.X_oracle, self.y_oracle = draw_rows(choice.oracle, self.rng("oracle"))
        share = [
            len(part) for part in np.array_split(np.arange(choice.size), len(classes))
        ]
        self.y_s = np.repeat(classes, share)
        self.X_s = draw_class_rows(self.y_s, self.rng("labelled"))

    def rng(self, *stage: str | int) -> np.random.Generator:
        return random_stream(SEED, "osyn", *self.key, *stage)

    def model(self, name: str) -> Any:
        seed = derive_seed(SEED, "osyn", *self.key, "fit", name) % 2**31
        return fit_model(name, self.X, self.y, seed, linear=True)

    def masses(self, regions: Regions, a: float) -> RegionTally:
        rng = self.rng("masses", str(a))
        rows = drawn_batches(
            lambda n: (draw_rows(n, rng, a)[0], None, None),
            self.choice.rows,
            self.choice.batch,
        )
        return tally_regions(rows, regions)

    def stream(self, a: float) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        rng = self.rng("search", str(a))
        for _ in range(self.choice.iterations):
            yield draw_rows(self.choice.batch, rng, a)

    def losses(self, model: Any) -> tuple[np.ndarray, float]:
        """Return the losses of S, and the oracle's loss."""
        oracle = float((model.predict(self.X_oracle) != self.y_oracle).mean())
        return (model.predict(self.X_s) != self.y_s).astype(float), oracle


def repeat_table_1(choice: Choice, repetition: int) -> Rows:
    """Return, for each shift of the generator, the bound by three choices of b, and the KL.

    ``tuned`` has the b that is nearest to the oracle's loss from below at shift 0, for all shifts.
    """
    of = _Simulated(choice, repetition, ONE)
    regions = Regions(of.X_s, None, choice.k or None)
    out: Rows = {}
    for name in models_of(TABLES["osyn-table-1"], "simulation", choice):
        model = of.model(name)
        loss_s, oracle = of.losses(model)
        b = {"a_priori": choice.b, "reading": choice.b_reading}
        for shift in SHIFTS:
            a = float(shift)
            placed, wrong = [], []
            for X, y in of.stream(a):
                placed.append(regions.assign(X))
                wrong.append((model.predict(X) != y).astype(float))
            found = Evidence(
                loss_s,
                of.masses(regions, a),
                np.concatenate(placed),
                np.concatenate(wrong),
                oracle,
                True,
            )
            key = derive_seed(SEED, "osyn", "table-1", repetition, shift)
            if "tuned" not in b:
                sweep = sweep_settings(
                    found.masses.masses,
                    loss_s,
                    np.random.default_rng(key),
                    feasible_widths(choice.g, len(loss_s)),
                    [choice.delta2],
                    (choice.g,),
                    choice.delta,
                )
                b["tuned"] = float(nearest_below(sweep, oracle)["b"])
            row = {"kl": kl_divergence(a), "oracle": oracle, "b": b["tuned"]}
            for arm, width in b.items():
                s = OsynSettings(
                    choice.g, width, choice.delta1, choice.delta2, 1.0, "paper"
                )
                row[arm] = algorithm_1(found, s, np.random.default_rng(key)).bound
            out[shift] = row
    return out


def repeat_table_2(choice: Choice, repetition: int) -> Rows:
    """Return every estimate of the simulation's classifiers; the generator is P_0 itself."""
    of = _Simulated(choice, repetition, TWO)
    regions = Regions(of.X_s, None, choice.k or min(SPHERE, choice.size - 1))
    names = models_of(TABLES["osyn-table-2"], "simulation", choice)
    models = {name: of.model(name) for name in names}
    placed: list[np.ndarray] = []
    wrong: dict[str, list[np.ndarray]] = {name: [] for name in names}
    for X, y in of.stream(0.0):
        placed.append(regions.assign(X))
        for name, model in models.items():
            wrong[name].append(model.predict(X) != y)
    masses, region = of.masses(regions, 0.0), np.concatenate(placed)
    out, sweeps = {}, []
    for name, model in models.items():
        loss_s, oracle = of.losses(model)
        loss_u = np.concatenate(wrong[name]).astype(float)
        found = Evidence(loss_s, masses, region, loss_u, oracle, True, of.y_s, SHARES)
        out[name], sweep = evaluate_model(
            found, choice, derive_seed(SEED, "table-2", repetition)
        )
        sweeps.append(sweep)
    return _tuned_together(out, sweeps)


def _tuned_together(rows: Rows, sweeps: list[pd.DataFrame]) -> Rows:
    """Add the estimate by one setting for all models."""
    oracles = [row["oracle"] for row in rows.values()]
    for row, bound in zip(rows.values(), tune_together(sweeps, oracles), strict=True):
        row["tuned_set"] = bound
    return rows


def repeat_tabular(
    name: str, data: str, task: Task, choice: Choice, repetition: int
) -> Rows:
    """Return every estimate of a data set's models (Tables 3 and 7)."""
    case = Case(task, choice, repetition, name == "osyn-table-7")
    names = models_of(TABLES[name], data, choice)
    models = {which: case.model(which) for which in names}
    X = case.seen(case.Z[case.oracle])
    y = case.y[case.oracle]
    losses = {which: case.losses(model, X, y) for which, model in models.items()}
    rows = case.labelled(losses[names[0]])
    S = np.searchsorted(case.oracle, rows)
    regions = Regions(case.placed(case.Z[rows]), None, choice.k or None)
    generator = case.generator()
    made = generator.batches(choice.rows, "masses")
    masses = tally_regions(
        ((case.placed(fill_missing(Z)), None, None) for Z, _ in made), regions
    )
    placed: list[np.ndarray] = []
    lost: dict[str, list[np.ndarray]] = {which: [] for which in names}
    for Z, target in generator.batches(choice.iterations * choice.batch, "search"):
        Z = fill_missing(Z)
        seen = case.seen(Z)
        placed.append(regions.assign(case.placed(Z, seen)))
        for which, model in models.items():
            lost[which].append(case.losses(model, seen, target).astype(np.float32))
    region = np.concatenate(placed)
    codes = case.y[rows].astype(int) if case.classes else None
    out, sweeps = {}, []
    for which in names:
        found = Evidence(
            losses[which][S],
            masses,
            region,
            np.concatenate(lost[which]),
            float(losses[which].mean()),
            not case.regression,
            codes,
            case.priors,
        )
        out[which], sweep = evaluate_model(
            found, choice, derive_seed(SEED, name, data, repetition)
        )
        sweeps.append(sweep)
    return _tuned_together(out, sweeps)
