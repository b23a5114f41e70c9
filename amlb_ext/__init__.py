"""hardsynth: which model really improves on the rows where today's model F fails?

Compare fitted models on a table that none of them was fitted on::

    import hardsynth as hs

    result = hs.compare(F, {"boosting": model_1, "linear": model_2}, X, y, train=(X0, y0))
    result                          # verdicts: overall, and where F fails
    result.slices                   # where F fails, and which model is better there
    result.to_html("report.html")

=========================  ==================================================================
:func:`compare`            which of several models is better than F, overall and where F fails
:func:`failures`           on which rows, and in which slices of the features, F fails
:func:`compare_forecasts`  which of several forecasters is better than F, on many series
:func:`compare_losses`     the same of any table of losses per row, such as an evaluation's log
:func:`harden`             a hard benchmark of a table for AutoML systems (AMLB), as a suite
:func:`estimate_error`     the true error of a model, from few labelled rows
:func:`check_gate`         whether a comparison meets a need, for tests and pipelines
:class:`Suite`             a suite that exists: its tasks, certificates, results, contrasts
:class:`HardsynthError`    what all of them raise for input that you can put right
=========================  ==================================================================

The command line does the same with files: ``hardsynth --help``. ``hardsynth`` and ``amlb_ext``
are one package. How it is built: CONTRIBUTING.md.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from amlb_ext.core.version import __version__

if TYPE_CHECKING:
    from amlb_ext.comparison import (
        FailureReport,
        ModelComparison,
        compare,
        compare_losses,
        failures,
    )
    from amlb_ext.comparison.forecasts import compare_forecasts
    from amlb_ext.core.errors import HardsynthError
    from amlb_ext.gate.checks import GateResult, check_gate
    from amlb_ext.notebook import estimate_error, harden
    from amlb_ext.report.notebook import Suite

__all__ = [
    "FailureReport",
    "GateResult",
    "HardsynthError",
    "ModelComparison",
    "Suite",
    "__version__",
    "check_gate",
    "compare",
    "compare_forecasts",
    "compare_losses",
    "estimate_error",
    "failures",
    "harden",
]

#: Where each name stands. Nothing heavy is imported before it is asked for: the command line never
#: needs these.
_PLACES = {
    "FailureReport": ("amlb_ext.comparison", "FailureReport"),
    "GateResult": ("amlb_ext.gate.checks", "GateResult"),
    "HardsynthError": ("amlb_ext.core.errors", "HardsynthError"),
    "ModelComparison": ("amlb_ext.comparison", "ModelComparison"),
    "Suite": ("amlb_ext.report.notebook", "Suite"),
    "check_gate": ("amlb_ext.gate.checks", "check_gate"),
    "compare": ("amlb_ext.comparison", "compare"),
    "compare_losses": ("amlb_ext.comparison", "compare_losses"),
    "compare_forecasts": ("amlb_ext.comparison.forecasts", "compare_forecasts"),
    "estimate_error": ("amlb_ext.notebook", "estimate_error"),
    "failures": ("amlb_ext.comparison", "failures"),
    "harden": ("amlb_ext.notebook", "harden"),
}


def __getattr__(name: str) -> Any:
    if name in _PLACES:
        module, attribute = _PLACES[name]
        return getattr(import_module(module), attribute)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
