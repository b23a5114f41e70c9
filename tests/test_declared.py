"""What is imported is declared, and the list of lowest versions is that of the declaration."""

import ast
import sys
from importlib import metadata

from lowest_versions import ROOT, declared, pins

#: Ours, and what is there only inside AMLB.
OURS = {"amlb_ext", "amlb", "benchmarks", "frameworks", "pipeline"}


def imported():
    names = {}
    for folder in ("amlb_ext", "benchmarks", "frameworks"):
        for path in (ROOT / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Import):
                    modules = [alias.name for alias in node.names]
                elif (
                    isinstance(node, ast.ImportFrom) and node.module and not node.level
                ):
                    modules = [node.module]
                else:
                    continue
                names |= {name.partition(".")[0]: path for name in modules}
    return names


def test_every_import_is_declared():
    owners = metadata.packages_distributions()
    known = {name.replace("_", "-") for name in declared()}
    missing = {}
    for name, path in imported().items():
        if name in OURS or name in sys.stdlib_module_names:
            continue
        packages = {one.lower().replace("_", "-") for one in owners.get(name, [name])}
        if not packages & known:
            missing[name] = str(path.relative_to(ROOT))
    assert missing == {}


def test_the_list_of_lowest_versions_is_that_of_the_declaration():
    text = (ROOT / "resources" / "lowest-versions.txt").read_text(encoding="utf-8")
    command = "python tests/helpers/lowest_versions.py > resources/lowest-versions.txt"
    assert text == pins(), f"run: {command}"
