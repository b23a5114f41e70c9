"""Generative models of rows, conditional on the target.

``base`` (the contract) → ``prep`` (tables as a model likes them, and back) → the models:
``vae`` (the default; in torch on ``dense`` and ``training``, with ``latent``, its density of latent
means, and ``margins``, the corrections of what it decodes), ``vae_paper`` (the paper's, as printed,
on ``network``), ``vae_posterior`` (the same, sampled around learnt rows), ``copula`` (ranks and
correlations), ``local`` (for a handful of rows).

Public names: :data:`SYNTHESIZERS`, :func:`make_synthesizer`, :func:`describe`,
:class:`~amlb_ext.synthesizers.base.Synthesizer`. A new synthesizer is one file and one line in
the registry; modules are imported when a model is made, so this index does without torch.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from importlib import import_module

from amlb_ext.core.config import SynthesizerConfig
from amlb_ext.core.errors import ConfigError, nearest
from amlb_ext.synthesizers.base import Synthesizer

__all__ = ["SYNTHESIZERS", "Entry", "Synthesizer", "describe", "make_synthesizer"]


@dataclass(frozen=True)
class Entry:
    """Where a synthesizer lives and what it is.

    Calling an entry with a configuration makes the synthesizer: settings that its ``__init__``
    knows by name are handed over, the rest keep their defaults.
    """

    module: str
    name: str
    description: str

    def load(self) -> type[Synthesizer]:
        """Import the class."""
        return getattr(import_module(f"amlb_ext.synthesizers.{self.module}"), self.name)

    def __call__(self, config: SynthesizerConfig) -> Synthesizer:
        """Make the synthesizer."""
        kind = self.load()
        known = inspect.signature(kind).parameters
        return kind(**{k: v for k, v in config.model_dump().items() if k in known})


SYNTHESIZERS: dict[str, Entry] = {
    "vae": Entry(
        "vae", "VAE", "conditional VAE with calibrated margins and a fitted latent density"
    ),
    "vae_paper": Entry("vae_paper", "PaperVAE", "the paper's conditional VAE, as printed"),
    "vae_posterior": Entry(
        "vae_posterior", "PosteriorVAE", "the same, sampled around learnt rows: near-copies"
    ),
    "copula": Entry(
        "copula", "GaussianCopula", "Gaussian copula: exact margins, shrunk correlations; fast"
    ),
    "local": Entry(
        "local", "LocalResampler", "jitter and partial steps between near rows; for few rows"
    ),
}


def describe() -> dict[str, str]:
    """Return one sentence per registered synthesizer.

    Examples
    --------
    >>> sorted(describe())
    ['copula', 'local', 'vae', 'vae_paper', 'vae_posterior']
    """
    return {name: entry.description for name, entry in SYNTHESIZERS.items()}


def make_synthesizer(config: SynthesizerConfig) -> Synthesizer:
    """Return the synthesizer that the configuration names, not yet fitted.

    Raises
    ------
    ConfigError
        The name is not registered.

    Examples
    --------
    >>> make_synthesizer(SynthesizerConfig(name="local"))
    LocalResampler()
    >>> make_synthesizer(SynthesizerConfig(name="copola"))
    Traceback (most recent call last):
    ...
    amlb_ext.core.errors.ConfigError: unknown synthesizer 'copola' (did you mean 'copula'? \
known: copula, local, vae, vae_paper, vae_posterior)
    """
    if config.name not in SYNTHESIZERS:
        raise ConfigError(
            f"unknown synthesizer {config.name!r}", nearest(config.name, SYNTHESIZERS)
        )
    return SYNTHESIZERS[config.name](config)
