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
    "suite": 3,
    "synthesizers": 4,
    "models": 4,
    "hardening": 5,
    "runner": 5,
    "publish": 5,
    "units": 6,
    "validity": 6,
    "estimate": 6,
    "pipeline": 7,
    "swap": 7,
    "difficulty": 8,
    "report": 8,
    "comparison": 9,
    "tabarena": 9,
    "forecasting": 10,
    "gate": 10,
    "cli": 11,
    "notebook": 11,
    "alias": 12,
    "__main__": 12,
}
#: package -> the only places that may import it
HEAVY = {
    "torch": {"synthesizers"},
    "openml": {"sources/openml", "publish"},
    "arff": {"sources/arff", "publish/arff"},
    "ruamel": {"runner/install"},
    "deap": {"hardening/search/deap_engine", "synthesizers/swarm/particles"},
    "skops": {"models/skops_files"},
    "matplotlib": {
        "report/ranks",
        "swap/plot",
        "report/still",
        "estimate/plot",
        "comparison/page",
        "comparison/result",
        "forecasting/pictures",
    },
    "cyclopts": {"cli"},
    "rich": set(),
    "jinja2": {"report/page", "comparison/page"},
    "scikit_posthocs": set(),
    "statsmodels": set(),
    "sdv": {"synthesizers/sdv"},
    "distributed": {"core/cluster"},
    "dask": set(),
    "loky": {"core/parallel", "core/processes"},
    "psutil": {"core/processes", "runner/processes"},
    "ctgan": set(),
    "xgboost": {"models/native"},
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


@pytest.fixture(scope="module")
def all_imports():
    """Every import of every module: (path, what, line)."""
    return [(path, *found) for path in modules() for found in imports(path)]


def test_every_module_stands_on_a_floor():
    wings = {wing(path) for path in modules()} - {"__init__"}
    assert wings <= set(FLOORS)


def test_imports_point_down(all_imports):
    upward = []
    for path, name, line in all_imports:
        here = wing(path)
        parts = name.split(".")
        if here == "__init__" or parts[0] != "amlb_ext" or len(parts) < 2:
            continue
        if parts[1] != here and FLOORS[parts[1]] >= FLOORS[here]:
            upward.append(f"{path.relative_to(PACKAGE)}:{line} imports {name}")
    assert upward == []


def test_the_package_imports_no_measurement(all_imports):
    assert not [path for path, name, _ in all_imports if name.startswith("benchmarks")]


def test_heavy_packages_stay_in_their_place(all_imports):
    out_of_place = []
    for path, name, line in all_imports:
        allowed = HEAVY.get(name.split(".")[0])
        place = path.relative_to(PACKAGE).with_suffix("").as_posix()
        if allowed is not None and not place.startswith(tuple(allowed)):
            out_of_place.append(f"{place}:{line} imports {name}")
    assert out_of_place == []


@pytest.mark.parametrize(
    ("words", "heavy"),
    [
        (["generate", "--help"], {"numpy", "pandas"}),
        (["list"], {"numpy", "pandas"}),
    ],
    ids=["help", "list"],
)
def test_what_only_prints_imports_nothing_heavy(words, heavy):
    heavy = heavy | {"torch", "scipy", "sklearn", "openml", "deap", "matplotlib"}
    code = (
        "import sys\n"
        "from amlb_ext.cli import main\n"
        f"try:\n    main({words!r})\n"
        "except SystemExit:\n    pass\n"
        f"print('HEAVY', sorted({heavy!r} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert "HEAVY []" in done.stdout
