"""What OSYN costs, in processor minutes, part by part (Appendix C.3, Table 9)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from amlb_ext.core.rng import derive_seed
from amlb_ext.core.task import Task
from amlb_ext.estimate.osyn.bound import OsynSettings, osyn_closed, osyn_iterative
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


def form_part(form: str, part: str) -> str:
    """Return the arm of one part of a form of OSYN.

    Examples
    --------
    >>> form_part("closed", "predict")
    'closed: predict'
    """
    return f"{form}: {part}"


class Clock:
    """Processor seconds by part.

    Examples
    --------
    >>> clock = Clock()
    >>> clock.timed("predict", abs)(-1), list(clock.seconds)
    (1, ['predict'])
    """

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    def timed(self, part: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function whose calls count as a part."""

        def call(*args: Any) -> Any:
            began = time.process_time()
            try:
                return function(*args)
            finally:
                spent = time.process_time() - began
                self.seconds[part] = self.seconds.get(part, 0.0) + spent

        return call

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
        self.regions = Regions(M, None, choice.k or None)
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
        case, choice, masses = self.case, self.choice, self.masses
        settings = OsynSettings(choice.g, choice.b, choice.delta1, choice.delta2)
        model = case.fit_model(name)
        closed_clock, search_clock, baselines = Clock(), Clock(), Clock()
        wall_began = time.monotonic()
        X = case.model_inputs(case.Z[self.labelled])
        losses_of = closed_clock.timed("predict", case.model_losses)
        loss_s = losses_of(model, X, case.y[self.labelled])
        closed_clock.timed("select", osyn_closed)(loss_s, masses, settings)

        losses_of = search_clock.timed("predict", case.model_losses)
        n_rows = choice.iterations * choice.batch
        placed = self._place_rows(n_rows, "search", search_clock)
        rows = ((region, losses_of(model, X, y)) for region, X, y in placed)
        search_began = time.process_time()
        osyn_iterative(rows, loss_s, masses, replace(settings, a_hat="paper"))
        # The parts ran inside Algorithm 1, which pulls its rows: what is left is its own.
        search_seconds = time.process_time() - search_began
        search_clock.seconds["select"] = search_seconds - search_clock.total
        wall_seconds = time.monotonic() - wall_began

        def predict_generated() -> None:
            for Z, y in self.generator.sample_batches(choice.g, "synthetic"):
                case.model_losses(model, case.model_inputs(Z), y)

        rng = np.random.default_rng(derive_seed(SEED, "cost", case.key[-1]))
        baselines.timed("bootstrap", bootstrap_limit)(
            loss_s, choice.delta, choice.bootstraps, rng
        )
        baselines.timed("synthetic", predict_generated)()
        # region masses serve both forms
        clocks = {"closed": closed_clock, "iterative": search_clock}
        seconds = {
            form: self.masses_clock.total + clock.total
            for form, clock in clocks.items()
        }
        for part in PARTS:
            shared = self.masses_clock.seconds.get(part, 0.0)
            for form, clock in clocks.items():
                # a form without a part, as the closed one without encoding, spends nothing on it
                seconds[form_part(form, part)] = shared + clock.seconds.get(part, 0.0)
        seconds |= {**baselines.seconds, CLOCK_ARM: wall_seconds}
        return {arm: value / 60 for arm, value in seconds.items()}

    def _place_rows(
        self, n: int, stage: str, clock: Clock
    ) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Yield regions, what the model sees, and targets, batch by batch, each step timed."""

        def encode(Z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            X = self.case.model_inputs(Z)
            return X, self.case.region_inputs(Z, X)

        batches = self.generator.sample_batches(n, stage)
        draw = clock.timed("generate", next)
        assign = clock.timed("assign", self.regions.assign)
        # no for loop: what a generator does between two rows must run under the clock
        while (batch := draw(batches, None)) is not None:
            Z, y = batch
            X, M = clock.timed("encode", encode)(Z)
            yield assign(M), X, y
