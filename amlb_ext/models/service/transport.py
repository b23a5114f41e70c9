"""One question over HTTP: sent, tried again where that may help, and its answer as text.

The key travels in a header, and stands in no error, no file and no setting.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from amlb_ext.core.errors import NetworkError, ServiceError, SourceError
from amlb_ext.core.redact import redact_text, redact_url
from amlb_ext.models.service.answers import LONGEST_QUOTE, quote
from amlb_ext.models.service.options import (
    MEDIA_TYPES,
    SAME_COMMAND,
    ServiceOptions,
)

if TYPE_CHECKING:
    import requests

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
    sleep : callable
        Waits between tries.
    """

    def __init__(
        self,
        address: str,
        options: ServiceOptions,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.address = address
        self.options = options
        self._sleep = sleep

    @property
    def name(self) -> str:
        """The service, as errors name it."""
        return f"the service {redact_url(self.address)}"

    def ask(self, body: bytes, n_rows: int) -> str:
        """Return the text of the answer to one question, tried again where that may help.

        Parameters
        ----------
        body : bytes
            As :func:`~amlb_ext.models.service.model.encode_rows` makes it.
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
                        f"{self.name} {error.what}, {attempt} times in a row",
                        f"{error.remedy}; then {SAME_COMMAND}",
                    ) from None
                self._sleep(min(LONGEST_PAUSE, max(pause, error.wait)))
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
            raise self._too_slow() from None
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

    def _too_slow(self) -> _PassingError:
        seconds = self.options.timeout
        return _PassingError(
            f"did not answer within {seconds:g} s",
            "give it more time or fewer rows at once, e.g. --baseline-params "
            f"timeout={5 * seconds:g},batch={max(1, self.options.batch // 10)}",
        )

    def _check_status(self, answer: requests.Response, text: str) -> None:
        status = answer.status_code
        if status == 200:
            return
        what = f"answered {status} {answer.reason}: {quote(text)}"
        if status in _PASSING:
            after = answer.headers.get("Retry-After", "")
            raise _PassingError(
                what,
                "see what its log says",
                wait=float(after) if after.isdigit() else 0.0,
            )
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


class _PassingError(Exception):
    """A question that was not answered, and may be if it is asked again."""

    def __init__(self, what: str, remedy: str, wait: float = 0.0) -> None:
        super().__init__(what)
        self.what = what
        self.remedy = remedy
        self.wait = wait


def _innermost_reason(error: BaseException) -> str:
    """Return what the operating system said, without the layers of libraries around it."""
    text = str(error)
    for pattern in (r"Connection refused", r"Name or service not known"):
        if re.search(pattern, text):
            return pattern.lower()
    last = re.split(r"[:(] ?", text.strip(")'\" "))[-1]
    return last.strip(")'\" ").lower()[:LONGEST_QUOTE] or type(error).__name__
