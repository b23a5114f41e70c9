"""AMLB's YAML files: benchmark definitions, configuration, frameworks.

AMLB opens them in the machine's own encoding and reads them with a YAML 1.2 parser, so every
text is written quoted and in ASCII: a task called ``1e5``, ``yes`` or ``007`` stays a text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import yaml

from amlb_ext.core.task import Kind


class _Text(str):
    """A value, to be written in quotes; keys stay plain."""


class _Dumper(yaml.SafeDumper):
    """Knows :class:`_Text`, never writes anchors."""

    def ignore_aliases(self, data: Any) -> bool:
        return True

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        """Indent lists below their key."""
        super().increase_indent(flow, False)


def _represent_text(dumper: yaml.SafeDumper, text: _Text) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style='"')


_Dumper.add_representer(_Text, _represent_text)


def yaml_text(content: object) -> str:
    """Return YAML in ASCII, keys in their order, texts in quotes.

    Examples
    --------
    >>> print(yaml_text([{"name": "1e5", "folds": 2}]), end="")
    ---
    - name: "1e5"
      folds: 2
    """
    return yaml.dump(
        _quoted(content),
        Dumper=_Dumper,
        sort_keys=False,
        allow_unicode=False,
        explicit_start=True,
        default_flow_style=False,
        # wider than any text, so that none is folded over several lines
        width=2**16,
    )


def amlb_configuration(seed: int, *, data: bool = True) -> dict[str, Any]:
    """Return AMLB's configuration; its lists replace the defaults, hence ``{root}``.

    In docker mode AMLB mounts the user directory as it is; in aws mode an instance gets, of all
    of it, the files listed here.

    Parameters
    ----------
    seed : int
        Of AMLB's runs; without one AMLB draws one.
    data : bool
        Whether the data stand in the directory, not at an address.
    """
    # without "hardsynth", which AMLB does not look at
    remote_files = [
        "config.yaml",
        "frameworks.yaml",
        "benchmarks",
        "extensions",
        "constraints.yaml",
    ]
    if data:
        remote_files.append("data")
    return {
        "seed": seed,
        "frameworks": {
            "definition_file": [
                "{root}/resources/frameworks.yaml",
                "{user}/frameworks.yaml",
            ]
        },
        "benchmarks": {
            "definition_dir": ["{user}/benchmarks", "{root}/resources/benchmarks"],
            "constraints_file": [
                "{root}/resources/constraints.yaml",
                "{user}/constraints.yaml",
            ],
        },
        "aws": {"resource_files": [f"{{user}}/{name}" for name in remote_files]},
    }


def _quoted(value: object) -> object:
    if isinstance(value, Mapping):
        return {key: _quoted(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_quoted(item) for item in value]
    if isinstance(value, str):
        return _Text(value)
    return value


def metrics_for(
    kind: Kind, test_labels: Sequence[Sequence[str]], labels: Sequence[str]
) -> list[str] | None:
    """Return the metrics to name in the definition, or None for AMLB's own.

    AMLB optimises the first metric and reports it as the result. Its default for binary
    tasks, AUC, is undefined where a test file has a single class; logloss and accuracy are
    not. Its default for multiclass, logloss, is given all labels, and its default for
    regression, RMSE, is defined on one row (only r2, reported beside it, is not), so these
    need no override.

    Parameters
    ----------
    kind : Kind
    test_labels : sequence of sequence of str
        The labels present in each fold's test file.
    labels : sequence of str
        The task's labels.

    Examples
    --------
    >>> metrics_for(Kind.BINARY, [["a", "b"], ["a"]], ["a", "b"])
    ['logloss', 'acc']
    >>> metrics_for(Kind.MULTICLASS, [["a"]], ["a", "b", "c"])
    """
    # AMLB has one list of metrics per task, so one fold without a class decides for all
    lacks_a_class = any(len(set(present)) < len(labels) for present in test_labels)
    return ["logloss", "acc"] if kind is Kind.BINARY and lacks_a_class else None
