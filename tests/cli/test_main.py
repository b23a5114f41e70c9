"""Help in two levels, and one line for what was mistyped."""

import os
import subprocess
from pathlib import Path

import pytest
from commands import python

import amlb_ext
from amlb_ext.cli.command import GROUPS, all_commands, read_declaration
from amlb_ext.cli.main import main
from amlb_ext.core.version import __version__

COMMANDS = all_commands()


def printed(words, capsys):
    assert main(words) == 0
    return capsys.readouterr().out


def test_the_first_help_has_a_line_for_each_command_in_three_groups(
    capsys, monkeypatch
):
    monkeypatch.setenv("COLUMNS", "100")
    lines = printed(["--help"], capsys).splitlines()
    for name in COMMANDS:
        assert sum(line.startswith(f"  {name} ") for line in lines) == 1
    for title in GROUPS.values():
        assert f"{title}:" in lines


def test_a_file_that_may_not_be_read_is_one_line(tmp_path, capsys, monkeypatch):
    def refuse(words):
        raise PermissionError(13, "Permission denied", "t.csv")

    monkeypatch.setitem(main.__globals__, "check_words", refuse)
    assert main(["list"]) == 2
    assert capsys.readouterr().err.startswith("hardsynth: error: t.csv: Permission")


def test_the_module_is_the_program():
    code = "import runpy, sys; sys.argv = ['x', 'nope']; runpy.run_path({!r}, run_name={!r})"
    alias = str(Path(amlb_ext.__file__).parent / "alias" / "hardsynth.py")
    with pytest.raises(subprocess.CalledProcessError) as raised:
        python(code.format(alias, "__main__"))
    assert raised.value.returncode == 2
    assert "there is no command 'nope'" in raised.value.stderr


def test_the_version(capsys):
    assert printed(["--version"], capsys) == f"hardsynth {__version__}\n"


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_the_help_of_a_command_is_short_and_every_flag_is_explained(name, capsys):
    command = COMMANDS[name]
    text = printed([name, "--help"], capsys)
    assert f"  hardsynth {name}" in text
    shown = [line for line in text.splitlines() if line.startswith(("  -", "      --"))]
    assert len(shown) <= 17
    everything = printed([name, "--help-all"], capsys)
    for flag in command.flags:
        assert flag.text, flag
        assert flag.title in everything
    n_flags = sum(not flag.is_positional for flag in command.flags)
    hidden = f"{n_flags - len(shown)} more flags: hardsynth {name} --help-all"
    assert (hidden in text) is (n_flags > len(shown))


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_what_a_form_names_are_flags(name):
    flags = COMMANDS[name].flags
    names = {flag.name for flag in flags} | {
        flag.name.partition(".")[0] for flag in flags
    }
    groups = {flag.group for flag in flags}
    # one word must not mean both
    assert not names & groups
    for form in COMMANDS[name].forms:
        assert {*(form.only or ()), *form.unused} <= names | groups


@pytest.mark.parametrize("columns", ["20", "60", "300"])
def test_help_is_plain_text_as_wide_as_the_terminal(columns, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", columns)
    text = printed(["generate", "--help-all"], capsys)
    assert text.isprintable() or set(text) - {"\n"} == set(
        filter(str.isprintable, text)
    )
    most = max(40, min(int(columns), 100))
    own = text.partition("examples:")[0].splitlines()
    long = [line for line in own if len(line) > most and " " in line.strip()]
    assert not [line for line in long if not line.startswith("  -")]


def test_what_a_command_calls_says_its_flags():
    doc, declared = read_declaration("amlb_ext.estimate.estimate.estimate")
    flags = {flag.name: flag for flag in COMMANDS["estimate"].flags}
    for one in declared:
        if one.name not in {
            "given",
            "align",
            "class_prior",
            "osyn",
            "model",
            "data",
            "quiet",
        }:
            assert flags[one.name].default == one.default
            assert doc.parameters[one.name][1]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("", "no command is named (see hardsynth --help)"),
        ("generat", "did you mean generate"),
        ("generat --help", "did you mean generate"),
        ("--nope", "there is no command '--nope'"),
        ("generate -o x --kapa 1", "did you mean --kappa"),
        ("generate bundled/toy", "required: --out"),
        ("publish hard --servr test", "did you mean --server"),
        ("compare t.csv", "required: --baseline, --candidate"),
        ("compare --target", "--target needs a value, NAME"),
        ("certify hard --size ful", "did you mean 'full'"),
        ("score DIR --results-dir x", "did you mean --results"),
        ("estimate m.csv d.csv --time day", "are not; use 'hardsynth compare'"),
        ("estimate m.csv d.csv --series=id", "are not; use 'hardsynth compare'"),
        ("publish DIR --server test nope", "unknown argument nope (see"),
        # the dashes alone make no two flags alike
        ("estimate m.csv d.csv --baseline f", "unknown argument --baseline (see"),
        # a flag of another command is not suggested
        ("score DIR --candidate x", "unknown argument --candidate (see"),
        ("show --json yes no", "unknown argument no (see"),
        ("tasks coders -o x --model m --coder-params a", "e.g. max_cost=2"),
    ],
)  # fmt: skip
def test_a_wrong_word_gets_a_hint(words, message, tmp_path, monkeypatch, refused):
    monkeypatch.chdir(tmp_path)
    error = refused(words.split())
    assert message in error


def test_help_imports_little():
    words = [["--help"], *[[name, "--help-all"] for name in COMMANDS]]
    code = (
        "import sys\n"
        "from amlb_ext.cli.main import main\n"
        f"for words in {words!r}:\n    assert main(words) == 0\n"
        "heavy = {'numpy', 'pandas', 'sklearn', 'torch', 'openml', 'rich'}\n"
        "print('HEAVY', sorted(heavy & set(sys.modules)))"
    )
    assert "HEAVY []" in python(code, env={**os.environ, "NO_COLOR": "1"})
