"""F behind an address: a deployed model that answers over HTTP.

A question is one POST of some rows as JSON records (or as an Arrow stream), the answer one number,
or one probability for each class, for each row; ``docs/how-to/in_context.md`` documents both.
Whatever else comes back is one clear error.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import numpy as np
import pandas as pd

from amlb_ext.core.config import BaselineConfig
from amlb_ext.core.display import redact_text, redact_url
from amlb_ext.core.errors import (
    ModelError,
    NetworkError,
    ServiceError,
    SourceError,
    suggest_nearest,
)
from amlb_ext.models.answers import Labels, read_numbers, read_probabilities

if TYPE_CHECKING:
    import requests


#: Environment variable that holds the key, unless the settings name another one or a file.
KEY_VARIABLE = "HARDSYNTH_BASELINE_KEY"
#: Media types of the two forms of a question.
MEDIA_TYPES = {
    "json": "application/json",
    "arrow": "application/vnd.apache.arrow.stream",
}
#: Reads the answer to a question of so many rows.
ReadAnswer = Callable[[Mapping[str, Any], int], np.ndarray]
#: What every remedy ends with.
SAME_COMMAND = "run the same command again: folds that are done stand"


def is_service(model: str) -> bool:
    """Whether a word is the address of a service.

    Examples
    --------
    >>> is_service("https://models.org/f"), is_service("ridge")
    (True, False)
    """
    return model.lower().startswith(("http://", "https://"))


@dataclass(frozen=True, kw_only=True)
class ServiceOptions:
    """How a service is asked; the parameters of F where F is an address.

    Attributes
    ----------
    format : {'json', 'arrow'}
        Of the rows.
    batch : int
        Most rows of a question.
    timeout : float
        Seconds until the whole answer to a question must be there.
    tries : int
        Of a question that was not answered.
    key_env : str
        Environment variable that holds the key.
    key_file : str
        File whose first line is the key, instead of a variable.
    """

    format: str = "json"
    batch: int = 1000
    timeout: float = 60.0
    tries: int = 5
    key_env: str = KEY_VARIABLE
    key_file: str = ""

    @classmethod
    def read(cls, params: Mapping[str, Any]) -> ServiceOptions:
        """Read the parameters of F.

        Raises
        ------
        ModelError
            An unknown parameter, or a value that it cannot have.
        """
        defaults = vars(cls())
        for name, value in params.items():
            if name not in defaults:
                raise ModelError(
                    f"a service has no parameter {name!r}",
                    suggest_nearest(name, defaults),
                )
            try:
                is_valid = type(defaults[name])(value) == value
            except (TypeError, ValueError):
                is_valid = False
            if not is_valid or (not isinstance(value, str) and value <= 0):
                raise ModelError(
                    f"{name} of a service cannot be {value!r}",
                    f"give a value like {defaults[name]!r}",
                )
        options = cls(**params)
        if options.format not in MEDIA_TYPES:
            raise ModelError(
                f"format of a service cannot be {options.format!r}",
                suggest_nearest(options.format, MEDIA_TYPES),
            )
        return options

    def key(self) -> str:
        """Return the key; empty where there is none.

        Raises
        ------
        ModelError
            The file of the key cannot be read, or the key is none that a header can hold.
        """
        key = os.environ.get(self.key_env, "")
        if self.key_file:
            try:
                lines = Path(self.key_file).read_text(encoding="utf-8").splitlines()
            except (OSError, UnicodeDecodeError):
                raise ModelError(
                    f"the file of the key, {self.key_file}, cannot be read",
                    "name a text file whose first line is the key",
                ) from None
            key = lines[0] if lines else ""
        key = key.strip()
        if not key.isascii() or not key.isprintable():
            raise ModelError(
                "the key of the service has characters that a header cannot hold",
                f"set {self.key_env} to the key alone",
            )
        return key


def check_service(config: BaselineConfig) -> None:
    """Raise for an address or parameters that cannot be those of a service; nothing is sent.

    Raises
    ------
    ModelError

    Examples
    --------
    >>> check_service(BaselineConfig(model="https://me:secret@models.org/f"))
    Traceback (most recent call last):
    ...
    amlb_ext.core.errors.ModelError: the address https://***@models.org/f holds a user, a \
password, a query or a fragment, and the suite would keep it (give the address alone, and the key \
in the environment variable HARDSYNTH_BASELINE_KEY)
    """
    address = config.model
    try:
        parts = urlsplit(address)
        is_complete = bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_complete = False
    if not is_complete or re.search(r"[\s\x00-\x1f]", address):
        raise ModelError(
            f"{redact_url(address)} is no address of a service",
            "write it like https://models.example.org/predict",
        )
    if parts.username is not None or "?" in address or "#" in address:
        raise ModelError(
            f"the address {redact_url(address)} holds a user, a password, a query or a "
            "fragment, and the suite would keep it",
            "give the address alone, and the key in the environment variable "
            f"{KEY_VARIABLE}",
        )
    ServiceOptions.read(config.params).key()


#: Most characters of an answer that an error repeats.
LONGEST_QUOTE = 80
#: The title of a page stands within so many of its first characters.
_HEAD = 4096


def read_json(text: str, name: str) -> dict[str, Any]:
    """Return the object that an answer is.

    Raises
    ------
    ServiceError
        It is something else; ``name`` is the service, as errors name it.
    """
    if re.match(r"\s*<", text):
        # on a short text alone: its time grows with the square of the length
        title = re.search(r"<title[^>]*>(.*?)</title", text[:_HEAD], re.I | re.S)
        page = f" ({quote(title.group(1))})" if title else ""
        raise _wrong_answer(name, f"a page in HTML{page} in place of JSON")
    try:
        answer = json.loads(text)
    # lists a thousand deep end in a RecursionError
    except (ValueError, RecursionError):
        raise _wrong_answer(name, f"{quote(text)}, which is no JSON") from None
    if not isinstance(answer, dict):
        raise _wrong_answer(name, f"{quote(text)}, which is no JSON object")
    return answer


def _list_of(
    answer: Mapping[str, Any], field: str, n_rows: int | None, name: str
) -> list[Any]:
    """Return a field of an answer, a list; of so many rows where there is a number of them."""
    found = answer.get(field)
    if not isinstance(found, list):
        fields = ", ".join(repr(str(each)) for each in list(answer)[:8]) or "(none)"
        raise _wrong_answer(name, f"the fields {fields}, without a list of {field!r}")
    if n_rows is not None and len(found) != n_rows:
        raise _wrong_answer(name, f"{len(found)} predictions for {n_rows} rows")
    return found


def _wrong_answer(name: str, what: str) -> ServiceError:
    return ServiceError(
        f"{name} answers with {what}",
        "mend the service (docs/how-to/in_context.md says what it must answer), and "
        f"{SAME_COMMAND}",
    )


def quote(text: str) -> str:
    """Return the beginning of a text on one line."""
    line = " ".join(text.split())
    short = line[:LONGEST_QUOTE]
    return f"'{short}{'...' if len(line) > len(short) else ''}'"


#: Statuses after which the same question may be answered: overload, a restart, a proxy's error.
_PASSING = frozenset({408, 425, 429, 500, 502, 503, 504})
#: Seconds before the second try; they double from try to try, up to the most.
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0
#: Longest answer, in bytes: for a row, of some hundred classes, and for what stands around them.
_BYTES_PER_ROW, _BYTES_AROUND = 10_000, 1 << 16


class Transport:
    """Sends questions to one address.

    Parameters
    ----------
    address : str
    options : ServiceOptions
    """

    def __init__(self, address: str, options: ServiceOptions) -> None:
        self.address = address
        self.options = options

    @property
    def name(self) -> str:
        """The service, as errors name it."""
        return f"the service {redact_url(self.address)}"

    def ask(self, body: bytes, n_rows: int) -> str:
        """Return the text of the answer to one question, tried again where that may help.

        Parameters
        ----------
        body : bytes
            As :func:`~amlb_ext.models.service.encode_rows` makes it.
        n_rows : int
            Rows of the question, which bound how long the answer may be.

        Raises
        ------
        ServiceError
            The service cannot be reached, is too slow, or refuses the question.
        """
        longest = _BYTES_AROUND + _BYTES_PER_ROW * n_rows
        pause = FIRST_PAUSE
        for attempt in range(1, self.options.tries + 1):
            try:
                return self._post(body, longest)
            except _PassingError as error:
                if attempt == self.options.tries:
                    raise ServiceError(
                        f"{self.name} {error.message}, {attempt} times in a row",
                        f"{error.remedy}; then {SAME_COMMAND}",
                    ) from None
                time.sleep(min(LONGEST_PAUSE, max(pause, error.wait)))
                pause *= 2
        raise AssertionError("a question is tried at least once")

    def _post(self, body: bytes, longest: int) -> str:
        """Send a question once; return the text of the answer."""
        import requests
        from urllib3.exceptions import HTTPError, ReadTimeoutError

        from amlb_ext.sources.download import ask_until, receive

        key = self.options.key()
        headers = {
            "Content-Type": MEDIA_TYPES[self.options.format],
            "Accept": "application/json",
        }

        def authorise(request: requests.PreparedRequest) -> requests.PreparedRequest:
            # as an authoriser, since requests would put what ~/.netrc holds over a header
            if key:
                request.headers["Authorization"] = f"Bearer {key}"
            return request

        deadline = time.monotonic() + self.options.timeout
        try:
            ask = partial(
                requests.post,
                self.address,
                data=body,
                headers=headers,
                auth=authorise,
                timeout=self.options.timeout,
                # the key is for this address alone
                allow_redirects=False,
                stream=True,
            )
            with ask_until(ask, deadline=deadline, name=self.name) as answer:
                blocks = receive(
                    answer, max_bytes=longest, deadline=deadline, unpack=True
                )
                content = b"".join(blocks)
        except (requests.Timeout, ReadTimeoutError, NetworkError):
            seconds, fewer = self.options.timeout, max(1, self.options.batch // 10)
            raise _PassingError(
                f"did not answer within {seconds:g} s",
                "give it more time or fewer rows at once, e.g. --baseline-params "
                f"timeout={5 * seconds:g},batch={fewer}",
            ) from None
        except SourceError:
            raise ServiceError(
                f"{self.name} answers with more than {longest:,} bytes",
                "let it answer with predictions alone",
            ) from None
        except (requests.RequestException, HTTPError, OSError) as error:
            reason = redact_text(_innermost_reason(error), key)
            raise _PassingError(
                f"cannot be reached ({reason})", "start it, or check the address"
            ) from None
        text = content.decode("utf-8", errors="replace")
        self._check_status(answer, redact_text(text, key))
        return redact_text(text, key)

    def _check_status(self, answer: requests.Response, text: str) -> None:
        status = answer.status_code
        if status == 200:
            return
        what = f"answered {status} {answer.reason}: {quote(text)}"
        if status in _PASSING:
            error = _PassingError(what, "see what its log says")
            after = answer.headers.get("Retry-After", "")
            error.wait = float(after) if after.isdigit() else 0.0
            raise error
        remedy = "check the address, and what the service expects of a question"
        if status in (401, 403):
            remedy = f"set {self.options.key_env} to a key that the service knows"
        elif 300 <= status < 400:
            there = redact_url(answer.headers.get("Location", ""))
            what = f"answered {status}: it has moved to {there}"
            remedy = "give the address that it has moved to"
        elif status == 413:
            remedy = f"--baseline-params batch={max(1, self.options.batch // 10)}"
        raise ServiceError(f"{self.name} {what}", f"{remedy}; then {SAME_COMMAND}")


class _PassingError(ServiceError):
    """A question that was not answered, and may be if it is asked again, some seconds later."""

    wait = 0.0


def _innermost_reason(error: BaseException) -> str:
    """Return what the operating system said, without the layers of libraries around it."""
    text = str(error)
    if known := re.search("Connection refused|Name or service not known", text):
        return known[0].lower()
    last = re.split(r"[:(] ?", text.strip(")'\" "))[-1]
    return last.strip(")'\" ").lower()[:LONGEST_QUOTE] or type(error).__name__


def connect_service(config: BaselineConfig) -> RemoteModel:
    """Return the model behind an address; nothing is sent yet.

    Parameters
    ----------
    config : BaselineConfig
        ``params`` are those of :class:`ServiceOptions`.

    Raises
    ------
    ModelError
        See :func:`check_service`.
    """
    check_service(config)
    return RemoteModel(config.model, ServiceOptions.read(config.params))


class RemoteModel:
    """A fitted model behind an address; it is asked like one of scikit-learn.

    Parameters
    ----------
    address : str
    options : ServiceOptions

    Attributes
    ----------
    classes_ : tuple of str
        As the service named them with its first answer; empty until it answers with
        probabilities.
    """

    #: What it answers is asked for, and no labels beside probabilities: each row takes it time.
    gives_labels = False

    def __init__(self, address: str, options: ServiceOptions) -> None:
        self.options = options
        self.classes_: tuple[str, ...] = ()
        self._transport = Transport(address, options)
        self._name = self._transport.name

    def predict(self, frame: pd.DataFrame) -> np.ndarray:
        """Return a number for each row, ``(n,)``.

        Raises
        ------
        ServiceError
            The service cannot be reached, is too slow, or answers anything but that.
        """
        blocks = self._ask_in_batches(frame, self._read_predictions)
        return np.concatenate([np.zeros(0), *blocks])

    def predict_proba(self, frame: pd.DataFrame) -> np.ndarray:
        """Return the probability of each of ``classes_`` for each row, ``(n, C)``.

        Raises
        ------
        ServiceError
            As :meth:`predict`.
        """
        blocks = self._ask_in_batches(frame, self._read_probabilities)
        return np.vstack([np.zeros((0, len(self.classes_))), *blocks])

    def _ask_in_batches(
        self, frame: pd.DataFrame, read: ReadAnswer
    ) -> list[np.ndarray]:
        size = self.options.batch
        blocks = []
        for start in range(0, len(frame), size):
            block = frame.iloc[start : start + size]
            body = encode_rows(block, self.options.format)
            answer = read_json(self._transport.ask(body, len(block)), self._name)
            try:
                blocks.append(read(answer, len(block)))
            except ServiceError:
                raise
            except ModelError as error:
                raise ServiceError(
                    error.message, f"{error.remedy}; {SAME_COMMAND}"
                ) from None
        return blocks

    def _read_predictions(self, answer: Mapping[str, Any], n_rows: int) -> np.ndarray:
        """Return a number for each row, ``(n,)``."""
        if "predictions" not in answer and "probabilities" in answer:
            raise ServiceError(
                f"{self._name} answers with probabilities of classes, and the target has numbers",
                "add --kind classification, or name its target with --target",
            )
        said = _list_of(answer, "predictions", n_rows, self._name)
        return read_numbers(said, n_rows, self._name)

    def _read_probabilities(self, answer: Mapping[str, Any], n_rows: int) -> np.ndarray:
        """Return the probability of each of ``classes_`` for each row, ``(n, C)``."""
        classes = tuple(map(str, _list_of(answer, "classes", None, self._name)))
        if len(set(classes)) != len(classes):
            raise _wrong_answer(self._name, f"a class twice: {', '.join(classes)}")
        said = _list_of(answer, "probabilities", n_rows, self._name)
        p = read_probabilities(said, Labels(classes), n_rows, self._name)
        self.classes_ = self.classes_ or classes
        if set(classes) != set(self.classes_):
            raise _wrong_answer(
                self._name,
                f"the classes {', '.join(classes)}, and before with "
                f"{', '.join(self.classes_)}",
            )
        return p[:, [classes.index(label) for label in self.classes_]]


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
