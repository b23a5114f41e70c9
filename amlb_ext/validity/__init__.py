"""The validity wing: what a task of a suite may be used for, by measurement.

``task_rows`` a task's files in memory, and F fitted again · ``candidates`` models of many
families · ``reference`` labelled failures that made rows are held to · ``task_evaluation`` losses
of all on the rows of a task · ``evaluation`` from losses to measures, verdict and certificate, for
windows of series, too · ``measures`` (with ``ranking_measures`` and ``realism_measures``) arrays
in, one measure out · ``task_measures`` what files say without a model · ``certificate`` the record,
its rules and its text · ``certify`` from the tasks of a suite to certificates that stand beside
them · ``calibration`` how hard the search may press, asked of ``held_out_parts`` of the training
rows.
"""

from amlb_ext.validity.candidates import candidate_zoo
from amlb_ext.validity.certificate import Certificate, decide_verdict
from amlb_ext.validity.certify import certify_suite, read_certificates
from amlb_ext.validity.measures import Measure
from amlb_ext.validity.task_rows import TaskRows, read_task

__all__ = [
    "Certificate",
    "Measure",
    "TaskRows",
    "candidate_zoo",
    "certify_suite",
    "decide_verdict",
    "read_certificates",
    "read_task",
]
