"""The contract of a source: from a spec string to references, from a reference to a task."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from amlb_ext.core.config import SourceConfig
from amlb_ext.core.errors import SourceError, suggest_nearest
from amlb_ext.core.task import Task


@dataclass(frozen=True)
class TaskRef:
    """A task that is known but not yet read.

    Attributes
    ----------
    name : str
        What to call it until it is loaded; the loaded task's own name decides.
    spec : str
        The spec that leads to this task alone, e.g. ``openml/t/31``.
    load : callable
        Reads the task; raises :class:`~amlb_ext.core.errors.HardsynthError` when it cannot.

    Examples
    --------
    >>> from amlb_ext.sources import open_specs
    >>> ref = next(open_specs(["bundled/diabetes"]))
    >>> ref.name, ref.spec, len(ref.load())
    ('diabetes', 'bundled/diabetes', 442)
    """

    name: str
    spec: str
    load: Callable[[], Task]


class Source(ABC):
    """One kind of source; a subclass is stateless and stands once in the registry.

    Attributes
    ----------
    name : str
        Short name, for messages and tests; what it accepts stands under it in ``forms``.
    """

    name: str

    @abstractmethod
    def accepts(self, spec: str, options: SourceConfig) -> bool:
        """Whether this source should read ``spec``; cheap, and it never raises."""

    @abstractmethod
    def refs(self, spec: str, options: SourceConfig) -> Iterator[TaskRef]:
        """Yield the tasks of ``spec`` without reading any data.

        Raises
        ------
        SourceError
            When the spec as a whole cannot be understood; what is wrong with one task only is
            raised by that task's ``load``.
        """

    def suggestions(self, options: SourceConfig) -> list[str]:
        """Return specs that certainly exist, to be named when a spec is unknown."""
        return []


class Collection(Source):
    """Tasks that have names: all of them by a word, one by ``WORD/TASK``.

    A subclass says which there are, and reads one.

    Attributes
    ----------
    word : str
        The name of the source where it is no other.
    title : str
        The collection, as errors name it; its word where it has no other name.
    """

    word: str = ""
    title: str = ""

    def __init__(self) -> None:
        self.word = self.word or self.name
        self.title = self.title or self.word

    @abstractmethod
    def task_names(self) -> Sequence[str]:
        """Return the names of all tasks."""

    @abstractmethod
    def load(self, name: str, options: SourceConfig) -> Task:
        """Read a task.

        Raises
        ------
        SourceError, NetworkError, DataError
            What is wrong with it.
        """

    def is_offered(self, name: str) -> bool:
        """Whether a task is among those that the word for all stands for."""
        return True

    def accepts(self, spec: str, options: SourceConfig) -> bool:
        """Whether the spec is the collection's word, or one of its tasks."""
        return spec == self.word or spec.startswith(f"{self.word}/")

    def refs(self, spec: str, options: SourceConfig) -> Iterator[TaskRef]:
        """Yield the named task, or all that are offered."""
        names = self.task_names()
        wanted = spec.partition("/")[2]
        if wanted and wanted not in names:
            raise SourceError(
                f"{self.title} has no task {wanted!r}", suggest_nearest(wanted, names)
            )
        chosen = [wanted] if wanted else filter(self.is_offered, names)
        for name in chosen:
            load = partial(self.load, name, options)
            yield TaskRef(name, f"{self.word}/{name}", load)

    def suggestions(self, options: SourceConfig) -> list[str]:
        """Return the word for all tasks, and each of them."""
        return [self.word, *(f"{self.word}/{name}" for name in self.task_names())]


def whole_number(settings: Mapping[str, Any], key: str, where: str) -> int:
    """Return a setting of a definition that must be a whole number of 1 or more.

    Raises
    ------
    SourceError
        It is something else; ``where`` names the task.

    Examples
    --------
    >>> whole_number({"horizon": "12"}, "horizon", "a.yaml")
    12
    """
    value = settings[key]
    # YAML makes true of "yes", and true is an integer to Python
    is_whole = isinstance(value, int | str) and not isinstance(value, bool)
    if not is_whole or not str(value).isdecimal() or int(value) < 1:
        raise SourceError(
            f"{where}: {key} is {str(value)[:50]!r}",
            "write a whole number, 1 or more",
        )
    return int(value)


def choose_names(names: Sequence[str], wanted: str, definition: str) -> list[str]:
    """Return the task of a definition that is wanted, in whatever case; all where none is.

    Raises
    ------
    SourceError
        There is no such task.
    """
    chosen = [name for name in names if not wanted or name.lower() == wanted.lower()]
    if wanted and not chosen:
        raise SourceError(
            f"{definition} has no task {wanted!r}", suggest_nearest(wanted, names)
        )
    return chosen
