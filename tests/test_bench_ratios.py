"""The guard of the bench: another machine passes, more work does not."""

import importlib

from benchmarks.speed.ratios import CALLS, MADE_ROWS, SEARCH, SYNTHESIZER, WHOLE, losses
from benchmarks.speed.whole import WATCHED

RIDGE, GENERATE, ASKED = (
    "search, ridge",
    "generate",
    "calls of F, 100,000 rows at most",
)
KEPT = [
    {"group": RIDGE, "figure": SEARCH[0].name, "value": 1301.0},
    {"group": RIDGE, "figure": SEARCH[4].name, "value": 10.0},
    {"group": GENERATE, "figure": WHOLE[4].name, "value": 1.8},
    {"group": ASKED, "figure": CALLS[0].name, "value": 20.0},
]


def measured(*values):
    return [{**row, "value": value} for row, value in zip(KEPT, values, strict=True)]


def test_a_quicker_rival_and_a_slower_core_are_no_loss():
    assert losses(measured(946.0, 11.0, 1.2, 20.0), KEPT) == []


def test_more_work_is_a_loss():
    [calls] = losses(measured(1301.0, 14.0, 1.8, 20.0), KEPT)
    assert calls == f"{RIDGE}, {SEARCH[4].name}: 14, was 10"
    worse, beyond_promise = losses(measured(1301.0, 10.0, 1.8, 31.0), KEPT)
    assert worse == f"{ASKED}, {CALLS[0].name}: 31, was 20"
    assert "31.0, not 30" in beyond_promise


def test_no_time_of_a_search_is_guarded():
    slow = [{"group": RIDGE, "figure": figure.name, "value": 99} for figure in SEARCH]
    quick = [{**row, "value": 1} for row in slow[:4]]
    assert losses(slow, quick) == []


def test_what_is_not_measured_any_more_is_told():
    [gone] = losses(measured(1301.0, 10.0, 1.8, 20.0)[:3], KEPT)
    assert gone.endswith("not measured any more")


def test_distances_are_held_to_real_rows_and_not_to_rivals():
    rows = [
        {"group": "synthesizer", "figure": SYNTHESIZER[0].name, "value": 0.14},
        {"group": "synthesizer", "figure": MADE_ROWS[0].name, "value": 1.2},
    ]
    # no rival is installed
    assert losses(rows[1:], rows) == []
    further = [{**rows[0], "value": 0.9}, {**rows[1], "value": 1.6}]
    [made] = losses(further, rows)
    assert made == f"synthesizer, {MADE_ROWS[0].name}: 1.60, was 1.20"


def test_every_stage_of_generate_names_functions_that_exist():
    for _, functions in WATCHED.values():
        for module, *path in functions:
            found = importlib.import_module(f"amlb_ext.{module}")
            for name in path:
                found = getattr(found, name)
            assert callable(found)
