import pytest

from amlb_ext.cli.flags import flag_name, layer_from, list_settings
from amlb_ext.cli.main import build_parser, main
from amlb_ext.core.config import build_config
from amlb_ext.core.errors import ConfigError


def parse(*words):
    arguments = build_parser().parse_args(["generate", "-o", "x", *words])
    return build_config(layer_from(arguments))


def test_every_setting_has_its_own_flag():
    names = [flag_name(path) for path, _ in list_settings()]
    assert len(names) == len(set(names)) > 40


def test_defaults_on_the_command_line_are_the_defaults_of_the_library():
    assert parse() == build_config()


def test_flags_reach_their_settings():
    typed = (
        "--baseline ridge --baseline-params alpha=2.5 --rule absolute --alpha .2 "
        "--composition bad,ga --operators reapply=false --synthesizer copula"
    )
    config = parse(*typed.split(), "--class-alpha", "{yes: 0.4}")
    assert config.baseline.model == "ridge"
    assert config.baseline.params == {"alpha": 2.5}
    assert config.hardness.alpha == 0.2
    assert config.composition == ("bad", "ga")
    assert config.search.operators.reapply is False
    assert config.synthesizer.name == "copula"
    assert config.hardness.class_alpha == {"yes": 0.4}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["generate", "-o", "x", "--kapa", "1"], "did you mean --kappa"),
        (["generat"], "did you mean generate"),
        (["generate", "bundled/toy"], "required: -o"),
    ],
)
def test_a_wrong_command_line_is_one_clear_line(words, message, capsys):
    with pytest.raises(SystemExit) as stop:
        main(words)
    assert stop.value.code == 2
    err = capsys.readouterr().err.strip()
    assert message in err
    assert len(err.splitlines()) == 1


def test_thresholds_per_class_as_one_types_them():
    words = "--rule", "wrong", "--class-alpha"
    for typed in (["<=50K=.3,>50K=.6"], ["<=50K=.3", words[2], ">50K=.6"]):
        assert parse(*words, *typed).hardness.class_alpha == {"<=50K": 0.3, ">50K": 0.6}
    assert parse(*words, '{"a,b": .3}').hardness.class_alpha == {"a,b": 0.3}
    with pytest.raises(ConfigError, match="is not a mapping"):
        parse(*words, "a=.3,b")


def test_several_targets_as_one_types_them():
    assert parse("--targets", "price", "rent").source.targets == ("price", "rent")
    assert parse("--targets", "price,rent").source.targets == ("price", "rent")
    assert parse("--targets", "price, EUR", "rent").source.targets == (
        "price, EUR",
        "rent",
    )
    assert parse("--over", "union").hardness.over == "union"
