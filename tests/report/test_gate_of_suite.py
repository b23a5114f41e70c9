"""``hardsynth gate`` on a suite: it decides by the verdicts of the report."""

import json

from amlb_ext.cli import main


def test_a_suite_is_gated_by_its_report(scored, capsys):
    words = ["gate", str(scored.suite), "--results", str(scored.results), "-j", "1"]
    assert main([*words, "--task", "toy", "--json"]) == 0
    (check,) = json.loads(capsys.readouterr().out)["checks"]
    assert (check["candidate"], check["data"]) == ("HardsynthCandidate", "toy")
    assert main([*words, "--baseline", "forest"]) == 2
    assert "the suite has its own F, ridge" in capsys.readouterr().err
