"""A variational autoencoder of windows of series, whose decoder knows trend and season.

Experimental, and off by default: on M3 its windows are told from real ones more easily than windows
that were moved as a whole, and order forecasters worse (docs/evidence/forecasting.md). It is of
windows, not of rows, so it stands in no registry of synthesizers.

The encoder is two convolutions. The decoder adds a polynomial of the second degree, a table of the
season, and transposed convolutions for what is left; after Desai et al. (2021), TimeVAE, arXiv
2111.08095, from which the sizes differ. New latent points come from a mixture of normals fitted to
the means of the windows it has learnt from, and noise of the learnt size is added.

Notation
--------
n : windows; T : values of each; m : season; d : latent dimensions
"""

from __future__ import annotations

import numpy as np
import torch
from sklearn.mixture import GaussianMixture
from torch import Tensor, nn

from amlb_ext.core.errors import DataError
from amlb_ext.core.rng import draw_int_seed
from amlb_ext.synthesizers.network import private_torch
from amlb_ext.synthesizers.training import train_network

#: Fewer windows teach nothing.
FEWEST = 10
#: Channels, width of the dense layer, weight of the divergence, most parts of the mixture.
_CHANNELS, _WIDTH, _BETA, _PARTS = 24, 64, 0.1, 6
#: Windows of a gradient step, and held out of training.
_BATCH, _HELD_OUT = 64, 0.1


class TimeVAE:
    """A generative model of windows of equal length, each on its own scale.

    Parameters
    ----------
    season : int
        m.
    latent : int
        d.
    epochs : int

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> waves = np.sin(np.arange(24) / 4 + rng.uniform(0, 6, (40, 1)))
    >>> model = TimeVAE(season=4, latent=2, epochs=2).fit(waves, rng)
    >>> model.sample(3, rng).shape
    (3, 24)
    """

    def __init__(self, season: int, latent: int = 12, epochs: int = 120) -> None:
        self.season = season
        self.latent = latent
        self.epochs = epochs

    def fit(self, windows: np.ndarray, rng: np.random.Generator) -> TimeVAE:
        """Learn from windows, ``(n, T)``.

        Raises
        ------
        DataError
            Fewer than ten windows.
        """
        n, length = windows.shape
        if n < FEWEST:
            raise DataError(
                f"timevae learns from {FEWEST} windows or more, {n} were given",
                "leave --synthesizer out, or give more series",
            )
        self.size_ = max(float(windows.std()), 1e-9)
        values = torch.tensor(windows / self.size_, dtype=torch.float32)[:, None]
        with private_torch(draw_int_seed(rng)):
            self.network_ = _Network(length, self.season, self.latent)
            order = torch.randperm(n)
            held = order[: int(_HELD_OUT * n)]
            learn = order[len(held) :]
            train_network(
                self.network_,
                lambda rows, done: self.network_.loss(values[rows], done),
                learn=learn,
                held=held,
                batch=_BATCH,
                steps=self.epochs * -(-len(learn) // _BATCH),
            )
            with torch.no_grad():
                means = self.network_.encode(values)[0].numpy().astype(float)
        parts = min(_PARTS, max(1, n // 20))
        mixture = GaussianMixture(
            parts, reg_covar=1e-3, random_state=draw_int_seed(rng)
        )
        self.mixture_ = mixture.fit(means)
        return self

    def sample(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Draw windows, ``(n, T)``."""
        self.mixture_.random_state = draw_int_seed(rng)
        points = self.mixture_.sample(n)[0]
        # the mixture draws part by part
        latent = torch.tensor(rng.permutation(points), dtype=torch.float32)
        with private_torch(0), torch.no_grad():
            decoded = self.network_.decode(latent)[:, 0].numpy().astype(float)
            noise = float(torch.exp(self.network_.log_noise))
        drawn = decoded + rng.normal(0, noise, decoded.shape)
        return np.asarray(drawn * self.size_)


class _Network(nn.Module):
    """Encoder and decoder; windows ``(n, 1, T)``."""

    trend: Tensor
    places: Tensor

    def __init__(self, length: int, season: int, latent: int) -> None:
        super().__init__()
        self.length = length
        # two convolutions halve the length twice, rounded up
        self.short = -(-length // 4)
        wide = 2 * _CHANNELS
        self.encoder = nn.Sequential(
            nn.Conv1d(1, _CHANNELS, 5, stride=2, padding=2),
            nn.SiLU(),
            nn.Conv1d(_CHANNELS, wide, 5, stride=2, padding=2),
            nn.SiLU(),
            nn.Flatten(),
            nn.Linear(wide * self.short, _WIDTH),
            nn.SiLU(),
        )
        self.mean = nn.Linear(_WIDTH, latent)
        self.log_variance = nn.Linear(_WIDTH, latent)
        time = torch.linspace(0, 1, length)
        self.register_buffer("trend", torch.stack([time**0, time, time**2]))
        one_hot = torch.eye(season)[torch.arange(length) % season]
        self.register_buffer("places", one_hot.T.contiguous())
        self.to_trend = nn.Linear(latent, 3)
        self.to_season = nn.Linear(latent, season)
        self.to_rest = nn.Linear(latent, wide * self.short)
        self.rest = nn.Sequential(
            nn.SiLU(),
            nn.ConvTranspose1d(wide, _CHANNELS, 4, stride=2, padding=1),
            nn.SiLU(),
            nn.ConvTranspose1d(_CHANNELS, 1, 4, stride=2, padding=1),
        )
        self.log_noise = nn.Parameter(torch.zeros(1))

    def encode(self, values: Tensor) -> tuple[Tensor, Tensor]:
        hidden = self.encoder(values)
        return self.mean(hidden), self.log_variance(hidden)

    def decode(self, latent: Tensor) -> Tensor:
        smooth = (
            self.to_trend(latent) @ self.trend + self.to_season(latent) @ self.places
        )
        start = self.to_rest(latent).view(len(latent), -1, self.short)
        return smooth[:, None] + self.rest(start)[:, :, : self.length]

    def loss(self, values: Tensor, done: float) -> Tensor:
        """Return the mean negative evidence bound; the divergence fades in over half of it."""
        mean, log_variance = self.encode(values)
        noise = torch.randn_like(mean)
        decoded = self.decode(mean + noise * torch.exp(log_variance / 2))
        squares = (decoded - values) ** 2 / (2 * torch.exp(2 * self.log_noise))
        likelihood = (squares + self.log_noise).sum(dim=(1, 2)).mean()
        divergence = 0.5 * (mean**2 + log_variance.exp() - 1 - log_variance).sum(dim=1)
        return likelihood + min(1.0, 2 * done) * _BETA * divergence.mean()
