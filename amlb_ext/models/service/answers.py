"""What a service answers, read; whatever is no answer is one clear error."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from amlb_ext.core.errors import ServiceError
from amlb_ext.models.answers import read_numbers, read_probabilities
from amlb_ext.models.labels import Labels
from amlb_ext.models.service.options import SAME_COMMAND

#: Most characters of an answer that an error repeats.
LONGEST_QUOTE = 80
#: The title of a page stands within so many of its first characters.
_HEAD = 4096


class AnswerReader:
    """Reads the answers of one service.

    Parameters
    ----------
    name : str
        The service, as errors name it.

    Attributes
    ----------
    classes : tuple of str
        As the service named them with its first answer; empty until it answers with
        probabilities.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.classes: tuple[str, ...] = ()

    def read_json(self, text: str) -> dict[str, Any]:
        """Return the object that an answer is."""
        if re.match(r"\s*<", text):
            # on a short text alone: its time grows with the square of the length
            title = re.search(r"<title[^>]*>(.*?)</title", text[:_HEAD], re.I | re.S)
            page = f" ({quote(title.group(1))})" if title else ""
            raise self._wrong_answer(f"a page in HTML{page} in place of JSON")
        try:
            answer = json.loads(text)
        # lists a thousand deep end in a RecursionError
        except (ValueError, RecursionError):
            raise self._wrong_answer(f"{quote(text)}, which is no JSON") from None
        if not isinstance(answer, dict):
            raise self._wrong_answer(f"{quote(text)}, which is no JSON object")
        return answer

    def read_predictions(self, answer: Mapping[str, Any], n_rows: int) -> np.ndarray:
        """Return a number for each row, ``(n,)``."""
        if "predictions" not in answer and "probabilities" in answer:
            raise ServiceError(
                f"{self.name} answers with probabilities of classes, and the target has numbers",
                "add --kind classification, or name its target with --target",
            )
        if "predictions" not in answer:
            raise self._wrong_answer(
                f"the fields {_names(answer)}, without 'predictions'"
            )
        self._check_length(answer["predictions"], n_rows)
        return read_numbers(answer["predictions"], n_rows, self.name)

    def read_probabilities(self, answer: Mapping[str, Any], n_rows: int) -> np.ndarray:
        """Return the probability of each of ``classes`` for each row, ``(n, C)``."""
        for field in ("classes", "probabilities"):
            if not isinstance(answer.get(field), list):
                raise self._wrong_answer(
                    f"the fields {_names(answer)}, without a list of {field!r}"
                )
        classes = tuple(str(label) for label in answer["classes"])
        if len(set(classes)) != len(classes):
            raise self._wrong_answer(f"a class twice: {', '.join(classes)}")
        self._check_length(answer["probabilities"], n_rows)
        p = read_probabilities(
            answer["probabilities"], Labels(classes), n_rows, self.name
        )
        if not self.classes:
            self.classes = classes
        if set(classes) != set(self.classes):
            raise self._wrong_answer(
                f"the classes {', '.join(classes)}, and before with "
                f"{', '.join(self.classes)}"
            )
        return p[:, [classes.index(label) for label in self.classes]]

    def _check_length(self, predictions: Any, n_rows: int) -> None:
        if not isinstance(predictions, list):
            raise self._wrong_answer("predictions that are no list")
        if len(predictions) != n_rows:
            raise self._wrong_answer(
                f"{len(predictions)} predictions for {n_rows} rows"
            )

    def _wrong_answer(self, what: str) -> ServiceError:
        return ServiceError(
            f"{self.name} answers with {what}",
            "mend the service (docs/how-to/in_context.md says what it must answer), and "
            f"{SAME_COMMAND}",
        )


def quote(text: str) -> str:
    """Return the beginning of a text on one line."""
    line = " ".join(text.split())
    short = line[:LONGEST_QUOTE]
    return f"'{short}{'...' if len(line) > len(short) else ''}'"


def _names(answer: Mapping[str, Any]) -> str:
    return ", ".join(repr(str(name)) for name in list(answer)[:8]) or "(none)"
