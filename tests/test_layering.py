"""The house stands: imports point down only, and heavy packages stay in their place."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "amlb_ext"
FLOORS = {
    "core": 1,
    "amlb": 2,
    "relations": 2,
    "stats": 2,
    "tasks": 2,
    "sources": 3,
    "synthesizers": 3,
    "suite": 3,
    "hardening": 4,
    "runner": 4,
    "publish": 4,
    "validity": 5,
    "estimate": 5,
    "pipeline": 6,
    "report": 6,
    "swarm": 6,
    "comparison": 7,
    "difficulty": 7,
    "experiments": 7,
    "forecasting": 8,
    "gate": 8,
    "tabarena": 7,
    "cli": 9,
    "notebook": 9,
    "alias": 10,
    "__main__": 10,
}
#: package -> the only places that may import it
HEAVY = {
    "torch": {"synthesizers"},
    "openml": {"sources/openml", "publish"},
    "arff": {"sources/arff", "publish/arff"},
    "ruamel": {"runner/install"},
    "deap": {"hardening/search/deap_engine", "swarm/cma_search"},
    "skops": {"hardening/baseline/skops_files"},
    "matplotlib": {
        "experiments/fidelity/plot",
        "report/still",
        "report/rank_bars",
        "experiments/paper/figures",
        "experiments/swarms/pictures",
        "estimate/plot",
        "comparison/plot",
        "comparison/result",
        "forecasting/pictures",
        "forecasting/result",
    },
    "plotly": {"report/interactive"},
    "shtab": {"cli/completion"},
    "jinja2": {"report/page", "experiments/page", "comparison/page"},
    "scikit_posthocs": set(),
    "statsmodels": set(),
    "sdv": {"synthesizers/sdv"},
    "distributed": {"core/parallel/batch", "core/parallel/cluster"},
    "dask": set(),
    "dask_jobqueue": {"core/parallel/batch"},
    "loky": {"core/parallel/execution", "core/parallel/processes"},
    "psutil": {"core/parallel/processes"},
    "ctgan": set(),
    "xgboost": set(),
    "amlb": set(),
}


def modules():
    return sorted(PACKAGE.rglob("*.py"))


def wing(path: Path) -> str:
    return path.relative_to(PACKAGE).with_suffix("").parts[0]


def imports(path: Path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno} uses a relative import"
            yield node.module, node.lineno


def test_every_module_stands_on_a_floor():
    wings = {wing(path) for path in modules()} - {"__init__"}
    assert wings <= set(FLOORS)


@pytest.mark.parametrize(
    "path", modules(), ids=lambda p: p.relative_to(PACKAGE).as_posix()
)
def test_imports_point_down(path):
    if wing(path) == "__init__":
        return
    here = wing(path)
    for name, line in imports(path):
        parts = name.split(".")
        if parts[0] != "amlb_ext" or len(parts) < 2 or parts[1] == here:
            continue
        assert FLOORS[parts[1]] < FLOORS[here], (
            f"{path.name}:{line}: {here} imports {name}"
        )


@pytest.mark.parametrize(
    "path", modules(), ids=lambda p: p.relative_to(PACKAGE).as_posix()
)
def test_heavy_packages_stay_in_their_place(path):
    place = path.relative_to(PACKAGE).with_suffix("").as_posix()
    for name, line in imports(path):
        allowed = HEAVY.get(name.split(".")[0])
        if allowed is not None:
            assert any(place.startswith(a) for a in allowed), (
                f"{place}:{line} imports {name}"
            )


def test_help_imports_nothing_heavy():
    code = (
        "import sys\n"
        "from amlb_ext.cli import main\n"
        "try:\n    main(['generate', '--help'])\n"
        "except SystemExit:\n    pass\n"
        "heavy = {'torch', 'numpy', 'pandas', 'sklearn', 'openml', 'deap'} & set(sys.modules)\n"
        "print('HEAVY', sorted(heavy))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert "HEAVY []" in done.stdout
