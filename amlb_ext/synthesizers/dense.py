"""Encoder and decoder of the default: dense layers where the paper convolves.

Notation as in :mod:`~amlb_ext.synthesizers.network`; h : (b, width) hidden layers.

The columns of a table have no order, so a convolution along them buys nothing here; two dense
layers each way take a third of its time and come out as near (``docs/synthesizers.md``).
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from amlb_ext.synthesizers.network import (
    EMBEDDING,
    MAX_HEADS,
    MAX_SIGNAL,
    FiLM,
    RowNetwork,
    log_softmax,
)


class DenseNetwork(RowNetwork):
    """Embeddings and numbers through two dense layers to z, and back; FiLM on either side.

    Parameters
    ----------
    cards : tuple of int
        Codes per category.
    n_numbers, n_classes, latent, width, n_targets : int
    """

    def __init__(
        self,
        cards: tuple[int, ...],
        n_numbers: int,
        n_classes: int,
        latent: int,
        width: int,
        n_targets: int = 1,
    ) -> None:
        super().__init__(cards)
        m, total = len(cards), sum(cards)
        self.n_numbers = n_numbers
        # wide tables get narrower embeddings and low-rank heads, as in the paper's network
        embedding = max(1, min(EMBEDDING, MAX_SIGNAL // max(1, m)))
        self.embed = nn.Embedding(max(1, total), embedding)
        self.enter = nn.Linear(embedding * m + n_numbers, width)
        self.film_in = FiLM(n_classes, width, n_targets)
        self.inner = nn.Linear(width, width)
        self.posterior = nn.Linear(width, 2 * latent)
        self.leave = nn.Linear(latent, width)
        self.film_out = FiLM(n_classes, width, n_targets)
        self.outer = nn.Linear(width, width)
        out = n_numbers + total
        self.narrow: nn.Module = nn.Identity()
        if width * out > MAX_HEADS:
            rank = max(16, MAX_HEADS // (width + out))
            self.narrow, width = nn.Linear(width, rank), rank
        self.heads = nn.Linear(width, out)

    def encode(self, k: Tensor, v: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """Return mu and log_s2."""
        x = torch.cat([self.embed(k + self.offset).flatten(1), v], dim=1)
        h = F.silu(self.film_in(self.enter(x), y))
        h = F.silu(self.inner(h))
        mu, log_s2 = self.posterior(h).chunk(2, dim=1)
        return mu, log_s2.clamp(-12, 6)

    def decode(self, z: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """Return v_hat and log_p."""
        h = F.silu(self.film_out(self.leave(z), y))
        h = self.heads(self.narrow(F.silu(self.outer(h))))
        v_hat, logits = h[:, : self.n_numbers], h[:, self.n_numbers :]
        return v_hat, log_softmax(logits, self.owner, len(self.offset))
