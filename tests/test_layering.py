"""The house stands: imports point down only, and heavy packages stay in their place."""

import ast
import re
from pathlib import Path

import pytest
from commands import python

PACKAGE = Path(__file__).parents[1] / "amlb_ext"
FLOORS = {
    "core": 1,
    "amlb": 2,
    "relations": 2,
    "stats": 2,
    "tasks": 2,
    "sources": 3,
    "suite": 3,
    "models": 4,
    "synthesizers": 4,
    "hardening": 5,
    "publish": 5,
    "runner": 5,
    "units": 6,
    "estimate": 7,
    "making": 7,
    "swap": 7,
    "comparison": 8,
    "validity": 8,
    "pipeline": 9,
    "report": 10,
    "difficulty": 11,
    "gate": 11,
    "tabarena": 11,
    "cli": 12,
    "notebook": 12,
    "alias": 13,
    "__main__": 13,
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
        "report/series",
        "estimate/plot",
        "comparison/page",
        "comparison/result",
        "comparison/window_pictures",
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


def test_compare_imports_what_it_needs_and_no_more():
    code = (
        "import sys, hardsynth; hardsynth.compare\n"
        "print(sorted({name.split('.')[0] for name in sys.modules}))\n"
        "print([name for name in sys.modules if name.startswith('amlb_ext.')])"
    )
    packages, own = map(ast.literal_eval, python(code).splitlines())
    unneeded = {
        "torch",
        "openml",
        "deap",
        "statsforecast",
        "matplotlib",
        "polars",
        "yaml",
        # read at the first call: it takes longer than all that is ours
        "pydantic",
    }
    assert not unneeded & set(packages)
    wings = {name.split(".")[1] for name in own}
    assert not wings & {"suite", "runner", "report", "pipeline", "validity", "cli"}
    # 86 when this was written; each costs about a millisecond
    assert len(own) < 100


def test_heavy_packages_stay_in_their_place(all_imports):
    out_of_place = []
    for path, name, line in all_imports:
        allowed = HEAVY.get(name.split(".")[0])
        place = path.relative_to(PACKAGE).with_suffix("").as_posix()
        if allowed is not None and not place.startswith(tuple(allowed)):
            out_of_place.append(f"{place}:{line} imports {name}")
    assert out_of_place == []


def test_the_list_imports_nothing_heavy():
    """Neither does any help: tests/cli/test_main.py."""
    heavy = {"numpy", "pandas", "torch", "scipy", "sklearn", "openml", "matplotlib"}
    code = (
        "import sys\n"
        "from amlb_ext.cli import main\n"
        "main(['list'])\n"
        f"print('HEAVY', sorted({heavy!r} & set(sys.modules)))"
    )
    assert "HEAVY []" in python(code)


def test_the_page_on_design_has_these_floors():
    page = (PACKAGE.parent / "docs/development/design.md").read_text(encoding="utf-8")
    shown = {}
    lines = re.findall(
        r"^\| (\d+) \| `(\w+)` \| .+ \| (.+) \| (.*)\|$", page, flags=re.M
    )
    for floor, name, below, heavy in lines:
        shown[name] = (int(floor), below, set(re.findall(r"\w+", heavy)))
    expected = {}
    for name, floor in FLOORS.items():
        below = {1: "none", 2: "1"}.get(floor, f"1 to {floor - 1}")
        heavy = set()
        for package, places in HEAVY.items():
            if any(place.split("/")[0] == name for place in places):
                heavy.add(package)
        expected[name] = (floor, below, heavy)
    assert shown == expected
