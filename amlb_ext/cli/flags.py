"""Settings as command-line flags, derived from :class:`~amlb_ext.core.config.GenerateConfig`.

A setting's flag is its name; where two stages share a name, the stage comes first. So a new
setting has its flag, its help and its default without a line here.
"""

from __future__ import annotations

import argparse
import types
import typing
from typing import Any

import yaml
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from amlb_ext.core.config import GenerateConfig
from amlb_ext.core.errors import ConfigError

#: Settings whose plain name would not say what they are.
SPECIAL = {
    ("baseline", "model"): "baseline",
    ("baseline", "params"): "baseline-params",
    ("synthesizer", "name"): "synthesizer",
    ("search", "max_rows"): "search-max-rows",
    ("synthesizer", "max_rows"): "synthesizer-max-rows",
    ("agreement", "filter"): "agreement-filter",
    ("hardness", "floor"): "alpha-floor",
    ("source", "drop"): "drop",
    ("relations", "rules"): "relation",
    ("relations", "drop"): "drop-relation",
}
#: Settings that a flag could not hold: lists of lists.
FILE_ONLY = {("relations", "one_hot"), ("relations", "combinations")}


def settings() -> list[tuple[tuple[str, ...], FieldInfo]]:
    """Return every setting: its path in the configuration and its field."""
    found: list[tuple[tuple[str, ...], FieldInfo]] = []
    for name, entry in GenerateConfig.model_fields.items():
        if isinstance(entry.annotation, type) and issubclass(
            entry.annotation, BaseModel
        ):
            inner = entry.annotation.model_fields.items()
            found += [((name, key), field) for key, field in inner]
        else:
            found.append(((name,), entry))
    return found


def flag_name(path: tuple[str, ...]) -> str:
    """Return the flag of a setting, without dashes before it.

    Examples
    --------
    >>> flag_name(("hardness", "alpha")), flag_name(("seed",)), flag_name(("search", "sigma2"))
    ('alpha', 'seed', 'sigma2')
    """
    if path in SPECIAL:
        return SPECIAL[path]
    shared = [other for other, _ in settings() if other[-1] == path[-1]]
    words = path if len(shared) > 1 and len(path) > 1 else path[-1:]
    return "-".join(words).replace("_", "-")


def add_setting_flags(parser: argparse.ArgumentParser, stage: str = "") -> None:
    """Add a flag for every setting, or for those of one stage, grouped by stage."""
    only = stage
    groups: dict[str, Any] = {}
    for path, field in settings():
        stage = path[0] if len(path) > 1 else "suite"
        if only not in ("", stage) or path in FILE_ONLY:
            continue
        if stage not in groups:
            groups[stage] = parser.add_argument_group(f"{stage} settings")
        default = field.get_default(call_default_factory=True)
        text = field.description or ""
        if default not in (None, "", {}, (), False):
            shown = ",".join(default) if isinstance(default, tuple) else default
            text += f" (default: {shown})"
        options: dict[str, Any] = {
            "dest": ".".join(path),
            "help": text.replace("%", "%%"),
        }
        if field.annotation is bool:
            options |= {"action": argparse.BooleanOptionalAction, "default": None}
            options["help"] = options["help"] or None
        else:
            options |= {"metavar": _metavar(field.annotation), "default": None}
            if is_repeatable(field):
                options |= {"action": "append", "metavar": "COLUMN"}
            elif field.annotation == tuple[str, ...]:
                options["nargs"] = "+"
            if typing.get_origin(field.annotation) is dict:
                options["action"] = "append"
        groups[stage].add_argument(f"--{flag_name(path)}", **options)


def is_repeatable(field: FieldInfo) -> bool:
    """Whether a flag takes one whole word, commas and all, and may be given several times."""
    extra = field.json_schema_extra
    return isinstance(extra, dict) and extra.get("repeatable") is True


def _metavar(annotation: Any) -> str:
    choices = _choices(annotation)
    if choices:
        return "{" + ",".join(choices) + "}"
    if annotation == tuple[str, ...]:
        return "NAME"
    if typing.get_origin(annotation) is tuple:
        return "A,B"
    if typing.get_origin(annotation) is dict:
        return "KEY=VALUE,..."
    plain = [a for a in _members(annotation) if a is not type(None)]
    names = {int: "N", float: "X", str: "TEXT"}
    return names.get(plain[0], "YAML") if plain else "YAML"


def _members(annotation: Any) -> tuple[Any, ...]:
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        return typing.get_args(annotation)
    return (annotation,)


def _choices(annotation: Any) -> list[str]:
    for member in _members(annotation):
        if typing.get_origin(member) is typing.Literal:
            return [str(choice) for choice in typing.get_args(member)]
    return []


def layer_from(arguments: argparse.Namespace) -> dict[str, Any]:
    """Collect the flags that were given into a layer for ``build_config``.

    Raises
    ------
    ConfigError
        A value that cannot be read.
    """
    layer: dict[str, Any] = {}
    for path, field in settings():
        given = getattr(arguments, ".".join(path), None)
        if given is None:
            continue
        inner = layer
        for part in path[:-1]:
            inner = inner.setdefault(part, {})
        inner[path[-1]] = (
            given if is_repeatable(field) else _parse(given, field.annotation, path)
        )
    return layer


def _parse(given: Any, annotation: Any, path: tuple[str, ...]) -> Any:
    if typing.get_origin(annotation) is dict:
        numbers = typing.get_args(annotation)[1] is float
        return {
            k: v
            for word in given
            for k, v in _parse_mapping(word, path, numbers).items()
        }
    if isinstance(
        given, list
    ):  # names may hold commas, so only a word alone is cut at them
        return given if len(given) > 1 else _parse(given[0], annotation, path)
    if typing.get_origin(annotation) is tuple:
        return [word.strip() for word in given.split(",") if word.strip()]
    return given


def _parse_mapping(given: str, path: tuple[str, ...], numbers: bool) -> dict[str, Any]:
    """Read ``key=value,key=value`` or a YAML mapping.

    Where the values are numbers a key may hold ``=``, as the label ``<=50K``.
    """
    try:
        if given.lstrip().startswith("{"):
            value = _typed(yaml.load(given, Loader=yaml.BaseLoader))
        else:
            cut = str.rpartition if numbers else str.partition
            pairs = [cut(item, "=") for item in given.split(",") if item.strip()]
            value = {key.strip(): yaml.safe_load(text) for key, _, text in pairs}
            if not all(sign for _, sign, _ in pairs):
                value = None
    except yaml.YAMLError:
        value = None
    if not isinstance(value, dict) or not value:
        raise ConfigError(
            f"--{flag_name(path)} {given!r} is no mapping",
            "write key=value,key=value, or for keys with commas '{\"a,b\": value}'",
        )
    return value


def _typed(value: Any) -> Any:
    """Read the values of a mapping as YAML does, but leave its keys text: ``{yes: 0.4}``."""
    if isinstance(value, dict):
        return {key: _typed(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_typed(item) for item in value]
    return yaml.safe_load(value)


# Flags that several commands share.


def add_jobs_flag(parser: argparse.ArgumentParser) -> None:
    """Add ``-j``: how many processes work."""
    parser.add_argument(
        "-j",
        "--jobs",
        type=int,
        default=0,
        metavar="N",
        help="number of processes, 0 for one per core; never changes a result (default: 0)",
    )


def add_output_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags that say what is printed."""
    parser.add_argument("-q", "--quiet", action="store_true", help="print errors only")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")


def is_quiet(arguments: argparse.Namespace) -> bool:
    """Whether progress must not be shown: nothing is wanted, or JSON alone."""
    return bool(arguments.quiet or arguments.json)


def add_trust_flag(parser: argparse.ArgumentParser) -> None:
    """Add the permission to build whatever class a suite names."""
    parser.add_argument(
        "--trust-suite",
        action="store_true",
        help="fit any class that the suite names; such a class can run any code, so use this for "
        "your own suites only",
    )


def add_execution_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags that say where folds are computed and what each may cost, but ``-j``."""
    group = parser.add_argument_group(
        "execution",
        "where folds are computed and what each may cost; never changes a result",
    )
    group.add_argument(
        "--cluster",
        default="",
        metavar="WHERE",
        help="address or file of a Dask scheduler, or slurm, or pbs; -j is then the number of "
        "batch jobs (default: this machine)",
    )
    group.add_argument(
        "--cluster-option",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="option of the batch jobs, as dask-jobqueue names it, e.g. queue=short; repeat the "
        "flag for several",
    )
    group.add_argument(
        "--shared-files",
        action="store_true",
        help="the cluster's machines see the suite's folder under the same path (default: folds "
        "are sent over the network)",
    )
    group.add_argument(
        "--fold-timeout",
        type=float,
        default=0.0,
        metavar="SECONDS",
        help="longest time that a fold may take (default: no limit)",
    )
    group.add_argument(
        "--fold-memory",
        default="",
        metavar="SIZE",
        help="most memory that a fold may use, e.g. 4GB (default: no limit)",
    )
    group.add_argument(
        "--fold-retries",
        type=int,
        default=2,
        metavar="N",
        help="how often a fold is tried again after its process or worker died (default: 2)",
    )
    group.add_argument(
        "--logs",
        metavar="FOLDER",
        help="write a log of every fold there (default: logs of lost folds only, in the suite)",
    )


def execution_from(arguments: argparse.Namespace) -> Any:
    """Return the :class:`~amlb_ext.core.parallel.Execution` that the flags ask for.

    Raises
    ------
    ConfigError
        A value that cannot be used.
    """
    from amlb_ext.core.parallel.execution import Execution, parse_size

    options = {}
    for word in arguments.cluster_option:
        key, equals, value = word.partition("=")
        if not (key and equals):
            raise ConfigError(
                f"--cluster-option {word}",
                "write KEY=VALUE, e.g. --cluster-option queue=short",
            )
        options[key] = value
    return Execution(
        workers=arguments.jobs,
        cluster=arguments.cluster,
        options=options,
        shared=arguments.shared_files,
        timeout=arguments.fold_timeout,
        memory=parse_size(arguments.fold_memory) if arguments.fold_memory else 0,
        retries=arguments.fold_retries,
    )
