"""What OSYN costs, in processor minutes, part by part (Appendix C.3, Table 9)."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import numpy as np

from amlb_ext.core.rng import derive_seed
from amlb_ext.core.task import Task
from amlb_ext.estimate.osyn.bound import OsynSettings, osyn_closed, osyn_selected
from amlb_ext.estimate.osyn.regions import Placed, Regions, RegionTally
from amlb_ext.hardening.baseline.estimator import fill_missing
from benchmarks.studies.osyn.arms import bootstrap_limit
from benchmarks.studies.osyn.case import SEED, Case, Choice, Generator

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


def measure_cost(
    task: Task, names: Sequence[str], choice: Choice, repetition: int
) -> dict[str, dict[str, float]]:
    """Return, for each model, minutes of both forms of OSYN, their parts, and the baselines.

    The closed form places ``rows`` generated rows and predicts none but the labelled ones;
    Algorithm 1 takes as long again, and ``iterations`` times ``batch`` rows with predictions.
    Fitting the model and the generator counts for neither. With the paper's first number of
    labelled rows the SVM is run with its others too.
    """
    # the models share S and the generator of one number of labelled rows
    rows = _measure_size(task, choice, repetition, names)
    if choice.size == SIZES[0] and "SVM" in names:
        for size in SIZES[1:]:
            sized_choice = choice.model_copy(update={"size": size})
            rows[sized_row(size)] = _measure_size(
                task, sized_choice, repetition, ["SVM"]
            )["SVM"]
    return rows


def _measure_size(
    task: Task, choice: Choice, repetition: int, names: Sequence[str]
) -> dict[str, dict[str, float]]:
    case = Case(task, choice, repetition, regression=False)
    # ADULT has classes, so no losses are needed to draw S
    labelled = case.draw_labelled(np.empty(0))
    regions = Regions(case.region_inputs(case.Z[labelled]), None, choice.k or None)
    generator = case.fit_generator()
    masses_clock = Clock()
    masses = _time_masses(case, generator, regions, masses_clock)
    rows = {}
    # the masses do not depend on the model, so they are timed once and counted for each
    for name in names:
        seconds = _model_seconds(
            case,
            name,
            labelled=labelled,
            regions=regions,
            generator=generator,
            masses=masses,
            masses_clock=masses_clock,
            repetition=repetition,
        )
        rows[name] = {arm: value / 60 for arm, value in seconds.items()}
    return rows


def _model_seconds(
    case: Case,
    name: str,
    *,
    labelled: np.ndarray,
    regions: Regions,
    generator: Generator,
    masses: RegionTally,
    masses_clock: Clock,
    repetition: int,
) -> dict[str, float]:
    """Return the seconds of both forms and the baselines; region masses serve both forms."""
    choice = case.choice
    settings = OsynSettings(choice.g, choice.b, choice.delta1, choice.delta2)
    model = case.fit_model(name)
    clock_began = time.monotonic()

    closed_clock = Clock()
    with closed_clock("predict"):
        X = case.model_inputs(case.Z[labelled])
        loss_s = case.model_losses(model, X, case.y[labelled])
    with closed_clock("select"):
        osyn_closed(loss_s, masses, settings)

    search_clock = Clock()
    search_began = time.process_time()
    placed_losses = _place_losses(case, generator, regions, model, search_clock)
    osyn_selected(placed_losses, loss_s, masses, replace(settings, a_hat="paper"))
    # The parts ran inside Algorithm 1, which pulls its rows: what is left is its own.
    search_seconds = time.process_time() - search_began
    search_clock.seconds["select"] = search_seconds - search_clock.total
    wall_seconds = time.monotonic() - clock_began

    baselines = Clock()
    with baselines("bootstrap"):
        rng = np.random.default_rng(derive_seed(SEED, "cost", repetition))
        bootstrap_limit(loss_s, choice.delta, choice.bootstraps, rng)
    with baselines("synthetic"):
        for Z, y in generator.sample_batches(choice.g, "synthetic"):
            X = case.model_inputs(fill_missing(Z))
            case.model_losses(model, X, y)

    seconds = {
        "closed": masses_clock.total + closed_clock.total,
        "iterative": masses_clock.total + search_clock.total,
    }
    for part in PARTS:
        shared = masses_clock.seconds.get(part, 0.0)
        for form, clock in (("closed", closed_clock), ("iterative", search_clock)):
            # a form without a part, as the closed one without encoding, spends nothing on it
            seconds[form_part(form, part)] = shared + clock.seconds.get(part, 0.0)
    return seconds | baselines.seconds | {CLOCK_ARM: wall_seconds}


def _time_masses(
    case: Case, generator: Generator, regions: Regions, clock: Clock
) -> RegionTally:
    """Return the region masses p from generated rows, timed."""
    n_rows = case.choice.rows
    counts = np.zeros(regions.n_regions, dtype=np.int64)
    batches = generator.sample_batches(n_rows, "masses")
    for region, _, _ in _place_rows(case, batches, regions=regions, clock=clock):
        counts += np.bincount(region[region >= 0], minlength=len(counts))
    n_outside = n_rows - int(counts.sum())
    return RegionTally(counts, loss_sums=None, outside=n_outside, zero_one=False)


def _place_losses(
    case: Case, generator: Generator, regions: Regions, model: object, clock: Clock
) -> Iterator[Placed]:
    """Yield regions and losses of the rows that Algorithm 1 may select from, timed."""
    n_rows = case.choice.iterations * case.choice.batch
    batches = generator.sample_batches(n_rows, "search")
    for region, X, y in _place_rows(case, batches, regions=regions, clock=clock):
        with clock("predict"):
            loss = case.model_losses(model, X, y)
        yield region, loss


def _place_rows(
    case: Case,
    batches: Iterator[tuple[np.ndarray, np.ndarray]],
    *,
    regions: Regions,
    clock: Clock,
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Yield regions, what the model sees, and targets, batch by batch, each step timed."""
    # no for loop: what a generator does between two rows must run under the clock
    while True:
        with clock("generate"):
            batch = next(batches, None)
        if batch is None:
            return
        Z, y = batch
        with clock("encode"):
            Z = fill_missing(Z)
            X = case.model_inputs(Z)
            M = case.region_inputs(Z, X)
        with clock("assign"):
            region = regions.assign(M)
        yield region, X, y
