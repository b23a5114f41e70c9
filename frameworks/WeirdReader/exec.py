"""One fold of one weird task in AMLB: fit the task's reader, predict, save."""

import os

import numpy as np
import pandas as pd
from amlb.results import save_predictions
from amlb.utils import Timer

from .readers import READERS


def run(dataset, config):
    """Fit, predict and save; return what AMLB writes into its results row."""
    if config.name not in READERS:
        raise ValueError(
            f"there is no reader for the task {config.name!r}; it reads {', '.join(READERS)}"
        )
    reader = READERS[config.name]()
    target = dataset.train.y.iloc[:, 0].astype(str).to_numpy()
    # beside the training file, where the task has one
    folder, file = os.path.split(dataset.train.path)
    spare_file = os.path.join(folder, file.replace("_train_", "_unlabelled_"))
    with Timer() as training:
        if spare_file != dataset.train.path and os.path.exists(spare_file):
            reader.fit(dataset.train.X, target, pd.read_csv(spare_file))
        else:
            reader.fit(dataset.train.X, target)
    with Timer() as predict:
        probabilities = reader.predict_proba(dataset.test.X)
        labels = np.asarray(reader.classes_).astype(str)
        predictions = labels[probabilities.argmax(axis=1)]
    save_predictions(
        dataset=dataset,
        output_file=config.output_predictions_file,
        predictions=predictions,
        truth=dataset.test.y.iloc[:, 0].astype(str),
        probabilities=probabilities,
        probabilities_labels=list(labels),
    )
    return dict(
        models_count=1,
        training_duration=training.duration,
        predict_duration=predict.duration,
    )
