"""The conditional variational autoencoder that is the default: section 4.4, made honest.

Notation
--------
k, v, y, mu, log_s2, v_hat, log_p : as in :mod:`~amlb_ext.synthesizers.network`
z = mu + eps · exp(log_s2 / 2), eps ~ N(0, I)
beta : weight of the KL term, 0 → 5e-4 over the first half of the training, → 1e-2 over the rest

Everything runs on one thread (two are an order of magnitude slower on such small batches). The
default of at most 1,000 steps takes 3 to 4 s for 500 rows × 14 columns (batches of 16), 5 s for
2,000 rows (64) and about 25 s for 8,000 and more (256); 2,400 steps gained next to nothing.
Wide tables lose channels (16 → 1) and embedding width (4 → 1) so that the flattened signal stays
near 4,096 numbers, and their heads go through a bottleneck: 2,000 columns take about 3 million
parameters instead of 70.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from scipy.special import ndtri
from torch import Tensor, nn

from amlb_ext.core.errors import ConfigError
from amlb_ext.core.rng import int_seed
from amlb_ext.synthesizers.base import Synthesizer
from amlb_ext.synthesizers.latent import LatentMixture
from amlb_ext.synthesizers.network import Network, private_torch
from amlb_ext.synthesizers.prep import NormalScores, Prepared, TablePrep

RATES = (1e-3, 1e-4)  # Table 2: AdamW, cosine
BETAS = (5e-4, 1e-2)  # section 5.6
CROSS_ENTROPY = 0.1  # Table 2
CLIP = 3.0  # Table 2
#: Most rows, and most outputs over all rows, that pass the network at once outside training.
MAX_ROWS, MAX_CELLS = 4000, 20_000_000


class VAE(Synthesizer):
    """The conditional VAE with normal scores, calibrated margins and a fitted latent density.

    Departures from the paper, each for a measured reason (``docs/synthesizers.md``):

    NOTE[DIFF]: numbers (and a regression target) enter as normal scores; min–max scaled columns
    with long tails otherwise vanish in the squared error.
    NOTE[DIFF]: the KL term is summed over latent dimensions, as in the evidence bound; its mean
    leaves the posterior so tight that the prior never meets it.
    NOTE[DIFF]: z comes from a Gaussian mixture given the target, not from N(0, I).
    NOTE[DIFF]: codes are drawn from the softmax, not its argmax, which loses rare categories.
    NOTE[DIFF]: one monotone map per number and one log-odds shift per code, learned on rows
    sampled for the fitted targets, remove what is left of the error in the margins.
    NOTE[DIFF]: at most ``max_steps`` gradient steps.

    Parameters
    ----------
    epochs, latent, hidden, decoder, batch : int
        See :class:`~amlb_ext.core.config.SynthesizerConfig`. ``batch`` 0 takes about a
        thirty-second of the rows, between 16 and 256.
    max_categories : int
        See :class:`~amlb_ext.synthesizers.prep.TablePrep`.
    max_steps : int
        Most gradient steps (0: no limit); tables beyond 2 million parameters get fewer, but
        not less than a fifth. The schedules shrink with the steps.
    device : {"cpu", "auto"}
        ``auto`` takes a GPU where there is one, and gives up that the same seed makes the
        same bytes.

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
        hidden: int = 16,
        decoder: int = 128,
        batch: int = 0,
        max_categories: int = 100,
        max_steps: int = 1000,
        device: str = "cpu",
    ) -> None:
        self.epochs = epochs
        self.latent = latent
        self.hidden = hidden
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
        self.network_: Network | None = None
        if self._normalise and self.n_classes_ == 0:
            self.target_map_ = NormalScores(y)
        if not (self.prep_.cards_ or self.prep_.n_numbers_):
            return  # constant or copied columns only
        with private_torch(int_seed(rng)):
            use_gpu = self.device == "auto" and torch.cuda.is_available()
            self.device_ = "cuda" if use_gpu else "cpu"
            network = Network(
                self.prep_.cards_,
                self.prep_.n_numbers_,
                self.n_classes_,
                self.latent,
                self.hidden,
                self.decoder,
            )
            network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
            self.network_ = network.to(self.device_)
            data = (*self._tensors(*table), self._target_tensor(y))
            self._train(*data)
            self._learn_sampling(data, table, y, rng)

    def _check_parameters(self) -> None:
        least = {"batch": 0, "max_steps": 0}
        for name, value in self.get_params(deep=False).items():
            if name == "device":
                if value not in ("cpu", "auto"):
                    raise ConfigError(f"device = {value!r}: 'cpu' or 'auto' wanted")
            elif value < least.get(name, 1):
                raise ConfigError(f"{name} = {value}: at least {least.get(name, 1)} wanted")

    def _train(self, k: Tensor, v: Tensor, seen: Tensor, y: Tensor) -> None:
        network = self.network_
        assert network is not None
        n = len(y)
        batch = self.batch or int(np.clip(2 ** round(math.log2(n / 32)), 16, 256))
        steps = self.epochs * math.ceil(n / batch)
        if self.max_steps:
            size = sum(p.numel() for p in network.parameters())
            steps = min(steps, math.ceil(self.max_steps * min(1.0, max(0.2, 2e6 / size))))
        optimizer = torch.optim.AdamW(network.parameters(), RATES[0], fused=True)
        rows: list[Tensor] = []
        for step in range(steps):
            done = step / steps
            optimizer.param_groups[0]["lr"] = RATES[1] + (RATES[0] - RATES[1]) * 0.5 * (
                1 + math.cos(math.pi * done)
            )
            if not rows:
                rows = list(torch.randperm(n).to(y.device).split(batch))
            r = rows.pop(0)
            mu, log_s2 = network.encode(k[r], v[r], y[r])
            z = mu + torch.randn(mu.shape).to(mu.device) * (0.5 * log_s2).exp()
            v_hat, log_p = network.decode(z, y[r])
            loss = _beta(done) * self._divergence(mu, log_s2)
            if v.shape[1]:
                loss = loss + ((v_hat - v[r]).square() * seen[r]).mean()
            if k.shape[1]:
                picked = log_p.gather(1, k[r] + network.offset)
                loss = loss - CROSS_ENTROPY * picked.sum(dim=1).mean()
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(network.parameters(), CLIP)
            optimizer.step()
        self.n_steps_ = steps

    def _divergence(self, mu: Tensor, log_s2: Tensor) -> Tensor:
        """KL(q(z | x, y) ‖ N(0, I)), averaged over rows."""
        return -0.5 * (1 + log_s2 - mu.square() - log_s2.exp()).sum(dim=1).mean()

    def _learn_sampling(
        self, data: tuple[Tensor, ...], table: Prepared, y: np.ndarray, rng: np.random.Generator
    ) -> None:
        """Fit p(z | y), then the corrections of the margins."""
        assert self.network_ is not None
        k, v, _, t = data
        with torch.no_grad():
            parts = [
                self.network_.encode(k[r], v[r], t[r])
                for r in torch.arange(len(t)).to(t.device).split(self._at_once())
            ]
        mu, log_s2 = (torch.cat(part).double().cpu().numpy() for part in zip(*parts, strict=True))
        s2 = np.exp(log_s2).mean(axis=0)
        self.mixture_ = LatentMixture().fit(mu, s2, self._score(y), self.n_classes_, rng)
        size = self._at_once()
        spread = y[np.arange(size) * len(y) // size]  # every target in its share
        v_hat, log_p = self._decode(spread, rng)
        # v_hat → normal scores, quantile to quantile
        end = 0.5 / size
        grid = np.r_[end, np.arange(0.0025, 1, 0.005), 1 - end]
        self.quantiles_, self.scores_ = np.quantile(v_hat, grid, axis=0), ndtri(grid)
        # log-odds shifts that make the mean probabilities the fitted shares
        self.shifts_ = []
        for j, log_q in enumerate(self._columns(log_p)):
            share = np.bincount(table.codes[:, j], minlength=log_q.shape[1]) / len(y)
            shift = np.zeros(len(share))
            for _ in range(10):
                shift += np.log(share / _softmax(log_q + shift).mean(axis=0).clip(1e-12))
            self.shifts_.append(shift)

    def _sample(self, y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        codes = np.empty((len(y), len(self.prep_.cards_)), dtype=np.int64)
        numbers = np.empty((len(y), self.prep_.n_numbers_))
        if self.network_ is None:
            return self.prep_.inverse(codes, numbers, rng)
        size = self._at_once()
        for r in (slice(i, i + size) for i in range(0, len(y), size)):
            with private_torch(0):
                v_hat, log_p = self._decode(y[r], rng)
            for j in range(numbers.shape[1]):
                numbers[r, j] = self._number(j, v_hat[:, j])
            for j, log_q in enumerate(self._columns(log_p)):
                codes[r, j] = self._code(j, log_q, rng)
        return self.prep_.inverse(codes, numbers, rng)

    def _at_once(self) -> int:
        outputs = sum(self.prep_.cards_) + self.prep_.n_numbers_
        return int(np.clip(MAX_CELLS // outputs, 400, MAX_ROWS))

    def _decode(self, y: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        assert self.network_ is not None
        z = torch.tensor(self._latent(y, rng), dtype=torch.float32, device=self.device_)
        with torch.no_grad():
            v_hat, log_p = self.network_.decode(z, self._target_tensor(y))
        return v_hat.double().cpu().numpy(), log_p.double().cpu().numpy()

    def _latent(self, y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return self.mixture_.sample(self._score(y), rng)

    def _number(self, j: int, v_hat: np.ndarray) -> np.ndarray:
        return np.interp(v_hat, self.quantiles_[:, j], self.scores_)

    def _code(self, j: int, log_q: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        cumulative = np.cumsum(_softmax(log_q + self.shifts_[j]), axis=1)
        return (rng.random((len(log_q), 1)) > cumulative[:, :-1]).sum(axis=1)

    def _score(self, y: np.ndarray) -> np.ndarray:
        """The target as the network sees it."""
        return self.target_map_.transform(y) if self._normalise and not self.n_classes_ else y

    def _target_tensor(self, y: np.ndarray) -> Tensor:
        dtype = torch.long if self.n_classes_ else torch.float32
        return torch.tensor(self._score(y), dtype=dtype, device=self.device_)

    def _tensors(self, k: np.ndarray, v: np.ndarray, seen: np.ndarray) -> tuple[Tensor, ...]:
        return (
            torch.tensor(k, device=self.device_),
            torch.tensor(v, dtype=torch.float32, device=self.device_),
            torch.tensor(seen, dtype=torch.float32, device=self.device_),
        )

    def _columns(self, log_p: np.ndarray) -> list[np.ndarray]:
        return np.split(log_p, np.cumsum(self.prep_.cards_)[:-1].astype(int), axis=1)[
            : len(self.prep_.cards_)
        ]


def _beta(done: float) -> float:
    """Weight of the KL term after a share ``done`` of the training (section 5.6)."""
    if done < 0.5:
        return BETAS[0] * 2 * done
    return BETAS[0] + (BETAS[1] - BETAS[0]) * (2 * done - 1)


def _softmax(log_q: np.ndarray) -> np.ndarray:
    p = np.exp(log_q - log_q.max(axis=1, keepdims=True))
    return p / p.sum(axis=1, keepdims=True)
