"""One AMLB task of series: forecast each item from its own past, and save.

Runs inside AMLB's own process and environment; needs no set-up. ``local_methods.py`` is a copy of
the module that hardsynth itself forecasts with, so that F is here what it is there.
"""

import logging
import time
from statistics import NormalDist

import numpy as np
import pandas as pd
from amlb.results import save_predictions

from .local_methods import METHODS

log = logging.getLogger(__name__)


def run(dataset, config):
    """Forecast, save; return what AMLB writes into its results row.

    Parameters
    ----------
    dataset : amlb.datasets.file.TimeSeriesDataset
    config : amlb.benchmark.TaskConfig
        ``framework_params`` has ``method``, one of METHODS.

    Returns
    -------
    dict
        ``models_count``, ``training_duration`` and ``predict_duration`` in seconds.
    """
    method = METHODS[config.framework_params.get("method", "theta")]
    horizon, season = dataset.forecast_horizon_in_steps, dataset.seasonality
    train, test = dataset.train.data, dataset.test.data
    target = dataset.target.name
    start = time.monotonic()
    means, errors = [], []
    # AMLB has sorted both files by id, and takes predictions in that order
    for _, rows in train.groupby(dataset.id_column, sort=False, observed=True):
        past = rows[target].to_numpy(dtype=float)
        mean, error = method(past, horizon, season)
        means.append(mean)
        errors.append(error)
    mean, error = np.concatenate(means), np.concatenate(errors)
    took = time.monotonic() - start
    log.info("HardsynthForecast: %d series in %.1f s", len(means), took)

    columns = {
        "repeated_item_id": dataset.repeated_item_id,
        "repeated_abs_seasonal_error": dataset.repeated_abs_seasonal_error,
    }
    for level in config.quantile_levels:
        columns[str(level)] = mean + error * NormalDist().inv_cdf(float(level))
    save_predictions(
        dataset=dataset,
        output_file=config.output_predictions_file,
        predictions=mean,
        truth=test[target].to_numpy(dtype=float),
        optional_columns=pd.DataFrame(columns),
    )
    return dict(models_count=1, training_duration=0.0, predict_duration=took)
