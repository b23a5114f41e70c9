"""The validity wing: what a task of a suite may be used for, by measurement.

``task_rows`` a task's files in memory · ``zoo`` candidates of many families · ``null`` F fitted
again · ``evaluate`` losses of both · ``measures``, ``fidelity``, ``label_checks`` and ``realism``
arrays in, one measure out · ``certificate`` measures, verdict and reason · ``certify`` from a suite
to its certificates · ``stored`` certificates kept in a suite · ``unlabelled`` what real rows
without labels add (``unlabelled_files`` reads, ``unlabelled_gain`` measures) · ``calibrate`` how
hard the search may press · ``study`` what ranks models best, measured · ``intervals``, ``ranking``
and ``estimation`` (with ``clusters``, ``contrast``, ``powered`` and ``scores``) the statistics
they rest on, and later reports.
"""

from amlb_ext.validity.candidates import candidate_zoo
from amlb_ext.validity.certificate import Certificate, decide_verdict
from amlb_ext.validity.certificate_store import certify_suite, read_certificates
from amlb_ext.validity.certify import certificates_to_json, certify, certify_rows, certify_task
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
    "certify_task",
    "decide_verdict",
    "read_certificates",
    "read_task",
]
