"""For each weird task a reader that looks at the data the right way; see ``readers.py``.

No AutoML system: the readers know what the tasks are. Their scores say how much a little thought
is worth on the same folds.
"""


def version():
    """Return the version that AMLB writes into its results: scikit-learn's."""
    from sklearn import __version__

    return __version__


def run(*args, **kwargs):
    """Fit and predict one fold; AMLB calls this."""
    from .exec import run

    return run(*args, **kwargs)
