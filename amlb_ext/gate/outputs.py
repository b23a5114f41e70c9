"""The answer of a gate for people, for CI servers (JUnit), and for GitHub Actions."""

from __future__ import annotations

from xml.etree import ElementTree

from amlb_ext.core.display import escape_controls
from amlb_ext.gate.checks import GateResult, Outcome

#: Exit status of each outcome; 2 is wrong use.
EXIT_STATUS: dict[Outcome, int] = {"met": 0, "not met": 1, "no claim": 3}
_LEVELS: dict[Outcome, str] = {"met": "notice", "not met": "error", "no claim": "error"}


def junit_xml(gate: GateResult) -> str:
    """Return the checks as JUnit's XML: one test case each.

    A check that is not met is a failure; one that cannot be decided is an error.
    """
    counts = {
        "tests": str(len(gate.checks)),
        "failures": str(sum(check.outcome == "not met" for check in gate.checks)),
        "errors": str(sum(check.outcome == "no claim" for check in gate.checks)),
    }
    about = {"name": "hardsynth gate", **counts}
    root = ElementTree.Element("testsuites", about)
    suite = ElementTree.SubElement(root, "testsuite", about)
    for check in gate.checks:
        sentence = escape_controls(check.sentence)
        case = ElementTree.SubElement(
            suite,
            "testcase",
            classname=escape_controls(check.data),
            name=escape_controls(f"{check.candidate} is {gate.need_text}"),
        )
        if check.outcome == "met":
            ElementTree.SubElement(case, "system-out").text = sentence
            continue
        tag = "failure" if check.outcome == "not met" else "error"
        problem = ElementTree.SubElement(
            case, tag, type=check.outcome, message=sentence
        )
        problem.text = sentence
    ElementTree.indent(root)
    text = ElementTree.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="utf-8"?>\n{text}\n'


def github_annotations(gate: GateResult) -> list[str]:
    """Return the lines that GitHub Actions shows beside a run, one for each check.

    Source: GitHub, *Workflow commands for GitHub Actions*, "Setting an error message".
    """
    lines = []
    for check in gate.checks:
        message = _escape_message(escape_controls(check.sentence))
        title = f"hardsynth gate {check.outcome}"
        lines.append(f"::{_LEVELS[check.outcome]} title={title}::{message}")
    return lines


def _escape_message(text: str) -> str:
    """Return a text that a workflow command takes as its message.

    Examples
    --------
    >>> _escape_message("-20 %\\nnext")
    '-20 %25%0Anext'
    """
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
