"""Generative models of rows, conditional on the target.

``base`` (the contract) → ``prep`` (tables as a model likes them, and back) → the models:

``vae``
    the default; in torch on ``network`` and ``training``, with ``latent``, its density of latent
    means and the corrections of what it decodes.
``swarm``
    mixtures of tuned copies of it, searched for rows on which a given model fails.
``vae_paper``
    the paper's, as printed; and the same, sampled around learnt rows.
``copula``
    ranks and correlations.
``local``
    for a handful of rows.
``sdv``
    CTGAN, TVAE, CopulaGAN and the Gaussian copula of SDV, an optional package under a licence of
    its own.

Public names: :data:`SYNTHESIZERS`, :func:`make_synthesizer`, :func:`describe_synthesizers`,
:func:`require_package`, :class:`~amlb_ext.synthesizers.base.Synthesizer`. A new synthesizer is
one file and one line in the registry; modules are imported when a model is made, so this index
does without torch, and without scikit-learn.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, get_type_hints

from pydantic import TypeAdapter, ValidationError

from amlb_ext.core.checked_call import explain_problem
from amlb_ext.core.config import SynthesizerConfig
from amlb_ext.core.errors import ConfigError, suggest_nearest

if TYPE_CHECKING:
    from amlb_ext.synthesizers.base import Synthesizer

__all__ = [
    "SYNTHESIZERS",
    "Entry",
    "describe_synthesizers",
    "make_synthesizer",
    "require_package",
]

#: Optional package → how to install it, and its licence.
OPTIONAL = {
    "sdv": "pip install 'hardsynth[sdv]'; SDV is under the Business Source License 1.1",
}


@dataclass(frozen=True)
class Entry:
    """Where a synthesizer lives, what it is, and the optional package it needs, if any.

    Calling an entry with a configuration makes the synthesizer: settings that its ``__init__``
    knows by name are handed over, and those of ``params``; the rest keep their defaults.
    """

    module: str
    name: str
    description: str
    package: str = ""

    def load(self) -> type[Synthesizer]:
        """Import the class."""
        module = import_module(f"amlb_ext.synthesizers.{self.module}")
        return getattr(module, self.name)

    def __call__(self, config: SynthesizerConfig) -> Synthesizer:
        """Make the synthesizer."""
        if self.package:
            require_package(self.package)
        synthesizer_class = self.load()
        parameters = inspect.signature(synthesizer_class).parameters
        given = config.model_dump()
        settings = {name: given[name] for name in given if name in parameters}
        types = get_type_hints(synthesizer_class.__init__)
        for name, value in config.params.items():
            if name not in parameters:
                raise ConfigError(
                    f"{config.name} has no parameter {name!r}",
                    suggest_nearest(name, parameters),
                )
            try:
                settings[name] = TypeAdapter(types[name]).validate_python(
                    value, strict=True
                )
            except ValidationError as error:
                problem = error.errors()[0]
                raise explain_problem(
                    {**problem, "loc": ("synthesizer.params", name)}
                ) from None
        return synthesizer_class(**settings)


def _sdv_entry(name: str, description: str) -> Entry:
    description += "; extra sdv, Business Source License 1.1"
    return Entry("sdv", name, description, package="sdv")


#: The synthesizers by the name that settings give them.
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
        "vae_paper", "PosteriorVAE", "the same, sampled around learnt rows: near-copies"
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
    "swarm": Entry(
        "swarm.synthesizer",
        "Swarm",
        "mixtures of tuned copies of vae, searched for hard rows; a stress test",
    ),
    "ctgan": _sdv_entry("CTGAN", "SDV's CTGAN"),
    "tvae": _sdv_entry("TVAE", "SDV's TVAE"),
    "copulagan": _sdv_entry("CopulaGAN", "SDV's CopulaGAN"),
    "sdv_copula": _sdv_entry("SDVCopula", "SDV's Gaussian copula"),
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
    ['copula', 'copulagan', 'ctgan', 'local', 'sdv_copula', 'swarm', 'tvae', 'vae', 'vae_paper',
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
known: copula, copulagan, ctgan, local, sdv_copula, swarm, tvae, vae, vae_paper, vae_posterior)
    """
    if config.name not in SYNTHESIZERS:
        raise ConfigError(
            f"unknown synthesizer {config.name!r}",
            suggest_nearest(config.name, SYNTHESIZERS),
        )
    return SYNTHESIZERS[config.name](config)
