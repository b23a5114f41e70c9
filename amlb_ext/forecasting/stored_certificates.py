"""The certificates that a suite of forecasting tasks was written with."""

from __future__ import annotations

import json

from amlb_ext.core.errors import SuiteError
from amlb_ext.forecasting.suite_files import ForecastSuite
from amlb_ext.validity.certificate import Certificate


def read_certificates(suite: ForecastSuite) -> dict[str, Certificate]:
    """Return the certificates of a suite by their task, none where it was written without.

    Raises
    ------
    SuiteError
        A certificate is missing or damaged.
    """
    found = {}
    for relative in suite.manifest.files:
        if not relative.endswith("/certificate.json"):
            continue
        try:
            entry = json.loads(suite.layout.at(relative).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise SuiteError(
                f"cannot read {relative}: {error}",
                "hardsynth verify says what is missing",
            ) from None
        certificate = Certificate.from_json(entry)
        found[certificate.task] = certificate
    return found
