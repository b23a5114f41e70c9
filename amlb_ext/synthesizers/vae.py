"""The conditional variational autoencoder that is the default: section 4.4, made honest.

Notation
--------
k, v, y, mu, log_s2, v_hat, log_p : as in :mod:`~amlb_ext.synthesizers.network`
z = mu + eps · exp(log_s2 / 2), eps ~ N(0, I)
beta : weight of the KL term, 0 → 5e-4 over the first half of the training, then to its last value

Everything runs on one thread (two are an order of magnitude slower on such small batches), or on
a GPU where there is one; sampling always runs on the processor, so a fitted model travels. What it
costs by rows stands in ``docs/synthesizers.md``.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from amlb_ext.core.errors import ConfigError
from amlb_ext.core.rng import draw_int_seed
from amlb_ext.synthesizers.base import Synthesizer
from amlb_ext.synthesizers.dense import DenseNetwork
from amlb_ext.synthesizers.latent import LatentMixture
from amlb_ext.synthesizers.margins import Margins
from amlb_ext.synthesizers.network import RowNetwork, private_torch
from amlb_ext.synthesizers.prep import PreparedTable, TablePrep, TargetScores
from amlb_ext.synthesizers.training import train_network

BETAS = (5e-4, 1e-2)  # section 5.6
#: Up to this many rows the last beta grows, in inverse proportion and at most tenfold.
FEW_ROWS, MOST_BETA = 500, 10.0
CROSS_ENTROPY = 0.1  # Table 2
#: One row in ten is held out for early stopping, where there are this many.
HOLD_OUT, HOLD_OUT_FROM = 10, 100
#: Most rows, and most outputs over all rows, that pass the network at once outside training.
MAX_ROWS, MAX_CELLS = 4000, 20_000_000


class VAE(Synthesizer):
    """The conditional VAE with normal scores, calibrated margins and a fitted latent density.

    Departures from the paper, each for a measured reason (``docs/synthesizers.md``):

    NOTE[DIFF]: dense layers instead of convolutions: columns have no order, and a step takes a
    third of the time.
    NOTE[DIFF]: numbers (and a regression target) enter as normal scores; min–max scaled columns
    with long tails otherwise vanish in the squared error.
    NOTE[DIFF]: the KL term is summed over latent dimensions, as in the evidence bound; its mean
    leaves the posterior so tight that the prior never meets it. Below 500 rows it weighs more,
    up to tenfold at 50: a small table is otherwise remembered.
    NOTE[DIFF]: z comes from a Gaussian mixture given the target, not from N(0, I).
    NOTE[DIFF]: what the decoder leaves unsaid of a number is drawn, as normal noise of the spread
    that held-out rows show; a mean alone lies nearer to the fitted rows than real rows do.
    NOTE[DIFF]: codes are drawn from the softmax, not its argmax, which loses rare categories.
    NOTE[DIFF]: one monotone map per number and one log-odds shift per code, learned on rows
    sampled for the fitted targets, remove what is left of the error in the margins.
    NOTE[DIFF]: at most ``max_steps`` gradient steps, and of the second half of them the weights
    with the least loss on a tenth of the rows, held out where there are 100 or more; six looks
    without a gain, of 40 in all, end the training.

    After ``fit`` the model holds the network, the mixture and each column's own values, but no
    row; a category of more than ``max_categories`` codes is the exception, see
    :class:`~amlb_ext.synthesizers.prep.TablePrep`.

    Parameters
    ----------
    epochs, latent, decoder, batch : int
        See :class:`~amlb_ext.core.config.SynthesizerConfig`; ``decoder`` is the width of the
        dense layers. ``batch`` 0 takes about a thirty-second of the rows, between 16 and 256.
    max_categories : int
        See :class:`~amlb_ext.synthesizers.prep.TablePrep`.
    max_steps : int
        Most gradient steps (0: no limit); tables beyond 2 million parameters get fewer, but
        not less than a fifth. The schedules shrink with the steps.
    device : {"auto", "cpu"}
        ``auto`` learns on a GPU where there is one, whose rows differ from the processor's in
        the last digits and then in more; ``cpu`` makes the same bytes with and without one.

    Attributes
    ----------
    n_steps_ : int
        Gradient steps behind the weights that were kept.

    Raises
    ------
    ConfigError
        At ``fit``: a parameter out of range.

    References
    ----------
    .. [1] Zakharov & Boukhanovsky, Model-Aware Automatic Benchmark Generation with Self-Error
       Instructions for Data-Driven Models, sections 4.4 and 5.6.
    .. [2] Perez et al., FiLM: Visual Reasoning with a General Conditioning Layer, AAAI 2018.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X, y = np.column_stack([rng.integers(0, 3, 40), rng.random(40)]), rng.random(40)
    >>> model = VAE(epochs=2, latent=4).fit(X, y, cards=(3,), n_classes=0, rng=rng)
    >>> model.sample(5, rng)[0].shape
    (5, 2)
    """

    _normalise = True

    def __init__(
        self,
        epochs: int = 150,
        latent: int = 32,
        decoder: int = 128,
        batch: int = 0,
        max_categories: int = 100,
        max_steps: int = 1000,
        device: str = "auto",
    ) -> None:
        self.epochs = epochs
        self.latent = latent
        self.decoder = decoder
        self.batch = batch
        self.max_categories = max_categories
        self.max_steps = max_steps
        self.device = device

    def _fit(self, X: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> None:
        self._check_parameters()
        self.prep_ = TablePrep(self.max_categories, self._normalise)
        table = self.prep_.fit(X, len(self.cards_), rng).transform(X)
        self.n_steps_ = 0
        self.network_: RowNetwork | None = None
        if self._normalise and self.n_classes_ == 0:
            self.target_map_ = TargetScores(y)
        if not (self.prep_.cards_ or self.prep_.n_numbers_):
            return  # constant or copied columns only
        use_gpu = self.device == "auto" and torch.cuda.is_available()
        with private_torch(draw_int_seed(rng)):
            data = (
                torch.tensor(table.codes),
                torch.tensor(table.numbers, dtype=torch.float32),
                torch.tensor(table.seen, dtype=torch.float32),
                self._target_tensor(y),
            )
            self.network_ = self._network()
            if use_gpu:
                self.network_.cuda()
                held = self._train(tuple(part.cuda() for part in data), rng)
                self.network_.cpu()
            else:
                held = self._train(data, rng)
            self._learn_sampling(data, table, y, held, rng)

    def _network(self) -> RowNetwork:
        table = (self.prep_.cards_, self.prep_.n_numbers_, self.n_classes_)
        return DenseNetwork(*table, self.latent, self.decoder, self.n_targets_)

    def _check_parameters(self) -> None:
        least = {"batch": 0, "max_steps": 0}
        for name, value in self.get_params(deep=False).items():
            if name == "device":
                if value not in ("cpu", "auto"):
                    raise ConfigError(f"device = {value!r}: 'cpu' or 'auto' wanted")
            elif value < least.get(name, 1):
                raise ConfigError(f"{name} = {value}: at least {least.get(name, 1)} wanted")

    def _train(self, data: tuple[Tensor, ...], rng: np.random.Generator) -> np.ndarray:
        """Learn the weights; return the positions of the held-out rows."""
        network = self.network_
        assert network is not None
        n = len(data[-1])
        n_held = self._held_out(n)
        held, learn = np.split(rng.permutation(n), [n_held])
        batch = self.batch or int(np.clip(2 ** round(math.log2(n / 32)), 16, 256))
        steps = self.epochs * math.ceil(len(learn) / batch)
        if self.max_steps:
            size = sum(p.numel() for p in network.parameters())
            steps = min(steps, math.ceil(self.max_steps * min(1.0, max(0.2, 2e6 / size))))
        last = self._last_beta(n)

        def loss(rows: Tensor, done: float) -> Tensor:
            k, v, seen, y = (part[rows] for part in data)
            return self._loss(k, v, seen, y, kl_weight(done, last))

        at, held_at = (torch.tensor(part, device=data[-1].device) for part in (learn, held))
        self.n_steps_ = train_network(network, loss, at, held_at, batch, steps)
        return held

    def _held_out(self, n: int) -> int:
        return min(n // HOLD_OUT, self._at_once()) if n >= HOLD_OUT_FROM else 0

    def _last_beta(self, n: int) -> float:
        return BETAS[1] * min(max(1.0, FEW_ROWS / n), MOST_BETA)

    def _loss(self, k: Tensor, v: Tensor, seen: Tensor, y: Tensor, weight: float) -> Tensor:
        network = self.network_
        assert network is not None
        mu, log_s2 = network.encode(k, v, y)
        # drawn on the processor: the stream is the same on every device
        z = mu + torch.randn(mu.shape).to(mu.device) * (0.5 * log_s2).exp()
        v_hat, log_p = network.decode(z, y)
        loss = weight * self._divergence(mu, log_s2)
        if v.shape[1]:
            loss = loss + ((v_hat - v).square() * seen).mean()
        if k.shape[1]:
            picked = log_p.gather(1, k + network.offset)
            loss = loss - CROSS_ENTROPY * picked.sum(dim=1).mean()
        return loss

    def _divergence(self, mu: Tensor, log_s2: Tensor) -> Tensor:
        """KL(q(z | x, y) ‖ N(0, I)), averaged over rows."""
        return -0.5 * (1 + log_s2 - mu.square() - log_s2.exp()).sum(dim=1).mean()

    def _encode(self, data: tuple[Tensor, ...]) -> tuple[Tensor, Tensor]:
        """Return mu and log_s2 of all rows."""
        assert self.network_ is not None
        k, v, _, t = data
        rows = torch.arange(len(t)).split(self._at_once())
        with torch.no_grad():
            parts = [self.network_.encode(k[r], v[r], t[r]) for r in rows]
        return torch.cat([mu for mu, _ in parts]), torch.cat([log_s2 for _, log_s2 in parts])

    def _learn_sampling(
        self,
        data: tuple[Tensor, ...],
        table: PreparedTable,
        y: np.ndarray,
        held: np.ndarray,
        rng: np.random.Generator,
    ) -> None:
        """Fit p(z | y) and s, then the corrections of the margins."""
        assert self.network_ is not None
        size, t, (mu, log_s2) = self._at_once(), data[-1], self._encode(data)
        with torch.no_grad():
            r = held if len(held) else np.arange(min(size, len(y)))
            z = mu[r] + torch.randn(mu[r].shape) * (0.5 * log_s2[r]).exp()
            error = self.network_.decode(z, t[r])[0].double().numpy() - table.numbers[r]
        seen = table.seen[r]
        self.noise_ = np.sqrt((error**2 * seen).sum(axis=0) / seen.sum(axis=0).clip(1))
        means, s2 = mu.double().numpy(), log_s2.double().exp().mean(dim=0).numpy()
        self.mixture_ = LatentMixture().fit(means, s2, self._score(y), self.n_classes_, rng)
        spread = y[np.arange(size) * len(y) // size]  # every target in its share
        shares = [
            np.bincount(codes, minlength=card) / len(y)
            for codes, card in zip(table.codes.T, self.prep_.cards_, strict=True)
        ]
        self.margins_ = Margins(self.prep_.cards_).fit(*self._decode(spread, rng), shares)

    def _sample(self, y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        codes = np.empty((len(y), len(self.prep_.cards_)), dtype=np.int64)
        numbers = np.empty((len(y), self.prep_.n_numbers_))
        if self.network_ is None:
            return self.prep_.inverse(codes, numbers, rng)
        size = self._at_once()
        for r in (slice(i, i + size) for i in range(0, len(y), size)):
            with private_torch(0):
                v_hat, log_p = self._decode(y[r], rng)
            codes[r], numbers[r] = self._draw(v_hat, log_p, rng)
        return self.prep_.inverse(codes, numbers, rng)

    def _at_once(self) -> int:
        outputs = sum(self.prep_.cards_) + self.prep_.n_numbers_
        return int(np.clip(MAX_CELLS // outputs, 400, MAX_ROWS))

    def _decode(self, y: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Return numbers, and log probabilities of codes, of new rows for the targets."""
        assert self.network_ is not None
        z = torch.tensor(self._latent(y, rng), dtype=torch.float32)
        with torch.no_grad():
            v_hat, log_p = self.network_.decode(z, self._target_tensor(y))
        numbers = v_hat.double().numpy()
        return numbers + self._noise(numbers.shape, rng), log_p.double().numpy()

    def _latent(self, y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return self.mixture_.sample(self._score(y), rng)

    def _noise(self, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray | float:
        return self.noise_ * rng.standard_normal(shape)

    def _draw(
        self, v_hat: np.ndarray, log_p: np.ndarray, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        return self.margins_.draw(v_hat, log_p, rng)

    def _score(self, y: np.ndarray) -> np.ndarray:
        """The target as the network sees it."""
        return self.target_map_.transform(y) if self._normalise and not self.n_classes_ else y

    def _target_tensor(self, y: np.ndarray) -> Tensor:
        dtype = torch.long if self.n_classes_ else torch.float32
        return torch.tensor(self._score(y), dtype=dtype)


def kl_weight(done: float, last: float = BETAS[1]) -> float:
    """Weight of the KL term after a share ``done`` of the training (section 5.6)."""
    if done < 0.5:
        return BETAS[0] * 2 * done
    return BETAS[0] + (last - BETAS[0]) * (2 * done - 1)
