"""What OSYN costs, in processor minutes, part by part (Appendix C.3, Table 9)."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from amlb_ext.core.rng import derive_seed
from amlb_ext.core.task import Task
from amlb_ext.estimate.osyn.bound import osyn_closed, osyn_iterative
from amlb_ext.estimate.osyn.regions import Regions, RegionTally
from benchmarks.studies.osyn.arms import bootstrap_limit
from benchmarks.studies.osyn.case import SEED, Case, Choice

PARTS = ("generate", "encode", "assign", "predict", "select")
#: Labelled rows of the paper's table. The paper times the SVM alone.
SIZES = (500, 1000, 5000)
#: Wall-clock minutes of the search; all others are minutes of the processor.
CLOCK_ARM = "search, by the clock"


def sized_row(size: int) -> str:
    """Return the row of the SVM with another number of labelled rows than the first."""
    return f"SVM, K = {size}"


class Clock:
    """Processor seconds by part.

    Examples
    --------
    >>> clock = Clock()
    >>> with clock.part("predict"):
    ...     _ = sum(range(10))
    >>> list(clock.seconds)
    ['predict']
    """

    def __init__(self) -> None:
        self.seconds: defaultdict[str, float] = defaultdict(float)

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Count what the block takes as a part."""
        began = time.process_time()
        try:
            yield
        finally:
            self.seconds[name] += time.process_time() - began

    @property
    def total(self) -> float:
        """All parts."""
        return sum(self.seconds.values())


def measure_cost(
    task: Task, names: Sequence[str], choice: Choice, repetition: int
) -> dict[str, dict[str, float]]:
    """Return, for each model, minutes of both forms of OSYN, their parts, and the baselines.

    The closed form places ``rows`` generated rows and predicts none but the labelled ones;
    Algorithm 1 takes as long again, and ``iterations`` times ``batch`` rows with predictions.
    Fitting the model and the generator counts for neither. With the paper's first number of
    labelled rows the SVM is run with its others too.
    """
    cost = _Cost(task, choice, repetition)
    rows = {name: cost.minutes(name) for name in names}
    if choice.size == SIZES[0] and "SVM" in names:
        for size in SIZES[1:]:
            sized_choice = choice.model_copy(update={"size": size})
            cost = _Cost(task, sized_choice, repetition)
            rows[sized_row(size)] = cost.minutes("SVM")
    return rows


class _Cost:
    """What OSYN costs with one number of labelled rows, which all models share."""

    def __init__(self, task: Task, choice: Choice, repetition: int) -> None:
        self.choice = choice
        self.case = case = Case(task, choice, repetition, regression=False)
        # ADULT has classes, so no losses are needed to draw S
        self.labelled = case.draw_labelled(np.empty(0))
        M = case.region_inputs(case.Z[self.labelled])
        self.regions = Regions(M, choice.k or None)
        self.generator = case.fit_generator()
        # the masses do not depend on the model, so they are timed once and counted for each
        self.masses_clock = Clock()
        counts = np.zeros(self.regions.n_regions, dtype=np.int64)
        for region, _, _ in self._place_rows(choice.rows, "masses", self.masses_clock):
            counts += np.bincount(region[region >= 0], minlength=len(counts))
        n_outside = choice.rows - int(counts.sum())
        self.masses = RegionTally(
            counts, loss_sums=None, outside=n_outside, zero_one=False
        )

    def minutes(self, name: str) -> dict[str, float]:
        """Return the minutes of both forms and the baselines for a model."""
        case, choice = self.case, self.choice
        model = case.fit_model(name)
        clocks = {"closed": Clock(), "iterative": Clock()}
        closed, search = clocks.values()
        wall_began = time.monotonic()
        X = case.model_inputs(case.Z[self.labelled])
        with closed.part("predict"):
            loss_s = case.model_losses(model, X, case.y[self.labelled])
        with closed.part("select"):
            osyn_closed(loss_s, self.masses, choice.bound())

        def losses() -> Iterator[tuple[np.ndarray, np.ndarray]]:
            n_rows = choice.iterations * choice.batch
            for region, X, y in self._place_rows(n_rows, "search", search):
                with search.part("predict"):
                    loss = case.model_losses(model, X, y)
                yield region, loss

        search_began = time.process_time()
        osyn_iterative(losses(), loss_s, self.masses, choice.bound(a_hat="paper"))
        # The parts ran inside Algorithm 1, which pulls its rows: what is left is its own.
        search_seconds = time.process_time() - search_began
        search.seconds["select"] = search_seconds - search.total
        wall_seconds = time.monotonic() - wall_began

        baselines = Clock()
        rng = np.random.default_rng(derive_seed(SEED, "cost", case.key[-1]))
        with baselines.part("bootstrap"):
            bootstrap_limit(loss_s, choice.delta, choice.bootstraps, rng)
        with baselines.part("synthetic"):
            for Z, y in self.generator.sample_batches(choice.g, "synthetic"):
                case.model_losses(model, case.model_inputs(Z), y)
        # region masses serve both forms
        masses = self.masses_clock
        seconds = {form: masses.total + clock.total for form, clock in clocks.items()}
        for part in PARTS:
            for form, clock in clocks.items():
                # a form without a part, as the closed one without encoding, spends nothing on it
                seconds[f"{form}: {part}"] = masses.seconds[part] + clock.seconds[part]
        seconds |= {**baselines.seconds, CLOCK_ARM: wall_seconds}
        return {arm: value / 60 for arm, value in seconds.items()}

    def _place_rows(
        self, n: int, stage: str, clock: Clock
    ) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Yield regions, what the model sees, and targets, batch by batch, each step timed."""
        batches = self.generator.sample_batches(n, stage)
        # no for loop: what a generator does between two rows must run under the clock
        while True:
            with clock.part("generate"):
                batch = next(batches, None)
            if batch is None:
                return
            Z, y = batch
            with clock.part("encode"):
                X = self.case.model_inputs(Z)
                M = self.case.region_inputs(Z, X)
            with clock.part("assign"):
                region = self.regions.assign(M)
            yield region, X, y
