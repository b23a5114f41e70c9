"""An F that AMLB ran and that is not the F of the suite is told of before anything else."""

import numpy as np

from amlb_ext.cli import main
from amlb_ext.report import build_report, report_summary, report_text, write_report

BASELINE = "HardsynthBaseline"


def another_model(table):
    """What a model predicts that took every row for another one."""
    labels = [name for name in table.columns if name not in ("predictions", "truth")]
    order = np.random.default_rng(0).permutation(len(table))
    for name in [*labels, "predictions"]:
        table[name] = table[name].to_numpy()[order]
    return table


def test_another_f_is_an_alarm_on_console_and_page(copied, tmp_path):
    for fold in (0, 1):
        copied.edit(BASELINE, "wine_full", fold, another_model)
    copied.edit(BASELINE, "toy_full", 1, another_model)
    built = build_report(copied.suite, [copied.results], charts=False)
    report = built.report
    alarms = {task.name: task.alarm for task in report.tasks if task.alarm}
    assert set(alarms) == {"wine", "toy"}
    assert "wine_full fold 0: " in alarms["wine"]
    assert "wine_full fold 1: " in alarms["wine"]
    assert "toy_full fold 1: " in alarms["toy"]
    assert "toy_full fold 0" not in alarms["toy"]
    assert "in the target's unit" in alarms["toy"]
    assert "in a probability" in alarms["wine"]
    assert report.verdict[0].startswith("ALARM: on 2 of 3 tasks (toy, wine)")
    for task in report.tasks:
        verdicts = set(task.contrasts["verdict"])
        assert (verdicts == {"no claim"}) == bool(task.alarm)
    text = " ".join(report_text(report).split())
    assert "ALARM: on 2 of 3" in text
    assert "hardsynth score DIR fits F here" in text
    path = write_report(built, tmp_path)
    said = " ".join(report_summary(report, path).split())
    assert said.startswith("ALARM: on 2 of 3 tasks")
    assert "ignore its contrasts" in said
    page = " ".join(path.read_text().split())
    assert "ALARM: on 2 of 3 tasks" in page
    assert "<strong>Alarm.</strong>" in page


def test_score_is_silent_where_f_is_the_same(small, capsys):
    assert main(["score", str(small.suite), "-j", "1"]) == 0
    assert "ALARM" not in capsys.readouterr().err
