"""The swarm paper's tables: printed numbers, populations of known truth, claims."""

import numpy as np
import pandas as pd
import pytest

from amlb_ext.hardening.encode import Encoder, TargetEncoder
from benchmarks.studies.page import read_printed
from benchmarks.studies.swarms import tables
from benchmarks.studies.swarms.populations import (
    POPULATIONS,
    TrueTeacher,
    draw_task,
)


def test_the_printed_swarm_is_best_in_15_of_16_settings():
    table = read_printed("swarms")["swarm-table-1"]
    won = []
    for methods in table.values():
        for data, numbers in methods["pso"].items():
            others = [
                entry[data][0] for name, entry in methods.items() if name != "pso"
            ]
            won.append(numbers[0] > max(others))
    assert (sum(won), len(won)) == (15, 16)


@pytest.mark.parametrize("name", POPULATIONS)
def test_labels_follow_the_truth(name):
    task = draw_task(name, seed=3, n=3000)
    encoder = Encoder(task.columns).fit(task.features)
    scale = TargetEncoder(task.kind, task.labels, task.target)
    y = scale.transform(task.target)
    t = TrueTeacher(name, encoder, scale).predict(encoder.transform(task.features))
    if t.ndim == 1:
        # what is left of the target is the noise that was added
        noise = POPULATIONS[name].noise / scale.span
        assert (y - t).std() == pytest.approx(noise, rel=0.1)
        return
    assert t.sum(axis=1) == pytest.approx(1)
    # a calibrated truth: its own chance of the label is as high as it says
    chance = t[np.arange(len(y)), y.astype(int)]
    assert chance.mean() == pytest.approx((t**2).sum(axis=1).mean(), abs=0.03)


def a_draw(data, number, swarm, rival):
    values = dict.fromkeys((*tables.AGNOSTIC, *tables.GUIDED, "soups"), rival)
    place = {"data": data, "draw": number, "objective": "difficult", "figure": "fresh"}
    return [
        {**place, "form": form, "method": method, "value": value}
        for form in tables.FORMS
        for method, value in (values | {"pso": swarm}).items()
    ]


@pytest.mark.parametrize(
    ("gap", "verdict"), [(0.1, "holds"), (-0.1, "does not hold"), (0.0, "open")]
)
def test_a_verdict_follows_the_interval_and_few_draws_explore(gap, verdict):
    noise = np.random.default_rng(0).normal(0, 0.01, 12)
    rows = []
    for k in range(12):
        rows += a_draw(f"t{k % 4}", k // 4, 0.3 + gap + noise[k], 0.3)
    found = tables.judge_claims("swarm-table-1", pd.DataFrame(rows)).set_index("asked")
    told = found["verdict"]["swarm against the uniform soup; literal"]
    assert told == f"{verdict}; exploratory, draws: 3"
    many = [row for k in range(10) for row in a_draw("t", k, 0.3 + gap, 0.3)]
    count = tables.judge_claims("swarm-table-1", pd.DataFrame(many)).iloc[0]
    assert count["here"].startswith("1 of 1" if gap > 0 else "0 of 1")
    assert "exploratory" not in count["verdict"]
