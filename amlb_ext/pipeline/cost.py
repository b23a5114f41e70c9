"""What ``hardsynth generate`` will cost, said before the work begins.

F and the oracle are fitted on two small samples of the largest task; both grow as ``a + b n log n``
in the rows, and what else is fitted goes with the oracle, which has a forest and boosting as most
candidates are. So columns, classes and whatever model the user named are in the figure.
"""

from __future__ import annotations

import pickle
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from amlb_ext.core.config import GenerateConfig
from amlb_ext.core.display import format_count
from amlb_ext.core.errors import HardsynthError
from amlb_ext.core.rng import derive_int_seed, random_stream
from amlb_ext.core.task import Task
from amlb_ext.hardening.baseline.asked import ask_limit
from amlb_ext.hardening.baseline.fitted import make_baseline
from amlb_ext.hardening.baseline.forests import MOST_CLASSES
from amlb_ext.hardening.encode import Encoder, TargetEncoder
from amlb_ext.hardening.oracle import MOST_PER_TREE, Oracle
from amlb_ext.hardening.split import PARTS
from amlb_ext.models.files import comes_fitted

#: Rows of the larger sample, at least and at most, and its cells times half of the classes. Fewer
#: rows do not fill the leaves of boosting, and would seem to grow without end.
FEWEST_ROWS, MOST_ROWS, MOST_CELLS = 500, 4000, 400_000
#: The smaller sample, of the larger one.
SMALLER = 4
#: Seconds of candidates for one of the oracle, of everything else for one of all fits, and of a
#: fold beside these: docs/evidence/speed.md.
CANDIDATES, BESIDE, AT_LEAST = 1.0, 0.3, 3.0
#: Share of F's fits from which on a quicker F is worth a word, and seconds of a fold; GB of F's
#: fits that are worth one.
LARGE_SHARE, LONG, LARGE_GB = 0.3, 30.0, 1.0
QUICKER = "hist_gradient_boosting"
#: The same where classes are very many: boosting grows a tree for each of them, a random forest
#: weighs each at every threshold, and every node holds a number for each.
QUICKER_OF_MANY = "sklearn.ensemble.ExtraTreesClassifier:max_leaf_nodes=500"


@dataclass(frozen=True)
class Cost:
    """What the fits of a fold cost.

    Attributes
    ----------
    baseline, oracle : float
        Processor seconds of all fits of F, and of T. Those of F are 0 where they are not known: of
        an F that comes fitted, and of one whose answers cost, which is not asked for a guess.
    gb : float
        Memory that the fits of F hold, all at once.
    """

    baseline: float
    oracle: float
    gb: float = 0.0


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
    cost = probe(largest, config, n)
    fits = cost.baseline + cost.oracle * (1 + (certificate != "none") * CANDIDATES)
    seconds = (1 + BESIDE) * fits + AT_LEAST
    n_folds = sum(len(task.folds) for task in tasks)
    name = config.baseline.model
    memory = f" and {cost.gb:.0f} GB of memory" if cost.gb > LARGE_GB else ""
    cheaper = []
    is_dear = seconds > LONG and cost.baseline > LARGE_SHARE * fits
    quicker = QUICKER if len(largest.labels) <= MOST_CLASSES else QUICKER_OF_MANY
    if (is_dear or cost.gb > LARGE_GB) and quicker not in name:
        cheaper.append(f"--baseline {quicker}")
    if len(largest.folds) > 1:
        cheaper.append("--folds 1")
    if certificate != "none":
        cheaper.append("--certificate none")
    return (
        f"{format_count(n_folds, 'fold')}, the largest with {n:,} training rows: about "
        f"{_time_text(seconds)} of one processor each, {_time_text(cost.baseline)}{memory} of it "
        f"for the fits of F, as fits on some rows suggest"
        + (f"; cheaper: {', '.join(cheaper)}" if cheaper else "")
    )


def _time_text(seconds: float) -> str:
    """Return a rough time in words.

    Examples
    --------
    >>> _time_text(9.4), _time_text(500.0)
    ('9 s', '8 minutes')
    """
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} minutes"


def _size(task: Task) -> int:
    n_rows = max(len(fold.train) for fold in task.folds)
    return n_rows * len(task.columns) * max(1, len(task.labels))


def probe(task: Task, config: GenerateConfig, n: int) -> Cost:
    """Return what the fits of F and of the oracle cost in a fold of n rows."""
    rng = random_stream(config.seed, task.stream_name, "cost")
    rows = task.folds[0].train
    affordable = MOST_CELLS // (len(task.columns) * max(1, len(task.labels) // 2))
    most = min(len(rows), max(FEWEST_ROWS, min(MOST_ROWS, affordable)))
    rows = np.sort(rng.choice(rows, most, replace=False))
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

    # trees of more rows than that see so many at most
    of_oracle = PARTS * _extrapolated(fit_oracle, len(y), min(n, MOST_PER_TREE))
    is_free = ask_limit(config.baseline, task.kind) is None
    if not is_free or comes_fitted(config.baseline):
        return Cost(0.0, of_oracle)
    baseline = make_baseline(config.baseline, task, encoder, scale)
    try:
        of_baseline = _extrapolated(
            lambda m: baseline.fit(Z[:m], y[:m], seed), len(y), n
        )
    # what cannot be fitted on so few rows may be on all
    except HardsynthError:
        return Cost(0.0, of_oracle)
    # once on all rows, and without each part
    fits = 1 + PARTS
    gb = _bytes_held(baseline) * n / len(y) / 1e9
    return Cost(fits * of_baseline, of_oracle, fits * gb)


def _bytes_held(model: object) -> int:
    """Return the bytes of a model's arrays; 0 where it cannot be pickled."""
    sizes = []

    def count(buffer: pickle.PickleBuffer) -> None:
        sizes.append(buffer.raw().nbytes)

    try:
        # not written: arrays are handed over as they are
        pickle.dumps(model, protocol=5, buffer_callback=count)
    except Exception:  # whatever a class of the user's raises
        return 0
    return sum(sizes)


def _extrapolated(fit: Callable[[int], object], most: int, n: int) -> float:
    """Return the processor seconds of a fit on n rows, from fits on a few and on ``most``."""
    few = most // SMALLER
    seconds = []
    with warnings.catch_warnings():
        # a sample may hold one row of a class
        warnings.simplefilter("ignore")
        for rows in (few, most):
            start = time.process_time()
            fit(rows)
            seconds.append(time.process_time() - start)
    work = [rows * np.log(rows + 1) for rows in (few, most, n)]
    slope = max(0.0, seconds[1] - seconds[0]) / (work[1] - work[0])
    return float(max(0.0, seconds[1] + slope * (work[2] - work[1])))
