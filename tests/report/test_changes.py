"""What was left out of the test folds and replaced in them stands on the page and in the text."""

from __future__ import annotations

from dataclasses import replace

import pytest
from sample_reports import sample_report

from amlb_ext.report.page import render_page
from amlb_ext.report.text import report_text


@pytest.fixture(scope="module")
def report():
    return sample_report(n_tasks=2, results=False)


def test_counts_are_said_where_rows_are_counted(report):
    first, *others = report.tasks
    changed = replace(first, left_out=3, replaced={"town<i>": 12, "size": 1})
    both = [
        " ".join(render_page(replace(report, tasks=(changed, *others)), {}).split())
    ]
    both.append(
        " ".join(report_text(replace(report, tasks=(changed, *others))).split())
    )
    for text in both:
        assert "3 test rows whose class no training row has are left out." in text
        assert (
            "13 test cells whose value no training row has are replaced, by column:"
            in text
        )
        assert "size 1." in text
    assert "town&lt;i&gt; 12" in both[0]
    assert "town<i>" not in both[0]


def test_nothing_is_said_where_nothing_was_changed(report):
    assert all(task.changes == "" for task in report.tasks)
    assert "no training row has" not in report_text(report)
