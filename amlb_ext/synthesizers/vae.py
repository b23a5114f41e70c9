"""The conditional variational autoencoder that is the default: section 4.4, made honest.

Notation
--------
k, v, y, mu, log_s2, v_hat, log_p : as in :mod:`~amlb_ext.synthesizers.network`
z = mu + eps · exp(log_s2 / 2), eps ~ N(0, I)
beta : weight of the KL term, 0 → 5e-4 over the first half of the training, then to its last value

Everything runs on one thread (two are an order of magnitude slower on such small batches), or on
a GPU where there is one; sampling always runs on the processor, so a fitted model travels. What it
costs by rows stands in ``docs/evidence/synthesizers.md``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from amlb_ext.core.rng import draw_int_seed
from amlb_ext.synthesizers.base import Synthesizer, check_settings
from amlb_ext.synthesizers.latent import LatentMixture, Margins
from amlb_ext.synthesizers.network import DenseNetwork, RowNetwork, private_torch
from amlb_ext.synthesizers.prep import PreparedTable, TablePrep, TargetScores
from amlb_ext.synthesizers.training import train_network

BETAS = (5e-4, 1e-2)  # section 5.6
#: Up to this many rows the last beta grows, in inverse proportion and at most tenfold.
FEW_ROWS, MOST_BETA = 500, 10.0
CROSS_ENTROPY = 0.1  # Table 2
#: The default batch at most. Twice as many rows a step were no nearer to 8,000 rows of four tables,
#: and took a quarter longer (docs/evidence/synthesizers.md).
MOST_BATCH = 128
#: One row in ten is held out for early stopping, where there are this many.
HOLD_OUT, HOLD_OUT_FROM = 10, 100
#: Most rows, and most outputs over all rows, that pass the network at once outside training;
#: but so many rows pass it at least.
MAX_ROWS, MAX_CELLS, LEAST_ROWS = 4000, 20_000_000, 400
#: Beyond this many weights a training takes fewer steps, at least this share of them.
MANY_WEIGHTS, LEAST_SHARE = 2e6, 0.2
#: Steps of a training of 1,000 steps where rows are few, and rows from which on it takes them all.
FEW_STEPS, MANY_STEPS = 400, 1000


class Rows(NamedTuple):
    """The prepared table as tensors of n rows: see the notation of this module.

    k, (n, m) codes; v, (n, q) numbers; seen, (n, q) 0 where a number is missing; y, (n,) or (n, k).
    """

    k: Tensor
    v: Tensor
    seen: Tensor
    y: Tensor

    def take(self, rows: Tensor) -> Rows:
        """Return the rows at these positions."""
        return Rows(*[part[rows] for part in self])

    def cuda(self) -> Rows:
        """Return a copy on the GPU."""
        return Rows(*[part.cuda() for part in self])


@dataclass(eq=False, repr=False)
class VAE(Synthesizer):
    """The conditional VAE with normal scores, calibrated margins and a fitted latent density.

    Departures from the paper, each for a measured reason (``docs/evidence/synthesizers.md``):

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
        dense layers. ``batch`` 0 takes about a thirty-second of the rows, between 16 and 128.
    max_categories : int
        See :class:`~amlb_ext.synthesizers.prep.TablePrep`.
    max_steps : int
        Most gradient steps (0: no limit); tables beyond 2 million parameters get fewer, but
        not less than a fifth, and so do less than 1,000 rows, in larger steps: of 1,000 as many
        as there are rows, but not less than 400. The schedules shrink with the steps.
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

    epochs: int = 150
    latent: int = 32
    decoder: int = 128
    batch: int = 0
    max_categories: int = 100
    max_steps: int = 1000
    device: str = "auto"

    _normalise = True
    _adds_noise = True

    def _fit(
        self,
        X: np.ndarray,
        y: np.ndarray,
        rng: np.random.Generator,
    ) -> None:
        self._check_parameters()
        self.prep_ = TablePrep(self.max_categories, self._normalise)
        self.prep_.fit(X, len(self.cards_), rng)
        table = self.prep_.transform(X)
        self.n_steps_ = 0
        self.network_: RowNetwork | None = None
        if self._normalise and self.n_classes_ == 0:
            self.target_map_ = TargetScores(y)
        if not self.prep_.n_modelled_:
            return
        with private_torch(draw_int_seed(rng)):
            data = self._tensors(table, y)
            self.network_ = self._make_network()
            if self.device == "auto" and torch.cuda.is_available():
                self.network_.cuda()
                held = self._train(data.cuda(), rng)
                self.network_.cpu()
            else:
                held = self._train(data, rng)
            self._learn_sampling(data, table, y, held=held, rng=rng)

    def _tensors(self, table: PreparedTable, y: np.ndarray) -> Rows:
        return Rows(
            k=torch.tensor(table.codes),
            v=torch.tensor(table.numbers, dtype=torch.float32),
            seen=torch.tensor(table.seen, dtype=torch.float32),
            y=self._target_tensor(y),
        )

    def _make_network(self) -> RowNetwork:
        return DenseNetwork(
            cards=self.prep_.cards_,
            n_numbers=self.prep_.n_numbers_,
            n_classes=self.n_classes_,
            latent=self.latent,
            width=self.decoder,
            n_targets=self.n_targets_,
        )

    def _check_parameters(self) -> None:
        # 0 stands for our choice of a batch, and for no limit of the steps
        may_be_zero = ("batch", "max_steps")
        check_settings(self.get_params(deep=False), may_be_zero)

    # --- training ---

    def _train(self, data: Rows, rng: np.random.Generator) -> np.ndarray:
        """Learn the weights; return the positions of the held-out rows."""
        assert self.network_ is not None
        n = len(data.y)
        shuffled = rng.permutation(n)
        n_held_out = self._n_held_out(n)
        held = shuffled[:n_held_out]
        learn = shuffled[n_held_out:]
        batch = self.batch or _default_batch(n)
        steps_per_epoch = math.ceil(len(learn) / batch)
        last_beta = self._last_beta(n)
        steps = self.epochs * steps_per_epoch
        # how much larger the steps are for being fewer
        pace = 1.0
        if self.max_steps:
            # a step of a large network takes longer: beyond 2 million weights there are fewer
            n_weights = sum(p.numel() for p in self.network_.parameters())
            share = min(1.0, max(LEAST_SHARE, MANY_WEIGHTS / n_weights))
            most = min(steps, math.ceil(self.max_steps * share))
            # few rows are learnt as well in fewer steps, see docs/evidence/synthesizers.md
            few = math.ceil(most * min(1.0, max(FEW_STEPS, n) / MANY_STEPS))
            steps = max(few, min(most, FEW_STEPS))
            pace = most / steps

        def loss(rows: Tensor, done: float) -> Tensor:
            beta = kl_weight(done, last_beta)
            return self._loss(data.take(rows), beta)

        device = data.y.device
        self.n_steps_ = train_network(
            self.network_,
            loss,
            learn=torch.tensor(learn, device=device),
            held=torch.tensor(held, device=device),
            batch=batch,
            steps=steps,
            pace=pace,
        )
        return held

    def _n_held_out(self, n: int) -> int:
        if n < HOLD_OUT_FROM:
            return 0
        # no more than pass the network at once, for they are all looked at together
        return min(n // HOLD_OUT, self._rows_at_once())

    def _last_beta(self, n: int) -> float:
        _, last = BETAS
        growth = max(1.0, FEW_ROWS / n)
        return last * min(growth, MOST_BETA)

    def _loss(self, rows: Rows, beta: float) -> Tensor:
        """Return beta · KL + squared error of the numbers + weighted cross entropy of the codes."""
        network = self.network_
        assert network is not None
        mu, log_s2 = network.encode(rows.k, rows.v, rows.y)
        # drawn on the processor: the stream is the same on every device
        eps = torch.randn(mu.shape).to(mu.device)
        s = (0.5 * log_s2).exp()
        z = mu + eps * s
        v_hat, log_p = network.decode(z, rows.y)
        loss = beta * self._divergence(mu, log_s2)
        if rows.v.shape[1]:
            squared_error = (v_hat - rows.v).square() * rows.seen
            loss = loss + squared_error.mean()
        if rows.k.shape[1]:
            # of the row's own codes
            log_likelihood = log_p.gather(1, rows.k + network.offset)
            row_likelihood = log_likelihood.sum(dim=1)
            loss = loss - CROSS_ENTROPY * row_likelihood.mean()
        return loss

    def _divergence(self, mu: Tensor, log_s2: Tensor) -> Tensor:
        """KL(q(z | x, y) ‖ N(0, I)), averaged over rows."""
        terms = 1 + log_s2 - mu.square() - log_s2.exp()
        return -0.5 * terms.sum(dim=1).mean()

    # --- what is learnt once the network is trained ---

    def _encode_rows(self, data: Rows) -> tuple[Tensor, Tensor]:
        """Return mu and log_s2 of all rows."""
        assert self.network_ is not None
        means = []
        log_variances = []
        positions = torch.arange(len(data.y))
        with torch.no_grad():
            for r in positions.split(self._rows_at_once()):
                rows = data.take(r)
                mu, log_s2 = self.network_.encode(rows.k, rows.v, rows.y)
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
        assert self.network_ is not None
        n = len(y)
        size = self._rows_at_once()
        mu, log_s2 = self._encode_rows(data)
        # rows that were learned from show too small a spread; few rows have none held out
        r = held if len(held) else np.arange(min(size, n))
        with torch.no_grad():
            eps = torch.randn(mu[r].shape)
            s = (0.5 * log_s2[r]).exp()
            z = mu[r] + eps * s
            v_hat, _ = self.network_.decode(z, data.y[r])
        # s, (q,): the root mean squared error of the decoder
        seen = table.seen[r]
        squares = (v_hat.double().numpy() - table.numbers[r]) ** 2 * seen
        # a number that none of these rows has shows no error
        n_seen = seen.sum(axis=0).clip(1)
        self.noise_ = np.sqrt(squares.sum(axis=0) / n_seen)
        s2 = log_s2.double().exp().mean(dim=0)
        self.mixture_ = LatentMixture().fit(
            mu=mu.double().numpy(),
            s2=s2.numpy(),
            y=self._target_score(y),
            n_classes=self.n_classes_,
            rng=rng,
        )
        # each target as often as in the table
        positions = np.arange(size) * n // size
        new_numbers, log_p = self._decode_new(y[positions], rng)
        pairs = zip(table.codes.T, self.prep_.cards_, strict=True)
        shares = [np.bincount(codes, minlength=card) / n for codes, card in pairs]
        margins = Margins(self.prep_.cards_)
        self.margins_ = margins.fit(new_numbers, log_p, shares)

    # --- sampling; ``PaperVAE`` replaces the latent draw and the draw of a row ---

    def _sample(
        self,
        y: np.ndarray,
        rng: np.random.Generator,
    ) -> np.ndarray:
        n = len(y)
        m = len(self.prep_.cards_)
        codes = np.empty((n, m), dtype=np.int64)
        numbers = np.empty((n, self.prep_.n_numbers_))
        if self.network_ is None:
            return self.prep_.inverse(codes, numbers, rng)
        size = self._rows_at_once()
        for start in range(0, n, size):
            r = slice(start, start + size)
            # for its one thread; nothing is drawn from torch's stream here
            with private_torch(seed=0):
                v_hat, log_p = self._decode_new(y[r], rng)
            codes[r], numbers[r] = self._draw_rows(v_hat, log_p, rng)
        return self.prep_.inverse(codes, numbers, rng)

    def _rows_at_once(self) -> int:
        n_outputs = sum(self.prep_.cards_) + self.prep_.n_numbers_
        most_rows = MAX_CELLS // n_outputs
        return min(max(most_rows, LEAST_ROWS), MAX_ROWS)

    def _decode_new(
        self,
        y: np.ndarray,
        rng: np.random.Generator,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return numbers, and log probabilities of codes, of new rows for the targets."""
        assert self.network_ is not None
        latent = self._draw_latent(y, rng)
        z = torch.tensor(latent, dtype=torch.float32)
        with torch.no_grad():
            v_hat, log_p = self.network_.decode(z, self._target_tensor(y))
        numbers = v_hat.double().numpy()
        if self._adds_noise:
            numbers = numbers + self.noise_ * rng.standard_normal(numbers.shape)
        return numbers, log_p.double().numpy()

    def _draw_latent(
        self,
        y: np.ndarray,
        rng: np.random.Generator,
    ) -> np.ndarray:
        return self.mixture_.sample(self._target_score(y), rng)

    def _draw_rows(
        self,
        v_hat: np.ndarray,
        log_p: np.ndarray,
        rng: np.random.Generator,
    ) -> tuple[np.ndarray, np.ndarray]:
        return self.margins_.draw(v_hat, log_p, rng)

    def _target_score(self, y: np.ndarray) -> np.ndarray:
        """Return the target as the network sees it."""
        if self._normalise and not self.n_classes_:
            return self.target_map_.transform(y)
        return y

    def _target_tensor(self, y: np.ndarray) -> Tensor:
        dtype = torch.long if self.n_classes_ else torch.float32
        return torch.tensor(self._target_score(y), dtype=dtype)


def _default_batch(n: int) -> int:
    """Return the power of two nearest to a thirty-second of the rows, from 16 to 128."""
    exponent = round(math.log2(n / 32))
    return max(16, min(2**exponent, MOST_BATCH))


def kl_weight(done: float, last: float = BETAS[1]) -> float:
    """Weight of the KL term after a share ``done`` of the training (section 5.6)."""
    middle = BETAS[0]
    if done < 0.5:
        return middle * 2 * done
    return middle + (last - middle) * (2 * done - 1)
