"""Settings as command-line flags, derived from :class:`~amlb_ext.core.config.GenerateConfig`.

The flag of a setting is its name; where two stages share a name, the stage comes first. So a new
setting gets its flag, its help and its default without a line here.
"""

from __future__ import annotations

import argparse
import types
import typing
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

import yaml
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from amlb_ext.cli.numbers import real_number, whole_number
from amlb_ext.core.config import GenerateConfig
from amlb_ext.core.errors import ConfigError
from amlb_ext.core.yaml_reader import read_value

#: Where a setting stands in the configuration: its stage and its name, or its name alone.
SettingPath: TypeAlias = tuple[str, ...]

#: Settings whose plain name would not say what they are.
SPECIAL = {
    ("baseline", "model"): "baseline",
    ("baseline", "params"): "baseline-params",
    ("synthesizer", "name"): "synthesizer",
    ("search", "max_rows"): "search-max-rows",
    ("synthesizer", "max_rows"): "synthesizer-max-rows",
    ("hardness", "floor"): "alpha-floor",
    ("source", "drop"): "drop",
    ("source", "read_as"): "as",
    ("relations", "rules"): "relation",
    ("relations", "drop"): "drop-relation",
}
#: Settings that a flag cannot hold: lists of lists.
FILE_ONLY = {("relations", "one_hot"), ("relations", "combinations")}


@cache
def list_settings() -> tuple[tuple[SettingPath, FieldInfo], ...]:
    """Return every setting: its path in the configuration and its field."""
    settings: list[tuple[SettingPath, FieldInfo]] = []
    for name, field in GenerateConfig.model_fields.items():
        annotation = field.annotation
        if isinstance(annotation, type) and issubclass(annotation, BaseModel):
            for inner_name, inner_field in annotation.model_fields.items():
                settings.append(((name, inner_name), inner_field))
        else:
            settings.append(((name,), field))
    return tuple(settings)


@cache
def flag_name(path: SettingPath) -> str:
    """Return the flag of a setting, without the dashes before it.

    Examples
    --------
    >>> flag_name(("hardness", "alpha")), flag_name(("seed",)), flag_name(("search", "copies"))
    ('alpha', 'seed', 'copies')
    """
    if path in SPECIAL:
        return SPECIAL[path]
    # A name that one stage alone has needs no stage before it.
    namesakes = [other for other, _ in list_settings() if other[-1] == path[-1]]
    parts = path if len(namesakes) > 1 else path[-1:]
    return "-".join(parts).replace("_", "-")


#: How the columns of a table are read.
READING_SETTINGS = frozenset(
    {
        ("source", "drop"),
        ("source", "read_as"),
        ("source", "sep"),
        ("source", "decimal"),
    }
)

#: What keeps rows of a table together or in order when they are split.
ORDER_SETTINGS = frozenset(
    {
        ("split", "time"),
        ("split", "group"),
        ("split", "cluster_by"),
        ("split", "gap"),
    }
)


def add_setting_flags(
    parser: argparse.ArgumentParser,
    only_stage: str | None = None,
    *,
    only: Collection[SettingPath] | None = None,
    letters: Mapping[SettingPath, str] | None = None,
) -> None:
    """Add a flag for every setting, for those of one stage, or for those named.

    Parameters
    ----------
    parser : ArgumentParser
    only_stage : str, optional
    only : collection of SettingPath, optional
    letters : mapping of SettingPath to str, optional
        Short flags.
    """
    groups: dict[str, Any] = {}
    for path, field in list_settings():
        stage = path[0] if len(path) > 1 else "suite"
        if only_stage not in (None, stage) or path in FILE_ONLY:
            continue
        if only is not None and path not in only:
            continue
        if stage not in groups:
            groups[stage] = parser.add_argument_group(f"{stage} settings")
        names = [(letters or {}).get(path), f"--{flag_name(path)}"]
        options = _flag_options(path, field)
        groups[stage].add_argument(*filter(None, names), **options)


def _flag_options(path: SettingPath, field: FieldInfo) -> dict[str, Any]:
    """Return the arguments of ``add_argument`` for a setting."""
    options: dict[str, Any] = {
        "dest": ".".join(path),
        "help": _help_text(field),
        # A flag that is not given must leave the layers below it as they are.
        "default": None,
    }
    if field.annotation is bool:
        return options | {"action": argparse.BooleanOptionalAction}
    options["metavar"] = _metavar(field)
    if is_repeatable(field) or _is_mapping(field.annotation):
        options["action"] = "append"
    elif field.annotation == tuple[str, ...]:
        options["nargs"] = "+"
    return options


def _help_text(field: FieldInfo) -> str:
    """Return a setting's description and, unless it is empty or off, its default."""
    text = field.description or ""
    default = field.get_default(call_default_factory=True)
    if default is True:
        text += " (default: on)"
    elif isinstance(default, tuple) and default:
        text += f" (default: {','.join(default)})"
    elif default not in (None, "", {}, (), False):
        text += f" (default: {default})"
    # argparse formats help texts with the operator %
    return text.replace("%", "%%")


def is_repeatable(field: FieldInfo) -> bool:
    """Whether a flag takes one whole word, commas and all, and may be given several times."""
    return _extra(field).get("repeatable") is True


def _extra(field: FieldInfo) -> dict[str, Any]:
    """Return what a field says of its flag beside the description."""
    extra = field.json_schema_extra
    return extra if isinstance(extra, dict) else {}


def _is_mapping(annotation: Any) -> bool:
    is_record = isinstance(annotation, type) and issubclass(annotation, BaseModel)
    return is_record or typing.get_origin(annotation) is dict


def _metavar(field: FieldInfo) -> str:
    """Return what stands for a flag's value in ``--help``."""
    extra = _extra(field)
    if "metavar" in extra:
        return str(extra["metavar"])
    annotation = field.annotation
    # Not argparse's own `choices`: pydantic checks the value, for YAML files as well.
    choices = _choices(annotation)
    if choices:
        return "{" + ",".join(choices) + "}"
    # The choices of a list of words are too long to print.
    if typing.get_origin(annotation) is tuple:
        return "A,B"
    if _is_mapping(annotation):
        return "KEY=VALUE,..."
    names = {int: "N", float: "X", str: "TEXT"}
    for member in _members(annotation):
        if member in names:
            return names[member]
    return "YAML"


def _members(annotation: Any) -> tuple[Any, ...]:
    """Return the alternatives of a union, or the one type itself."""
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        return typing.get_args(annotation)
    return (annotation,)


def _choices(annotation: Any) -> list[str]:
    """Return the words of a ``Literal``, optional or not; none for other types."""
    for member in _members(annotation):
        if typing.get_origin(member) is typing.Literal:
            return [str(choice) for choice in typing.get_args(member)]
    return []


def layer_from(arguments: argparse.Namespace) -> dict[str, Any]:
    """Collect the flags that the user gave into a layer for ``build_config``.

    Raises
    ------
    ConfigError
        A value that cannot be read.
    """
    layer: dict[str, Any] = {}
    for path, field in list_settings():
        # The destination of a flag has dots, so it is no attribute that one can type.
        value = getattr(arguments, ".".join(path), None)
        if value is None:
            continue
        if not is_repeatable(field):
            value = _parse_value(value, field.annotation, path)
        stage = layer
        for part in path[:-1]:
            stage = stage.setdefault(part, {})
        stage[path[-1]] = value
    return layer


def _parse_value(value: Any, annotation: Any, path: SettingPath) -> Any:
    """Return a flag's value as the setting takes it; pydantic converts numbers later."""
    if _is_mapping(annotation):
        value_type = (typing.get_args(annotation) or (Any, Any))[1]
        # a number or one of a few words holds no "=", so a key may
        splits_last = value_type is float or bool(_choices(value_type))
        merged: dict[str, Any] = {}
        for text in value:
            merged |= _parse_mapping(text, path, splits_last=splits_last)
        return merged
    if isinstance(value, list):
        # Column names may hold commas, so only a list of one text is split at them.
        if len(value) > 1:
            return value
        value = value[0]
    if typing.get_origin(annotation) is tuple:
        return [item.strip() for item in value.split(",") if item.strip()]
    return value


def _parse_mapping(
    text: str, path: SettingPath, *, splits_last: bool
) -> dict[str, Any]:
    """Read ``key=value,key=value`` or a YAML mapping."""
    try:
        # BaseLoader keeps all texts: SafeLoader would read the key `yes` as True.
        if text.lstrip().startswith("{"):
            mapping = _parse_values(yaml.load(text, Loader=yaml.BaseLoader))
        else:
            mapping = _split_pairs(text, splits_last=splits_last)
    except yaml.YAMLError:
        mapping = None
    if not isinstance(mapping, dict) or not mapping:
        raise ConfigError(
            f"--{flag_name(path)} {text!r} is not a mapping",
            "write key=value,key=value, or for keys with commas '{\"a,b\": value}'",
        )
    return mapping


def _split_pairs(text: str, *, splits_last: bool) -> dict[str, Any] | None:
    """Return the pairs of ``key=value,key=value``; None where an item has no ``=``.

    A key may hold ``=`` itself, as the label ``<=50K`` does, where the value cannot: its item is
    split at the last ``=``. Any other item is split at the first one, since a text may hold ``=``.
    """
    mapping: dict[str, Any] = {}
    for item in text.split(","):
        if not item.strip():
            continue
        key, sign, value = item.rpartition("=") if splits_last else item.partition("=")
        if not sign:
            return None
        mapping[key.strip()] = read_value(value)
    return mapping


def _parse_values(node: Any) -> Any:
    """Read the values of a mapping as YAML does, but leave its keys text: ``{yes: 0.4}``."""
    if isinstance(node, dict):
        return {key: _parse_values(value) for key, value in node.items()}
    if isinstance(node, list):
        return [_parse_values(item) for item in node]
    return read_value(node)


# Flags that several commands share.


def add_jobs_flag(parser: argparse.ArgumentParser) -> None:
    """Add ``-j``, the number of processes."""
    parser.add_argument(
        "-j",
        "--jobs",
        type=whole_number(0),
        default=0,
        metavar="N",
        help="number of processes, 0 for one per core; never changes a result (default: 0)",
    )


def add_level_flag(parser: argparse._ActionsContainer) -> None:
    """Add ``--level``, the confidence level of intervals."""
    parser.add_argument(
        "--level",
        type=real_number(0, 1),
        default=0.95,
        metavar="X",
        help="confidence level of the intervals (default: 0.95)",
    )


def add_results_flags(
    parser: argparse.ArgumentParser, *, results_help: str, predictions_help: str
) -> None:
    """Add ``--results`` and ``--predictions``, the two ways to name what candidates did."""
    parser.add_argument(
        "-r",
        "--results",
        nargs="+",
        action="extend",
        default=[],
        metavar="OUT",
        help=results_help,
    )
    parser.add_argument(
        "--predictions",
        nargs="+",
        action="extend",
        default=[],
        metavar="[NAME=]FILE",
        help=predictions_help,
    )


def named_predictions(arguments: argparse.Namespace) -> dict[str, Path]:
    """Return the files of ``--predictions`` by name; for errors see :func:`named_files`."""
    named = named_files(arguments.predictions, "--predictions")
    return {name: Path(file) for name, file in named.items()}


def add_output_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags that say what is printed."""
    parser.add_argument("-q", "--quiet", action="store_true", help="print errors only")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")


def is_quiet(arguments: argparse.Namespace) -> bool:
    """Whether to hide progress: the user wants no output, or JSON alone."""
    return bool(arguments.quiet or arguments.json)


def add_trust_flag(parser: argparse.ArgumentParser) -> None:
    """Add the permission to build any class that a suite names."""
    parser.add_argument(
        "--trust-suite",
        action="store_true",
        help="fit any class that the suite names; it can run any code, so use this for your own "
        "suites only",
    )


def add_execution_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags that say where folds are computed and what each may cost, except ``-j``."""
    group = parser.add_argument_group(
        "execution",
        "where folds are computed and what each may cost; never changes a result",
    )
    group.add_argument(
        "--cluster",
        default="",
        metavar="WHERE",
        help="address or file of a Dask scheduler (default: this machine)",
    )
    group.add_argument(
        "--fold-timeout",
        type=real_number(0, or_equal=True),
        default=0.0,
        metavar="SECONDS",
        help="longest time that a fold may take (default: no limit)",
    )
    group.add_argument(
        "--fold-memory",
        default="",
        metavar="SIZE",
        help="largest amount of memory that a fold may use, e.g. 4GB (default: no limit)",
    )
    group.add_argument(
        "--fold-retries",
        type=whole_number(0),
        default=2,
        metavar="N",
        help="how many times a fold is tried again after its process or worker died (default: 2)",
    )
    group.add_argument(
        "--logs",
        metavar="FOLDER",
        help="folder for a log of every fold (default: logs of failed folds only, in the suite)",
    )


def execution_from(arguments: argparse.Namespace) -> Any:
    """Return the :class:`~amlb_ext.core.parallel.Execution` that the flags ask for.

    Raises
    ------
    ConfigError
        A value that cannot be used.
    """
    from amlb_ext.core.parallel.execution import Execution, parse_size

    return Execution(
        workers=arguments.jobs,
        cluster=arguments.cluster,
        timeout=arguments.fold_timeout,
        memory=parse_size(arguments.fold_memory) if arguments.fold_memory else 0,
        retries=arguments.fold_retries,
    )


def named_files(words: Sequence[str], flag: str) -> dict[str, str]:
    """Return the files of ``[NAME=]FILE`` by name; the file's own name where none is given.

    Raises
    ------
    ConfigError
        An empty name, one that is given twice, or a word that is a file in two readings.

    Examples
    --------
    >>> named_files(["new=a/b.csv", "c.csv"], "--candidate")
    {'new': 'a/b.csv', 'c': 'c.csv'}
    """
    files: dict[str, str] = {}
    for word in words:
        name, separator, file = word.partition("=")
        # a path may hold the sign itself
        is_file = Path(word).exists()
        if separator and is_file and Path(file).exists():
            raise ConfigError(
                f"{flag} {word} can be read in two ways: the file {word}, and the file {file} "
                f"under the name {name!r}",
                f"write {flag} NAME={word}, or {flag} {name}=./{file}",
            )
        if not separator or is_file or "/" in name:
            name, file = Path(word).stem, word
        if not name or name in files:
            raise ConfigError(
                f"{flag} {word}: the name {name!r} is empty or given twice",
                f"write {flag} NAME=FILE with another name",
            )
        files[name] = file
    return files
