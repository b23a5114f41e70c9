"""How a service is asked: its address, and the parameters of F where F is an address."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from amlb_ext.core.config import BaselineConfig
from amlb_ext.core.errors import ModelError, suggest_nearest
from amlb_ext.core.redact import redact_url

#: Environment variable that holds the key, unless the settings name another one or a file.
KEY_VARIABLE = "HARDSYNTH_BASELINE_KEY"
#: Media types of the two forms of a question.
MEDIA_TYPES = {
    "json": "application/json",
    "arrow": "application/vnd.apache.arrow.stream",
}
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
