"""The swarm paper's tables: printed numbers, populations of known truth, claims, one tiny run."""

import json

import numpy as np
import pandas as pd
import pytest
from small_models import lighten

from amlb_ext.cli.main import main
from amlb_ext.core.errors import ConfigError
from amlb_ext.experiments.swarms import cells, claims, run
from amlb_ext.experiments.swarms.choices import (
    OBJECTIVES,
    TABLES,
    make_choice,
    tables_of,
)
from amlb_ext.experiments.swarms.data import split_draw
from amlb_ext.experiments.swarms.populations import (
    POPULATIONS,
    TrueTeacher,
    draw_task,
    is_interaction,
)
from amlb_ext.experiments.swarms.run import DrawResult
from amlb_ext.hardening.encode import Encoder, TargetEncoder

#: The smallest sizes at which everything still happens.
TINY = {
    "generators": 3,
    "iterations": 1,
    "evaluation_rows": 30,
    "rows": 80,
    "least_rows": 50,
    "most_rows": 300,
    "steps": 3,
    "base_steps": 20,
    "takers": "linear tree_3",
    "objectives": "difficult personalised difficult=.6,novel=.4",
}


def test_the_printed_swarm_is_best_in_15_of_16_settings():
    table = cells.printed_numbers()["swarm-table-1"]
    won = []
    for methods in table.values():
        for data, numbers in methods["pso"].items():
            others = [
                entry[data][0] for name, entry in methods.items() if name != "pso"
            ]
            won.append(numbers[0] > max(others))
    assert (sum(won), len(won)) == (15, 16)


def test_the_printed_gains_are_those_of_the_text():
    difficult = cells.printed_numbers()["swarm-table-3"]["difficult"]
    separate = cells.printed_numbers()["swarm-table-3"]["separate"]
    gains = []
    for entry in (difficult, separate):
        best = max(value for name, value in entry.items() if name != "pso")
        gains.append(entry["pso"] - best)
    assert np.mean(gains) == pytest.approx(0.0635)
    assert cells.printed_mean(
        "swarm-table-2", objective="difficult", method="dev", figure="refits"
    ) == pytest.approx(0.36)


@pytest.mark.parametrize("name", POPULATIONS)
def test_labels_follow_the_truth(name):
    task = draw_task(name, seed=3, n=3000)
    encoder = Encoder(task.columns).fit(task.features)
    scale = TargetEncoder(task.kind, task.labels, task.target)
    y = scale.transform(task.target)
    t = TrueTeacher(name, encoder, scale).predict(encoder.transform(task.features))
    if t.ndim == 1:
        # what is left of the target is the noise that was added
        noise = POPULATIONS[name].noise / scale.span
        assert (y - t).std() == pytest.approx(noise, rel=0.1)
        return
    assert t.sum(axis=1) == pytest.approx(1)
    # a calibrated truth: its own chance of the label is as high as it says
    chance = t[np.arange(len(y)), y.astype(int)]
    assert chance.mean() == pytest.approx((t**2).sum(axis=1).mean(), abs=0.03)


def test_a_product_decides_in_a_third_of_the_rows():
    task = draw_task("interaction", seed=0, n=3000)
    assert is_interaction(task.features).mean() == pytest.approx(1 / 3, abs=0.04)


def test_draws_of_a_simulated_table_differ_and_repeat():
    first = split_draw(None, "toy", 1, 200)
    assert first.content_hash == split_draw(None, "toy", 1, 200).content_hash
    assert first.content_hash != split_draw(None, "toy", 2, 200).content_hash
    assert len(first.folds) == 1


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"generator": 3}, r"unknown setting 'generator' .*did you mean 'generators'"),
        ({"iterations": 0}, "iterations = 0"),
        ({"iterations": 1.5}, "whole number"),
        ({"generators": 2}, "needs 3 or more"),
        ({"objectives": "difficult hard"}, "no objective 'hard'"),
        ({"tables": "digit"}, r"unknown table 'digit' .*digits"),
    ],
)
def test_bad_settings_are_one_line(changes, message):
    with pytest.raises(ConfigError, match=message):
        make_choice(changes)


def test_files_take_the_place_of_embedded_tables():
    table = TABLES["swarm-table-1"]
    assert "adult" in tables_of(table, make_choice(), True)
    assert "adult" not in tables_of(table, make_choice(), False)
    with pytest.raises(ConfigError, match="it has digits"):
        run.check_choice(["swarm-table-1"], {"tables": "adult"}, False)


def a_draw(data, number, swarm, rival, arms=None):
    methods = {name: {"fresh": rival} for name in (*claims.AGNOSTIC, *claims.GUIDED)}
    methods |= {"pso": {"fresh": swarm, "reported": 1.0}, "soups": {"fresh": rival}}
    rows = {"difficult": {"literal": methods, "honest": methods}}
    return DrawResult(data=data, number=number, rows=rows, seconds=0.0)


@pytest.mark.parametrize(
    ("gap", "verdict"), [(0.1, "holds"), (-0.1, "does not hold"), (0.0, "open")]
)
def test_a_verdict_follows_the_interval_and_few_draws_explore(gap, verdict):
    noise = np.random.default_rng(0).normal(0, 0.01, 12)
    done = [a_draw(f"t{k % 4}", k // 4, 0.3 + gap + noise[k], 0.3) for k in range(12)]
    figures = cells.list_figures("swarm-table-1", done)
    found = claims.judge_claims("swarm-table-1", figures)
    [soup] = [
        claim for claim in found if claim.text.endswith("soup, difficult, literal")
    ]
    assert soup.verdict == f"{verdict}; exploratory, 3 draws"
    many = [a_draw("t", k, 0.3 + gap, 0.3) for k in range(10)]
    [count, *_] = claims.judge_claims(
        "swarm-table-1", cells.list_figures("swarm-table-1", many)
    )
    assert count.ours.startswith("1 of 1" if gap > 0 else "0 of 1")
    assert "exploratory" not in count.verdict


def lighten_swarms(patch):
    """Few trees, and few rows where their number is no setting."""
    lighten(patch)
    patch.setattr("amlb_ext.swarm.rival_rows.ROUNDS", 1)
    patch.setattr("amlb_ext.swarm.rival_rows.POOL", 2)
    patch.setattr("amlb_ext.swarm.baselines.REGRET_POOL", 1)
    patch.setattr("amlb_ext.swarm.search.FINAL_ROWS", 50)
    patch.setattr("amlb_ext.experiments.swarms.hull.POINTS", 5)
    patch.setattr("amlb_ext.experiments.swarms.pictures.POINTS", 5)


@pytest.fixture(scope="module")
def reproduced(tmp_path_factory):
    """All five names at the smallest sizes, by the command."""
    out = tmp_path_factory.mktemp("swarms")
    words = ["reproduce", "swarm", "-o", str(out), "--draws", "1", "-j", "1", "-q"]
    words += [f"--set={key}={value}" for key, value in TINY.items()]
    words += ["--set=tables=interaction five_gaussians diabetes"]
    planned = run.tables_of

    def one_table_each(table, choice, has_folder):
        # one simulated table shows what five do; the regression shows how one is left out
        names = planned(table, choice, has_folder)
        is_adversarial = table.name == "swarm-adversarial"
        if is_adversarial and "diabetes" in names:
            return ["five_gaussians", "diabetes"]
        return ["five_gaussians"]

    with pytest.MonkeyPatch.context() as patch:
        lighten_swarms(patch)
        patch.setattr(run, "tables_of", one_table_each)
        status = main(words)
        yield out, words, status


def test_every_table_has_its_claims_and_its_place_on_the_page(reproduced):
    out, _, status = reproduced
    # adversarial swarms are studied on classes, and the page says so
    assert status == 1
    html = (out / "index.html").read_text()
    assert "Data Swarms: Optimizable Generation" in html
    assert "diabetes is a regression" in html
    assert "://" not in html.replace("http://www.w3.org", "")
    for table, code in (
        ("swarm-table-1", "C1"),
        ("swarm-table-2", "C4"),
        ("swarm-table-3", "C5"),
        ("swarm-adversarial", "C7"),
    ):
        text = (out / table / "cells.md").read_text()
        assert f"| {code} |" in text
        assert "exploratory, 1 draw" in text
    first = (out / "swarm-table-1" / "cells.md").read_text()
    assert "0.3868 ± 0.0218" in first
    assert "| C6 |" not in first  # compositions of figure 5 were not asked for
    assert (out / "swarm-hull" / "hull.svg").read_text().startswith("<?xml")
    assert (out / "swarm-table-2" / "worth.svg").exists()


def test_difficulty_by_the_truth_is_noise_and_excess(reproduced):
    out, _, _ = reproduced
    table = pd.read_csv(out / "swarm-table-3" / "cells.csv")
    table = table[(table["objective"] == "difficult") & (table["form"] == "literal")]
    wide = table.pivot_table(index=["data", "method"], columns="figure", values="ours")
    assert (wide["seen excess"] >= 0).all()
    # a row of which the label cannot be known counts as hard, and cannot be mended
    assert (wide["seen difficult"] >= wide["seen excess"] - 1e-9).all()
    assert set(table["method"]) >= {"pso", "cma", "affine", "by_x", "regret"}


def test_the_control_of_the_adversarial_study_stands_beside_it(reproduced):
    out, _, _ = reproduced
    table = pd.read_csv(out / "swarm-adversarial" / "cells.csv")
    arms = set(table["method"])
    assert {"adversarial", "real_teacher", "real_true", "initial"} <= arms
    told = table[table["figure"] == "contradicted"].set_index(["data", "form"])["ours"]
    # labels that the teacher gives are never contradicted by it
    assert (told.xs("teacher", level="form") == 0).all()


def test_the_same_command_computes_nothing_twice(reproduced, monkeypatch):
    out, words, _ = reproduced
    before = {path: path.stat().st_mtime_ns for path in out.rglob("draws/*.json")}
    monkeypatch.setattr(run, "compute_draw", None)
    main(words)
    assert {p: p.stat().st_mtime_ns for p in before} == before
    result = json.loads((out / "swarm-table-1" / "result.json").read_text())
    assert result["splits"] == 1
    assert set(result["left_out"]) == set()


def test_the_objectives_are_those_of_table_1_and_both_figures():
    assert OBJECTIVES[:4] == claims.TABLE_1
    assert len(OBJECTIVES) == 8
