"""The conformance suite's matrix, model by door, as the page docs/reference/conformance.md has it.

    python tests/helpers/conformance_matrix.py

runs the suite and writes the page anew.
"""

import subprocess
import sys
import tempfile
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reference" / "conformance.md"
#: Test of the suite -> what it holds a model to.
DOORS = {
    "test_a_model_answers_alike_in_every_form": "every form",
    "test_what_the_doors_print_is_what_the_model_says": "compare, failures, estimate, gate",
    "test_the_rows_of_a_series_may_stand_in_another_order": "rows by index",
    "test_a_suite_holds_what_the_model_gets_wrong": "harden",
    "test_files_say_what_python_says": "command line",
}
INTRODUCTION = """# Which models every door reads alike

`python tests/helpers/conformance_matrix.py` runs `tests/models/test_conformance.py` and writes this
page. Each model is fitted on a table of three columns, and held to this:

- *every form*: its answers are the same fitted, from a joblib file, as predictions by name, as a
  bare array, with the columns or the rows of the table in another order;
- *compare, failures, estimate, gate*: each prints the loss that the Brier score, or the squared
  error, of the model's own answers is, and the error rate that `predict(X) != y` has;
- *rows by index*: targets in another order, with their index, change nothing;
- *harden*: the test fold of a suite holds the model's own losses, and calls bad what its `predict`
  gets wrong;
- *command line*: files say what Python says, and predictions are joined by an id.

"yes": held by a test. A dot: not tried at this door, since it shares the adapter with the others.

"""


def run_suite() -> dict[tuple[str, str], str]:
    """Return what came of each model and test: ``yes``, ``no``, or ``skipped``."""
    outcomes = {}
    with tempfile.TemporaryDirectory() as folder:
        record = Path(folder) / "record.xml"
        suite = "tests/models/test_conformance.py"
        words = ["-m", "pytest", "-q", suite, f"--junitxml={record}"]
        subprocess.run([sys.executable, *words], cwd=ROOT, check=False)
        for case in ElementTree.parse(record).iter("testcase"):
            test, _, model = case.get("name", "").partition("[")
            failed = any(child.tag in ("failure", "error") for child in case)
            skipped = any(child.tag == "skipped" for child in case)
            outcome = "skipped" if skipped else "no" if failed else "yes"
            outcomes[model.removesuffix("]"), test] = outcome
    return outcomes


def matrix_text(outcomes: dict[tuple[str, str], str]) -> str:
    """Return the page."""
    models = list(dict.fromkeys(model for model, test in outcomes if test in DOORS))
    lines = [
        f"| model | {' | '.join(DOORS.values())} |",
        f"|{'---|' * (len(DOORS) + 1)}",
    ]
    for model in models:
        cells = [outcomes.get((model, test), "·") for test in DOORS]
        lines.append(f"| {model} | {' | '.join(cells)} |")
    return INTRODUCTION + "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(matrix_text(run_suite()), encoding="utf-8")
    print(f"written: {PAGE}")
