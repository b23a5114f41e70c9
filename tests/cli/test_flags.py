"""Settings as flags: each has one, and what it is given reaches the record."""

import pytest

from amlb_ext.cli.command import all_commands
from amlb_ext.cli.main import parse
from amlb_ext.cli.settings import flag_name, list_settings
from amlb_ext.core.config import build_config
from amlb_ext.core.errors import ConfigError


def config_of(*words):
    _, arguments = parse(all_commands(), ["generate", "-o", "x", *words])
    return build_config(arguments["settings"])


def test_every_setting_has_its_own_flag():
    names = [flag_name(path) for path, _ in list_settings()]
    assert len(names) == len(set(names)) > 40


def test_defaults_on_the_command_line_are_the_defaults_of_the_library():
    assert config_of() == build_config()


def test_flags_reach_their_settings():
    typed = (
        "--baseline ridge --baseline-params alpha=2.5 --rule absolute --alpha .2 "
        "--composition bad,ga --synthesizer copula"
    )
    config = config_of(*typed.split(), "--class-alpha", "{yes: 0.4}")
    assert config.baseline.model == "ridge"
    assert config.baseline.params == {"alpha": 2.5}
    assert config.hardness.alpha == 0.2
    assert config.composition == ("bad", "ga")
    assert config.synthesizer.name == "copula"
    assert config.hardness.class_alpha == {"yes": 0.4}


def test_of_one_value_the_last_counts_and_of_a_list_all_do():
    assert config_of("--seed", "3", "--seed", "4", "--rule", "wrong").seed == 4
    words = [
        "--composition",
        "bad",
        "ga",
        "--rule",
        "wrong",
        "--composition",
        "synthetic",
    ]
    assert config_of(*words).composition == ("bad", "ga", "synthetic")


def test_thresholds_per_class_as_one_types_them():
    words = "--rule", "wrong", "--class-alpha"
    for typed in (["<=50K=.3,>50K=.6"], ["<=50K=.3", words[2], ">50K=.6"]):
        found = config_of(*words, *typed).hardness.class_alpha
        assert found == {"<=50K": 0.3, ">50K": 0.6}
    assert config_of(*words, '{"a,b": .3}').hardness.class_alpha == {"a,b": 0.3}
    with pytest.raises(ConfigError, match="--class-alpha is 'b'"):
        config_of(*words, "a=.3,b")


def test_several_targets_as_one_types_them():
    assert config_of("--targets", "price", "rent").source.targets == ("price", "rent")
    assert config_of("--targets", "price,rent").source.targets == ("price", "rent")
    assert config_of("--targets", "price, EUR", "rent").source.targets == (
        "price, EUR",
        "rent",
    )
    assert config_of("--over", "union").hardness.over == "union"
