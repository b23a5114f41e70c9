"""Run TabArena's models on this suite: python run_tabarena.py LightGBM RandomForest ..."""

import sys

from hardsynth_tasks import HERE, load_tasks, write_predictions
from tabarena.benchmark.experiment import TabArenaV0pt1ExperimentBundle
from tabarena.benchmark.task.metadata import TaskMetadataCollection
from tabarena.contexts import AbstractArenaContext

tasks, metadata = load_tasks()
# The default configuration of each model. ("LightGBM", 20) would try 20 random ones, too.
models = [(name, 0) for name in sys.argv[1:] or ["LightGBM", "RandomForest", "Linear"]]
experiments = TabArenaV0pt1ExperimentBundle(models=models).build_experiments()
context = AbstractArenaContext(
    task_metadata=TaskMetadataCollection.from_source(metadata), methods=[]
)
results = context.build_and_run_jobs(
    experiments, expname=HERE / "experiments", user_tasks=tasks, debug_mode=True
)
write_predictions(results)
