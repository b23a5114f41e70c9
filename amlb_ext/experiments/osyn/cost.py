"""What OSYN costs, in processor minutes, part by part (Appendix C.3, Table 9)."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import numpy as np

from amlb_ext.core.rng import derive_seed
from amlb_ext.core.task import Task
from amlb_ext.estimate.osyn.bound import osyn_closed, osyn_selected
from amlb_ext.estimate.osyn.regions import Regions
from amlb_ext.estimate.osyn.tallies import Placed, RegionTally
from amlb_ext.estimate.osyn.theorem import OsynSettings
from amlb_ext.experiments.osyn.arms import bootstrap_limit
from amlb_ext.experiments.osyn.case import SEED, Case, Generator
from amlb_ext.experiments.osyn.choices import TABLES, Choice, models_of
from amlb_ext.hardening.baseline.estimator import fill_missing

PARTS = ("generate", "encode", "assign", "predict", "select")
#: Labelled rows of the paper's table.
SIZES = (500, 1000, 5000)


class Clock:
    """Processor seconds by part.

    Examples
    --------
    >>> clock = Clock()
    >>> with clock("predict"):
    ...     pass
    >>> list(clock.seconds)
    ['predict']
    """

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def __call__(self, part: str) -> Iterator[None]:
        """Add what the block takes to a part."""
        began = time.process_time()
        try:
            yield
        finally:
            spent = time.process_time() - began
            self.seconds[part] = self.seconds.get(part, 0.0) + spent

    @property
    def total(self) -> float:
        """All parts."""
        return sum(self.seconds.values())


def measure_cost(task: Task, choice: Choice, repetition: int) -> dict[str, dict[str, float]]:
    """Return, for each model, minutes of both forms of OSYN, their parts, and the baselines.

    The closed form places ``rows`` generated rows and predicts none but the labelled ones;
    Algorithm 1 takes as long again, and ``iterations`` times ``batch`` rows with predictions.
    Fitting the model and the generator counts for neither. With the paper's first number of
    labelled rows the SVM is run with its others too.
    """
    names = models_of(TABLES["osyn-cost"], task.name, choice)
    out = _of_size(task, choice, repetition, names)
    if choice.size == SIZES[0] and "SVM" in names:
        for size in SIZES[1:]:
            found = _of_size(task, replace(choice, size=size), repetition, ("SVM",))
            out[f"SVM, K = {size}"] = found["SVM"]
    return out


def _of_size(
    task: Task, choice: Choice, repetition: int, names: Sequence[str]
) -> dict[str, dict[str, float]]:
    case = Case(task, choice, repetition, False)
    rows = case.labelled(np.empty(0))
    regions = Regions(case.placed(case.Z[rows]), None, choice.k or None)
    generator = case.generator()
    settings = OsynSettings(choice.g, choice.b, choice.delta1, choice.delta2, 1.0, "paper")
    closed = OsynSettings(choice.g, choice.b, choice.delta1, choice.delta2)
    first = Clock()
    masses = _masses(case, generator, regions, first)
    out = {}
    for name in names:
        model = case.model(name)
        own, began = Clock(), time.monotonic()
        with own("predict"):
            loss_s = case.losses(model, case.seen(case.Z[rows]), case.y[rows])
        with own("select"):
            osyn_closed(loss_s, masses, closed)
        search = Clock()
        before = time.process_time()
        rows_of = _searched(case, generator, regions, model, search)
        osyn_selected(rows_of, loss_s, masses, settings)
        # What is left is Algorithm 1's own.
        search.seconds["select"] = time.process_time() - before - search.total
        clock = time.monotonic() - began
        baseline = Clock()
        with baseline("bootstrap"):
            rng = np.random.default_rng(derive_seed(SEED, "cost", repetition))
            bootstrap_limit(loss_s, choice.delta, choice.bootstraps, rng)
        with baseline("synthetic"):
            for Z, y in generator.batches(choice.g, "synthetic"):
                case.losses(model, case.seen(fill_missing(Z)), y)
        entry = {"closed": first.total + own.total, "iterative": first.total + search.total}
        for part in PARTS:
            shared = first.seconds.get(part, 0.0)
            entry[f"closed: {part}"] = shared + own.seconds.get(part, 0.0)
            entry[f"iterative: {part}"] = shared + search.seconds.get(part, 0.0)
        entry |= baseline.seconds
        out[name] = {arm: value / 60 for arm, value in entry.items()}
        out[name]["search, by the clock"] = clock / 60
    return out


def _masses(case: Case, generator: Generator, regions: Regions, clock: Clock) -> RegionTally:
    counts = np.zeros(regions.n_regions, dtype=np.int64)
    for region, _, _ in _placed(case, generator, regions, case.choice.rows, "masses", clock):
        counts += np.bincount(region[region >= 0], minlength=len(counts))
    return RegionTally(counts, None, case.choice.rows - int(counts.sum()), False)


def _searched(
    case: Case, generator: Generator, regions: Regions, model: object, clock: Clock
) -> Iterator[Placed]:
    n = case.choice.iterations * case.choice.batch
    for region, seen, y in _placed(case, generator, regions, n, "search", clock):
        with clock("predict"):
            loss = case.losses(model, seen, y)
        yield region, loss


def _placed(
    case: Case, generator: Generator, regions: Regions, n: int, stage: str, clock: Clock
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    rows = generator.batches(n, stage)
    while True:
        with clock("generate"):
            made = next(rows, None)
        if made is None:
            return
        with clock("encode"):
            Z = fill_missing(made[0])
            seen = case.seen(Z)
            M = case.placed(Z, seen)
        with clock("assign"):
            region = regions.assign(M)
        yield region, seen, made[1]
