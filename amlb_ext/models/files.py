"""Models from files: which words name one, and what a file holds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import joblib

from amlb_ext.core.config import BaselineConfig
from amlb_ext.core.errors import ModelError
from amlb_ext.core.paths import (
    check_model_file,
    check_pickle_trusted,
    has_model_ending,
    table_ending,
)
from amlb_ext.models.adapter import describe_error
from amlb_ext.models.predictions import read_predictions_table
from amlb_ext.models.registry import BASELINES
from amlb_ext.models.service import connect_service, is_service
from amlb_ext.models.skops_files import load_skops


def is_baseline_file(config: BaselineConfig) -> bool:
    """Whether F is a file rather than a model to be fitted."""
    return is_model_file(config.model) or is_predictions_file(config.model)


def comes_fitted(config: BaselineConfig) -> bool:
    """Whether F is a file or a service, so that nothing here can fit it.

    Examples
    --------
    >>> [comes_fitted(BaselineConfig(model=word)) for word in ("m.pkl", "http://m.org/f", "ridge")]
    [True, True, False]
    """
    return is_baseline_file(config) or is_service(config.model)


def is_model_file(model: str) -> bool:
    """Whether a word names the file of a fitted model, by its ending alone.

    Whatever stands on the disk, so that the settings of a suite mean the same everywhere.

    Examples
    --------
    >>> [is_model_file(word) for word in ("m.skops", "m.pkl", "m.joblib.gz", "p.csv", "ridge")]
    [True, True, True, False, False]
    """
    # a short name is no file, whatever stands in the folder
    is_name = model in BASELINES or is_service(model)
    return not is_name and has_model_ending(model)


def is_predictions_file(model: str) -> bool:
    """Whether a word names a file of predictions, by its ending alone.

    Examples
    --------
    >>> is_predictions_file("p.parquet"), is_predictions_file("m.pkl")
    (True, False)
    """
    is_name = model in BASELINES or is_service(model)
    return not is_name and bool(table_ending(model))


def read_model(file: str, trust_pickle: bool) -> Any:
    """Return a fitted model, or predictions, from a file, or the model behind an address.

    Predictions are a table, see :mod:`amlb_ext.models.predictions`.

    Raises
    ------
    ModelError
        The file cannot be read, holds no model, or is a pickle that nobody trusts; or what stands
        there is no address of a service.
    """
    if is_service(file):
        return connect_service(BaselineConfig(model=file))
    path = Path(file)
    if is_predictions_file(path.name):
        return read_predictions_table(path)
    return load_fitted_model(path, trust_pickle)


def load_fitted_model(path: Path, trust_pickle: bool) -> Any:
    """Load a model with ``predict``.

    Raises
    ------
    ModelError
        As :func:`load_model`; or the file holds something else than a model.
    """
    model = load_model(path, trust_pickle)
    if hasattr(model, "predict") and not isinstance(model, type):
        return model
    noun = type(model).__name__
    held = f"{'an' if noun[0].lower() in 'aeiou' else 'a'} {noun}"
    if isinstance(model, type):
        held = f"the class {model.__name__}"
    raise ModelError(
        f"{path.name} holds {held}, not a fitted model",
        "save the estimator itself, the object with predict",
    )


def load_model(path: Path, trust_pickle: bool) -> Any:
    """Load whatever a model file holds; pickles only when the user trusts them.

    Raises
    ------
    ModelError
        Missing or unreadable file, a skops file that names what is not on the list of
        :mod:`amlb_ext.models.skops_files`, or a pickle without
        ``--trust-pickle``: loading a pickle runs whatever code it holds.
    """
    check_model_file(path)
    check_pickle_trusted(path, trust_pickle)
    try:
        if path.suffix.lower() == ".skops":
            return load_skops(path, trust_pickle)
        # it reads plain pickles, too, and whatever joblib has compressed
        return joblib.load(path)
    except ModelError:
        raise
    except Exception as error:
        remedy = (
            "save the fitted model with skops.io.dump or joblib.dump, with the packages that are "
            "installed here"
        )
        if "__main__" in str(error):
            remedy = (
                "its class stands in a script or a notebook: save the model with cloudpickle.dump, "
                "which keeps the class, or put the class into a module that is installed here"
            )
        raise ModelError(
            f"cannot load {path.name}: {describe_error(error)}", remedy
        ) from error
