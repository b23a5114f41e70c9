"""From a spec string to tasks.

================  ==========================================================================
``base``          the contract: :class:`TaskRef`, :class:`Source`
``bundled``       tasks that need no file and no network: ``bundled``, ``bundled/NAME``, and
                  tasks that a forest on raw columns fails at: ``weird``, ``weird/NAME``
``files``         a table on disk, with one target or several
``amlb_yaml``     an AMLB benchmark definition: a ``.yaml`` file or its name
``openml``        a task or suite of OpenML: ``openml/t/ID``, ``openml/s/ID``, and a task of
                  TabArena by name: ``tabarena``, ``tabarena/NAME``
``data_foundry``  a container of Data Foundry, as BeyondArena's: ``beyondarena/NAME``, a folder
================  ==========================================================================

They stand on

====================  ======================================================================
``forms``             what a user types to name a task of each source
``bundles``           which tasks are bundled, with their targets and credits
``table``             a table as it was read, and how tables are joined
``column_roles``      columns that are read as the user says
``features``          rows of another table in the form of a task
``reading``           how a table was read, for people
``read_table``        file to table, with ``arff`` and ``typed_files``
``urls``              which addresses may be asked
``download``          address to file
``dataset_files``     the files that AMLB's definitions name, archives unpacked
``definition_check``  a definition held against AMLB's rules
``openml_client``     how the OpenML client is held
====================  ======================================================================

A new source is one file, its name and forms in ``forms``, and one line in :func:`load_sources`; the
conformance test then holds it to the contract. Nothing but names is imported here, since
``hardsynth list`` does without pandas.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import chain
from typing import TYPE_CHECKING

from amlb_ext.core.errors import ConfigError, SourceError
from amlb_ext.sources.bundles import BUNDLES
from amlb_ext.sources.forms import FORMS

if TYPE_CHECKING:
    from amlb_ext.core.config import SourceConfig
    from amlb_ext.sources.base import Source, TaskRef

__all__ = ["describe_sources", "load_sources", "open_specs"]

#: Most tasks that all sources together may name. Each is fetched and hardened, so a longer list is
#: a slip, or a server that means harm; AMLB reads definitions of more tasks for minutes
#: (``docs/evidence/scale.md``), so larger benchmarks are several suites.
MAX_TASKS = 1000


@cache
def load_sources() -> tuple[Source, ...]:
    """Import all sources and return them in the order in which they are asked.

    Examples
    --------
    >>> [source.name for source in load_sources()]
    ['openml', 'bundled', 'weird', 'tabarena', 'data_foundry', 'files', 'amlb']
    """
    from amlb_ext.sources.amlb_yaml import AmlbSource
    from amlb_ext.sources.bundled import BundledSource, WeirdSource
    from amlb_ext.sources.data_foundry import DataFoundrySource
    from amlb_ext.sources.files import FileSource
    from amlb_ext.sources.openml import OpenMLSource, TabArenaSource

    return (
        OpenMLSource(),
        BundledSource(),
        WeirdSource(),
        TabArenaSource(),
        DataFoundrySource(),
        FileSource(),
        AmlbSource(),
    )


def open_specs(
    specs: Sequence[str], options: SourceConfig | None = None
) -> Iterator[TaskRef]:
    """Return the tasks that the specs name, in order, without reading any data.

    Parameters
    ----------
    specs : sequence of str
        ``bundled``, ``bundled/NAME``, ``weird``, ``weird/NAME``, ``tabarena/NAME``,
        ``beyondarena/NAME``, a path to a table, to an AMLB definition or to a container of Data
        Foundry, the name of an AMLB definition, ``openml/t/ID``, ``openml/s/ID``.
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
weird, weird/NAME; tabarena, tabarena/NAME; beyondarena, beyondarena/NAME, or the folder of a Data \
Foundry container; a path ending in .csv, .tsv, .parquet, .feather, .xlsx, .jsonl or .arff, packed \
or not; a path ending in .yaml or .yml, or the name of an AMLB benchmark definition)
    """
    # pandas, which reading names does without
    from amlb_ext.core.config import SourceConfig
    from amlb_ext.sources.files import check_targets

    options = options or SourceConfig()
    sources = [_find_source(spec, options) for spec in specs]
    check_targets(options)
    for spec, source in zip(specs, sources, strict=True):
        if options.targets and source.name != "files":
            raise ConfigError(
                f"--targets names columns of a table, but {spec!r} is not a table",
                f"give {FORMS['files']}, before the flag",
            )
    return _refs_of_all(specs, sources, options)


def _refs_of_all(
    specs: Sequence[str], sources: Sequence[Source], options: SourceConfig
) -> Iterator[TaskRef]:
    """Yield the tasks, and raise at the first one beyond the limit, before it is fetched."""
    number = 0
    for spec, source in zip(specs, sources, strict=True):
        # lazily: a suite of OpenML asks the server when its turn comes
        for ref in source.refs(spec, options):
            number += 1
            if number > MAX_TASKS:
                raise SourceError(
                    f"the sources name more than {MAX_TASKS:,} tasks, and each would be fetched "
                    "and hardened; none was",
                    "name fewer tasks, and make several suites",
                )
            yield ref


def describe_sources() -> dict[str, str]:
    """Return the accepted forms of each source by name.

    Examples
    --------
    >>> describe_sources()["bundled"].split(":")[0]
    'bundled, bundled/NAME'
    """
    texts = dict(FORMS)
    # bundled tasks are few enough to list them all
    texts["bundled"] += ": " + ", ".join(BUNDLES)
    return texts


def _find_source(spec: str, options: SourceConfig) -> Source:
    for source in load_sources():
        if source.accepts(spec, options):
            return source
    all_specs = (source.suggestions(options) for source in load_sources())
    known_specs = list(chain.from_iterable(all_specs))
    # not suggest_nearest, since the accepted forms are named in any case
    nearest = difflib.get_close_matches(spec, known_specs, n=1, cutoff=0.6)
    hint = f"did you mean {nearest[0]!r}? " if nearest else ""
    forms = "; ".join(FORMS.values())
    raise SourceError(f"no source understands {spec!r}", f"{hint}accepted: {forms}")
