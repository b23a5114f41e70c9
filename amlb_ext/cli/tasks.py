"""``hardsynth tasks``: ready tasks, written as a folder that AMLB runs."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from amlb_ext.cli.command import Form, command
from amlb_ext.cli.display import Answer
from amlb_ext.cli.values import split_pairs
from amlb_ext.core.checked_call import Seed
from amlb_ext.core.errors import ConfigError

_CODERS = Form(
    where="with coders",
    holds=lambda given: given["collection"] == "coders",
    only=("out", "model", "coder_params"),
    instead="leave it out: the tasks of the suite stay as they are",
)


@command(group="research", forms=[_CODERS])
def tasks(
    collection: Literal["weird", "coders"],
    *,
    out: Path,
    folds: Annotated[int, Field(ge=1, le=999)] = 2,
    seed: Seed = 0,
    literal: bool = False,
    salt: str | None = None,
    data: Mapping[str, str] | None = None,
    licence: str = "",
    task: Sequence[str] = (),
    model: Sequence[str] = (),
    coder_params: Mapping[str, str] | None = None,
) -> Answer:
    """Write the weird tasks as an AMLB user directory.

    Write six tasks after WeirdML, on which a forest on the raw columns fails and which a little
    thought solves. Each fold is another draw of the data, as in a run of WeirdML. Works offline.
    Some data are substitutes; --data replaces them by your own.

    Parameters
    ----------
    collection : {WEIRD,CODERS}
        weird: the tasks; coders: add the frameworks of --model to the suite -o DIR
    out : DIR
        folder to write to
    folds : int
        number of draws of each task; WeirdML uses 15 (default: 2)
    seed : int
        random seed of the data
    literal : bool
        use the same data in all folds, as WeirdML does; only the frameworks vary
    salt : TEXT
        enters the draws beside the seed, to make the same data elsewhere (default: a secret text,
        kept in hardsynth/manifest.json: from the seed alone a program could draw the test rows
        again)
    data : TASK=FILE
        real data for a task: chess_winners (PGN), shuffle_easy, shuffle_hard (.npy)
    licence : TEXT
        licence of the --data files, which the manifest states
    task : NAME
        write this task only, or one of your own, MODULE:FUNCTION; repeat the flag for several
        (default: all six)
    model : NAME
        write a framework LLMCoder_NAME that runs this language model
    coder_params : KEY=VALUE
        parameter of these frameworks, e.g. max_cost=2 or 'price={input: 1.0e-6, output: 4.0e-6}';
        docs/reference/coding_models.md lists them

    Examples
    --------
    $ hardsynth tasks weird -o weird
    """
    from amlb_ext.pipeline.weird import (
        WeirdOrder,
        WeirdRequest,
        add_coders,
        weird_frameworks,
        write_weird_tasks,
    )
    from amlb_ext.suite.task_folder import folder_summary

    params = _read_coder_params(coder_params or (), model)
    if collection == "coders":
        coders = add_coders(out, tuple(model), params)
        place = shlex.quote(str(out))
        runs = [f"run: hardsynth run {shlex.quote(name)} -u {place}" for name in coders]
        return Answer(
            lambda: "\n".join(runs), lambda: {"out": out, "frameworks": coders}
        )
    if licence and not data:
        raise ConfigError("--licence is that of --data", "leave it out")
    pairs = split_pairs(data or (), "--data", "TASK=FILE", "chess_winners=games.pgn")
    request = WeirdRequest(
        folds=folds,
        seed=seed,
        literal=literal,
        salt=salt,
        models=tuple(model),
        coder_params=params,
    )
    order = WeirdOrder(tasks=tuple(task), data=pairs, licence=licence, request=request)
    found = order.find_tasks()
    folder = write_weird_tasks(out, found, request, order)

    def text() -> str:
        lines = [folder_summary(folder, str(out))]
        for name in weird_frameworks(request.models):
            if name.startswith("LLMCoder_"):
                lines.append(f"  coder:   FRAMEWORK is {name}")
        lines += [f"note: {written.note}" for written in found if written.note]
        return "\n".join(lines)

    entries = {task.name: task.origin for task in folder.tasks}
    return Answer(text, lambda: {"out": out, "tasks": entries, "folds": folder.n_folds})


def _read_coder_params(words: Any, models: Sequence[str]) -> dict[str, Any]:
    """Return the parameters of the coders, as YAML reads them."""
    import yaml

    from amlb_ext.pipeline.weird import check_coder_params

    params = split_pairs(words, "--coder-params", example="max_cost=2")
    if params and not models:
        raise ConfigError(
            "--coder-params needs a model",
            "name one: --model NAME, as the endpoint does",
        )
    try:
        read = {key: yaml.safe_load(value) for key, value in params.items()}
    except yaml.YAMLError:
        raise ConfigError(
            f"--coder-params is {' '.join(words)!r}", "write KEY=VALUE, e.g. max_cost=2"
        ) from None
    check_coder_params(read)
    return read
