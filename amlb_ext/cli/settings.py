"""Settings as command-line flags, derived from :class:`~amlb_ext.core.config.GenerateConfig`.

The flag of a setting is its name; where two stages share a name, the stage comes first. So a new
setting gets its flag, its help and its default without a line here.
"""

from __future__ import annotations

import typing
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from functools import cache
from typing import Any, TypeAlias

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from amlb_ext.cli import values
from amlb_ext.cli.values import add_pair, choices, is_mapping, split_pairs
from amlb_ext.core.config import GenerateConfig, Typed
from amlb_ext.core.errors import ConfigError

#: Where a setting stands in the configuration: its stage and its name, or its name alone.
SettingPath: TypeAlias = tuple[str, ...]

#: Settings whose plain name would not say what they are.
SPECIAL = {
    ("baseline", "model"): "baseline",
    ("baseline", "params"): "baseline-params",
    ("synthesizer", "name"): "synthesizer",
    ("source", "drop"): "drop",
    ("source", "read_as"): "as",
    ("relations", "rules"): "relation",
    ("relations", "drop"): "drop-relation",
}
#: Settings that no flag has: lists of lists, and the operators, which belong to the preset.
FILE_ONLY = {
    ("relations", "one_hot"),
    ("relations", "combinations"),
    ("search", "operators"),
}


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
    ("source", name) for name in ("drop", "read_as", "sep", "decimal")
)

#: What keeps rows of a table together or in order when they are split.
ORDER_SETTINGS = frozenset(
    ("split", name) for name in ("time", "group", "cluster_by", "gap")
)


def choose_settings(
    chosen: str | Collection[SettingPath],
) -> list[tuple[SettingPath, FieldInfo]]:
    """Return the settings that flags can hold: ``all``, those of a stage, or those named."""
    found = []
    for path, field in list_settings():
        is_chosen = (
            chosen in ("all", path[0]) if isinstance(chosen, str) else path in chosen
        )
        if is_chosen and path not in FILE_ONLY:
            found.append((path, field))
    return found


def default_text(field: FieldInfo) -> str:
    """Return a setting's default as ``--help`` shows it; nothing where it is empty or off."""
    default = field.get_default(call_default_factory=True)
    if default is True:
        return "on"
    if isinstance(default, tuple):
        return ",".join(default)
    return "" if default in (None, "", {}, False) else str(default)


def _typed(field: FieldInfo) -> Typed:
    """Return how a setting is typed, which stands beside its type or beside a part of it."""
    parts = [*field.metadata, field.annotation]
    for part in parts:
        parts += typing.get_args(part)
        if isinstance(part, Typed):
            return part
    return Typed(metavar="")


def metavar(field: FieldInfo) -> str:
    """Return what stands for a flag's value in ``--help``."""
    annotation = field.annotation
    if word := _typed(field).metavar:
        return word
    # the choices of a list of words are too long to print
    if typing.get_origin(annotation) is tuple:
        return "A,B"
    if is_mapping(annotation):
        return "KEY=VALUE,..."
    return values.metavar(annotation) or "TEXT"


def takes_several_words(field: FieldInfo) -> bool:
    """Whether one flag takes all words that follow it, as ``--targets A B``."""
    return (
        typing.get_origin(field.annotation) is tuple and not _typed(field).is_repeatable
    )


def read_layer(given: Mapping[SettingPath, Any]) -> dict[str, Any]:
    """Return the settings that the user gave as a layer for ``build_config``.

    Parameters
    ----------
    given : mapping
        The words of each setting, or a truth value.

    Raises
    ------
    ConfigError
        A value that cannot be read.
    """
    layer: dict[str, Any] = {}
    fields = dict(list_settings())
    for path, value in given.items():
        if not _typed(fields[path]).is_repeatable and not isinstance(value, bool):
            value = _parse_value(value, fields[path].annotation, path)
        stage = layer
        for part in path[:-1]:
            stage = stage.setdefault(part, {})
        stage[path[-1]] = value
    return layer


def _parse_value(words: Sequence[str], annotation: Any, path: SettingPath) -> Any:
    """Return what a flag was given as the setting takes it; pydantic converts numbers later."""
    if is_mapping(annotation):
        value_type = (typing.get_args(annotation) or (Any, Any))[1]
        # a number or one of a few words holds no "=", so a key may
        splits_last = value_type is float or bool(choices(value_type))
        merged: dict[str, Any] = {}
        for text in words:
            given = _parse_mapping(text, path, splits_last=splits_last)
            for key, value in given.items():
                add_pair(merged, key, value, f"--{flag_name(path)}")
        return merged
    if typing.get_origin(annotation) is not tuple:
        return words[-1]
    # column names may hold commas, so only a list of one text is split at them
    if len(words) > 1:
        return list(words)
    return [name.strip() for name in words[0].split(",") if name.strip()]


def _parse_mapping(
    text: str, path: SettingPath, *, splits_last: bool
) -> dict[str, Any]:
    """Read ``key=value,key=value`` or a YAML mapping.

    A key may hold ``=`` itself, as the label ``<=50K`` does, where the value cannot: its item is
    split at the last ``=``. Any other item is split at the first one, since a text may hold ``=``.
    """
    # takes as long to import as a tenth of the help, and few command lines hold a mapping
    import yaml

    flag = f"--{flag_name(path)}"
    form = "key=value,key=value, or for keys with commas '{\"a,b\": value}'"
    mapping = None
    with suppress(yaml.YAMLError):
        # BaseLoader keeps all texts: SafeLoader would read the key `yes` as True.
        if text.lstrip().startswith("{"):
            mapping = yaml.load(text, Loader=yaml.BaseLoader)
        else:
            items = [item for item in text.split(",") if item.strip()]
            mapping = split_pairs(items, flag, form, "a=1", at_last=splits_last)
        mapping = _parse_values(mapping)
    if not isinstance(mapping, dict) or not mapping:
        raise ConfigError(f"{flag} {text!r} is not a mapping", f"write {form}")
    return mapping


def _parse_values(node: Any) -> Any:
    """Read the values of a mapping as YAML does, but leave its keys text: ``{yes: 0.4}``."""
    from amlb_ext.core.yaml_reader import read_value

    if isinstance(node, dict):
        return {key: _parse_values(value) for key, value in node.items()}
    if isinstance(node, list):
        return [_parse_values(item) for item in node]
    return read_value(node)
