"""Flags that say where folds are computed, and what each may cost."""

from __future__ import annotations

import argparse
from typing import Any

from amlb_ext.core.errors import ConfigError


def add_execution(parser: argparse.ArgumentParser) -> None:
    """Add the flags; ``-j`` is every command's own."""
    group = parser.add_argument_group(
        "execution", "where folds are computed and what each may cost; never changes a result"
    )
    group.add_argument(
        "--cluster",
        default="",
        metavar="WHERE",
        help="a Dask scheduler's address or file, slurm, or pbs (default: this machine); "
        "-j is then the number of batch jobs",
    )
    group.add_argument(
        "--cluster-option",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="of the batch jobs, as dask-jobqueue names them, e.g. queue=short; repeat it",
    )
    group.add_argument(
        "--shared-files",
        action="store_true",
        help="the cluster sees the suite's folder under the same path (default: folds are sent)",
    )
    group.add_argument(
        "--fold-timeout", type=float, default=0.0, metavar="SECONDS", help="a fold may take"
    )
    group.add_argument(
        "--fold-memory", default="", metavar="SIZE", help="a fold may hold, e.g. 4GB"
    )
    group.add_argument(
        "--fold-retries",
        type=int,
        default=2,
        metavar="N",
        help="of a fold whose process or worker died (default: 2)",
    )
    group.add_argument(
        "--logs", metavar="FOLDER", help="a log of each fold (default: of lost ones, in the suite)"
    )


def execution_from(arguments: argparse.Namespace) -> Any:
    """Return the :class:`~amlb_ext.core.parallel.Execution` that the flags ask for.

    Raises
    ------
    ConfigError
        A value that cannot be used.
    """
    from amlb_ext.core.parallel.execution import Execution, to_bytes

    options = {}
    for word in arguments.cluster_option:
        key, equals, value = word.partition("=")
        if not (key and equals):
            raise ConfigError(
                f"--cluster-option {word}", "write KEY=VALUE, e.g. --cluster-option queue=short"
            )
        options[key] = value
    return Execution(
        workers=arguments.jobs,
        cluster=arguments.cluster,
        options=options,
        shared=arguments.shared_files,
        timeout=arguments.fold_timeout,
        memory=to_bytes(arguments.fold_memory) if arguments.fold_memory else 0,
        retries=arguments.fold_retries,
    )
