"""The paper's synthesizer as printed, for comparison (section 4.4, Table 2)."""

from __future__ import annotations

import numpy as np
from torch import Tensor

from amlb_ext.synthesizers.prep import Prepared
from amlb_ext.synthesizers.vae import VAE


class PaperVAE(VAE):
    """Section 4.4 as printed: numbers as they come, z ~ N(0, I), codes by argmax.

    Where the paper is silent, this follows the prototype: the KL term is the mean over latent
    dimensions. A missing number enters as its column's mean beside an indicator. Kept for
    comparison: prior samples are far from the rows they were learned from
    (``docs/synthesizers.md``).

    NOTE[DIFF]: numbers are clipped to the fitted range, and constant columns are not modelled.

    Parameters are those of :class:`VAE`; by default the number of steps has no limit.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.random((40, 2)), rng.integers(0, 2, 40)
    >>> model = PaperVAE(epochs=2, latent=4).fit(X, y, cards=(), n_classes=2, rng=rng)
    >>> model.sample(5, rng)[0].shape
    (5, 2)
    """

    _normalise = False

    def __init__(
        self,
        epochs: int = 100,
        latent: int = 256,
        hidden: int = 16,
        decoder: int = 512,
        batch: int = 0,
        max_categories: int = 100,
        max_steps: int = 0,
        device: str = "cpu",
    ) -> None:
        super().__init__(epochs, latent, hidden, decoder, batch, max_categories, max_steps, device)

    def _divergence(self, mu: Tensor, log_s2: Tensor) -> Tensor:
        return -0.5 * (1 + log_s2 - mu.square() - log_s2.exp()).mean()

    def _learn_sampling(
        self, data: tuple[Tensor, ...], table: Prepared, y: np.ndarray, rng: np.random.Generator
    ) -> None:
        return

    def _latent(self, y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return rng.standard_normal((len(y), self.latent))

    def _number(self, j: int, v_hat: np.ndarray) -> np.ndarray:
        return v_hat

    def _code(self, j: int, log_q: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return log_q.argmax(axis=1)
