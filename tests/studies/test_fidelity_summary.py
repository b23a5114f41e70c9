"""Figures and contrasts of a study, on records made by hand."""

import numpy as np
import pandas as pd
import pytest

from benchmarks.studies.fidelity.protocol import REFERENCES, Contrast
from benchmarks.studies.fidelity.sample import FIGURES, Answer, judge_answer
from benchmarks.studies.fidelity.summary import (
    ALL_TABLES,
    paired_contrasts,
    summarize_levels,
)

R = np.array([-0.2, 0.1, 0.4, 0.0])  # three candidates and the twin
SIZE = 0.7 / 3
WHOLE = Contrast(method="whole", against="few_bad", reference="region")
HALF = Contrast(method="half", against="few_bad", reference="region")


def answer(point, half=None):
    point = np.array(point, dtype=float)
    half = np.full(len(point), np.nan if half is None else half)
    return Answer(point, point - half, point + half, 10)


def test_the_right_ranking_has_no_regret():
    found = judge_answer(answer(R, 0.1), R)
    assert set(found) == set(FIGURES)
    assert (found["tau"], found["regret"], found["coverage"]) == (1.0, 0.0, 1.0)
    assert found["width"] == pytest.approx(0.2 / SIZE)
    assert found["claims"] == pytest.approx(1 / 3)
    assert found["false_claims"] == 0.0


def test_a_wrong_ranking_picks_wrongly_and_claims_falsely():
    found = judge_answer(answer([0.4, 0.1, -0.2, -0.07], 0.1), R)
    assert found["tau"] == -1.0
    assert found["regret"] == pytest.approx(
        0.6 / 0.3
    )  # the worst, twice as bad as the average
    assert found["coverage"] == pytest.approx(1 / 3)
    assert found["false_claims"] == 1.0
    assert found["twin"] == pytest.approx(-0.07 / SIZE)


def record(table, seed, n, first=0, **taus):
    """Rows of a sample whose every figure is one number per method; None: no answer."""
    place = {"data": table, "draw": str(seed), "n": str(n), "first": str(first)}
    rows = [place | {"method": "", "reference": "", "figure": "bad", "value": 3.0}]
    for name, tau in taus.items():
        for reference in REFERENCES if tau is not None else ():
            for figure in (*FIGURES, "rows"):
                value = float(n) if figure == "rows" else tau
                labels = {"method": name, "reference": reference, "figure": figure}
                rows.append(place | labels | {"value": value})
    return rows


RECORDS = pd.DataFrame(
    [
        *record("a", 0, 200, 0, few_bad=0.5, whole=0.6),
        *record("a", 0, 200, 200, few_bad=0.2, whole=0.5),  # seed 0: mean of .1 and .3
        *record("a", 1, 200, 0, few_bad=0.4, whole=0.4),
        *record("a", 1, 200, 200, few_bad=None, whole=0.9),  # seed 1: the first alone
        *record("b", 0, 200, 0, few_bad=0.7, whole=0.6),
        *record("b", 1, 200, 0, few_bad=None, whole=0.6),  # left out
    ]
)


def row(frame, table, **where):
    for name, value in {"table": table, **where}.items():
        frame = frame[frame[name] == value]
    assert len(frame) == 1
    return frame.iloc[0]


def test_paired_differences_are_those_computed_by_hand():
    found = paired_contrasts(RECORDS, [WHOLE])
    assert found["table"].tolist() == [ALL_TABLES, "a", "b"]
    every = row(found, ALL_TABLES)  # .2, .0, -.1
    assert every["difference"] == pytest.approx(1 / 30)
    assert every["se"] == pytest.approx(np.sqrt(0.07 / 3 / 3))
    assert every["p"] == pytest.approx(
        1 - np.sqrt(1 / 15), abs=1e-9
    )  # t = 1 / sqrt 7, 2 df
    assert every[["draws", "left_out", "agree", "tables"]].tolist() == [3, 1, 1, 2]
    a, b = row(found, "a"), row(found, "b")
    assert (a["difference"], a["se"]) == (pytest.approx(0.1), pytest.approx(0.1))
    assert a["p"] == pytest.approx(0.5)  # t = 1, 1 df
    assert b["difference"] == pytest.approx(-0.1)
    assert np.isnan(b["se"])
    assert np.isnan(b["p"])
    assert b[["draws", "left_out", "agree", "tables"]].tolist() == [1, 1, 1, 1]


def test_holm_counts_every_contrast_at_every_n():
    rng = np.random.default_rng(0)
    rows = [
        line
        for t in "ab"
        for s in range(5)
        for n in (200, 1000)
        for line in record(
            t,
            s,
            n,
            few_bad=0.3,
            whole=0.4 + rng.normal(0, 0.05),
            half=0.3 + rng.normal(0, 0.1),
        )
    ]
    found = paired_contrasts(pd.DataFrame(rows), [WHOLE, HALF])
    every = found[found["table"] == ALL_TABLES]
    assert len(every) == 4
    ordered = every.sort_values("p")
    steps = np.maximum.accumulate(ordered["p"].to_numpy() * [4, 3, 2, 1])
    np.testing.assert_allclose(ordered["p_holm"], np.minimum(steps, 1))


def test_levels_average_the_samples_of_a_draw_first():
    found = summarize_levels(RECORDS)
    found = found[found["reference"] == "realised"]
    every = row(found, ALL_TABLES, method="few_bad", figure="tau")
    values = np.array([0.35, 0.4, 0.7])
    assert every["mean"] == pytest.approx(values.mean())
    assert every["se"] == pytest.approx(values.std(ddof=1) / np.sqrt(3))
    assert every["draws"] == 3
    assert row(found, "b", method="few_bad", figure="tau")["draws"] == 1
    assert row(found, ALL_TABLES, method="whole", figure="rows")["mean"] == 200
