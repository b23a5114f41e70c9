"""From how many rows need trees learn where a model is foreseen to lose, and how large are leaves?

The expected change of each row is known. Told, for all rows with leaves of 15, and for what
:mod:`amlb_ext.swap.foresee` takes: the true change of the foreseen worst fifth (the more, the
better foreseen), the best that is possible, the half-width of its interval, coverage, seconds.
"""

from __future__ import annotations

import time
from unittest.mock import patch

import numpy as np
from pydantic import Field

from amlb_ext.swap import foresee as foresight
from amlb_ext.swap.contrast import RowContrast
from amlb_ext.swap.foresee import foresee, group_change
from benchmarks.studies.engine import Rows, Seeded, Study, flat_rows, grid
from benchmarks.studies.page import summarize_means

POOL = 20_000
#: Rows to learn from, and leaves: as before there were limits, and as they are.
LIMITS = {
    "all rows, leaves of 15": (10**9, 10**9),
    "as it is": (foresight.MOST_LEARNT, foresight.MOST_LEAVES),
}


class ForesightSettings(Seeded):
    """What the study of foresight may be told.

    Attributes
    ----------
    draws : int
    rows : int
    seed : int
    """

    rows: int = Field(10_000, ge=100)


def draw_rows(
    kind: str, n: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Return 12 columns and the expected change of each row."""
    Z = rng.normal(size=(n, 12))
    expected = {
        "step": 0.5 * ((Z[:, 0] > 0.8) & (Z[:, 1] > -0.5)) - 0.1,
        "smooth": 0.3 * np.sin(2 * Z[:, 0]) * Z[:, 1] + 0.2 * np.abs(Z[:, 2]) - 0.25,
        "nothing": np.zeros(n),
    }
    return Z, expected[kind]


def judge_foresight(
    settings: ForesightSettings, *, world: str, limits: str, draw: int
) -> Rows:
    """Return what is foreseen on one table, and what is true."""
    rng = np.random.default_rng([settings.seed, draw])
    Z, expected = draw_rows(world, settings.rows, rng)
    d = expected + rng.standard_t(4, len(expected))
    begun = time.process_time()
    contrast = RowContrast(np.zeros(len(d)), d)
    learnt, leaves = LIMITS[limits]
    with patch.multiple(foresight, MOST_LEARNT=learnt, MOST_LEAVES=leaves):
        passes = foresee(contrast, Z, draw)
    seconds = time.process_time() - begun
    pool, of_pool = draw_rows(world, POOL, rng)
    scores = [tree.predict(pool) for each in passes for tree in each.models]
    fifth = POOL // 5
    true = np.mean([of_pool[np.argsort(-s)[:fifth]].mean() for s in scores])
    low, high = group_change(contrast, passes, 0.0, 0.2).interval()
    figures = {
        "foreseen": true,
        "best": np.sort(of_pool)[-fifth:].mean(),
        "half-width": (high - low) / 2,
        "covered": low <= true <= high,
        "seconds": seconds,
    }
    return list(flat_rows(figures, "figure"))


STUDIES = (
    Study(
        name="foresight-rows",
        title="How well harm is foreseen from some of many rows",
        group="claims",
        settings=ForesightSettings(draws=8),
        cells=grid(world=("step", "smooth", "nothing"), limits=LIMITS, draw="draws"),
        compute=judge_foresight,
        summarize=summarize_means("world", "limits"),
        small={"draws": 1, "rows": 200},
    ),
)
