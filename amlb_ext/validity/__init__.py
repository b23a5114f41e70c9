"""The validity wing: what a task of a suite may be used for, by measurement.

``task_rows`` a task's files in memory · ``candidates`` models of many families · ``refits`` F
fitted again · ``reference`` labelled failures that made rows are held to · ``evaluation`` losses of
all · ``measures`` (with ``ranking_measures``,
``realism_measures`` and ``feasibility_measures``) arrays in, one measure out · ``unlabelled``
what real rows without labels add · ``task_measures`` which measures a task's certificate takes ·
``certificate`` measures, verdict and reason · ``certify`` from a task to its certificate ·
``certificate_store`` certificates kept in a suite · ``calibration`` how hard the search may
press, asked of ``held_out_parts`` of the training rows.
"""

from amlb_ext.validity.candidates import candidate_zoo
from amlb_ext.validity.certificate import Certificate, decide_verdict
from amlb_ext.validity.certificate_store import certify_suite, read_certificates
from amlb_ext.validity.certify import (
    certificates_to_json,
    certify,
    certify_rows,
)
from amlb_ext.validity.measures import Measure
from amlb_ext.validity.task_rows import TaskRows, read_task

__all__ = [
    "Certificate",
    "Measure",
    "TaskRows",
    "candidate_zoo",
    "certificates_to_json",
    "certify",
    "certify_rows",
    "certify_suite",
    "decide_verdict",
    "read_certificates",
    "read_task",
]
