"""``hardsynth demo``: a first look, from data to an answer, with the commands that it runs.

It runs the commands that a user would type, with small settings, and keeps what they print in a
log, so that a first look shows one screen.
"""

from __future__ import annotations

import contextlib
import io
import shlex
import shutil
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

from amlb_ext.cli.command import command
from amlb_ext.core.assets import asset_path
from amlb_ext.core.errors import ConfigError, RunError

#: What the demo is about: real rows with categories, real rows of a regression, and a simulated
#: table on which F, a linear model, is surely wrong.
TASKS = ("titanic", "diabetes", "toy")
_LOG = "demo.log"


@command(group="daily")
def demo(
    *,
    out: Path = Path("hardsynth_demo"),
    no_amlb: bool = False,
    amlb: str | None = None,
) -> int:
    """Take a first look: three tasks, from data to an answer, in a minute.

    Make three small tasks from bundled data, check them, score two candidates against a linear
    model F, run the AutoML Benchmark where it can be had, and write the report. About a minute of
    work on two cores; every command is shown. Without AMLB in the cache its first set-up takes some
    minutes more, which --no-amlb avoids.

    Parameters
    ----------
    out : DIR
        folder to write to
    no_amlb : bool
        leave the AutoML Benchmark out
    amlb : DIR
        AMLB checkout (default: $AMLB_HOME, or else a new clone)

    Examples
    --------
    $ hardsynth demo
    $ hardsynth demo --no-amlb -o my_demo
    """
    if no_amlb and amlb:
        raise ConfigError("--amlb has no effect with --no-amlb", "leave one out")
    # only the demo writes a log of this name, and only beside what it made
    is_free = not out.exists() or (out.is_dir() and not any(out.iterdir()))
    if not (is_free or (out / _LOG).is_file()):
        raise ConfigError(f"{out} is there, and no demo", "choose a folder with -o")
    for folder in (out / "suite", out / "results"):
        if folder.is_dir():
            shutil.rmtree(folder)
    out.mkdir(parents=True, exist_ok=True)
    (out / _LOG).touch()
    shutil.copyfile(
        asset_path("resources", "demo", "settings.yaml"), out / "settings.yaml"
    )
    print(
        f"hardsynth demo: about a minute of work on two cores, in {out}\n"
        "It is small: 2 folds, a linear model F, few made rows, 2 candidates "
        f"({out / 'settings.yaml'}).\n"
        "For results that you rely on, use 'hardsynth generate' with its defaults.\n",
        flush=True,
    )
    began = time.monotonic()
    suite = str(out / "suite")
    results = str(out / "results")
    with (out / _LOG).open("w", encoding="utf-8") as log:
        steps = _Steps(log)
        sources = [f"bundled/{task}" for task in TASKS]
        settings = ["--config", str(out / "settings.yaml"), "--certificate", "none"]
        steps.run(
            "find where F fails, and make three hard tasks",
            ["generate", *sources, "-o", suite, *settings],
        )
        steps.run("check every file of the suite", ["verify", suite])
        # a second candidate, where users add their own frameworks
        entry = asset_path("resources", "demo", "frameworks.yaml").read_text("utf-8")
        with (out / "suite" / "frameworks.yaml").open("a", encoding="utf-8") as handle:
            handle.write(entry)
        zoo = ["--candidate", "hist_gradient_boosting", "--candidate", "random_forest"]
        steps.run(
            "measure what each task may be used for",
            ["certify", suite, *zoo, "--refits", "3"],
        )
        steps.run(
            "score F, F once more as a control, and two candidates: HardsynthCandidate "
            "(boosting) and forest",
            ["score", suite, "-r", results],
        )
        if not no_amlb:
            _run_amlb(steps, suite, results, amlb)
        answer = steps.run(
            "write the report", ["report", suite, "-r", results], accepted=(0, 1)
        )
    print(f"\ndone in {time.monotonic() - began:.0f} s; all output: {out / _LOG}\n")
    print(answer, end="")
    return 0


class _Steps:
    """Runs commands in this process; their output goes to a log."""

    def __init__(self, log: TextIO) -> None:
        self._log = log
        self._number = 0
        #: Exit status of the last command.
        self.status = 0

    @property
    def last_line(self) -> str:
        """What the last command printed last."""
        return Path(self._log.name).read_text("utf-8").rstrip().rpartition("\n")[2]

    def run(
        self, title: str, words: Sequence[str], accepted: Sequence[int] = (0,)
    ) -> str:
        """Run a command, print how long it took, and return what it printed as its answer.

        Raises
        ------
        RunError
            Its exit status is not among the accepted ones.
        """
        from amlb_ext.cli.main import main

        self._number += 1
        command = f"hardsynth {shlex.join(words)}"
        print(f"{self._number}. {title}\n   $ {command}", flush=True)
        self._log.write(f"$ {command}\n")
        self._log.flush()
        began = time.monotonic()
        answer = io.StringIO()
        with contextlib.redirect_stdout(answer), contextlib.redirect_stderr(self._log):
            self.status = main(words)
        self._log.write(answer.getvalue())
        self._log.flush()
        if self.status not in accepted:
            raise RunError(
                f"the demo stopped, exit status {self.status}: {self.last_line}",
                f"its output: {self._log.name}",
            )
        print(f"   {time.monotonic() - began:.0f} s", flush=True)
        return answer.getvalue()


def _run_amlb(steps: _Steps, suite: str, results: str, amlb: str | None) -> None:
    """Run AMLB on the real rows of each task; in one line why not, where it cannot be had."""
    words = ["run", "constantpredictor", "hardsynth_quick", "-u", suite, "-r", results]
    for task in TASKS:
        words += ["-t", f"{task}_full"]
    if amlb:
        words += ["--amlb", amlb]
    steps.run(
        "run the AutoML Benchmark itself, runbenchmark.py", words, accepted=(0, 2)
    )
    if steps.status != 0:
        reason = steps.last_line.partition("error:")[2].strip() or steps.last_line
        print(f"   left out, AMLB cannot be had here: {reason}", flush=True)
