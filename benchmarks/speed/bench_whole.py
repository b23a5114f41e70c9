"""``hardsynth generate`` beside its own fits: of F and the synthesizer, and of all models.

Two thirds of what is not F's or the synthesizer's is spent in the models that judge labels, rank
candidates and weigh the region, and in F's predictions for the search; ``models`` holds these too,
so that what is left over it is the project's own code. ``needed`` is what a result cannot do
without, however its rows are made: F, its cross-fits, the oracle and the candidates.

Two workers share one machine with whatever else it does, so what is guarded is no wall clock: the
share of processor seconds that is spent while the workers have nothing to do.

Memory is that of a worker beyond the interpreter, all imports and the reading of the table, which
are named apart.
"""

from __future__ import annotations

import json

import pytest

from benchmarks.speed.whole import FLOOR, NEEDED, run

MODELS = (*FLOOR, "predict F", "oracle", "region", "zoo")
GIVEN = {"rows": 4000, "columns": 16, "folds": 8, "kind": "binary"}
LARGE = {"rows": 50_000, "columns": 16, "folds": 1, "kind": "binary"}


@pytest.mark.parametrize("workers", [1, 2])
def test_generate(benchmark, workers):
    found = {}

    def once():
        found.update(run({**GIVEN, "workers": workers}))

    benchmark.group = "generate"
    benchmark.pedantic(once, rounds=1)
    assert found["tasks_made"] == 1, json.dumps(found["failures"])
    if workers > 1:
        benchmark.extra_info.update(
            role="two workers",
            wall=found["wall"],
            cpu=found["cpu"],
            serial_share=found["serial_share"],
        )
        return
    seconds = found["seconds"]
    benchmark.extra_info.update(
        role="ours",
        wall=found["wall"],
        floor=sum(seconds[name] for name in FLOOR),
        cpu=found["cpu"],
        models=sum(seconds.get(name, 0.0) for name in MODELS),
        needed=sum(seconds.get(name, 0.0) for name in NEEDED),
    )


def test_memory(benchmark):
    found = {}

    def once():
        model = {"baseline": {"model": "hist_gradient_boosting"}}
        found.update(run({**LARGE, "config": json.dumps(model)}))

    benchmark.group = "generate, 50,000 rows"
    benchmark.pedantic(once, rounds=1)
    assert found["tasks_made"] == 1, json.dumps(found["failures"])
    benchmark.extra_info.update(
        role="ours",
        table_mb=found["table_mb"],
        beyond_reading_mb=found["beyond_reading_mb"],
        imports_mb=found["peak_mb"] - found["beyond_imports_mb"],
        reading_mb=found["raised_mb"].get("read", 0.0),
        cpu=found["cpu"],
        needed=sum(found["seconds"].get(name, 0.0) for name in NEEDED),
    )
