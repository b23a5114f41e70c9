"""Settings as flags: each has one, and what it is given reaches the record."""

import shlex
from operator import attrgetter

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


CLASSES = "--rule wrong --class-alpha"
#: Words, the setting that they give, and its value.
TYPED = [
    ("--baseline ridge", "baseline.model", "ridge"),
    ("--baseline-params alpha=2.5", "baseline.params", {"alpha": 2.5}),
    ("--rule absolute --alpha .2", "hardness.alpha", 0.2),
    ("--over union", "hardness.over", "union"),
    ("--synthesizer copula", "synthesizer.name", "copula"),
    # of one value the last counts, and of a list all do
    ("--seed 3 --seed 4", "seed", 4),
    ("--composition bad,ga", "composition", ("bad", "ga")),
    (
        "--composition bad ga --seed 1 --composition synthetic",
        "composition",
        ("bad", "ga", "synthetic"),
    ),
    ("--targets price rent", "source.targets", ("price", "rent")),
    ("--targets price,rent", "source.targets", ("price", "rent")),
    ("--targets 'price, EUR' rent", "source.targets", ("price, EUR", "rent")),
    (f"{CLASSES} '{{yes: 0.4}}'", "hardness.class_alpha", {"yes": 0.4}),
    (f"{CLASSES} '{{\"a,b\": .3}}'", "hardness.class_alpha", {"a,b": 0.3}),
    (
        f"{CLASSES} '<=50K=.3,>50K=.6'",
        "hardness.class_alpha",
        {"<=50K": 0.3, ">50K": 0.6},
    ),
    (
        f"{CLASSES} '<=50K=.3' --class-alpha '>50K=.6'",
        "hardness.class_alpha",
        {"<=50K": 0.3, ">50K": 0.6},
    ),
]


@pytest.mark.parametrize(("words", "setting", "value"), TYPED)
def test_flags_reach_their_settings(words, setting, value):
    assert attrgetter(setting)(config_of(*shlex.split(words))) == value


def test_what_is_no_pair_is_refused():
    with pytest.raises(ConfigError, match="--class-alpha is 'b'"):
        config_of("--rule", "wrong", "--class-alpha", "a=.3,b")
