"""Every way of building a benchmark that a study can compare, by name."""

from __future__ import annotations

from amlb_ext.core.errors import ConfigError, suggest_nearest
from benchmarks.studies.fidelity.composed import COMPOSED
from benchmarks.studies.fidelity.designs import DESIGNS
from benchmarks.studies.fidelity.made import MADE
from benchmarks.studies.fidelity.real import REAL
from benchmarks.studies.fidelity.sample import Method

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
