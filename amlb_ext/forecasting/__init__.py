"""Windows of series on which a forecaster fails, and which other forecaster improves there.

A long table becomes a panel of series on one calendar; origins are cutoffs of that calendar, the
same for all series. F is rolled over them, its bad windows teach where it fails by the past alone,
and candidates are set against F, clustered by series.
"""

from amlb_ext.forecasting.compare import compare_forecasts
from amlb_ext.forecasting.forecasters import Forecaster, ForecastRequest, Forecasts

__all__ = [
    "ForecastRequest",
    "Forecaster",
    "Forecasts",
    "compare_forecasts",
]
