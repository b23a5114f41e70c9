"""The suite wing: a suite on disk, written, read and checked; it knows nothing of models.

``layout`` where everything stands, and safe names · ``texts`` which texts survive AMLB ·
``columns`` and ``coding`` a task's values in CSV and back · ``contract`` AMLB's loader rules
replayed · ``unknown`` what is written where no training row has a value · ``records`` what a
finished fold and task are · ``writer`` writes folds · ``definition`` AMLB's YAML files · ``pair``
the hard twin of an existing benchmark · ``finish`` completes a suite · ``manifest`` its list of
contents · ``reader`` opens a finished suite · ``copies`` what its made rows repeat · ``verify``
checks one.
"""

from amlb_ext.amlb.loader_rules import check_pair
from amlb_ext.suite.coding import Coding, ColumnCoding
from amlb_ext.suite.definition import metrics_for
from amlb_ext.suite.finish import check_twin, finish_suite
from amlb_ext.suite.fold_record import FoldRecord, PartRecord, SuiteTask
from amlb_ext.suite.layout import MAIN_SUFFIXES, SUFFIXES, Layout, amlb_name, safe_names
from amlb_ext.suite.manifest import AmlbTask, Manifest, SuiteRequest, TaskEntry, read_manifest
from amlb_ext.suite.reader import Suite
from amlb_ext.suite.twin import Original, changed_metrics, source_folds_text
from amlb_ext.suite.unseen_values import FittedRows, Judge, fit_to_train
from amlb_ext.suite.verify import WARNING, verify_suite
from amlb_ext.suite.writer import Part, Rows, begin_suite, read_finished_fold, write_fold

__all__ = [
    "MAIN_SUFFIXES",
    "SUFFIXES",
    "WARNING",
    "AmlbTask",
    "Coding",
    "ColumnCoding",
    "FittedRows",
    "FoldRecord",
    "Judge",
    "Layout",
    "Manifest",
    "Original",
    "Part",
    "PartRecord",
    "Rows",
    "Suite",
    "SuiteRequest",
    "SuiteTask",
    "TaskEntry",
    "amlb_name",
    "begin_suite",
    "changed_metrics",
    "check_pair",
    "check_twin",
    "finish_suite",
    "fit_to_train",
    "metrics_for",
    "read_finished_fold",
    "read_manifest",
    "safe_names",
    "source_folds_text",
    "verify_suite",
    "write_fold",
]
