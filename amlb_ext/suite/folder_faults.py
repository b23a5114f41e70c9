"""What every kind of suite is held to: its own files as they were written, and no code but ours.

AMLB imports what stands in ``extensions/`` and does what ``frameworks.yaml`` and ``config.yaml``
say. A seal only tells that a manifest is the one that was sealed, by whom nobody knows. So code and
settings are right not because a manifest lists them but because they are what this version of
hardsynth writes there; what a user may add, a framework or a constraint, is told apart and named.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from amlb_ext.amlb.frameworks import AMLB_CONSTRAINTS, AMLB_FRAMEWORKS
from amlb_ext.core.assets import asset_path
from amlb_ext.core.errors import SuiteError
from amlb_ext.core.estimators import find_unlisted
from amlb_ext.core.files import TEMPORARY_SUFFIX, sha256_file
from amlb_ext.core.paths import is_plain_name
from amlb_ext.core.yaml_reader import read_yaml
from amlb_ext.suite.layout import (
    INTEGRATION,
    Layout,
    files_below,
    is_note,
    is_written_later,
)
from amlb_ext.suite.shared_files import (
    CODE_ELSEWHERE,
    has_text,
    is_own_entry,
    read_suite_part,
    sha256_text,
)

#: Begins sentences that tell of something odd but harmless.
WARNING = "warning: "
#: What a sentence says of a file whose bytes are not those that were recorded.
CHANGED = "was changed after it was written"

#: What a suite states of a framework. AMLB knows more keys, such as ``setup_cmd``, which it runs.
_FRAMEWORK_KEYS = {"module", "version", "description", "project", "params", "extends"}
#: Keys that AMLB hands to a shell, or that let it run elsewhere.
_SHELL_KEYS = frozenset({"setup_cmd", "setup_script", "setup_args", "setup_env"})
#: A version, which AMLB hands to a shell, too.
_VERSION = re.compile(r"[\w.+#/@~=-]{0,100}")
#: What AMLB knows of a constraint, all of it numbers but two words.
_CONSTRAINT_KEYS = {
    "folds",
    "max_runtime_seconds",
    "cores",
    "max_mem_size_mb",
    "min_vol_size_mb",
    "ec2_instance_type",
    "ec2_volume_type",
}
#: What Python, or the set-up of a framework, puts beside the code of an integration.
_BY_SET_UP = re.compile(
    r"(extensions/([^/]+)/(?:.*/)?(?:__pycache__|\.setup|venv|lib|programs))/.+"
)


@dataclass(frozen=True, kw_only=True)
class SuiteContents:
    """What stands in a suite, whatever kind it is of.

    Attributes
    ----------
    layout : Layout
    files : mapping of str to str
        The sha256 of each file, as the manifest has it.
    needed : frozenset of str
        Files that the manifest must list.
    may_list : callable
        Whether the manifest may list a file of that path beside those that it must.
    texts : mapping of Path to str
        Files that must be what follows from the manifest: configuration, definitions.
    unlisted : frozenset of str
        Files that have no checksum, the manifest among them.
    baseline : str
        Class of F, where the suite names one of the user's own.
    constraints : str
        What hardsynth writes into ``constraints.yaml``; empty where that is not known.
    """

    layout: Layout
    files: Mapping[str, str]
    needed: frozenset[str]
    may_list: Callable[[str], bool]
    texts: Mapping[Path, str]
    unlisted: frozenset[str]
    baseline: str = ""
    constraints: str = ""
    frameworks: dict[str, dict[str, Any]] | None = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "frameworks", _read_entries(self.layout.frameworks))

    @property
    def own_modules(self) -> set[str]:
        """The folders of ``extensions/`` that hold the code of the user's frameworks."""
        folders = set()
        for name, entry in (self.frameworks or {}).items():
            package, _, folder = str(entry.get("module", "")).partition(".")
            folder = folder.split(".")[0]
            if is_own_entry(name) and package == "extensions" and is_plain_name(folder):
                folders.add(folder)
        return folders - _packaged_modules()


def folder_faults(contents: SuiteContents) -> Iterator[str]:
    """Yield one sentence for each file that is missing, changed or foreign, and for foreign code.

    Those that begin with :data:`WARNING` are harmless, or the user's own.
    """
    damaged = damaged_files(contents.layout, contents.files)
    yield from damaged.values()
    for relative in sorted(contents.needed - set(contents.files)):
        yield f"{relative} has no checksum in the manifest."
    yield from _strange_entries(contents)
    yield from _foreign_files(contents)
    for path, text in contents.texts.items():
        relative = contents.layout.relative(path)
        if relative not in damaged and not has_text(path, text):
            yield f"{relative} is not what the manifest describes."
    yield from _framework_faults(contents)
    yield from _constraint_faults(contents, damaged)


def damaged_files(layout: Layout, files: Mapping[str, str]) -> dict[str, str]:
    """Return one sentence for each file of a manifest that is missing or changed, by its path."""
    present = set(files_below(layout.root))
    sentences = {}
    for relative, digest in sorted(files.items()):
        path = layout.at(relative)
        # entries of the user's own may stand behind those of the suite
        may_grow = path in (layout.frameworks, layout.constraints)
        if relative not in present:
            sentences[relative] = f"{relative} is missing."
        elif sha256_file(path) != digest and not (
            may_grow and sha256_text(read_suite_part(path)) == digest
        ):
            sentences[relative] = f"{relative} {CHANGED} (its sha256 differs)."
    return sentences


def _strange_entries(contents: SuiteContents) -> Iterator[str]:
    """Yield the files that the manifest lists and no suite has, and code that is not ours."""
    layout = contents.layout
    known = set(contents.needed)
    for path in (layout.frameworks, layout.constraints, *contents.texts):
        known.add(layout.relative(path))
    for relative, digest in sorted(contents.files.items()):
        if relative.startswith("extensions/"):
            # a text for readers is no code
            path = CODE_ELSEWHERE.get(relative) or asset_path("frameworks").joinpath(
                *relative.split("/")[1:]
            )
            is_ours = path.is_file() and sha256_file(path) == digest
            if not (relative.endswith(".md") or is_ours):
                yield (
                    f"{relative} is other code than that of this version of hardsynth, and AMLB "
                    "would run it: read it, or make the suite again."
                )
        elif not (relative in known or contents.may_list(relative)):
            yield f"{relative} stands in the manifest, and is no file of a suite."


def _packaged_modules() -> set[str]:
    return {path.name for path in asset_path("frameworks").iterdir()}


def _foreign_files(contents: SuiteContents) -> Iterator[str]:
    """Yield the files that are no part of the suite; folders that AMLB filled once each."""
    made = set()
    known = contents.unlisted | set(contents.files)
    known |= {contents.layout.relative(path) for path in contents.texts}
    own_modules = contents.own_modules
    for relative in sorted(set(files_below(contents.layout.root)) - known):
        if is_written_later(relative):
            continue
        steps = relative.split("/")
        module = steps[1] if steps[0] == "extensions" and len(steps) > 2 else ""
        # AMLB notes beside any framework that it is set up; nothing is run from there
        is_harmless = steps[-2:-1] in (["__pycache__"], [".setup"])
        has_set_up = f"extensions/{module}/setup.sh" in contents.files
        is_own = module in own_modules
        by_set_up = _BY_SET_UP.fullmatch(relative)
        if by_set_up and (is_harmless or has_set_up or is_own):
            made.add(by_set_up[1])
        elif is_own:
            yield (
                f"{WARNING}{relative} belongs to a framework of the user's own; read it where the "
                "suite is not yours."
            )
        else:
            # a run that was killed may leave its temporary files; the next one sweeps them
            is_text = is_note(relative) or relative.endswith(TEMPORARY_SUFFIX)
            yield f"{WARNING if is_text else ''}{relative} is not part of the suite."
    for folder in sorted(made):
        yield (
            f"{WARNING}{folder} was made beside the code that it belongs to, by Python or a "
            "set-up; remove it where the suite is not yours."
        )


def _read_entries(path: Path) -> dict[str, dict[str, Any]] | None:
    """Return the entries of a YAML file by name; None where it cannot be read."""
    # read with limits: the file may be anybody's
    try:
        content = read_yaml(path, SuiteError) or {}
        return {str(name): dict(entry) for name, entry in content.items()}
    except (OSError, ValueError, TypeError, AttributeError, SuiteError):
        return None


def _framework_faults(contents: SuiteContents) -> Iterator[str]:
    """Yield what hardsynth would not write into ``frameworks.yaml``: AMLB and `score` run it."""
    where = contents.layout.relative(contents.layout.frameworks)
    if contents.frameworks is None:
        if contents.layout.frameworks.is_file():
            yield f"{where} cannot be read."
        return
    packaged = _packaged_modules()
    for name, entry in sorted(contents.frameworks.items()):
        module, parent = entry.get("module"), entry.get("extends")
        package, _, folder = str(module or "").partition(".")
        is_ours = package == "extensions" and folder in packaged
        if not is_plain_name(name):
            yield f"{where} names the framework {name!r}, which is not a plain name."
        if not _VERSION.fullmatch(str(entry.get("version", ""))):
            yield f"{where}: {name} has a version that runs a command of a shell."
        for key in sorted(_SHELL_KEYS & set(entry)):
            # whose entry it is nobody can tell, so what runs a shell is damage in any
            yield f"{where}: {name} has {key!r}, which runs a command of a shell."
        if is_own_entry(name):
            yield (
                f"{WARNING}{where}: {name} is an entry of the user's own; AMLB runs it, so read it "
                f"where the suite is not yours.{_replaced(name, AMLB_FRAMEWORKS)}"
            )
            # what passes for a part of our code would be imported with it
            passes_for_ours = folder.split(".")[0] in packaged
            may_run = package == "frameworks" or (not module and parent)
            if package == "extensions":
                may_run = is_ours or not passes_for_ours
            if not may_run:
                yield (
                    f"{where}: {name} is run by {module!r}, which is no module of AMLB or of the "
                    "suite's own."
                )
        else:
            # AMLB's own frameworks may be built upon, the user's may not pass for ours
            is_on_amlb = module is None and parent and parent not in contents.frameworks
            if not (is_ours or is_on_amlb):
                yield f"{where}: {name} is run by {module or parent!r}, not by hardsynth."
            for key in sorted(set(entry) - _FRAMEWORK_KEYS - _SHELL_KEYS):
                yield f"{where}: {name} has {key!r}, which no framework of a suite has."
        if module == INTEGRATION:
            yield from _unlisted_models(where, name, entry, contents.baseline)
        elif isinstance(params := entry.get("params"), dict) and "python" in params:
            yield (
                f"{WARNING}{where}: {name} runs programs by {params['python']!r}; look at it where "
                "the suite is not yours."
            )


def _replaced(name: str, names: Collection[str]) -> str:
    """Return the sentence that an entry has the name of one of AMLB's; empty where it has not."""
    if name.lower() not in names:
        return ""
    return " It stands in place of AMLB's own of that name; give it another one."


def _unlisted_models(
    where: str, name: str, entry: Mapping[str, Any], baseline: str
) -> Iterator[str]:
    """Yield the models of a framework that are not on the list of what a suite may name."""
    params = entry.get("params")
    if not isinstance(params, dict):
        return
    for kind in ("classifier", "regressor"):
        path = str(params.get(kind) or "")
        model_params = params.get(f"{kind}_params") or {}
        fault = find_unlisted(path, model_params) if path else ""
        if not fault:
            continue
        # harmless where the suite was made with a baseline of the user's own; ":" parts it from
        # its parameters
        prefix = WARNING if path == baseline.partition(":")[0] else ""
        yield (
            f"{prefix}{where}: {name} names {fault}, which is not on the list of what a suite may "
            "name; hardsynth score and certify run it only with --trust-suite."
        )


def _constraint_faults(
    contents: SuiteContents, damaged: Collection[str]
) -> Iterator[str]:
    """Yield what no constraint of AMLB has, and those of ours that are not what is written today.

    Constraints of the user's own may be added.
    """
    path = contents.layout.constraints
    where = contents.layout.relative(path)
    read = _read_entries(path)
    if read is None and path.is_file():
        yield f"{where} cannot be read."
    entries = read or {}
    for name, entry in sorted(entries.items()):
        if not is_plain_name(name):
            yield f"{where} names the constraint {name!r}, which is not a plain name."
        if replaced := _replaced(name, AMLB_CONSTRAINTS):
            yield f"{WARNING}{where}: {name} is a constraint of the user's own.{replaced}"
        for key, value in sorted(entry.items(), key=lambda pair: str(pair[0])):
            is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
            is_word = str(key).startswith("ec2_") and is_plain_name(value)
            if key not in _CONSTRAINT_KEYS or not (is_number or is_word):
                yield f"{where}: {name} has {key!r}: {value!r}, which no constraint of AMLB has."
    if where in damaged or not contents.constraints:
        return
    written = yaml.safe_load(contents.constraints)
    ours = {name for name in entries if not is_own_entry(name)}
    for name in sorted(ours | set(written)):
        came, wanted = entries.get(name), written.get(name)
        if came != wanted:
            yield (
                f"{where}: {name} is {came or 'missing'}, this version of hardsynth writes "
                f"{wanted or 'no such constraint'}; put that back, and give a constraint of your "
                "own another name."
            )
