"""Encoder and decoder of the default: dense layers where the paper convolves.

Notation as in :mod:`~amlb_ext.synthesizers.network`; h : (b, width) hidden layers.

The columns of a table have no order, so a convolution along them buys nothing here; two dense
layers each way take a third of its time and come out as near (``docs/evidence/synthesizers.md``).
"""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional as F

from amlb_ext.synthesizers.network import (
    FiLM,
    RowNetwork,
    clamp_log_variance,
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
        m = len(cards)
        total = sum(cards)
        self.n_numbers = n_numbers
        embedding = self.embedding_width(m)
        # layers draw their first weights as they are made: their order is part of the result
        self.embed = nn.Embedding(max(1, total), embedding)
        self.enter = nn.Linear(embedding * m + n_numbers, width)
        self.film_in = FiLM(n_classes, width, n_targets)
        self.inner = nn.Linear(width, width)
        self.posterior = nn.Linear(width, 2 * latent)
        self.leave = nn.Linear(latent, width)
        self.film_out = FiLM(n_classes, width, n_targets)
        self.outer = nn.Linear(width, width)
        n_outputs = n_numbers + total
        self.narrow, width = self.narrow_layer(width, n_outputs)
        # the numbers first, then the logits of all codes
        self.heads = nn.Linear(width, n_outputs)

    def encode(
        self,
        k: Tensor,
        v: Tensor,
        y: Tensor,
    ) -> tuple[Tensor, Tensor]:
        """Return mu and log_s2."""
        x = self.join_inputs(k, v)
        h = self.film_in(self.enter(x), y)
        h = self.inner(F.silu(h))
        h = self.posterior(F.silu(h))
        mu, log_s2 = h.chunk(2, dim=1)
        return mu, clamp_log_variance(log_s2)

    def decode(self, z: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """Return v_hat and log_p."""
        h = self.film_out(self.leave(z), y)
        h = self.outer(F.silu(h))
        h = self.narrow(F.silu(h))
        outputs = self.heads(h)
        v_hat = outputs[:, : self.n_numbers]
        logits = outputs[:, self.n_numbers :]
        return v_hat, self.log_probabilities(logits)
