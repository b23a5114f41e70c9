"""Help of one screen, all flags on request, and hints for what was mistyped."""

import pytest

from amlb_ext.cli.main import build_parser, main

COMMANDS = build_parser().subparsers()


def stopped(words, capsys):
    with pytest.raises(SystemExit) as stop:
        main(words)
    return stop.value.code, capsys.readouterr()


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_the_help_of_a_command_is_short_and_ends_in_an_example(name):
    parser = COMMANDS[name]
    flags = [action for action in parser.common_actions() or parser._actions]
    flags = [action for action in flags if action.option_strings]
    assert len(flags) <= 17
    if not parser.subparsers():
        assert f"  hardsynth {name}" in parser.format_help()


@pytest.mark.parametrize("name", ["generate", "harden", "estimate", "verify"])
def test_all_flags_are_shown_on_request(name, capsys):
    code, printed = stopped([name, "--help-all"], capsys)
    assert code == 0
    hidden = [flag for flag in COMMANDS[name]._option_string_actions if flag != "-h"]
    assert all(flag in printed.out for flag in hidden)


def test_the_short_help_counts_what_it_hides(capsys):
    code, printed = stopped(["generate", "--help"], capsys)
    assert code == 0
    n_all = len({id(a) for a in COMMANDS["generate"]._option_string_actions.values()})
    n_shown = sum(bool(a.option_strings) for a in COMMANDS["generate"].common_actions())
    # without --help and --help-all
    n_hidden = n_all - n_shown - 2
    assert f"{n_hidden} more flags: hardsynth generate --help-all" in printed.out
    assert "--kappa" not in printed.out
    assert "--target" in printed.out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("generate a.csv -o o b.csv", "put every SOURCE in one place"),
        ("score DIR --results-dir x", "did you mean --results"),
        (
            "estimate m.csv d.csv --time day",
            "rows in time order are not; use 'hardsynth comp",
        ),
        (
            "estimate m.csv d.csv --series=id",
            "values of a series are not; use 'hardsynth comp",
        ),
        ("publish DIR --server test nope", "unknown argument nope (see"),
        # the dashes alone make no two flags alike
        ("estimate m.csv d.csv --baseline f", "unknown argument --baseline (see"),
    ],
)
def test_a_wrong_word_gets_a_hint(words, message, capsys):
    code, printed = stopped(words.split(), capsys)
    assert code == 2
    assert message in printed.err
    assert len(printed.err.splitlines()) == 1


def test_a_flag_of_another_command_is_not_suggested(capsys):
    _, printed = stopped(["score", "DIR", "--candidate", "x"], capsys)
    assert "did you mean --candidate" not in printed.err
