"""Encoder and decoder of the paper's section 4.4, in torch.

Notation (paper, section 4.4 and Figure 2)
--------
k : (b, m) codes of the modelled categories;  v : (b, q) numbers;  y : (b,) target, or (b, k)
x : embeddings of k joined to v, a signal of length ℓ = 4 m + q
mu, log_s2 : (b, latent) of q(z | x, y)
v_hat, log_p : the decoder's numbers, and log probabilities of all codes, column after column

torch is imported here and in the modules built on this one (``dense``, ``training``, ``vae``,
``vae_paper``), and these only when a synthesizer of theirs is made.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

EMBEDDING = 4  # Table 2
CLASS_EMBEDDING = 8  # not given in the paper
#: Widest flattened signal, and most weights of the heads before they become low-rank.
MAX_SIGNAL, MAX_HEADS = 4096, 2_000_000


class Residual(nn.Module):
    """Two convolutions with the input added back (Figure 2, gray box)."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(channels, channels, (1, 3), padding=(0, 1))
        self.second = nn.Conv2d(channels, channels, (1, 3), padding=(0, 1))

    def forward(self, h: Tensor) -> Tensor:
        """Map (b, channels, 1, ℓ) to the same shape."""
        return F.silu(h + self.second(F.silu(self.first(h))))


def convolution_block(entering: int, channels: int) -> nn.Sequential:
    """Return the convolution block (Figure 2, red box).

    One-dimensional convolutions are written as 1 × 3 ones: with the channels last they run in
    half the time. The decoder uses the same block: a transposed convolution of stride 1 and
    padding 1 is a convolution with the mirrored kernel, hence the same family of maps.
    """
    return nn.Sequential(
        nn.Conv2d(entering, channels, (1, 3), padding=(0, 1)),
        nn.SiLU(),
        Residual(channels),
        nn.Conv2d(channels, channels, (1, 3), padding=(0, 1)),
        nn.SiLU(),
        Residual(channels),
    )


class FiLM(nn.Module):
    """Scale and shift by linear maps of the target; class labels are embedded first.

    The condition of several targets is their vector (paper, section 6).
    """

    def __init__(self, n_classes: int, width: int, n_targets: int = 1) -> None:
        super().__init__()
        self.embed = nn.Embedding(n_classes, CLASS_EMBEDDING) if n_classes else None
        self.scale = nn.Linear(CLASS_EMBEDDING if n_classes else n_targets, width)
        self.shift = nn.Linear(CLASS_EMBEDDING if n_classes else n_targets, width)

    def forward(self, h: Tensor, y: Tensor) -> Tensor:
        """Return h ⊙ (1 + scale(y)) + shift(y)."""
        t = y.reshape(len(h), -1) if self.embed is None else self.embed(y)
        return h * (1 + self.scale(t)) + self.shift(t)


class RowNetwork(nn.Module, ABC):
    """What training and sampling ask of a network.

    Parameters
    ----------
    cards : tuple of int
        Codes per category.

    Attributes
    ----------
    offset : Tensor of shape (m,)
        Where each column's codes begin: all embedding tables (all heads) are one matrix.
    owner : Tensor of shape (sum of cards,)
        The column of each code.
    """

    offset: Tensor
    owner: Tensor

    def __init__(self, cards: tuple[int, ...]) -> None:
        super().__init__()
        m = len(cards)
        self.register_buffer(
            "offset", torch.tensor(np.cumsum([0, *cards])[:m], dtype=torch.long)
        )
        self.register_buffer(
            "owner", torch.tensor(np.repeat(np.arange(m), cards)).long()
        )

    @abstractmethod
    def encode(self, k: Tensor, v: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """Return mu and log_s2."""

    @abstractmethod
    def decode(self, z: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """Return v_hat and log_p."""


class Network(RowNetwork):
    """Encoder and decoder of section 4.4.

    Parameters
    ----------
    cards : tuple of int
        Codes per category.
    n_numbers, n_classes, latent, hidden, decoder, n_targets : int
    """

    def __init__(
        self,
        cards: tuple[int, ...],
        n_numbers: int,
        n_classes: int,
        latent: int,
        hidden: int,
        decoder: int,
        n_targets: int = 1,
    ) -> None:
        super().__init__(cards)
        m, total = len(cards), sum(cards)
        # NOTE[DIFF]: wide tables get narrower embeddings, fewer channels and low-rank heads, else
        # 2,000 columns would need 10^8 parameters.
        embedding = max(1, min(EMBEDDING, MAX_SIGNAL // max(1, m)))
        self.length = embedding * m + n_numbers
        self.channels = max(1, min(hidden, MAX_SIGNAL // self.length))
        width = self.channels * self.length
        self.embed = nn.Embedding(max(1, total), embedding)
        self.down = convolution_block(1, self.channels)
        self.film_in = FiLM(n_classes, width, n_targets)
        self.mu = nn.Linear(width, latent)
        self.log_s2 = nn.Linear(width, latent)
        self.project = nn.Sequential(
            nn.Linear(latent, decoder), nn.SiLU(), nn.Linear(decoder, width)
        )
        self.up = convolution_block(self.channels, self.channels)
        self.film_out = FiLM(n_classes, width, n_targets)
        out = n_numbers + total
        self.narrow: nn.Module = nn.Identity()
        if width * out > MAX_HEADS:
            rank = max(16, MAX_HEADS // (width + out))
            self.narrow, width = nn.Linear(width, rank), rank
        self.numbers = nn.Linear(width, n_numbers) if n_numbers else None
        self.heads = nn.Linear(width, total) if m else None

    def encode(self, k: Tensor, v: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """Return mu and log_s2."""
        x = torch.cat([self.embed(k + self.offset).flatten(1), v], dim=1)
        h = self.down(x[:, None, None]).permute(0, 2, 3, 1).flatten(1)
        h = self.film_in(h, y)
        return self.mu(h), self.log_s2(h).clamp(-12, 6)

    def decode(self, z: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """Return v_hat and log_p."""
        h = self.project(z).view(-1, 1, self.length, self.channels).permute(0, 3, 1, 2)
        h = self.up(h).permute(0, 2, 3, 1).flatten(1)
        h = self.narrow(self.film_out(h, y))
        nothing = h[:, :0]
        v_hat = nothing if self.numbers is None else self.numbers(h)
        if self.heads is None:
            return v_hat, nothing
        return v_hat, log_softmax(self.heads(h), self.owner, len(self.offset))


def log_softmax(logits: Tensor, owner: Tensor, m: int) -> Tensor:
    """Return log probabilities within each of m columns; ``owner`` is the column of a logit."""
    if not m:
        return logits
    logits = logits - logits.detach().amax(dim=1, keepdim=True)
    sums = logits.new_zeros(len(logits), m)
    sums = sums.index_add(1, owner, logits.clamp(min=-60).exp())
    return logits - sums.log()[:, owner]


@contextmanager
def private_torch(seed: int) -> Iterator[None]:
    """One thread and a seeded stream inside; the caller's threads and stream afterwards."""
    threads = torch.get_num_threads()
    with torch.random.fork_rng(devices=[]):
        torch.set_num_threads(1)
        torch.default_generator.manual_seed(seed)
        try:
            yield
        finally:
            torch.set_num_threads(threads)
