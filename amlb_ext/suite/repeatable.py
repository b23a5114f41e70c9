"""Suites that are made again as a whole: what the command asked for, kept twice.

A suite of tables is made again fold by fold, by the records of its folds. Where there are none, as
of series and of weird tasks, the manifest keeps the order of the command, and ``order.json`` beside
it keeps the order, too, with the sha256 of every file. So each of the two is made again from the
other, and what is made again can be held against what stood there.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import Field

from amlb_ext.core.errors import SuiteError
from amlb_ext.core.files import remove_file, sha256_file, write_text
from amlb_ext.suite.layout import Layout
from amlb_ext.suite.manifest import Manifest, write_manifest
from amlb_ext.suite.read_record import InnerPath, record_from_json
from amlb_ext.suite.sealed_json import open_sealed, sealed_text


@dataclass(frozen=True, kw_only=True)
class RepeatableManifest(Manifest):
    """The manifest of a suite that is made again as a whole.

    Attributes
    ----------
    order : dict
        What the command asked for, without local folders; empty where no command made the suite.
    """

    order: dict[str, Any] = field(default_factory=dict)

    @property
    def order_files(self) -> set[str]:
        """The file that keeps the order, too, relative to the suite; none without an order."""
        return {Layout(Path()).order.as_posix()} if self.order else set()


SomeRepeatable = TypeVar("SomeRepeatable", bound=RepeatableManifest)


@dataclass(frozen=True, kw_only=True)
class StoredOrder:
    """What a suite was made by, and what came of it.

    Attributes
    ----------
    holds : str
        What the suite holds, see :class:`~amlb_ext.suite.manifest.Manifest`.
    version : str
        The tool's.
    order : dict
    files : dict of str to str
        The sha256 of every file, by relative path.
    """

    holds: Annotated[str, Field(pattern="^(series|weird tasks)$")]
    version: str
    order: dict[str, Any]
    files: dict[InnerPath, str]

    @classmethod
    def of(cls, manifest: RepeatableManifest) -> StoredOrder:
        """Return what a manifest keeps."""
        return cls(
            holds=manifest.holds,
            version=manifest.version,
            order=manifest.order,
            files=manifest.files,
        )

    @classmethod
    def read(cls, layout: Layout) -> StoredOrder:
        """Return what is kept beside a manifest that is damaged or missing.

        Raises
        ------
        SuiteError
            It is damaged, too.
        """
        try:
            stored = record_from_json(cls, open_sealed(layout.order))
        except ValueError:
            raise SuiteError(
                "hardsynth/manifest.json and hardsynth/order.json are both damaged or missing; "
                "nothing was changed",
                "run the command that made the suite again, in another folder",
            ) from None
        own = {layout.relative(layout.order): sha256_file(layout.order)}
        return replace(stored, files={**stored.files, **own})


def write_with_order(manifest: SomeRepeatable, layout: Layout) -> SomeRepeatable:
    """Write a manifest and, before it, the order; return it with the checksum of that.

    Raises
    ------
    SuiteError
        The disk cannot be written.
    """
    if manifest.order:
        digest = write_text(layout.order, sealed_text(vars(StoredOrder.of(manifest))))
        files = {**manifest.files, layout.relative(layout.order): digest}
        manifest = replace(manifest, files=files)
    else:
        # that of a command which wrote here before
        remove_file(layout.order)
    write_manifest(manifest, layout.manifest)
    return manifest
