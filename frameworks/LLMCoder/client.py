"""Ask an OpenAI-compatible endpoint: retries, a cache, a budget, and no secret in any text.

The standard library alone: AMLB's environment may be of Python 3.9 and must stay as it is pinned.
Address and key come from the environment and go into no file, log or result.
"""

from __future__ import annotations

import hashlib
import http.client
import json
import math
import os
import re
import socket
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from typing import Any, Dict, List, Optional

from .answers import Answer, parse_reply, read_answer

#: First those of this project, then those that other programs use.
URL_VARIABLES = ("HARDSYNTH_LLM_URL", "OPENAI_BASE_URL")
KEY_VARIABLES = ("HARDSYNTH_LLM_KEY", "OPENAI_API_KEY")
CACHE_VARIABLE = "HARDSYNTH_LLM_CACHE"
#: Answers of a server that may be another one a moment later.
RETRIED = {408, 409, 425, 429, 500, 502, 503, 504, 529}
MAX_ANSWER = 8 << 20
#: Where a price is known and the server does not count, this many bytes are taken for a token,
#: so that a limit on the cost still ends the run.
BYTES_OF_TOKEN = 3
#: Tokens of an answer that never came, where no setting limits them.
TOKENS_OF_ANSWER = 2000
#: How servers say that they know no message of the role ``system``.
_NO_SYSTEM = re.compile(
    r"system[^.]{0,40}(role|message|prompt)|role[^.]{0,40}system|roles must alternate",
    re.IGNORECASE,
)
_SECRETS = re.compile(r"sk-[A-Za-z0-9_\-]{8,}|(?<=Bearer )\S+", re.IGNORECASE)


class LLMError(RuntimeError):
    """The endpoint gave no answer that serves."""


class BudgetError(LLMError):
    """The next request could cost more than is allowed; it was not sent."""


#: What this process has spent, over all its jobs: AMLB runs all folds in one.
_SPENT = {"process": 0.0}


class Client:
    """An endpoint, a model, and what they may cost.

    Parameters
    ----------
    model : str
    settings : dict
        Sent with every request, e.g. ``temperature``; nothing by default, since models differ in
        what they take.
    price : dict
        ``input`` and ``output``, of one token, and ``cached``, of one of the input that the
        endpoint had from an earlier request (by default as ``input``); empty where unknown.
    max_cost : float, optional
        Of this job, and of all jobs of this process; in the price's unit.
    cache : str
        Folder of the answers.
    tries : int
        Requests for one answer, at most.
    request_seconds, wait_seconds : float
        For one request; before the second one, twice as long before each further one.
    environ : mapping
        Where address and key stand.

    Attributes
    ----------
    cost : float or None
        What the answers are worth, cached ones too; None where a price or a count is unknown.
    spent : float or None
        The part that was sent today, and requests that an endpoint bills though no answer came.
    sent, cached, lost : int
        Requests that were sent, retries included; answers that came from the cache; requests whose
        answer was cut, was none, or came too late: their price is estimated.
    cache_problem : str
        Why answers could not be kept, so that a repetition will ask again; empty otherwise.
    """

    def __init__(
        self,
        model: str,
        cache: str,
        settings: Optional[Dict[str, Any]] = None,
        price: Optional[Dict[str, float]] = None,
        max_cost: Optional[float] = None,
        tries: int = 5,
        request_seconds: float = 600.0,
        wait_seconds: float = 0.5,
        environ: Any = os.environ,
    ) -> None:
        self.model = model
        self.cache = cache
        self.settings = dict(settings or {})
        self.price = dict(price or {})
        self.max_cost = max_cost
        self.tries = tries
        self.request_seconds = request_seconds
        self.wait_seconds = wait_seconds
        self._url = _first(environ, URL_VARIABLES).strip()
        self._key = _first(environ, KEY_VARIABLES)
        self.cost: Optional[float] = 0.0
        self.spent: Optional[float] = 0.0
        self._charged = 0.0
        self.sent = self.cached = self.lost = 0
        self.cache_problem = ""
        self._takes_system = True
        figures = {f"price {name}": value for name, value in self.price.items()}
        for name, value in {**figures, "max_cost": max_cost}.items():
            is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
            if value is not None and not (is_number and math.isfinite(value) and value >= 0):
                raise LLMError(f"{name} is {value!r}; write a number from 0, such as 2.5")
        if max_cost is not None and not {"input", "output"} <= set(self.price):
            raise LLMError(
                "max_cost needs a price; write params price: {input: 1.0e-6, output: 4.0e-6}, of "
                "one token each"
            )

    def redact(self, text: str) -> str:
        """Return a text without the key, the address, and what looks like a key."""
        for secret in (self._key, self._url, urllib.parse.urlsplit(self._url).netloc):
            if secret:
                text = text.replace(secret, "***")
        return _SECRETS.sub("***", text)

    def ask(
        self, messages: List[Dict[str, str]], run_key: List[Any], seconds: float
    ) -> Answer:
        """Return the model's next answer, from the cache where it was given before.

        The cache knows a request by address, model, settings, the task as it is put, all earlier
        *answers*, and ``run_key``. What programs printed is left out of it: a program that prints
        the time would make every repetition another one.

        Raises
        ------
        LLMError
        """
        said = [m for m in messages if m["role"] != "user"] + messages[1:2]
        # without user, password and query
        address = re.sub(r"//[^/]*@|\?.*", "//", self._url)
        known = [address, self.model, self.settings, said, run_key]
        name = hashlib.sha256(json.dumps(known, sort_keys=True).encode()).hexdigest()
        path = os.path.join(self.cache, name[:2], name + ".json")
        content = _read_json(path)
        is_cached = content is not None
        if content is None:
            content = self._send(messages, seconds)
            try:
                _write_json(path, content)
            except OSError as error:
                # the answer is paid for and there: only its repetition is lost
                self.cache_problem = f"{error.strerror or error}: {self.cache}"
        else:
            self.cached += 1
        answer = read_answer(content)
        answer.is_cached = is_cached
        self._count(answer, messages)
        return answer

    def _check_budget(self, messages: List[Dict[str, str]]) -> None:
        if self.max_cost is None:
            return
        # the question is known before it is asked; the answer is not
        least = _tokens_of(messages) * self.price["input"]
        for spent, whose in ((self._charged, "job"), (_SPENT["process"], "process")):
            if self.max_cost <= 0 or spent + least > self.max_cost:
                raise BudgetError(
                    f"max_cost is {self.max_cost:g}, this {whose} has spent {spent:.4g} and the "
                    f"next question alone would cost {least:.2g}: it was not sent"
                )

    def _count(self, answer: Answer, messages: List[Dict[str, str]]) -> None:
        amount = None
        if self.price and answer.tokens_in is not None and answer.tokens_out is not None:
            amount = self._priced(answer.tokens_in, answer.tokens_out, answer.tokens_cached)
        # unknown is not nothing: one unknown part makes the sum unknown
        self.cost = None if amount is None or self.cost is None else self.cost + amount
        if answer.is_cached:
            return
        self.spent = None if amount is None or self.spent is None else self.spent + amount
        if amount is None and self.price:
            size = len(answer.text.encode()) / BYTES_OF_TOKEN
            amount = self._priced(_tokens_of(messages), size)
        self._charge(amount or 0.0)

    def _count_lost(self, messages: List[Dict[str, str]]) -> None:
        """Count a request without a usable answer as the endpoint will: as if it had come."""
        self.lost += 1
        if not self.price:
            self.spent = None
            return
        limits = [self.settings.get(key) for key in ("max_completion_tokens", "max_tokens")]
        known = [limit for limit in limits if isinstance(limit, int)]
        amount = self._priced(_tokens_of(messages), known[0] if known else TOKENS_OF_ANSWER)
        self.spent = None if self.spent is None else self.spent + amount
        self._charge(amount)

    def _priced(self, tokens_in: float, tokens_out: float, cached: float = 0) -> float:
        asked = self.price.get("input", 0.0)
        amount = (tokens_in - cached) * asked + cached * self.price.get("cached", asked)
        return amount + tokens_out * self.price.get("output", 0.0)

    def _charge(self, amount: float) -> None:
        self._charged += amount
        _SPENT["process"] += amount

    def _send(self, messages: List[Dict[str, str]], seconds: float) -> Dict[str, Any]:
        if not self._url:
            raise LLMError(
                f"no endpoint: set {URL_VARIABLES[0]} to its address, such as "
                "http://127.0.0.1:8000/v1"
            )
        if not self._key:
            raise LLMError(
                f"no key: set {KEY_VARIABLES[0]}; for an endpoint without keys any text does"
            )
        addresses = request_addresses(self._url)
        deadline = time.monotonic() + seconds
        last = ""
        sent = number = 0
        while number < self.tries:
            left = min(self.request_seconds, deadline - time.monotonic())
            if left <= 0:
                break
            self._check_budget(messages)
            self.sent += 1
            sent += 1
            wait = self.wait_seconds * 2**number
            number += 1
            try:
                content = _in_time(left, lambda: self._post(addresses[0], messages, left))
                read_answer(content)
                return content
            except urllib.error.HTTPError as error:
                with error:
                    said = error.read(2000).decode("utf-8", "replace")
                last = f"HTTP {error.code} {said[:500]}"
                if error.code in (404, 405) and len(addresses) > 1:
                    del addresses[0]
                    number -= 1
                    continue
                if self._takes_system and error.code in (400, 422, 500) and _NO_SYSTEM.search(said):
                    self._takes_system = False
                    number -= 1
                    continue
                if error.code not in RETRIED:
                    raise LLMError(self.redact(f"the endpoint refused: {last}")) from None
                wait = _retry_after(error.headers.get("Retry-After"), wait)
            except urllib.error.URLError as error:
                # it was not reached
                last = f"{type(error).__name__}: {error}"
            except (TimeoutError, socket.timeout):
                # it was asked, and works on the answer: asking again would be paid for twice
                self._count_lost(messages)
                raise LLMError(f"no answer within {left:.3g} s; it was asked once") from None
            except (OSError, ValueError, http.client.HTTPException) as error:
                self._count_lost(messages)
                last = f"{type(error).__name__}: {error}"
            time.sleep(max(0.0, min(wait, 60.0, deadline - time.monotonic())))
        raise LLMError(self.redact(f"no answer after {sent} requests; the last: {last}"))

    def _post(self, address: str, messages: List[Dict[str, str]], seconds: float) -> Any:
        if not self._takes_system:
            rules, task, *others = messages
            merged = {"role": "user", "content": f"{rules['content']}\n\n{task['content']}"}
            messages = [merged, *others]
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {self._key}"}
        if _is_azure(address):
            headers = {"Content-Type": "application/json", "api-key": self._key}
        body = {"model": self.model, "messages": messages, **self.settings}
        request = urllib.request.Request(address, json.dumps(body).encode(), headers)
        with _OPENER.open(request, timeout=seconds) as reply:
            raw = reply.read(MAX_ANSWER + 1)
        if len(raw) > MAX_ANSWER:
            raise ValueError(f"the answer is longer than {MAX_ANSWER >> 20} MiB")
        return parse_reply(raw, MAX_ANSWER)


def request_addresses(url: str) -> List[str]:
    """Return where requests may go, the likeliest first; each further one after a 404.

    Examples
    --------
    >>> request_addresses("http://h:8000/v1/")
    ['http://h:8000/v1/chat/completions']
    >>> request_addresses("https://h/openai/deployments/m?api-version=1")[0]
    'https://h/openai/deployments/m/chat/completions?api-version=1'
    >>> request_addresses("http://h:8000")
    ['http://h:8000/v1/chat/completions', 'http://h:8000/chat/completions']
    """
    parts = urllib.parse.urlsplit(url)
    path = parts.path.rstrip("/")
    if path.endswith("/chat/completions"):
        paths = [path]
    elif not path:
        paths = ["/v1/chat/completions", "/chat/completions"]
    else:
        paths = [path + "/chat/completions"]
        if not re.search(r"/v\d", path):
            paths.append(path + "/v1/chat/completions")
    return [urllib.parse.urlunsplit(parts._replace(path=p, fragment="")) for p in paths]


def _is_azure(address: str) -> bool:
    parts = urllib.parse.urlsplit(address)
    return (parts.hostname or "").endswith(".azure.com") or "api-version=" in parts.query


def _tokens_of(messages: List[Dict[str, str]]) -> float:
    return sum(len(m["content"].encode()) for m in messages) / BYTES_OF_TOKEN


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirect would take the key to another address."""

    def redirect_request(self, *arguments: Any, **named: Any) -> None:
        """Follow none."""


_OPENER = urllib.request.build_opener(_NoRedirect)


def _in_time(seconds: float, call: Any) -> Any:
    """Return what a call returns, within a time that no drip of bytes can stretch."""
    box: List[Any] = []

    def work() -> None:
        try:
            box.append((call(), None))
        except BaseException as error:
            box.append((None, error))

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(seconds)
    if not box:
        raise TimeoutError(f"no answer in {seconds:.0f} s")
    value, error = box[0]
    if error is not None:
        raise error
    return value


def _retry_after(header: Optional[str], otherwise: float) -> float:
    try:
        return max(0.0, float(header or otherwise))
    except ValueError:
        return otherwise


def _first(environ: Any, names: Any) -> str:
    for name in names:
        if environ.get(name):
            return str(environ[name])
    return ""


def _read_json(path: str) -> Any:
    try:
        with open(path, encoding="utf-8") as file:
            content = json.load(file)
        read_answer(content)
        return content
    except (OSError, ValueError):
        return None


def _write_json(path: str, content: Any) -> None:
    """Write a file whole or not at all; several jobs may write the same one."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    part = f"{path}.{os.getpid()}.{threading.get_ident()}.part"
    try:
        with open(part, "w", encoding="utf-8") as file:
            json.dump(content, file)
        os.replace(part, path)
    except OSError:
        # what a full disk has taken of it
        if os.path.exists(part):
            os.remove(part)
        raise
