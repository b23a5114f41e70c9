"""What ``hardsynth generate`` will cost, said before the work begins.

F and the oracle are fitted on two small samples of the largest task; both grow as ``a + b n log n``
in the rows, and what else is fitted goes with the oracle, which has a forest and boosting as most
candidates are. So columns, classes and whatever model the user named are in the figure.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import numpy as np

from amlb_ext.core.config import GenerateConfig
from amlb_ext.core.display import format_count
from amlb_ext.core.errors import HardsynthError
from amlb_ext.core.rng import derive_int_seed, random_stream
from amlb_ext.core.task import Task
from amlb_ext.hardening.baseline.asked import ask_limit
from amlb_ext.hardening.baseline.fitted import make_baseline
from amlb_ext.hardening.encode import Encoder, TargetEncoder
from amlb_ext.hardening.oracle import Oracle
from amlb_ext.hardening.split import PARTS
from amlb_ext.models.files import comes_fitted

#: Rows of the two samples.
SAMPLES = (250, 1000)
#: Seconds of candidates for one of the oracle, of everything else for one of all fits, and of a
#: fold beside these: docs/evidence/speed.md.
CANDIDATES, BESIDE, AT_LEAST = 1.5, 0.3, 3.0
#: Share of F's fits from which on a quicker F is worth a word, and minutes of a fold.
LARGE_SHARE, LONG = 0.3, 0.5
QUICKER = "hist_gradient_boosting"


def cost_text(
    tasks: Sequence[Task], config: GenerateConfig, certificate: str = "quick"
) -> str:
    """Return what lies ahead and what would make it cheaper.

    Examples
    --------
    >>> from amlb_ext.core.config import build_config
    >>> from amlb_ext.core.tables import make_task
    >>> from amlb_ext.hardening.split import split_task
    >>> import pandas as pd
    >>> config = build_config({"baseline": {"model": "ridge"}})
    >>> table = pd.DataFrame({"x": range(1000), "y": range(1000)})
    >>> task = split_task(make_task(table, "y", name="t"), config.split, seed=1)
    >>> cost_text([task], config)[:41]
    '5 folds, the largest with 800 training ro'
    """
    largest = max(tasks, key=_size)
    n = max(len(fold.train) for fold in largest.folds)
    of_baseline, of_oracle = probe(largest, config, n)
    fits = of_baseline + of_oracle * (1 + (certificate != "none") * CANDIDATES)
    minutes = ((1 + BESIDE) * fits + AT_LEAST) / 60
    n_folds = sum(len(task.folds) for task in tasks)
    cheaper = []
    is_slow = of_baseline > LARGE_SHARE * fits
    if minutes > LONG and is_slow and QUICKER not in config.baseline.model:
        cheaper.append(f"--baseline {QUICKER}")
    if len(largest.folds) > 1:
        cheaper.append("--folds 1")
    if certificate != "none":
        cheaper.append("--certificate none")
    return (
        f"{format_count(n_folds, 'fold')}, the largest with {n:,} training rows: about "
        f"{minutes:.1f} processor minutes each, {of_baseline / 60:.1f} of them fits of F, as fits "
        f"on {SAMPLES[0]:,} and {SAMPLES[1]:,} rows suggest"
        + (f"; cheaper: {', '.join(cheaper)}" if cheaper else "")
    )


def _size(task: Task) -> int:
    n_rows = max(len(fold.train) for fold in task.folds)
    return n_rows * len(task.columns) * max(1, len(task.labels))


def probe(task: Task, config: GenerateConfig, n: int) -> tuple[float, float]:
    """Return the processor seconds of the fits of F and of the oracle in a fold of n rows.

    Those of F are 0 where they are not known: of an F that comes fitted, and of one whose
    answers cost, which is not asked for a guess.
    """
    rng = random_stream(config.seed, task.stream_name, "cost")
    rows = task.folds[0].train
    rows = np.sort(rng.choice(rows, min(len(rows), SAMPLES[1]), replace=False))
    features, target = task.features.iloc[rows], task.target.iloc[rows]
    encoder = Encoder(task.columns).fit(features)
    scale = TargetEncoder(task.kind, task.labels, target)
    Z, y = encoder.transform(features), scale.transform(target)
    order = rng.permutation(len(y))
    Z, y = Z[order], y[order]
    seed = derive_int_seed(config.seed, "cost")

    def fit_oracle(m: int) -> None:
        everything = np.arange(m)
        Oracle(scale.n_classes, seed).fit(Z[:m], y[:m], [(everything, everything[:1])])

    of_oracle = _extrapolated(fit_oracle, len(y), n)
    is_free = ask_limit(config.baseline, task.kind) is None
    if not is_free or comes_fitted(config.baseline):
        return 0.0, PARTS * of_oracle
    baseline = make_baseline(config.baseline, task, encoder, scale)
    try:
        of_baseline = _extrapolated(lambda m: baseline.fit(Z[:m], y[:m], seed), len(y), n)
    # what cannot be fitted on so few rows may be on all
    except HardsynthError:
        return 0.0, PARTS * of_oracle
    # once on all rows, and without each part
    return (1 + PARTS) * of_baseline, PARTS * of_oracle


def _extrapolated(fit: Callable[[int], object], most: int, n: int) -> float:
    """Return the processor seconds of a fit on n rows, from fits on a few and on ``most``."""
    few = min(SAMPLES[0], most // 2)
    seconds = []
    for rows in (few, most):
        start = time.process_time()
        fit(rows)
        seconds.append(time.process_time() - start)
    work = [rows * np.log(rows + 1) for rows in (few, most, n)]
    slope = max(0.0, seconds[1] - seconds[0]) / (work[1] - work[0])
    return float(seconds[1] + slope * (work[2] - work[1]))
