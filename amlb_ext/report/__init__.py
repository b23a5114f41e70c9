"""The report wing: from AMLB's results to an answer.

``model`` what a report is made of · ``predictions`` predictions joined to the rows of the suite ·
``metrics`` and ``parts`` scores on each part · ``compare`` frameworks against F and each other ·
``slices`` (with ``conditions``) and ``failures`` where F fails, and who mends them ·
``charts`` what is to be seen · ``task`` one task of it · ``ranks``, ``overall``, ``matrix`` (tasks
by candidates) and ``summary`` (the answer in sentences) all tasks at once · ``build`` from a suite
and results to a ``SuiteReport`` · ``still`` (with ``inline``) a chart drawn · ``tables``,
``glossary``, ``page``, ``text``, ``amlb_csv`` and ``files`` the report shown and written ·
``notebook`` the same as data frames (``Suite``).
"""

from amlb_ext.report.build import BuiltReport, build_report
from amlb_ext.report.files import report_as_json, report_tables, write_report
from amlb_ext.report.model import (
    Chart,
    ChartSeries,
    FrameworkRanks,
    SuiteReport,
    TaskReport,
)
from amlb_ext.report.notebook import Suite
from amlb_ext.report.text import report_summary, report_text

__all__ = [
    "BuiltReport",
    "Chart",
    "ChartSeries",
    "FrameworkRanks",
    "Suite",
    "SuiteReport",
    "TaskReport",
    "build_report",
    "report_as_json",
    "report_summary",
    "report_tables",
    "report_text",
    "write_report",
]
