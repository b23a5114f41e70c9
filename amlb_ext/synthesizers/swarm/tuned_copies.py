"""Copies of a fitted VAE, each trained a little more on a part of its rows.

They share one start, hence one basin of the loss, and may be averaged weight by weight (Wortsman
et al., Model soups, ICML 2022); models of different starts may not. What is shared by all copies
and never averaged is the preparation, the margins and the noise.
"""

from __future__ import annotations

from copy import deepcopy
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from amlb_ext.core.errors import DataError
from amlb_ext.synthesizers.dense import DenseNetwork
from amlb_ext.synthesizers.network import private_torch
from amlb_ext.synthesizers.training import train_network
from amlb_ext.synthesizers.vae import BETAS, VAE, Rows

#: Layers of the decoder of :class:`~amlb_ext.synthesizers.dense.DenseNetwork`.
DECODER = ("leave", "film_out", "outer", "narrow", "heads")
#: Rows of a gradient step, where there are so many.
BATCH = 128


class TunedCopy(NamedTuple):
    """One copy: its decoder, and where its encoder puts its rows.

    Attributes
    ----------
    weights : dict of str to ndarray
        Of the decoder, by torch's names.
    means : ndarray of shape (n, latent)
        Of q(z | x, y) for the rows of the copy.
    spread : ndarray of shape (latent,)
        Mean variance of q(z | x, y).
    """

    weights: dict[str, np.ndarray]
    means: np.ndarray
    spread: np.ndarray


class FittedRows:
    """A fitted VAE with its rows, from which copies are made.

    Parameters
    ----------
    model : VAE
        With dense layers.
    X, y : ndarray of shape (n, d), (n,)
        The rows it was fitted on.

    Raises
    ------
    DataError
        No column varies, so there is no network.
    """

    def __init__(self, model: VAE, X: np.ndarray, y: np.ndarray) -> None:
        if not isinstance(model.network_, DenseNetwork):
            raise DataError(
                "all columns are constant or copied, so there is nothing to generate",
                "keep more columns, or choose another table",
            )
        self.model = model
        self.network = model.network_
        table = model.prep_.transform(X)
        self.rows = Rows(
            k=torch.tensor(table.codes),
            v=torch.tensor(table.numbers, dtype=torch.float32),
            seen=torch.tensor(table.seen, dtype=torch.float32),
            y=model._target_tensor(y),
        )

    def latent_means(self) -> np.ndarray:
        """Return where the fitted model puts each row, ``(n, latent)``."""
        with private_torch(seed=0):
            means, _ = self.model._encode_rows(self.rows)
        return means.double().numpy()

    def tune_copy(self, rows: np.ndarray, steps: int, seed: int) -> TunedCopy:
        """Train a copy on the rows at these positions.

        Parameters
        ----------
        rows : ndarray of int
        steps : int
            Gradient steps; 0 gives the model as it was fitted.
        seed : int
            Of the order of rows and of the latent noise.
        """
        network = deepcopy(self.network)
        part = self.rows.take(torch.tensor(rows))
        # the model's own loss, of another network
        self.model.network_ = network
        try:
            with private_torch(seed):
                if steps:
                    self._train(network, part, steps)
                means, log_s2 = self.model._encode_rows(part)
        finally:
            self.model.network_ = self.network
        return TunedCopy(
            weights=decoder_weights(network),
            means=means.double().numpy(),
            spread=log_s2.double().exp().mean(dim=0).numpy(),
        )

    def _train(self, network: DenseNetwork, part: Rows, steps: int) -> None:
        def loss(positions: Tensor, done: float) -> Tensor:
            # fine-tuning goes on where the training ended: with the last weight of the KL term
            return self.model._loss(part.take(positions), BETAS[1])

        train_network(
            network,
            loss,
            learn=torch.arange(len(part.y)),
            held=torch.tensor([], dtype=torch.long),
            batch=min(BATCH, len(part.y)),
            steps=steps,
        )


def decoder_weights(network: DenseNetwork) -> dict[str, np.ndarray]:
    """Return the weights of a decoder as float64, by torch's names."""
    weights = {}
    for name, tensor in network.state_dict().items():
        layer, _, _ = name.partition(".")
        if layer in DECODER:
            # a copy: training writes into one flat vector that all weights are views of
            weights[name] = tensor.detach().double().numpy().copy()
    return weights
