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
from typing import NamedTuple

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


class Rows(NamedTuple):
    """The prepared table as tensors of n rows: see the notation of this module.

    k, (n, m) codes; v, (n, q) numbers; seen, (n, q) 0 where a number is missing; y, (n,) or (n, k).
    """

    k: Tensor
    v: Tensor
    seen: Tensor
    y: Tensor


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
            data = Rows(
                k=torch.tensor(table.codes),
                v=torch.tensor(table.numbers, dtype=torch.float32),
                seen=torch.tensor(table.seen, dtype=torch.float32),
                y=self._target_tensor(y),
            )
            self.network_ = self._make_network()
            if use_gpu:
                self.network_.cuda()
                held = self._train(Rows(*(part.cuda() for part in data)), rng)
                self.network_.cpu()
            else:
                held = self._train(data, rng)
            self._learn_sampling(data, table, y, held=held, rng=rng)

    def _make_network(self) -> RowNetwork:
        table = (self.prep_.cards_, self.prep_.n_numbers_, self.n_classes_)
        return DenseNetwork(*table, self.latent, self.decoder, self.n_targets_)

    def _check_parameters(self) -> None:
        least = {"batch": 0, "max_steps": 0}  # 0: our choice, and no limit
        for name, value in self.get_params(deep=False).items():
            if name == "device":
                if value not in ("cpu", "auto"):
                    raise ConfigError(f"device = {value!r}: 'cpu' or 'auto' wanted")
            elif value < least.get(name, 1):
                raise ConfigError(
                    f"{name} = {value}: at least {least.get(name, 1)} wanted"
                )

    # --- training ---

    def _train(self, data: Rows, rng: np.random.Generator) -> np.ndarray:
        """Learn the weights; return the positions of the held-out rows."""
        assert self.network_ is not None
        n = len(data.y)
        held, learn = np.split(rng.permutation(n), [self._n_held_out(n)])
        # the power of two nearest to a thirty-second of the rows
        batch = self.batch or int(np.clip(2 ** round(math.log2(n / 32)), 16, 256))
        last_beta = self._last_beta(n)

        def loss(rows: Tensor, done: float) -> Tensor:
            batch_rows = Rows(*(part[rows] for part in data))
            return self._loss(batch_rows, kl_weight(done, last_beta))

        self.n_steps_ = train_network(
            self.network_,
            loss,
            learn=torch.tensor(learn, device=data.y.device),
            held=torch.tensor(held, device=data.y.device),
            batch=batch,
            steps=self._n_steps(math.ceil(len(learn) / batch)),
        )
        return held

    def _n_steps(self, steps_per_epoch: int) -> int:
        assert self.network_ is not None
        steps = self.epochs * steps_per_epoch
        if not self.max_steps:
            return steps
        # a step of a large network takes longer: beyond 2 million weights there are fewer
        n_weights = sum(p.numel() for p in self.network_.parameters())
        share = min(1.0, max(0.2, 2e6 / n_weights))
        return min(steps, math.ceil(self.max_steps * share))

    def _n_held_out(self, n: int) -> int:
        # no more than pass the network at once, for they are all looked at together
        return min(n // HOLD_OUT, self._rows_at_once()) if n >= HOLD_OUT_FROM else 0

    def _last_beta(self, n: int) -> float:
        return BETAS[1] * min(max(1.0, FEW_ROWS / n), MOST_BETA)

    def _loss(self, rows: Rows, beta: float) -> Tensor:
        """Return beta · KL + squared error of the numbers + weighted cross entropy of the codes."""
        network = self.network_
        assert network is not None
        mu, log_s2 = network.encode(rows.k, rows.v, rows.y)
        # drawn on the processor: the stream is the same on every device
        eps = torch.randn(mu.shape).to(mu.device)
        z = mu + eps * (0.5 * log_s2).exp()
        v_hat, log_p = network.decode(z, rows.y)
        loss = beta * self._divergence(mu, log_s2)
        if rows.v.shape[1]:
            loss = loss + ((v_hat - rows.v).square() * rows.seen).mean()
        if rows.k.shape[1]:
            log_likelihood = log_p.gather(
                1, rows.k + network.offset
            )  # of the row's own codes
            loss = loss - CROSS_ENTROPY * log_likelihood.sum(dim=1).mean()
        return loss

    def _divergence(self, mu: Tensor, log_s2: Tensor) -> Tensor:
        """KL(q(z | x, y) ‖ N(0, I)), averaged over rows."""
        return -0.5 * (1 + log_s2 - mu.square() - log_s2.exp()).sum(dim=1).mean()

    # --- what is learnt once the network is trained ---

    def _encode(self, data: Rows) -> tuple[Tensor, Tensor]:
        """Return mu and log_s2 of all rows."""
        assert self.network_ is not None
        means, log_variances = [], []
        with torch.no_grad():
            for r in torch.arange(len(data.y)).split(self._rows_at_once()):
                mu, log_s2 = self.network_.encode(data.k[r], data.v[r], data.y[r])
                means.append(mu)
                log_variances.append(log_s2)
        return torch.cat(means), torch.cat(log_variances)

    def _learn_sampling(
        self,
        data: Rows,
        table: PreparedTable,
        y: np.ndarray,
        *,
        held: np.ndarray,
        rng: np.random.Generator,
    ) -> None:
        """Fit p(z | y) and s, then the corrections of the margins."""
        size = self._rows_at_once()
        mu, log_s2 = self._encode(data)
        # rows that were learned from show too small a spread; few rows have none held out
        r = held if len(held) else np.arange(min(size, len(y)))
        self.noise_ = self._unsaid_spread(data, table, mu=mu, log_s2=log_s2, r=r)
        means = mu.double().numpy()
        s2 = log_s2.double().exp().mean(dim=0).numpy()
        self.mixture_ = LatentMixture().fit(
            means, s2, self._target_score(y), self.n_classes_, rng
        )
        every_share = y[
            np.arange(size) * len(y) // size
        ]  # each target as often as in the table
        v_hat, log_p = self._decode(every_share, rng)
        shares = []
        for codes, card in zip(table.codes.T, self.prep_.cards_, strict=True):
            shares.append(np.bincount(codes, minlength=card) / len(y))
        self.margins_ = Margins(self.prep_.cards_).fit(v_hat, log_p, shares)

    def _unsaid_spread(
        self,
        data: Rows,
        table: PreparedTable,
        *,
        mu: Tensor,
        log_s2: Tensor,
        r: np.ndarray,
    ) -> np.ndarray:
        """Return s, (q,): the root mean squared error of the decoder on rows r."""
        assert self.network_ is not None
        with torch.no_grad():
            z = mu[r] + torch.randn(mu[r].shape) * (0.5 * log_s2[r]).exp()
            v_hat, _ = self.network_.decode(z, data.y[r])
        error = v_hat.double().numpy() - table.numbers[r]
        seen = table.seen[r]
        return np.sqrt((error**2 * seen).sum(axis=0) / seen.sum(axis=0).clip(1))

    # --- sampling; ``PaperVAE`` replaces the latent draw, the noise and the draw of a row ---

    def _sample(self, y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        codes = np.empty((len(y), len(self.prep_.cards_)), dtype=np.int64)
        numbers = np.empty((len(y), self.prep_.n_numbers_))
        if self.network_ is None:
            return self.prep_.inverse(codes, numbers, rng)
        size = self._rows_at_once()
        for start in range(0, len(y), size):
            r = slice(start, start + size)
            with private_torch(
                0
            ):  # one thread; nothing is drawn from torch's stream here
                v_hat, log_p = self._decode(y[r], rng)
            codes[r], numbers[r] = self._draw_rows(v_hat, log_p, rng)
        return self.prep_.inverse(codes, numbers, rng)

    def _rows_at_once(self) -> int:
        n_outputs = sum(self.prep_.cards_) + self.prep_.n_numbers_
        return int(np.clip(MAX_CELLS // n_outputs, 400, MAX_ROWS))

    def _decode(
        self, y: np.ndarray, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return numbers, and log probabilities of codes, of new rows for the targets."""
        assert self.network_ is not None
        z = torch.tensor(self._draw_latent(y, rng), dtype=torch.float32)
        with torch.no_grad():
            v_hat, log_p = self.network_.decode(z, self._target_tensor(y))
        numbers = v_hat.double().numpy()
        return numbers + self._draw_noise(numbers.shape, rng), log_p.double().numpy()

    def _draw_latent(self, y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return self.mixture_.sample(self._target_score(y), rng)

    def _draw_noise(
        self, shape: tuple[int, ...], rng: np.random.Generator
    ) -> np.ndarray | float:
        return self.noise_ * rng.standard_normal(shape)

    def _draw_rows(
        self, v_hat: np.ndarray, log_p: np.ndarray, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        return self.margins_.draw(v_hat, log_p, rng)

    def _target_score(self, y: np.ndarray) -> np.ndarray:
        """Return the target as the network sees it."""
        return (
            self.target_map_.transform(y)
            if self._normalise and not self.n_classes_
            else y
        )

    def _target_tensor(self, y: np.ndarray) -> Tensor:
        dtype = torch.long if self.n_classes_ else torch.float32
        return torch.tensor(self._target_score(y), dtype=dtype)


def kl_weight(done: float, last: float = BETAS[1]) -> float:
    """Weight of the KL term after a share ``done`` of the training (section 5.6)."""
    if done < 0.5:
        return BETAS[0] * 2 * done
    return BETAS[0] + (last - BETAS[0]) * (2 * done - 1)
