"""What users declare: understood, or refused in one line."""

import json

import pandas as pd
import pytest
from planted_relations import planted_table

from amlb_ext.core.config import RelationsConfig
from amlb_ext.core.errors import ConfigError
from amlb_ext.relations.declared import (
    declared_relations,
    read_relations,
    settle_relations,
)


@pytest.fixture(scope="module")
def rows():
    return planted_table(0)[0]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"rules": ["bedroms <= rooms"]}, "bedroms.*bedrooms"),
        ({"frozen": ["citty"]}, "citty.*city"),
        ({"frozen": ["spouse"]}, "target"),
        ({"one_way": {"city": "up"}}, "holds texts"),
        ({"one_hot": [["city", "gain"]]}, "holds texts"),
        ({"combinations": [["city", "cuntry"]]}, "cuntry.*country"),
        ({"rules": ['spouse == "none"']}, "target alone"),
        ({"rules": ["rooms < 0"]}, "every one of 600"),
        ({"rules": ["rooms < 20", "rooms > 25"]}, "contradicts"),
        ({"rules": ["city determines country", "country determines city"]}, "circle"),
        ({"rules": ["city determines city"]}, "twice"),
        ({"rules": ["city determines"]}, "of the form"),
        ({"rules": ["determines city"]}, "of the form"),
    ],
)
def test_what_cannot_be_kept_is_refused(rows, settings, message):
    with pytest.raises(ConfigError, match=message) as caught:
        declared_relations(RelationsConfig(**settings), rows, ["spouse"])
    assert "\n" not in str(caught.value)


def test_mined_relations_can_be_dropped_and_declared_ones_are_not_said_twice(rows):
    config = RelationsConfig(
        mine=True, drop=["bedrooms<rooms"], rules=["gain==0 or loss==0"]
    )
    relations, mined = settle_relations(config, rows)
    texts = [relation.text for relation in relations.relations]
    assert "bedrooms < rooms" not in texts
    assert [text for text in texts if "gain" in text and "loss" in text] == [
        "gain==0 or loss==0"
    ]
    assert not relations.broken(rows).any()
    assert mined.most_exceptions == 3 / 600


def test_nothing_is_kept_when_nothing_is_asked(rows):
    assert not settle_relations(RelationsConfig(mine=False), rows)[0]


def test_one_hot_and_combinations():
    rows = pd.DataFrame(
        {"r": [1.0, 0.0], "g": [0.0, 1.0], "city": ["B", "L"], "land": ["D", "F"]}
    )
    config = RelationsConfig(one_hot=[["r", "g"]], combinations=[["city", "land"]])
    one_hot, combinations = declared_relations(config, rows)
    assert one_hot.breaks(rows.assign(r=1.0)).tolist() == [False, True]
    assert combinations.breaks(rows.assign(land="D")).tolist() == [False, True]


def test_a_file_with_or_without_its_heading(tmp_path):
    path = tmp_path / "relations.yaml"
    path.write_text("relations:\n  frozen: [age]\n")
    assert read_relations(path) == {"relations": {"frozen": ["age"]}}
    path.write_text("frozen: [age]\nrules:\n  - a <= b\n  - c == 0 implies d == 0\n")
    assert read_relations(path)["relations"]["frozen"] == ["age"]
    path.write_text("rule: [a <= b]\n")
    with pytest.raises(ConfigError, match=r"'rule'.*rules"):
        read_relations(path)


def test_constraints_of_sdv(tmp_path):
    path = tmp_path / "constraints.json"
    places = zip(("low", "middle", "high"), "abc", strict=True)
    constraints = [
        ("FixedCombinations", {"column_names": ["city", "country"]}),
        ("Range", {f"{place}_column_name": name for place, name in places}),
        ("OneHotEncoding", {"column_names": ["x", "y"]}),
        ("FixedIncrements", {"column_name": "salary", "increment_value": 500}),
    ]
    content = [
        {"constraint_class": name, "constraint_parameters": given}
        for name, given in constraints
    ]
    path.write_text(json.dumps(content))
    assert read_relations(path)["relations"] == {
        "rules": ["a < b < c", "salary % 500 == 0"],
        "one_hot": [["x", "y"]],
        "combinations": [["city", "country"]],
    }
    path.write_text(json.dumps([{"constraint_class": "Inequalty"}]))
    with pytest.raises(ConfigError, match=r"Inequalty.*Inequality"):
        read_relations(path)
    path.write_text(json.dumps([{"constraint_class": "Inequality"}]))
    with pytest.raises(ConfigError, match="low_column_name"):
        read_relations(path)
