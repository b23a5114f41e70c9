"""Forecasters of one series as an AMLB framework: seasonal naive, drift, Theta, smoothing."""


def version():
    """Return the version that AMLB writes into its results."""
    return "1"


def run(*args, **kwargs):
    """Forecast one task; AMLB calls this."""
    from .exec import run

    return run(*args, **kwargs)
