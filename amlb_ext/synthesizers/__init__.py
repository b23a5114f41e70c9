"""Generative models of rows, conditional on the target.

``base`` (the contract) → ``prep`` (tables as a model likes them, and back) → the models:
``vae`` (the default; in torch on ``dense`` and ``training``, with ``latent``, its density of latent
means, and ``margins``, the corrections of what it decodes), ``vae_paper`` (the paper's, as printed,
on ``network``), ``vae_posterior`` (the same, sampled around learnt rows), ``copula`` (ranks and
correlations), ``local`` (for a handful of rows), ``sdv`` (CTGAN, TVAE, CopulaGAN and the Gaussian
copula of SDV, an optional package under a licence of its own).

Public names: :data:`SYNTHESIZERS`, :func:`make_synthesizer`, :func:`describe_synthesizers`,
:func:`require_package`,
:class:`~amlb_ext.synthesizers.base.Synthesizer`. A new synthesizer is one file and one line in
the registry; modules are imported when a model is made, so this index does without torch.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec

from amlb_ext.core.config import SynthesizerConfig
from amlb_ext.core.errors import ConfigError, suggest_nearest
from amlb_ext.synthesizers.base import Synthesizer

__all__ = [
    "SYNTHESIZERS",
    "Entry",
    "Synthesizer",
    "describe_synthesizers",
    "make_synthesizer",
    "require_package",
]

#: Optional package → how to install it, and its licence.
OPTIONAL = {
    "sdv": "pip install 'hardsynth[sdv]'; SDV is under the Business Source License 1.1"
}


@dataclass(frozen=True)
class Entry:
    """Where a synthesizer lives, what it is, and the optional package it needs, if any.

    Calling an entry with a configuration makes the synthesizer: settings that its ``__init__``
    knows by name are handed over, the rest keep their defaults.
    """

    module: str
    name: str
    description: str
    package: str = ""

    def load(self) -> type[Synthesizer]:
        """Import the class."""
        return getattr(import_module(f"amlb_ext.synthesizers.{self.module}"), self.name)

    def __call__(self, config: SynthesizerConfig) -> Synthesizer:
        """Make the synthesizer."""
        if self.package:
            require_package(self.package)
        kind = self.load()
        known = inspect.signature(kind).parameters
        return kind(**{k: v for k, v in config.model_dump().items() if k in known})


SDV_NOTE = "extra sdv, Business Source License 1.1"
SYNTHESIZERS: dict[str, Entry] = {
    "vae": Entry(
        "vae",
        "VAE",
        "conditional VAE with calibrated margins and a fitted latent density",
    ),
    "vae_paper": Entry(
        "vae_paper", "PaperVAE", "the paper's conditional VAE, as printed"
    ),
    "vae_posterior": Entry(
        "vae_posterior",
        "PosteriorVAE",
        "the same, sampled around learnt rows: near-copies",
    ),
    "copula": Entry(
        "copula",
        "GaussianCopula",
        "Gaussian copula: exact margins, shrunk correlations; fast",
    ),
    "local": Entry(
        "local",
        "LocalResampler",
        "jitter and partial steps between near rows; for few rows",
    ),
    "ctgan": Entry("sdv", "CTGAN", f"SDV's CTGAN; {SDV_NOTE}", "sdv"),
    "tvae": Entry("sdv", "TVAE", f"SDV's TVAE; {SDV_NOTE}", "sdv"),
    "copulagan": Entry("sdv", "CopulaGAN", f"SDV's CopulaGAN; {SDV_NOTE}", "sdv"),
    "sdv_copula": Entry(
        "sdv", "SDVCopula", f"SDV's Gaussian copula; {SDV_NOTE}", "sdv"
    ),
}


def require_package(package: str) -> None:
    """Check that an optional package is installed.

    Raises
    ------
    ConfigError
        It is not; the error says what to install, and under which licence.
    """
    if find_spec(package) is None:
        raise ConfigError(f"the package {package} is not installed", OPTIONAL[package])


def describe_synthesizers() -> dict[str, str]:
    """Return one sentence per registered synthesizer.

    Examples
    --------
    >>> sorted(describe_synthesizers())  # doctest: +NORMALIZE_WHITESPACE
    ['copula', 'copulagan', 'ctgan', 'local', 'sdv_copula', 'tvae', 'vae', 'vae_paper',
    'vae_posterior']
    """
    return {name: entry.description for name, entry in SYNTHESIZERS.items()}


def make_synthesizer(config: SynthesizerConfig) -> Synthesizer:
    """Return the synthesizer that the configuration names, not yet fitted.

    Raises
    ------
    ConfigError
        The name is not registered, or the package it needs is not installed.

    Examples
    --------
    >>> make_synthesizer(SynthesizerConfig(name="local"))
    LocalResampler()
    >>> make_synthesizer(SynthesizerConfig(name="copola"))
    Traceback (most recent call last):
    ...
    amlb_ext.core.errors.ConfigError: unknown synthesizer 'copola' (did you mean 'copula'? \
known: copula, copulagan, ctgan, local, sdv_copula, tvae, vae, vae_paper, vae_posterior)
    """
    if config.name not in SYNTHESIZERS:
        raise ConfigError(
            f"unknown synthesizer {config.name!r}",
            suggest_nearest(config.name, SYNTHESIZERS),
        )
    return SYNTHESIZERS[config.name](config)
