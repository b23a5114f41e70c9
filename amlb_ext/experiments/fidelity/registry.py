"""Every way of building a benchmark that a study can compare, by name."""

from __future__ import annotations

from amlb_ext.core.errors import ConfigError, suggest_nearest
from amlb_ext.experiments.fidelity.composed import COMPOSED
from amlb_ext.experiments.fidelity.designs import DESIGNS
from amlb_ext.experiments.fidelity.made import MADE
from amlb_ext.experiments.fidelity.real import REAL
from amlb_ext.experiments.fidelity.sample import Method

#: In the order in which ``hardsynth study methods`` lists them.
METHODS: dict[str, Method] = {**REAL, **MADE, **DESIGNS, **COMPOSED}


def find_method(name: str) -> Method:
    """Return a method by name.

    Raises
    ------
    ConfigError
        No such method; the message names the nearest.

    Examples
    --------
    >>> find_method("few_bad").text
    'the few real bad rows of S'
    """
    if name not in METHODS:
        raise ConfigError(
            f"no method {name!r} to study", suggest_nearest(name, METHODS)
        )
    return METHODS[name]
