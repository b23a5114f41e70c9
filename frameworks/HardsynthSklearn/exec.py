"""One fold of one AMLB task: fit on the training rows, predict the test rows, save.

Runs inside AMLB's own process and environment. What AMLB needs of an integration is written in
its documentation, https://openml.github.io/automlbenchmark/docs/extending/framework/.
"""

import logging

import sklearn
from amlb.results import save_predictions
from amlb.utils import Timer

from .pipeline import Model, Settings

log = logging.getLogger(__name__)


def run(dataset, config):
    """Fit, predict and save; return what AMLB writes into its results row.

    Parameters
    ----------
    dataset : amlb.data.Dataset
    config : amlb.benchmark.TaskConfig
        ``framework_params`` holds the ``params`` of the framework definition.

    Returns
    -------
    dict
        ``models_count``, ``training_duration`` and ``predict_duration`` in seconds.
    """
    classes = config.type == "classification"
    settings = Settings.from_params(config.framework_params)
    seed = settings.seed_of(config.name, config.fold, config.seed)
    model = Model(settings, classes=classes, seed=seed, cores=config.cores)
    log.info("HardsynthSklearn: %s, scikit-learn %s", model.path, sklearn.__version__)

    target = dataset.train.y.iloc[:, 0]
    truth = dataset.test.y.iloc[:, 0]
    if classes:
        truth = truth.astype(str)
    with Timer() as training:
        model.fit(dataset.train.X, target)
    with Timer() as predict:
        predictions, probabilities = model.predict(dataset.test.X)

    save_predictions(
        dataset=dataset,
        output_file=config.output_predictions_file,
        predictions=predictions,
        truth=truth,
        probabilities=probabilities,
        probabilities_labels=model.labels_ if classes else None,
    )
    return dict(
        models_count=1,
        training_duration=training.duration,
        predict_duration=predict.duration,
    )
