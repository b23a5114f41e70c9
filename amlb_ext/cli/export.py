"""``hardsynth export``: a suite for others. ``difficulty``: how hard its rows are, as open data."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from amlb_ext.cli.command import Form, Suite, command
from amlb_ext.cli.display import Answer
from amlb_ext.core.errors import ConfigError
from amlb_ext.core.paths import check_suite_folder


def _runner(name: str, *flags: str) -> Form:
    """Return what is taken where a suite is for one runner, beside what every runner has."""
    return Form(
        where=f"with --for {name}",
        holds=lambda given: given["runner"] == name,
        only=("runner", "out", *flags),
    )


_RUNNERS = [
    _runner("amlb", "base_url", "form"),
    _runner("tabarena"),
    _runner("huggingface", "base_url", "licence"),
    _runner("openml-files", "licence"),
]


@command(group="benchmark", flag_names={"runner": "--for"}, forms=_RUNNERS)
def export(
    suite: Suite,
    *,
    runner: Literal["amlb", "tabarena", "huggingface", "openml-files"] = "amlb",
    base_url: str | None = None,
    out: Path | None = None,
    form: Literal["archives", "files"] | None = None,
    licence: Sequence[str] = (),
    quiet: bool = False,
) -> Answer:
    """Pack a suite for workers that fetch its data, for TabArena, or as a data set.

    Pack each AMLB task of a suite into an archive to upload, and write a small AMLB user directory
    whose definitions name the archives' addresses, so that AMLB runs the suite on any machine. The
    same suite gives the same bytes. To compare the results, use the suite itself: hardsynth report
    DIR --results OUT. With --for tabarena, write the tasks as tables beside a script that runs
    TabArena's models on them, in TabArena's environment. With --for huggingface, write the suite
    beside a card and metadata in the Croissant format; with --for openml-files, write what the
    OpenML client reads in place of a server. Nothing is sent.

    Parameters
    ----------
    runner : str
        who takes the suite
    base_url : URL
        address under which you upload the files, for AMLB: https://HOST/FOLDER or s3://BUCKET/FOLDER;
        with --for huggingface, that of the data set, for its metadata
    out : OUT
        folder to write to (default: the name of DIR with _export, _tabarena, _huggingface or
        _openml)
    form : str
        one archive for each AMLB task (archives), or every CSV file as it is (files), which is
        larger but lets AutoGluon run twice from one input folder (default: archives; series are
        never packed)
    licence : [TASK=]TEXT
        for huggingface and openml-files: licence to publish under, if the source states no licence
        that allows publishing; repeat the flag for several source tasks

    Examples
    --------
    $ hardsynth export hard --base-url https://HOST/FOLDER
    $ hardsynth export hard --for huggingface
    """
    if runner == "amlb" and base_url is None:
        raise ConfigError(
            "hardsynth export needs the address from which AMLB fetches the files",
            "give --base-url https://HOST/FOLDER, or --for tabarena, huggingface or openml-files, "
            "which need none",
        )
    check_suite_folder(suite)
    if runner == "tabarena":
        from amlb_ext import tabarena

        done = tabarena.export_for_tabarena(suite, out)
        return Answer(
            lambda: tabarena.export_summary(done, str(suite)),
            lambda: {"out": done.out, "tasks": done.tasks},
        )
    if runner == "huggingface":
        from amlb_ext.publish.huggingface import export_for_huggingface, hub_summary

        hub = export_for_huggingface(suite, out, licences=licence, url=base_url or "")
        return Answer(lambda: hub_summary(hub), lambda: vars(hub))
    if runner == "openml-files":
        from amlb_ext.publish.openml_files import (
            export_openml_files,
            openml_files_summary,
        )

        files = export_openml_files(suite, out, licences=licence)
        return Answer(lambda: openml_files_summary(files), lambda: vars(files))
    assert base_url is not None
    from amlb_ext.publish.export import UPLOAD, export_suite, export_summary
    from amlb_ext.suite.sealed_json import json_text

    packed = form or "archives"
    written = export_suite(suite, base_url, out, form=packed, quiet=quiet)
    out = written.out
    # `bytes` is a property, which vars() leaves out
    more = {"out": str(out), "upload": str(out / UPLOAD), "bytes": written.bytes}
    return Answer(
        lambda: export_summary(written, str(suite)),
        lambda: json_text({**vars(written), **more}),
    )


@command(group="research")
def difficulty(suite: Suite, *, out: Path) -> Answer:
    """Write as open data how hard each row of the sources is.

    Write three files. FILE (Parquet) has the hardness of each test row of a suite, P(F fails | x),
    the reducible hardness, and the parts that contain the row. FILE_tasks.csv has F, seeds,
    versions and the possible gain of each task, with its interval. FILE_croissant.json describes
    both in Croissant. 'hardsynth publish --difficulty' sends them to OpenML.

    Parameters
    ----------
    out : FILE
        Parquet file to write; the other two are written next to it

    Examples
    --------
    $ hardsynth difficulty hard -o difficulty.parquet
    """
    check_suite_folder(suite)
    from amlb_ext.core.json_values import to_json_values
    from amlb_ext.difficulty import write_difficulty
    from amlb_ext.difficulty.publication import gain_table

    written = write_difficulty(suite, out)

    def text() -> str:
        lines = [gain_table(written.table)]
        if (written.table["verdict"] == "").any():
            root = shlex.quote(str(suite))
            lines.append(
                f"what is left to gain is in the certificate: hardsynth certify {root}"
            )
        lines += [
            f"\n{written.n_rows} rows: {written.rows}",
            f"tasks: {written.tasks}",
            f"description: {written.croissant}",
        ]
        return "\n".join(lines)

    return Answer(text, lambda: to_json_values(written))
