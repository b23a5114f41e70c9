"""Suites for TabArena: its models on our rows, its predictions in our report.

``export`` writes a suite's tasks as tables that the two scripts of ``resources/tabarena``, copied
beside them, make TabArena's user tasks of. Nothing of TabArena is imported here: it lives in an
environment of its own.

Public names: :func:`~amlb_ext.tabarena.export.export_for_tabarena`.
"""

from amlb_ext.tabarena.export import (
    TabArenaExport,
    export_for_tabarena,
    export_summary,
)

__all__ = ["TabArenaExport", "export_for_tabarena", "export_summary"]
