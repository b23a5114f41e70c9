"""Generated rows in batches: their place among the labelled rows, and the model's losses."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from amlb_ext.core.config import SynthesizerConfig
from amlb_ext.core.errors import ConfigError
from amlb_ext.core.paths import table_ending
from amlb_ext.core.progress import Bar
from amlb_ext.core.rng import random_stream
from amlb_ext.estimate.inputs import EstimateInputs
from amlb_ext.estimate.osyn.tallies import Batch
from amlb_ext.synthesizers import make_synthesizer

#: Number of rows to sample and predict at once.
BATCH = 20_000


@dataclass
class Generator:
    """Generated rows, the same in every pass.

    Parameters
    ----------
    inputs : EstimateInputs
    name : str
        Name of a synthesizer, or of a file by its ending.
    n : int
        Number of rows; a file has its own.
    seed : int
    quiet : bool
    """

    inputs: EstimateInputs
    name: str
    n: int
    seed: int
    quiet: bool = True

    def __post_init__(self) -> None:
        path = Path(self.name)
        #: Encoded rows and scaled targets of a file; None for a synthesizer.
        self.rows: tuple[np.ndarray, np.ndarray] | None = None
        if table_ending(path.name):
            self.rows = self.inputs.read_generated(path)
            self.n = len(self.rows[0])
            return
        if self.inputs.train is None:
            raise ConfigError(
                f"synthesizer {self.name} has no rows to learn from",
                "add --train FILE; rows made from the labelled ones alone would add nothing",
            )
        Z, y = self.inputs.train
        synthesizer = make_synthesizer(SynthesizerConfig(name=self.name))
        self.model = synthesizer.fit(
            Z,
            y,
            cards=self.inputs.encoder.cards_,
            n_classes=self.inputs.target.n_classes,
            rng=self._random_stream("fit"),
        )

    def encoded(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield encoded rows and targets in the units of the labelled ones."""
        # A new random stream, so that a second pass gives the same rows.
        rng = self._random_stream("sample")
        for start in range(0, self.n, BATCH):
            stop = min(start + BATCH, self.n)
            if self.rows is None:
                Z, y = self.model.sample(stop - start, rng)
            else:
                all_Z, all_y = self.rows
                Z = all_Z[start:stop]
                y = all_y[start:stop]
            yield Z, self.inputs.units(y)

    def stream(self) -> Iterator[Batch]:
        """Yield metric rows, class codes (or None) and losses (or None)."""
        n_batches = math.ceil(self.n / BATCH)
        batches = Bar(
            self.encoded(),
            total=n_batches,
            desc="generated",
            unit="batch",
            disable=self.quiet,
        )
        for Z, y in batches:
            losses = None
            # A file of predictions cannot predict these rows.
            if self.inputs.can_predict:
                losses = self.inputs.losses_of(Z, y)
            # Single precision takes half the memory; Regions settles ties in double precision.
            M = self.inputs.metric(Z).astype(np.float32)
            codes = y.astype(int) if self.inputs.labels else None
            yield M, codes, losses

    def _random_stream(self, stage: str) -> np.random.Generator:
        return random_stream(
            self.seed, self.inputs.task.name, "estimate", stage, self.name
        )
