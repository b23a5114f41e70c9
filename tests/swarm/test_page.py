"""The page says first what a reader must know first, and the certificate never says rank."""

import copy

from amlb_ext.core.task import Kind
from amlb_ext.swarm.page import page_text, short_text
from amlb_ext.validity.swarm_certificate import certify_swarm
from amlb_ext.validity.task_rows import TaskRows

GAIN = {"gain": 0.05, "se": 0.01}
SIDE = {"difficult": 0.3, "separate": 0.02, "excess": 0.04}
REAL = {"difficult": 0.2, "separate": 0.02, "tau": 0.9, **GAIN}
AUDIT = {
    "fresh": 0.04,
    "seen": SIDE,
    "refits": SIDE,
    "unseen": SIDE,
    "labels": {"plausibility": 0.0, "rejected": 0.04, "contradicted": 0.05},
    "supported": 0.97,
    "c2st": 0.7,
    "effective_size": 200.0,
    "real": {"seen": REAL, "refits": REAL, "unseen": REAL},
}
RECORD = {
    "objective": "difficult",
    "preset": "honest",
    "labels": "excess",
    "searches": ["affine", "cma"],
    "evaluations": 248,
    "generators": 8,
    "weights_per_generator": 20000,
    "takers": ["linear", "tree_8"],
    "unseen": ["forest"],
    "proof": GAIN,
    "reported": 0.07,
    "chosen": AUDIT,
    "real_rows_by_x": {
        "rows": 300,
        "seen": {"difficult": 0.4, **GAIN, "all_rows": GAIN},
        "unseen": {"difficult": 0.4, **GAIN, "all_rows": GAIN},
    },
    "rows": {
        "written": 500,
        "drawn": 1000,
        "broken": 1,
        "unsupported": 2,
        "repeated": 3,
    },
}


def changed(**changes):
    record = copy.deepcopy(RECORD)
    record.update(changes)
    return record


def first_line(record):
    return page_text({"adult": [record]}).splitlines()[0]


def without_real_rows():
    return changed(chosen={**AUDIT, "real": None, "supported": 0.0})


def test_literal_pages_begin_with_the_labels():
    line = first_line(changed(preset="literal", labels="own"))
    assert line.startswith(
        "**labels rejected by an auditor 4.0 %, rows near real rows 97 %"
    )
    assert "not as a ranking" in line


def test_honest_pages_begin_with_the_verdict():
    assert first_line(RECORD).startswith("**real rows and unseen models confirm")
    assert first_line(without_real_rows()).startswith("**real rows do not confirm")


def test_the_page_sets_reported_beside_fresh():
    text = page_text({"adult": [RECORD]})
    assert "reported 0.070" in text
    assert "generator gives 0.040" in text
    assert "7 free numbers" in text


def test_the_gist_fits_a_terminal_and_says_what_real_rows_say():
    text = short_text({"adult": [RECORD]})
    table = [line for line in text.splitlines() if "  " in line]
    assert max(len(line) for line in table) <= 90
    assert "on fresh rows 0.040" in text
    assert any(
        line.startswith("the swarm's choice") and line.endswith("+0.050 ± 0.010")
        for line in table
    )
    assert "none" in short_text({"adult": [without_real_rows()]})


def test_a_region_without_real_rows_gets_no_numbers():
    text = page_text({"adult": [without_real_rows()]})
    assert "| the swarm's choice | none there | - | - | - | - |" in text
    # near real rows, of which the test fold has too few
    few = changed(chosen={**AUDIT, "real": None, "effective_size": 12.0})
    text = page_text({"adult": [few]})
    assert "| the swarm's choice | too few there | - | - | - | - |" in text


def test_a_swarm_never_ranks():
    confirmed = certificate_of(RECORD)
    assert (confirmed.verdict, confirmed.failed) == ("describe", ())
    refuted = certificate_of(without_real_rows())
    assert refuted.verdict == "stress-test only"
    assert "could not be measured" not in refuted.reason
    assert "supported rows" in refuted.failed
    # of two folds the worse one counts
    both = certificate_of(RECORD, without_real_rows())
    assert both.verdict == "stress-test only"
    wrong_labels = changed(
        chosen={**AUDIT, "labels": {**AUDIT["labels"], "plausibility": -0.4}}
    )
    assert certificate_of(wrong_labels).reason.startswith(
        "A swarm searched for these rows, and 'label support' is -0.4"
    )


def test_an_unmeasured_region_describes_nothing():
    nowhere = changed(chosen={**AUDIT, "real": None})
    certificate = certificate_of(nowhere)
    assert certificate.verdict == "stress-test only"
    assert "too few real rows are there" in certificate.reason


def certificate_of(*records):
    rows = TaskRows(
        name="adult_swarm_difficult",
        kind=Kind.BINARY,
        labels=("no", "yes"),
        columns=(),
        settings={},
        seed=1,
        folds={},
        summaries=tuple({"swarm": record} for record in records),
    )
    return certify_swarm(rows, size="quick", refits=3, seed=1)
