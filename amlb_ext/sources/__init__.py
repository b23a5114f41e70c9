"""From a spec string to tasks.

==============  ============================================================================
``base``        the contract: :class:`TaskRef`, :class:`Source`
``bundled``     tasks that need no file and no network: ``bundled``, ``bundled/NAME``
``files``       a table on disk: ``.csv``, ``.parquet``, ``.arff``
``amlb_yaml``   an AMLB benchmark definition: a ``.yaml`` file or its name
``openml``      a task or suite of OpenML: ``openml/t/ID``, ``openml/s/ID``
==============  ============================================================================

They stand on ``table`` (a table as it was read, and how tables are joined), ``targets`` (a table
with several targets), ``features`` (rows of another table in the form of a task), ``reading`` and
``arff`` (file to table), ``remote`` and ``archive`` (URL to file, archive to files) and
``dataset_files`` (the files that AMLB's definitions name).
``openml_client`` keeps the OpenML client in hand. A new source is one file and one line in
:data:`SOURCES`; the conformance test then holds it to the
contract.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from amlb_ext.core.config import SourceConfig
from amlb_ext.core.errors import ConfigError, SourceError
from amlb_ext.sources.amlb_yaml import AmlbSource
from amlb_ext.sources.base import Source, TaskRef
from amlb_ext.sources.bundled import BundledSource
from amlb_ext.sources.files import FileSource
from amlb_ext.sources.openml import OpenMLSource
from amlb_ext.sources.targets import check_targets

__all__ = ["SOURCES", "Source", "TaskRef", "describe_sources", "open_specs"]

#: All sources, in the order in which they are asked.
SOURCES: tuple[Source, ...] = (OpenMLSource(), BundledSource(), FileSource(), AmlbSource())


def open_specs(specs: Sequence[str], options: SourceConfig | None = None) -> Iterator[TaskRef]:
    """Return the tasks that the specs name, in order, without reading any data.

    Parameters
    ----------
    specs : sequence of str
        ``bundled``, ``bundled/NAME``, a path to a table or to an AMLB definition, the name of
        an AMLB definition, ``openml/t/ID``, ``openml/s/ID``.
    options : SourceConfig, optional

    Returns
    -------
    iterator of TaskRef

    Raises
    ------
    SourceError
        At once, when any spec is understood by no source; later, while iterating, when a
        definition or suite as a whole cannot be read.
    ConfigError
        ``options.targets`` that contradict themselves, or beside a spec that is no table.

    Examples
    --------
    >>> [ref.name for ref in open_specs(["bundled/toy", "bundled/wine"])]
    ['toy', 'wine']
    >>> open_specs(["bundeld/toy"])
    Traceback (most recent call last):
    ...
    amlb_ext.core.errors.SourceError: no source understands 'bundeld/toy' (did you mean \
'bundled/toy'? accepted: openml/t/ID, openml/s/ID (also test.openml/...); bundled, bundled/NAME; \
a path ending in .csv, .parquet or .arff; a path ending in .yaml or .yml, or the name of an AMLB \
benchmark definition)
    """
    options = options or SourceConfig()
    owners = [_owner(spec, options) for spec in specs]
    check_targets(options)
    for spec, owner in zip(specs, owners, strict=True):
        if options.targets and not isinstance(owner, FileSource):
            raise ConfigError(
                f"--targets names columns of a table, {spec!r} is none",
                f"give {FileSource.forms}, before the flag",
            )
    refs = chain.from_iterable(
        source.refs(spec, options) for source, spec in zip(owners, specs, strict=True)
    )
    return limited(refs, options.max_tasks)


def limited(refs: Iterable[TaskRef], most: int) -> Iterator[TaskRef]:
    """Yield tasks, and raise at the first that is one too many; nothing of it was fetched.

    Raises
    ------
    SourceError
    """
    for number, ref in enumerate(refs):
        if number >= most:
            raise SourceError(
                f"the sources name more than {most:,} tasks, each of which would be fetched and "
                "hardened; nothing was",
                "name fewer of them, or raise --max-tasks if you mean it",
            )
        yield ref


def describe_sources() -> dict[str, str]:
    """Return the accepted forms of each source by name.

    Examples
    --------
    >>> describe_sources()["bundled"].split(":")[0]
    'bundled, bundled/NAME'
    """
    options = SourceConfig()
    texts = {}
    for source in SOURCES:
        known = ", ".join(word.rsplit("/")[-1] for word in source.suggestions(options)[1:])
        texts[source.name] = (
            f"{source.forms}: {known}" if source.name == "bundled" else source.forms
        )
    return texts


def _owner(spec: str, options: SourceConfig) -> Source:
    for source in SOURCES:
        if source.accepts(spec, options):
            return source
    known = [word for source in SOURCES for word in source.suggestions(options)]
    close = difflib.get_close_matches(spec, known, n=1, cutoff=0.6)
    hint = f"did you mean {close[0]!r}? " if close else ""
    forms = "; ".join(source.forms for source in SOURCES)
    raise SourceError(f"no source understands {spec!r}", f"{hint}accepted: {forms}")
