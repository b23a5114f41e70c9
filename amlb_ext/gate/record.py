"""The record of a gate: what was compared, by which settings, and what came out.

It names every file by its sha256 and is sealed itself, so that a changed model, table or figure
shows. With a key it is signed, too: only who has the key can have written it.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from amlb_ext.core.errors import ConfigError, SourceError
from amlb_ext.core.files import sha256_file, write_text
from amlb_ext.core.version import __version__
from amlb_ext.gate.checks import GateResult
from amlb_ext.suite.sealed_json import json_text, open_sealed, sealed_text

#: Incremented when the form changes.
FORMAT = 1
#: Relative difference of two figures that a machine's arithmetic may make.
_ROUNDING = 1e-6
#: Figures of a check that are repeated.
_FIGURES = ("change", "low", "high")


def write_record(
    path: Path,
    gate: GateResult,
    *,
    files: Mapping[str, str],
    settings: Mapping[str, Any],
    key: bytes = b"",
) -> None:
    """Write the record of a gate.

    Parameters
    ----------
    path : Path
    gate : GateResult
    files : mapping of str to str
        Models and tables, by what they are: ``table``, ``F``, ``train``, and candidates by name.
        What is no file, such as the address of a service, is named without a checksum.
    settings : mapping
        What repeats the gate, as JSON values.
    key : bytes
        Signs the record where it is not empty (HMAC-SHA256, RFC 2104).
    """
    entries = {}
    for name, file in files.items():
        checksum = sha256_file(Path(file)) if Path(file).is_file() else ""
        entries[name] = {"name": file, "sha256": checksum}
    content = {
        "format": FORMAT,
        "tool": "hardsynth gate",
        "version": __version__,
        "files": entries,
        "settings": dict(settings),
        "outcome": gate.outcome,
        "checks": [{**vars(check), "outcome": check.outcome} for check in gate.checks],
    }
    if key:
        content["signature"] = _signature(content, key)
    write_text(path, sealed_text(content))


def _signature(content: Mapping[str, Any], key: bytes) -> str:
    """Return the signature of what a record says, without its seal."""
    seals = ("signature", "sha256")
    text = json_text(
        {name: each for name, each in content.items() if name not in seals}
    )
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()


def read_record(path: Path, key: bytes = b"") -> dict[str, Any]:
    """Return a record that is whole: seal, signature and files hold.

    Raises
    ------
    SourceError
        It cannot be read, was changed, was signed with another key, or a file is not what it was.
    """
    try:
        content = open_sealed(path)
    except (OSError, ValueError) as error:
        raise SourceError(
            f"cannot read the record {path}: {error}", "give a file of gate --record"
        ) from None
    if content is None or content.get("format") != FORMAT:
        raise SourceError(
            f"{path} is no record of this version, or was changed: its seal does not hold",
            "write it anew with hardsynth gate ... --record FILE",
        )
    if key and not hmac.compare_digest(
        str(content.get("signature", "")), _signature(content, key)
    ):
        raise SourceError(
            f"{path} was not signed with this key", "check HARDSYNTH_GATE_KEY"
        )
    for what, entry in content["files"].items():
        if entry["sha256"] and (
            not Path(entry["name"]).is_file()
            or sha256_file(Path(entry["name"])) != entry["sha256"]
        ):
            raise SourceError(
                f"{what} is not the file that the record is of: {entry['name']}",
                "restore it, or run the gate anew",
            )
    return content


def differences(content: Mapping[str, Any], gate: GateResult) -> list[str]:
    """Return what a repeated gate says otherwise than its record, a sentence each.

    Raises
    ------
    ConfigError
        The record has other checks.
    """
    # through JSON, as the record went
    now = json.loads(json_text([vars(check) for check in gate.checks]))
    if len(now) != len(content["checks"]):
        raise ConfigError(
            f"the record has {len(content['checks'])} checks, and the gate {len(now)}",
            "repeat it with the settings of the record",
        )
    said = []
    for old, new in zip(content["checks"], now, strict=True):
        where = f"{old['candidate']} on {old['data']}"
        if old["outcome"] != new["outcome"]:
            said.append(
                f"{where}: {old['outcome']} in the record, {new['outcome']} now"
            )
            continue
        for figure in _FIGURES:
            before, after = old[figure], new[figure]
            if (before is None) != (after is None) or (
                before is not None
                and abs(before - after) > _ROUNDING * max(1e-3, abs(before))
            ):
                said.append(f"{where}: {figure} was {before}, and is {after}")
    return said
