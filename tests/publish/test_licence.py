"""Nothing is published that its source forbids."""

import re

import pytest
from small_suites import write_suite

from amlb_ext.core.errors import PublishError
from amlb_ext.publish import plan_suite
from amlb_ext.publish.limits import settle_licences, why_not_allowed

ALLOWED = """\
Public; public domain; Public (OpenML data set 561); CC0; cc-0; CC0 1.0; CC BY 4.0; CC-BY-4.0
CC BY-SA 4.0; cc_by_nc_sa; CC BY-NC 4.0; CC BY 3.0 US; Attribution 4.0 International
Creative Commons Attribution 4.0 International; ODbL; ODC-BY; PDDL 1.0; MIT; MIT License
Apache-2.0; BSD-3-Clause; GPL-3; GNU GPL v2; LGPL; AGPL-3.0; GNU General Public License; OGL v3
CC BY 4.0, from the UCI Machine Learning Repository; The MIT License
CC0 (Palmer Station LTER), OpenML data set 42585"""
FORBIDDEN = """\
CC BY-ND 4.0; CC-BY-NC-ND; Attribution-NoDerivatives 4.0; no derivatives; Proprietary
All rights reserved; confidential; internal use only; no redistribution
may not be redistributed; Public, but not for redistribution; do not distribute
non-redistributable"""


def test_licences_are_known_forbid_it_or_are_refused():
    for licence in re.split("; |\n", ALLOWED):
        assert why_not_allowed(licence) == ""
    for licence in re.split("; |\n", FORBIDDEN):
        assert why_not_allowed(licence).startswith("forbids it"), licence
    for licence in ("", " ", "unknown", "N/A", "see website", "ask Bob", "publicly"):
        assert why_not_allowed(licence)
    for stated in (["CC0", "MIT"], ["d=CC0"], ["CC BY-ND 4.0"], [""], ["a="]):
        with pytest.raises(PublishError):
            settle_licences({"a": "", "b": ""}, stated)


def test_a_statement_is_recorded_as_one_and_leaves_others_alone():
    found = settle_licences(
        {"a": "CC BY 4.0", "b": "", "c": "proprietary"}, ["CC0", "c=by permission"]
    )
    assert not found["a"].stated
    assert found["a"].text == "CC BY 4.0"
    assert (found["b"].text, found["b"].stated) == ("CC0", True)
    assert (found["c"].text, found["c"].stated) == ("by permission", True)


def test_the_refusal_names_every_task_and_what_to_type(tmp_path):
    tasks = {"a": ("binary", 40, 9), "b": ("binary", 41, 9)}
    root = write_suite(tmp_path / "hard", tasks, licence="CC BY-ND 4.0")
    with pytest.raises(PublishError, match="nothing was written or sent") as caught:
        plan_suite(root)
    assert "a: its licence forbids it ('CC BY-ND 4.0'); b:" in caught.value.message
    assert "--licence [TASK=]TEXT" in caught.value.remedy
    plan = plan_suite(root, only=["a"], licences=["CC BY 4.0, granted on request"])
    assert (
        "<oml:licence>CC BY 4.0, granted on request</oml:licence>" in plan.units[0].xml
    )
    assert "(stated by the publisher)" in plan.units[0].xml
