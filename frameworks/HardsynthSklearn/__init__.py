"""Any scikit-learn model as an AMLB framework, by import path; see ``pipeline.py``."""


def version():
    """Return the version that AMLB writes into its results: scikit-learn's."""
    from sklearn import __version__

    return __version__


def run(*args, **kwargs):
    """Fit and predict one fold; AMLB calls this."""
    from .exec import run

    return run(*args, **kwargs)
