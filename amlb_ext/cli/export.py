"""``hardsynth export``: a suite for AMLB's workers elsewhere, or for TabArena's models."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from amlb_ext.cli.command import Suite, command
from amlb_ext.cli.display import print_json
from amlb_ext.core.errors import ConfigError
from amlb_ext.core.paths import check_suite_folder


@command(group="benchmark", flag_names={"runner": "--for"})
def export(
    suite: Suite,
    *,
    runner: Literal["amlb", "tabarena"] = "amlb",
    base_url: str | None = None,
    out: Path | None = None,
    form: Literal["archives", "files"] | None = None,
    quiet: bool = False,
    json: bool = False,
) -> int:
    """Pack a suite for workers that fetch its data, or for TabArena.

    Pack each AMLB task of a suite into an archive to upload, and write a small AMLB user directory
    whose definitions name the archives' addresses, so that AMLB runs the suite on any machine. The
    same suite gives the same bytes. To compare the results, use the suite itself: hardsynth report
    DIR --results OUT. With --for tabarena, write the tasks as tables beside a script that runs
    TabArena's models on them, in TabArena's environment.

    Parameters
    ----------
    runner : str
        who runs the suite
    base_url : URL
        address under which you upload the files, for AMLB: https://HOST/FOLDER or s3://BUCKET/FOLDER
    out : OUT
        folder to write to (default: the name of DIR with _export or _tabarena)
    form : str
        one archive for each AMLB task (archives), or every CSV file as it is (files), which is
        larger but lets AutoGluon run twice from one input folder (default: archives; series are
        never packed)

    Examples
    --------
    $ hardsynth export hard --base-url https://HOST/FOLDER
    $ hardsynth export hard --for tabarena
    """
    if runner == "tabarena":
        for flag, value in {"--base-url": base_url, "--form": form}.items():
            if value is not None:
                raise ConfigError(
                    f"{flag} is of an export for AMLB, and --for tabarena uploads nothing",
                    f"leave {flag} out",
                )
    elif base_url is None:
        raise ConfigError(
            "hardsynth export needs the address from which AMLB fetches the files",
            "give --base-url https://HOST/FOLDER, or --for tabarena, which needs none",
        )
    check_suite_folder(suite)
    if base_url is None:
        return _export_for_tabarena(suite, out, quiet=quiet, json=json)
    from amlb_ext.publish.export import UPLOAD, export_suite, export_summary
    from amlb_ext.suite.sealed_json import json_text

    packed = form or "archives"
    written = export_suite(suite, base_url, out, form=packed, quiet=quiet or json)
    if json:
        # `bytes` is a property, which vars() leaves out
        out = written.out
        more = {"out": str(out), "upload": str(out / UPLOAD), "bytes": written.bytes}
        print(json_text({**vars(written), **more}), end="")
    elif not quiet:
        print(export_summary(written, str(suite)))
    return 0


def _export_for_tabarena(
    suite: Path, out: Path | None, *, quiet: bool, json: bool
) -> int:
    """Write the tasks of a suite for TabArena; see :mod:`amlb_ext.tabarena`."""
    from amlb_ext.tabarena import export_for_tabarena, export_summary

    written = export_for_tabarena(suite, out)
    if json:
        print_json({"out": written.out, "tasks": written.tasks})
    elif not quiet:
        print(export_summary(written, str(suite)))
    return 0
