"""Every study by name."""

from __future__ import annotations

from benchmarks.studies.coverage import sampling
from benchmarks.studies.coverage import study as coverage
from benchmarks.studies.engine import Study
from benchmarks.studies.fidelity import study as fidelity
from benchmarks.studies.osyn import tables as osyn_tables
from benchmarks.studies.paper import certificates, tables
from benchmarks.studies.swap import cross_validation as swap_cv
from benchmarks.studies.swap import study as swap
from benchmarks.studies.swarms import tables as swarm_tables

_MODULES = (
    tables,
    certificates,
    osyn_tables,
    swarm_tables,
    fidelity,
    coverage,
    sampling,
    swap,
    swap_cv,
)
STUDIES: dict[str, Study] = {
    study.name: study for module in _MODULES for study in module.STUDIES
}


def named_studies(name: str) -> list[Study]:
    """Return the study of a name, or all of a group."""
    if name in STUDIES:
        return [STUDIES[name]]
    return [study for study in STUDIES.values() if study.group == name]
