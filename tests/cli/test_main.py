"""The parser of all commands."""

import argparse

from amlb_ext.cli.main import build_parser


def test_every_command_knows_what_runs_it():
    (action,) = (
        action
        for action in build_parser()._actions
        if isinstance(action, argparse._SubParsersAction)
    )
    for name, parser in action.choices.items():
        assert callable(parser.get_default("run_command")), name
