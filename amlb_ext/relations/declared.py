"""Relations that a user declares: in the settings, in a YAML file, or as SDV's constraints."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from amlb_ext.core.config import RelationsConfig
from amlb_ext.core.errors import ConfigError, suggest_nearest
from amlb_ext.core.yaml_reader import read_yaml
from amlb_ext.relations.equations import give_room, read_equation
from amlb_ext.relations.feasible import Relations
from amlb_ext.relations.grammar import RuleError, quote_name
from amlb_ext.relations.groups import one_hot_rule
from amlb_ext.relations.kinds import (
    Dependency,
    Relation,
    Rule,
    known_combinations,
    parse_relation,
    reach_columns,
)
from amlb_ext.relations.mining import MinedRelations, mine_relations
from amlb_ext.relations.values import holds_numbers


def declared_relations(
    config: RelationsConfig,
    rows: pd.DataFrame,
    targets: Sequence[str] = (),
) -> tuple[Relation, ...]:
    """Return the relations that the settings declare, for a table.

    Parameters
    ----------
    config : RelationsConfig
    rows : DataFrame
        Real rows, with the targets among the columns; dependencies learn their values from them.
    targets : sequence of str

    Returns
    -------
    tuple of Relation

    Raises
    ------
    ConfigError
        A column that is not there, a rule that is none, a rule on the target alone, dependencies
        in a circle, or rules that no real row satisfies.

    Examples
    --------
    >>> config = RelationsConfig(rules=("a <= b",), one_hot=(("c", "d"),))
    >>> rows = pd.DataFrame({"a": [1.0], "b": [2.0], "c": [0.0], "d": [1.0]})
    >>> [relation.text for relation in declared_relations(config, rows)]
    ['a <= b', 'exactly one of {c, d} is 1']
    """
    groups = (*config.one_hot, *config.combinations)
    for name in chain(config.frozen, config.one_way, *groups):
        if name not in rows.columns:
            raise ConfigError(
                f"relations name the column {name!r}, which the table does not have",
                suggest_nearest(name, rows.columns),
            )
    for name in {*config.frozen, *config.one_way}.intersection(targets):
        raise ConfigError(
            f"relations.frozen or one_way names the target {name!r}",
            "name features only; the oracle checks the target of made rows",
        )
    for name in chain(config.one_way, *config.one_hot):
        if not holds_numbers(rows[name]):
            raise ConfigError(
                f"relations.one_way or one_hot names {name!r}, which holds texts",
                f"use frozen: [{name}] for a column that must keep its value",
            )
    relations: list[Relation] = []
    for text in config.rules:
        relation = parse_relation(text, rows)
        if isinstance(relation, Rule):
            relation = give_room(read_equation(relation, rows), rows)
        relations.append(relation)
    relations += [one_hot_rule(group) for group in config.one_hot]
    relations += [known_combinations(rows, group) for group in config.combinations]
    for relation in relations:
        if set(relation.columns) <= set(targets):
            raise RuleError(
                relation.text,
                "is on the target alone",
                "declare relations of features, or of features with the target",
            )
    _refuse_circles(relations)
    _refuse_contradictions(relations, rows)
    return tuple(relations)


def _refuse_circles(relations: Iterable[Relation]) -> None:
    """Refuse declared dependencies that lead back to where they start."""
    dependencies = [
        relation for relation in relations if isinstance(relation, Dependency)
    ]
    rests_on: dict[str, set[str]] = {}
    for dependency in dependencies:
        rests_on.setdefault(dependency.target, set()).update(dependency.sources)
    for dependency in dependencies:
        if dependency.target in reach_columns(dependency.sources, rests_on):
            raise RuleError(
                dependency.text,
                f"is part of a circle: {dependency.target!r} would determine itself",
                "leave one of the dependencies out",
            )


def _refuse_contradictions(
    relations: Sequence[Relation],
    rows: pd.DataFrame,
) -> None:
    """Refuse rules that no real row satisfies, alone or together."""
    if not len(rows):
        return
    is_broken = np.zeros(len(rows), dtype=bool)
    for relation in relations:
        breaks = relation.breaks(rows)
        if breaks.all():
            raise RuleError(
                relation.text,
                f"is broken by every one of {len(rows):,} real rows",
                "correct the rule or leave it out",
            )
        is_broken |= breaks
        if is_broken.all():
            raise RuleError(
                relation.text,
                "contradicts the rules before it: together no real row satisfies them",
                "correct one of them or leave it out",
            )


def settle_relations(
    config: RelationsConfig,
    rows: pd.DataFrame,
    targets: Sequence[str] = (),
    seed: int = 0,
) -> tuple[Relations, MinedRelations]:
    """Put together what made rows must satisfy: declared relations, then mined ones.

    Parameters
    ----------
    config : RelationsConfig
    rows : DataFrame
        The training rows, with the targets among the columns.
    targets : sequence of str
    seed : int
        For the evidence of dependencies.

    Returns
    -------
    relations : Relations
    mined : MinedRelations
        What mining found, without what the settings drop.
    """
    declared = declared_relations(config, rows, targets)
    if not (config.mine or declared or config.frozen or config.one_way):
        return Relations(), MinedRelations(len(rows))
    for text in config.drop:
        if not any(str(name) in text for name in rows):
            raise ConfigError(
                f"relations.drop names {text!r}, in which no column of the table stands",
                "write a relation as 'hardsynth relations' prints it",
            )
    mined = mine_relations(rows, seed=seed)
    # where nothing is to be mined, the table still says how its numbers are written
    kept = _without_texts(mined.relations if config.mine else (), config.drop)
    mined = replace(mined, relations=kept)
    added = _without_texts(kept, [relation.text for relation in declared])
    # the targets of made rows are not corrected: the oracle checks them as they are
    forms = [form for form in mined.forms if form.column not in targets]
    relations = Relations(
        relations=(*declared, *added),
        forms={form.column: form for form in forms},
        frozen=config.frozen,
        one_way=dict(config.one_way),
        targets=tuple(targets),
    )
    return relations, mined


def _without_texts(
    relations: Iterable[Relation],
    texts: Iterable[str],
) -> tuple[Relation, ...]:
    """Return the relations but for those with these texts, spaces aside."""
    unwanted = {"".join(text.split()) for text in texts}
    return tuple(
        relation
        for relation in relations
        if "".join(relation.text.split()) not in unwanted
    )


def read_relations(path: Path) -> dict[str, Any]:
    """Read declared relations from a file, as a layer of settings.

    Parameters
    ----------
    path : Path
        YAML with the keys of :class:`~amlb_ext.core.config.RelationsConfig`, alone or below
        ``relations:``; or JSON with SDV's constraints.

    Returns
    -------
    dict
        For :func:`amlb_ext.core.config.build_config`.

    Raises
    ------
    ConfigError
        The file cannot be read, or holds an unknown key or constraint.
    """
    try:
        if path.suffix == ".json":
            content = json.loads(path.read_text(encoding="utf-8"))
            return {"relations": sdv_constraints(content)}
        content = read_yaml(path, ConfigError)
    except ValueError as error:
        raise ConfigError(f"{path} is not JSON: {error}") from None
    except OSError as error:
        raise ConfigError(
            f"cannot read {path}: {error.strerror}",
            "give a YAML or JSON file to --relations",
        ) from None
    if isinstance(content, dict) and set(content) == {"relations"}:
        content = content["relations"]
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise ConfigError(
            f"{path} holds a {type(content).__name__}, relations are a mapping",
            "write for instance 'rules: [a <= b]'",
        )
    fields = RelationsConfig.model_fields
    for key in content:
        if key not in fields:
            raise ConfigError(
                f"{path}: unknown key {key!r}",
                suggest_nearest(str(key), fields),
            )
    return {"relations": content}


def sdv_constraints(content: Any) -> dict[str, Any]:
    """Translate SDV's constraints into settings.

    Parameters
    ----------
    content : list or dict
        A list of constraints, or a mapping with it under ``constraints``. Each has a class and its
        parameters, as SDV writes them: ``{"constraint_class": "Inequality",
        "constraint_parameters": {"low_column_name": "a", "high_column_name": "b"}}``.

    Returns
    -------
    dict
        Keys of :class:`~amlb_ext.core.config.RelationsConfig`.

    Raises
    ------
    ConfigError
        A constraint of another class, or one without a parameter that it needs.

    Notes
    -----
    Source: https://docs.sdv.dev/sdv/concepts/constraint-augmented-generation-cag/predefined-constraints

    Examples
    --------
    >>> sdv_constraints([{"constraint_class": "Inequality", "constraint_parameters":
    ...     {"low_column_name": "start", "high_column_name": "end", "strict_boundaries": True}}])
    {'rules': ['start < end'], 'one_hot': [], 'combinations': []}
    """
    constraints = content
    if isinstance(content, Mapping):
        constraints = content.get("constraints")
    if not isinstance(constraints, list):
        raise ConfigError(
            "the JSON file holds no list of constraints",
            'write [{"constraint_class": "Inequality", "constraint_parameters": {...}}]',
        )
    translated: dict[str, list[Any]] = {name: [] for name in _SDV.values()}
    for number, constraint in enumerate(constraints, 1):
        if not isinstance(constraint, Mapping):
            raise ConfigError(f"constraint {number} is no mapping")
        # SDV's releases name both keys in two ways
        names = {"constraint_name": None, "parameters": {}, **constraint}
        name = str(names.get("constraint_class") or names["constraint_name"])
        parameters = names.get("constraint_parameters") or names["parameters"]
        if name not in _SDV:
            raise ConfigError(
                f"constraint {number} is of the class {name!r}, which is not supported",
                suggest_nearest(name, _SDV),
            )
        try:
            value = _translate_constraint(name, parameters)
        except (KeyError, TypeError) as error:
            raise ConfigError(
                f"constraint {number} ({name}) lacks the parameter {error}"
            ) from None
        translated[_SDV[name]].append(value)
    return translated


#: By the class of a constraint of SDV's, the setting that it becomes.
_SDV = {
    "Inequality": "rules",
    "Range": "rules",
    "FixedIncrements": "rules",
    "OneHotEncoding": "one_hot",
    "FixedCombinations": "combinations",
}


def _translate_constraint(name: str, parameters: Mapping[str, Any]) -> Any:
    """Return an entry of the setting that a constraint becomes."""
    if name in ("OneHotEncoding", "FixedCombinations"):
        return list(parameters["column_names"])
    if name == "FixedIncrements":
        column = quote_name(parameters["column_name"])
        return f"{column} % {parameters['increment_value']} == 0"
    places = ("low", "middle", "high") if name == "Range" else ("low", "high")
    columns = [quote_name(parameters[f"{place}_column_name"]) for place in places]
    # SDV's default differs: a range is strict, an inequality is not
    is_strict = parameters.get("strict_boundaries", name == "Range")
    return (" < " if is_strict else " <= ").join(columns)
