"""Encoders and decoders, in torch: the paper's (section 4.4), and the default's.

Notation (paper, section 4.4 and Figure 2)
--------
k : (b, m) codes of the modelled categories;  v : (b, q) numbers;  y : (b,) target, or (b, k)
x : embeddings of k joined to v, a signal of length ℓ = 4 m + q;  h : (b, width) hidden layers
mu, log_s2 : (b, latent) of q(z | x, y)
v_hat, log_p : the decoder's numbers, and log probabilities of all codes, column after column

The paper convolves along the columns. These have no order, so that buys nothing in a table; two
dense layers each way take a third of the time and come out as near
(``docs/evidence/synthesizers.md``).

torch is imported here and in the modules built on this one (``training``, ``vae``, ``vae_paper``),
and these only when a synthesizer of theirs is made.
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


def convolution(entering: int, channels: int) -> nn.Conv2d:
    """Return a convolution along the signal that keeps its length.

    One-dimensional convolutions are written as 1 × 3 ones: with the channels last they run in
    half the time.
    """
    return nn.Conv2d(
        entering,
        channels,
        kernel_size=(1, 3),
        padding=(0, 1),
    )


class Residual(nn.Module):
    """Two convolutions with the input added back (Figure 2, gray box)."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.first = convolution(channels, channels)
        self.second = convolution(channels, channels)

    def forward(self, h: Tensor) -> Tensor:
        """Map (b, channels, 1, ℓ) to the same shape."""
        inner = F.silu(self.first(h))
        return F.silu(h + self.second(inner))


def convolution_block(entering: int, channels: int) -> nn.Sequential:
    """Return the convolution block (Figure 2, red box).

    The decoder uses the same block: a transposed convolution of stride 1 and padding 1 is a
    convolution with the mirrored kernel, hence the same family of maps.
    """
    return nn.Sequential(
        convolution(entering, channels),
        nn.SiLU(),
        Residual(channels),
        convolution(channels, channels),
        nn.SiLU(),
        Residual(channels),
    )


class FiLM(nn.Module):
    """Scale and shift by linear maps of the target; class labels are embedded first.

    The condition of several targets is their vector (paper, section 6).
    """

    def __init__(
        self,
        n_classes: int,
        width: int,
        n_targets: int = 1,
    ) -> None:
        super().__init__()
        self.embed: nn.Embedding | None = None
        condition = n_targets
        if n_classes:
            self.embed = nn.Embedding(n_classes, CLASS_EMBEDDING)
            condition = CLASS_EMBEDDING
        self.scale = nn.Linear(condition, width)
        self.shift = nn.Linear(condition, width)

    def forward(self, h: Tensor, y: Tensor) -> Tensor:
        """Return h ⊙ (1 + scale(y)) + shift(y)."""
        if self.embed is None:
            t = y.reshape(len(h), -1)
        else:
            t = self.embed(y)
        scale = self.scale(t)
        shift = self.shift(t)
        return h * (1 + scale) + shift


class RowNetwork(nn.Module, ABC):
    """What training and sampling ask of a network.

    Parameters
    ----------
    cards : tuple of int
        Codes per category.

    Attributes
    ----------
    embed : Embedding
        Of all codes; made by the subclass.
    offset : Tensor of shape (m,)
        Where each column's codes begin: all embedding tables (all heads) are one matrix.
    owner : Tensor of shape (sum of cards,)
        The column of each code.
    """

    embed: nn.Embedding
    offset: Tensor
    owner: Tensor

    def __init__(self, cards: tuple[int, ...]) -> None:
        super().__init__()
        sizes = np.array(cards, dtype=np.int64)
        columns = np.arange(len(cards))
        offset = torch.from_numpy(np.cumsum(sizes) - sizes)
        owner = torch.from_numpy(np.repeat(columns, sizes))
        # buffers, not parameters: they move to a GPU with the network, and are not learned
        self.register_buffer("offset", offset)
        self.register_buffer("owner", owner)

    @staticmethod
    def embedding_width(n_columns: int) -> int:
        """Return how many numbers stand for a code.

        NOTE[DIFF]: wide tables get narrower embeddings, fewer channels and low-rank heads, else
        2,000 columns would need 10^8 parameters.
        """
        widest = MAX_SIGNAL // max(1, n_columns)
        return max(1, min(EMBEDDING, widest))

    @staticmethod
    def narrow_layer(width: int, n_outputs: int) -> tuple[nn.Module, int]:
        """Return a layer that makes the heads low-rank where they are large, and their width."""
        if width * n_outputs <= MAX_HEADS:
            return nn.Identity(), width
        rank = max(16, MAX_HEADS // (width + n_outputs))
        return nn.Linear(width, rank), rank

    def join_inputs(self, k: Tensor, v: Tensor) -> Tensor:
        """Return x: the embeddings of codes, then the numbers."""
        embedded = self.embed(k + self.offset)
        return torch.cat([embedded.flatten(1), v], dim=1)

    def log_probabilities(self, logits: Tensor) -> Tensor:
        """Return log_p of all codes."""
        n_columns = len(self.offset)
        return log_softmax(logits, self.owner, n_columns)

    @abstractmethod
    def encode(
        self,
        k: Tensor,
        v: Tensor,
        y: Tensor,
    ) -> tuple[Tensor, Tensor]:
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
        m = len(cards)
        total = sum(cards)
        embedding = self.embedding_width(m)
        self.length = embedding * m + n_numbers
        # fewer channels for a long signal, see ``embedding_width``
        most_channels = MAX_SIGNAL // self.length
        self.channels = max(1, min(hidden, most_channels))
        width = self.channels * self.length
        # layers draw their first weights as they are made: their order is part of the result
        self.embed = nn.Embedding(max(1, total), embedding)
        self.down = convolution_block(1, self.channels)
        self.film_in = FiLM(n_classes, width, n_targets)
        self.mu = nn.Linear(width, latent)
        self.log_s2 = nn.Linear(width, latent)
        self.project = nn.Sequential(
            nn.Linear(latent, decoder),
            nn.SiLU(),
            nn.Linear(decoder, width),
        )
        self.up = convolution_block(self.channels, self.channels)
        self.film_out = FiLM(n_classes, width, n_targets)
        self.narrow, width = self.narrow_layer(width, n_numbers + total)
        self.numbers = nn.Linear(width, n_numbers) if n_numbers else None
        self.heads = nn.Linear(width, total) if m else None

    def encode(
        self,
        k: Tensor,
        v: Tensor,
        y: Tensor,
    ) -> tuple[Tensor, Tensor]:
        """Return mu and log_s2."""
        x = self.join_inputs(k, v)
        # the signal is an image of one channel and one row
        h = self.down(x[:, None, None])
        h = self.film_in(_flatten_signal(h), y)
        log_s2 = self.log_s2(h)
        return self.mu(h), clamp_log_variance(log_s2)

    def decode(self, z: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """Return v_hat and log_p."""
        h = self.project(z)
        # the channels stand last in memory, see :func:`convolution`
        h = h.view(-1, 1, self.length, self.channels)
        h = self.up(h.permute(0, 3, 1, 2))
        h = self.film_out(_flatten_signal(h), y)
        h = self.narrow(h)
        # a table without numbers, or without categories, has none of them here either
        v_hat = log_p = h[:, :0]
        if self.numbers is not None:
            v_hat = self.numbers(h)
        if self.heads is not None:
            log_p = self.log_probabilities(self.heads(h))
        return v_hat, log_p


def _flatten_signal(h: Tensor) -> Tensor:
    """Return (b, channels, 1, ℓ) as vectors in which the channels stand last."""
    return h.permute(0, 2, 3, 1).flatten(1)


def clamp_log_variance(log_s2: Tensor) -> Tensor:
    """Keep a log variance where its exponential neither vanishes nor overflows."""
    return log_s2.clamp(-12, 6)


def log_softmax(logits: Tensor, owner: Tensor, m: int) -> Tensor:
    """Return log probabilities within each of m columns; ``owner`` is the column of a logit."""
    if not m:
        return logits
    # the largest of all columns is taken out; it has no gradient, since it cancels
    largest = logits.detach().amax(dim=1, keepdim=True)
    logits = logits - largest
    # the bound keeps the sum of a column above 0 whose logits are all far below the largest
    p = logits.clamp(min=-60).exp()
    sums = logits.new_zeros(len(logits), m)
    sums = sums.index_add(1, owner, p)
    log_sums = sums.log()
    return logits - log_sums[:, owner]


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
