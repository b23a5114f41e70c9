"""The report wing: from AMLB's results to an answer.

``model`` what a report is made of, of any suite · ``predictions`` predictions joined to the rows of
a suite · ``metrics`` and ``parts`` scores on each part · ``compare`` frameworks against F and each
other · ``charts`` what is to be
seen · ``task`` one task of it · ``ranks`` and ``overall`` (the matrix of tasks by candidates, and
the answer in a sentence) all tasks at once · ``build`` from a suite and results to a
``SuiteReport`` · ``results_folder`` (with ``results_task``) the same of ordinary results, one
framework as F · ``wins`` every two frameworks over all tasks, and what is
left to gain · ``series`` of series, ``runs`` of a folder of tasks without F, ``suites`` of
any of them · ``coders`` what only coding models have · ``still`` (with ``inline``) a chart drawn ·
``tables``, ``glossary``, ``page`` and ``text`` the report shown and
written · ``notebook`` the same as data frames (``Suite``).
"""

from amlb_ext.report.build import build_report
from amlb_ext.report.page import report_as_json, write_report
from amlb_ext.report.tables import report_tables
from amlb_ext.report.text import report_summary, report_text

__all__ = [
    "build_report",
    "report_as_json",
    "report_summary",
    "report_tables",
    "report_text",
    "write_report",
]
