"""The suite wing: a suite on disk, written, read and checked; it knows nothing of models.

``layout`` where everything stands, and safe names · ``unseen_values`` what is written where no
training row has a value · ``fold_record`` what a finished fold and task are · ``writer`` writes
folds, those from other machines, too · ``definition`` AMLB's YAML files · ``twin`` the hard twin of
an existing benchmark · ``shared_files`` what belongs to no fold, a user's own entries among it ·
``finish`` completes a suite · ``manifest`` its list of contents, ``series_manifest`` that of long
tables, ``task_folder`` that of tasks that nothing was made hard of, ``repeatable`` what both keep
for a repair · ``fold_notes`` what happened in folds · ``reader`` opens a finished suite of any kind
· ``copy_counts`` what its made rows repeat · ``contradictions`` what its parts say otherwise than
each other · ``folder_faults`` and ``verify`` check one · ``read_record`` and ``sealed_json``
records as JSON.
"""

from amlb_ext.amlb.coding import Coding, ColumnCoding
from amlb_ext.amlb.loader_rules import check_pair
from amlb_ext.suite.definition import metrics_for
from amlb_ext.suite.finish import check_twin, finish_suite
from amlb_ext.suite.fold_record import FoldRecord, SuiteTask
from amlb_ext.suite.folder_faults import WARNING
from amlb_ext.suite.layout import MAIN_SUFFIXES, SUFFIXES, Layout, amlb_name, safe_names
from amlb_ext.suite.manifest import (
    AmlbTask,
    SuiteRequest,
    TableManifest,
    TaskEntry,
)
from amlb_ext.suite.reader import Suite, SuiteFiles, open_suite
from amlb_ext.suite.twin import Original, changed_metrics, source_folds_text
from amlb_ext.suite.unseen_values import FittedRows, fit_to_train
from amlb_ext.suite.verify import verify_suite
from amlb_ext.suite.writer import (
    Part,
    Rows,
    begin_suite,
    read_finished_fold,
    write_fold,
)

__all__ = [
    "MAIN_SUFFIXES",
    "SUFFIXES",
    "WARNING",
    "AmlbTask",
    "Coding",
    "ColumnCoding",
    "FittedRows",
    "FoldRecord",
    "Layout",
    "Original",
    "Part",
    "Rows",
    "Suite",
    "SuiteFiles",
    "SuiteRequest",
    "SuiteTask",
    "TableManifest",
    "TaskEntry",
    "amlb_name",
    "begin_suite",
    "changed_metrics",
    "check_pair",
    "check_twin",
    "finish_suite",
    "fit_to_train",
    "metrics_for",
    "open_suite",
    "read_finished_fold",
    "safe_names",
    "source_folds_text",
    "verify_suite",
    "write_fold",
]
