"""A model behind an address, asked as one of scikit-learn."""

from __future__ import annotations

import json
import time
from collections.abc import Callable

import numpy as np
import pandas as pd

from amlb_ext.core.config import BaselineConfig
from amlb_ext.core.errors import ModelError, ServiceError
from amlb_ext.models.service.answers import AnswerReader
from amlb_ext.models.service.options import (
    SAME_COMMAND,
    ServiceOptions,
    check_service,
)
from amlb_ext.models.service.transport import Transport


def connect_service(
    config: BaselineConfig, sleep: Callable[[float], None] = time.sleep
) -> RemoteModel:
    """Return the model behind an address; nothing is sent yet.

    Parameters
    ----------
    config : BaselineConfig
        ``params`` are those of :class:`ServiceOptions`.
    sleep : callable
        Waits between tries.

    Raises
    ------
    ModelError
        See :func:`check_service`.
    """
    check_service(config)
    return RemoteModel(config.model, ServiceOptions.read(config.params), sleep)


class RemoteModel:
    """A fitted model behind an address; it is asked like one of scikit-learn.

    Parameters
    ----------
    address : str
    options : ServiceOptions
    sleep : callable
        Waits between tries.

    Attributes
    ----------
    classes_ : tuple of str
        As the service named them with its last answer; empty until it answers with probabilities.
    """

    #: What it answers is asked for, and no labels beside probabilities: each row takes it time.
    gives_labels = False

    def __init__(
        self,
        address: str,
        options: ServiceOptions,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.options = options
        self._transport = Transport(address, options, sleep)
        self._reader = AnswerReader(self._transport.name)

    @property
    def classes_(self) -> tuple[str, ...]:
        """The classes as the service named them."""
        return self._reader.classes

    def predict(self, frame: pd.DataFrame) -> np.ndarray:
        """Return a number for each row, ``(n,)``.

        Raises
        ------
        ServiceError
            The service cannot be reached, is too slow, or answers anything but that.
        """
        blocks = [self._ask(block, "predictions") for block in self._batches(frame)]
        return np.concatenate([np.zeros(0), *blocks])

    def predict_proba(self, frame: pd.DataFrame) -> np.ndarray:
        """Return the probability of each of ``classes_`` for each row, ``(n, C)``.

        Raises
        ------
        ServiceError
            As :meth:`predict`.
        """
        blocks = [self._ask(block, "probabilities") for block in self._batches(frame)]
        if not blocks:
            return np.zeros((0, len(self.classes_)))
        return np.vstack(blocks)

    def _batches(self, frame: pd.DataFrame) -> list[pd.DataFrame]:
        size = self.options.batch
        return [frame.iloc[at : at + size] for at in range(0, len(frame), size)]

    def _ask(self, frame: pd.DataFrame, wanted: str) -> np.ndarray:
        """Return the answer to one question."""
        body = encode_rows(frame, self.options.format)
        answer = self._reader.read_json(self._transport.ask(body, len(frame)))
        read = self._reader.read_probabilities
        if wanted == "predictions":
            read = self._reader.read_predictions
        try:
            return read(answer, len(frame))
        except ServiceError:
            raise
        except ModelError as error:
            raise ServiceError(
                error.message, f"{error.remedy}; {SAME_COMMAND}"
            ) from None


def encode_rows(frame: pd.DataFrame, form: str) -> bytes:
    """Return rows as the body of a question.

    Parameters
    ----------
    frame : DataFrame of shape (n, d)
        With the source's columns.
    form : {'json', 'arrow'}

    Examples
    --------
    >>> encode_rows(pd.DataFrame({"age": [39, 50], "city": ["Ulm", None]}), "json").decode()
    '{"records":[{"age":39,"city":"Ulm"},{"age":50,"city":null}]}'
    """
    if form == "json":
        # numbers in full: a row must be the very row that is written
        records = frame.astype(object).where(frame.notna(), None).to_dict("records")
        text = json.dumps(
            {"records": records}, separators=(",", ":"), default=lambda x: x.item()
        )
        return text.encode("utf-8")
    import pyarrow

    table = pyarrow.Table.from_pandas(frame, preserve_index=False)
    sink = pyarrow.BufferOutputStream()
    with pyarrow.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())
