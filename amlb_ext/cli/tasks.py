"""``hardsynth tasks``: ready tasks, written as a folder that AMLB runs."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

from amlb_ext.cli.display import print_json
from amlb_ext.cli.flags import add_output_flags, is_quiet
from amlb_ext.cli.numbers import SEED, whole_number
from amlb_ext.core.display import text_table
from amlb_ext.core.errors import ConfigError

if TYPE_CHECKING:
    from amlb_ext.suite.task_folder import TaskFolder


def add_parser(commands: Any) -> None:
    """Add the command to the parser of all commands."""
    parser = commands.add_parser(
        "tasks",
        help="write the weird tasks as an AMLB user directory",
        examples="hardsynth tasks weird -o weird",
        description="Write six tasks after WeirdML, on which a forest on the raw columns fails and "
        "which a little thought solves. Each fold is another draw of the data, as in a run of "
        "WeirdML. Works offline. Some data are substitutes; --data replaces them by your own.",
    )
    parser.add_argument(
        "collection",
        choices=("weird", "coders"),
        help="weird: the tasks; coders: add the frameworks of --model to the suite -o DIR",
    )
    parser.add_argument(
        "-o", "--out", required=True, metavar="DIR", help="folder to write to"
    )
    parser.add_argument(
        "--folds",
        type=whole_number(1, 999),
        default=2,
        metavar="N",
        help="number of draws of each task; WeirdML uses 15 (default: 2)",
    )
    parser.add_argument(
        "--seed",
        type=SEED,
        default=0,
        metavar="N",
        help="random seed of the data (default: 0)",
    )
    parser.add_argument(
        "--literal",
        action="store_true",
        help="use the same data in all folds, as WeirdML does; only the frameworks vary",
    )
    parser.add_argument(
        "--salt",
        metavar="TEXT",
        help="enters the draws beside the seed, to make the same data elsewhere (default: a secret "
        "text, kept in hardsynth/tasks.json: from the seed alone a program could draw the test "
        "rows again)",
    )
    parser.add_argument(
        "--data",
        action="append",
        default=[],
        metavar="TASK=FILE",
        help="real data for a task: chess_winners (PGN), shuffle_easy, shuffle_hard (.npy); "
        "repeat the flag for several",
    )
    parser.add_argument(
        "--licence",
        default="",
        metavar="TEXT",
        help="licence of the --data files, which the manifest states",
    )
    parser.add_argument(
        "--task",
        action="append",
        default=[],
        metavar="NAME",
        help="write this task only, or one of your own, MODULE:FUNCTION; repeat the flag for "
        "several (default: all six)",
    )
    parser.add_argument(
        "--model",
        action="append",
        default=[],
        metavar="NAME",
        help="write a framework LLMCoder_NAME that runs this language model; repeat the flag for "
        "several",
    )
    parser.add_argument(
        "--coder-params",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="parameter of these frameworks, e.g. max_cost=2 or 'price={input: 1.0e-6, output: "
        "4.0e-6}'; docs/how-to/coding_models.md lists them; repeat the flag for several",
    )
    add_output_flags(parser)
    parser.set_defaults(run_command=run_command)


def run_command(arguments: argparse.Namespace) -> int:
    """Write the tasks; see :func:`amlb_ext.pipeline.weird.write_weird_tasks`."""
    from amlb_ext.pipeline.weird import WeirdRequest, add_coders, write_weird_tasks
    from amlb_ext.tasks import select_tasks, with_data_files

    if arguments.collection == "coders":
        params = _read_coder_params(arguments)
        coders = add_coders(Path(arguments.out), tuple(arguments.model), params)
        if arguments.json:
            print_json({"out": arguments.out, "frameworks": coders})
        elif not is_quiet(arguments):
            for name in coders:
                print(
                    f"run: hardsynth run {shlex.quote(name)} -u {shlex.quote(arguments.out)}"
                )
        return 0
    files = dict(_read_data_flag(word) for word in arguments.data)
    tasks = with_data_files(files, licence=arguments.licence)
    request = WeirdRequest(
        tasks=select_tasks(tasks, arguments.task),
        folds=arguments.folds,
        seed=arguments.seed,
        literal=arguments.literal,
        salt=arguments.salt,
        models=tuple(arguments.model),
        coder_params=_read_coder_params(arguments),
    )
    folder = write_weird_tasks(Path(arguments.out), request)
    if arguments.json:
        entries = {task.name: task.origin for task in folder.tasks}
        print_json({"out": arguments.out, "tasks": entries, "folds": folder.n_folds})
    elif not is_quiet(arguments):
        print(_folder_summary(folder, arguments.out))
        for task in request.tasks:
            if task.note:
                print(f"note: {task.note}")
    return 0


def _read_data_flag(word: str) -> tuple[str, Path]:
    name, equals, file = word.partition("=")
    if not equals or not file:
        raise ConfigError(
            f"--data is {word!r}", "write TASK=FILE, e.g. chess_winners=games.pgn"
        )
    return name, Path(file).expanduser()


def _read_coder_params(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the parameters of the coders, as YAML reads them."""
    import yaml

    from amlb_ext.pipeline.weird import check_coder_params

    params = {}
    for word in arguments.coder_params:
        key, equals, value = word.partition("=")
        try:
            params[key] = yaml.safe_load(value)
        except yaml.YAMLError:
            equals = ""
        if not equals:
            raise ConfigError(
                f"--coder-params is {word!r}", "write KEY=VALUE, e.g. max_cost=2"
            )
    if params and not arguments.model:
        raise ConfigError(
            "--coder-params needs a model",
            "name one: --model NAME, as the endpoint does",
        )
    check_coder_params(params)
    return params


def _folder_summary(folder: TaskFolder, out: str) -> str:
    """Return what was written, and the commands that check, run and report it."""
    rows: list[list[Any]] = []
    for task in folder.tasks:
        fold = task.folds[0]
        stands_for = f", stands for {task.stands_for}" if task.stands_for else ""
        data = f"{task.origin}{stands_for}"
        rows.append([task.name, fold.train_rows, fold.test_rows, data])
    where = shlex.quote(out)
    n_folds = folder.n_folds
    sets = "one set of data for all" if folder.literal else "a draw each"
    return "\n".join(
        [
            text_table(["task", "training rows", "test rows", "data"], rows),
            f"{n_folds} folds, {sets}",
            f"  check:   hardsynth verify {where}",
            f"  run:     hardsynth run FRAMEWORK weirdml -u {where}",
            f"           or AMLB itself: python runbenchmark.py FRAMEWORK weird weirdml -u {where}",
            f"  report:  hardsynth report {where} --results results",
        ]
    )
