"""The documentation hangs together: pages are found, links lead somewhere, commands exist."""

import os
import re
import shlex
from importlib import import_module
from pathlib import Path

import pytest
import yaml

import amlb_ext
from amlb_ext.cli.command import all_commands
from amlb_ext.cli.main import parse
from amlb_ext.cli.settings import list_settings
from amlb_ext.core.config import build_config
from amlb_ext.core.unit import Kind
from amlb_ext.core.version import __version__
from amlb_ext.models.registry import parse_model
from amlb_ext.synthesizers import make_synthesizer

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
#: What `make docs` writes.
GENERATED = {"_build", "auto_tutorials", "api"}
PAGES = [
    path
    for path in sorted(DOCS.rglob("*.md"))
    if not GENERATED & set(path.relative_to(DOCS).parts)
]
#: Pages that stand where stored certificates say; the site has them elsewhere.
POINTERS = {"validity.md", "relations.md"}
SITE = [page for page in PAGES if str(page.relative_to(DOCS)) not in POINTERS]


def page_name(path):
    return str(path.relative_to(DOCS).with_suffix(""))


def test_every_page_is_in_one_table_of_contents():
    entries = ["index"]
    for page in SITE:
        text = page.read_text(encoding="utf-8")
        for block in re.findall(r"^```\{toctree\}\n(.*?)^```", text, flags=re.M | re.S):
            for line in block.splitlines():
                if line.strip() and not line.startswith(":"):
                    entry = (page.parent / line.strip()).relative_to(DOCS)
                    entries.append(str(entry))
    entries.remove("auto_tutorials/index")
    # a new page belongs into a folder of its kind, and into the toctree of that folder's index.md
    assert sorted(entries) == sorted(page_name(page) for page in SITE)


def headings(path):
    """Return the anchors of a page's headings, as GitHub and MyST make them."""
    text = re.sub(
        r"^```.*?^```", "", path.read_text(encoding="utf-8"), flags=re.M | re.S
    )
    titles = re.findall(r"^#{1,4} (.*)$", text, flags=re.M)
    slugs = [re.sub(r"[^\w\- ]", "", title.lower()) for title in titles]
    return {slug.strip().replace(" ", "-") for slug in slugs}


@pytest.mark.parametrize(
    "page", [*PAGES, ROOT / "README.md"], ids=lambda path: str(path.relative_to(ROOT))
)
def test_links_lead_somewhere(page):
    text = page.read_text(encoding="utf-8")
    text = re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        # a tutorial is a script until the site is built
        path = re.sub(
            r"auto_tutorials/index\.rst", "tutorials/GALLERY_HEADER.rst", path
        )
        path = re.sub(r"auto_tutorials/(\d\w+)\.rst", r"tutorials/\1.py", path)
        goal = Path(os.path.normpath(page.parent / path)) if path else page
        assert goal.exists(), f"{target} of {page.name}"
        if anchor:
            assert anchor in headings(goal), f"{target} of {page.name}"


def test_pages_that_messages_name_exist():
    files = [*(ROOT / "amlb_ext").rglob("*.py"), ROOT / "CHANGELOG.md"]
    files += (ROOT / "resources").rglob("*.yaml")
    for path in files:
        for name in re.findall(r"\bdocs/[\w/-]+\.md", path.read_text(encoding="utf-8")):
            assert (ROOT / name).is_file(), f"{name} in {path}"


def test_names_on_the_page_on_design_exist():
    page = (DOCS / "development" / "design.md").read_text(encoding="utf-8")
    names = re.findall(r"`([\w.]+):([\w.]+)`", page)
    assert len(names) > 60
    # commands are listed in the order of their modules' imports, which this test leaves alone
    all_commands()
    for module, name in names:
        if module != "module":
            found = import_module(f"amlb_ext.{module}")
            for part in name.split("."):
                found = getattr(found, part)
    tops = "amlb_ext|docs|tests|frameworks|resources"
    for path in re.findall(rf"`((?:{tops})/[\w./-]+)`", page):
        assert "NAME" in path or (ROOT / path).exists(), path


def test_commands_on_the_pages_parse():
    tried = 0
    for page in SITE:
        text = page.read_text(encoding="utf-8")
        for block in re.findall(r"^```console\n(.*?)^```", text, flags=re.M | re.S):
            for line in block.replace("\\\n", " ").splitlines():
                if not line.startswith("$ hardsynth ") or re.search(r"\[|--help", line):
                    continue
                words = shlex.split(re.split(" -- | > ", line[2:])[0], comments=True)
                _, found = parse(all_commands(), words[1:])
                # of series F is a forecaster
                if words[1] == "generate" and not found["series"]:
                    check_settings(build_config(found["settings"]))
                tried += 1
    assert tried > 30


def check_settings(config):
    """Raise where a suite names an F or a synthesizer that there is not."""
    make_synthesizer(config.synthesizer)
    # paths, addresses and import paths are the reader's own
    if config.baseline.model.isidentifier():
        parse_model(config.baseline, Kind.BINARY)


def test_the_reference_has_every_command_name_and_stage():
    commands = (DOCS / "reference" / "commands.md").read_text(encoding="utf-8")
    listed = re.findall(r"\{hardsynth-command\} (\w+)", commands)
    assert listed == list(all_commands())
    python = (DOCS / "reference" / "python.md").read_text(encoding="utf-8")
    names = {name for name in amlb_ext.__all__ if name != "__version__"}
    assert names <= set(re.findall(r"^   (\w+)$", python, flags=re.M))
    settings = (DOCS / "reference" / "settings.md").read_text(encoding="utf-8")
    stages = {path[0] if len(path) > 1 else "suite" for path, _ in list_settings()}
    assert set(re.findall(r"\{hardsynth-settings\} (\w+)", settings)) == stages


def test_citation_names_this_version():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["version"] == __version__
