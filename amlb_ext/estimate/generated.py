"""Generated rows, batch by batch: where they lie, and what the model loses on them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from tqdm import tqdm

from amlb_ext.core.config import SynthesizerConfig
from amlb_ext.core.errors import ConfigError
from amlb_ext.core.rng import random_stream
from amlb_ext.estimate.inputs import EstimateInputs
from amlb_ext.estimate.osyn.tallies import Batch
from amlb_ext.synthesizers import make_synthesizer

#: Rows sampled and predicted at once.
BATCH = 20_000


@dataclass
class Generator:
    """Gives the same rows each time it is asked.

    Parameters
    ----------
    inputs : Inputs
    name : str
        A synthesizer, or the name of a file.
    n : int
        Rows.
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
        self.rows: tuple[np.ndarray, np.ndarray] | None = None
        self.is_file = path.suffix.lower() in (".csv", ".parquet", ".arff")
        if self.is_file:
            self.rows = self.inputs.read_generated(path)
            self.n = len(self.rows[0])
            return
        if self.inputs.train is None:
            raise ConfigError(
                f"synthesizer {self.name} has no rows to learn from",
                "add --train FILE; rows made from the labelled ones alone would add nothing",
            )
        Z, y = self.inputs.train
        self.model = make_synthesizer(SynthesizerConfig(name=self.name)).fit(
            Z,
            y,
            cards=self.inputs.encoder.cards_,
            n_classes=self.inputs.target.n_classes,
            rng=random_stream(self.seed, self.inputs.task.name, "estimate", "fit", self.name),
        )

    def encoded(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield encoded rows and targets in the units of the labelled ones."""
        rng = random_stream(self.seed, self.inputs.task.name, "estimate", "sample", self.name)
        for start in range(0, self.n, BATCH):
            size = min(BATCH, self.n - start)
            if self.rows is None:
                Z, y = self.model.sample(size, rng)
            else:
                Z, y = (part[start : start + size] for part in self.rows)
            yield Z, self.inputs.units(y)

    def stream(self) -> Iterator[Batch]:
        """Yield metric rows, class codes (or None) and losses (or None)."""
        total = -(-self.n // BATCH)
        bar = tqdm(self.encoded(), total=total, desc="generated", unit="batch", disable=self.quiet)
        for Z, y in bar:
            loss = None
            if self.inputs.searchable:
                loss = self.inputs.loss(y, self.inputs.predict(Z))
            M = self.inputs.metric(Z).astype(np.float32)
            yield M, y.astype(int) if self.inputs.labels else None, loss
