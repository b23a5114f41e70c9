"""Made rows of a fold keep relations: mined, declared, for every way of making rows."""

import json

import numpy as np
import pandas as pd
import pytest
from commands import hardsynth, words_of
from planted_relations import planted_table
from small_models import lighten

from amlb_ext.cli import main
from amlb_ext.relations.mining import mine_relations
from amlb_ext.suite import SuiteFiles, verify_suite
from amlb_ext.validity.task_measures import audit_made_rows, measure_feasibility
from amlb_ext.validity.task_rows import read_task

FAST = words_of(
    "--folds 1 --certificate none -j 1 -q --kappa 0.3 --epochs 5 --max-rows 40",
    "--rule quantile --composition bad,synthetic --copies 1 --no-train-hard",
    "--synthesizer local --times 2",
)


def make_table(path, target="spouse", seed=0):
    rows, _ = planted_table(seed, n=500)
    if target == "spouse":
        # a label that follows from no column, so that F has something to fail on
        rng = np.random.default_rng(seed)
        chance = 1 / (1 + np.exp(-(rows["rooms"] - 20) / 8 - 0.3 * rows["noise"]))
        rows = rows.assign(label=np.where(rng.random(len(rows)) < chance, "yes", "no"))
    rows.to_csv(path, index=False)
    return rows


def generate(tmp_path, *flags, target="label", baseline="logistic"):
    table = tmp_path / "table.csv"
    if not table.exists():
        make_table(table)
    suite = tmp_path / f"suite{len(list(tmp_path.iterdir()))}"
    command = ["generate", str(table), "--target", target, "--baseline", baseline]
    with pytest.MonkeyPatch.context() as patch:
        lighten(patch)
        assert main([*command, *FAST, "-o", str(suite), *flags]) == 0
    return SuiteFiles.load(suite)


@pytest.mark.parametrize(
    "flags",
    [
        ("--synthesizer", "vae"),
        (),
        pytest.param(
            ("--learn-from", "population", "--preset", "stress", "--rule", "quantile"),
            marks=pytest.mark.exhaustive,
        ),
    ],
    ids=["vae", "local", "population-stress"],
)
def test_made_rows_keep_what_holds_on_every_real_row(tmp_path, flags):
    suite = generate(tmp_path, *flags)
    audit = audit_made_rows(read_task(suite, "table"))
    assert audit.n_relations >= 5
    assert audit.shuffled_share > 0.5
    made = 0
    for part in audit.parts.values():
        made += part.rows
        assert part.infeasible <= 0.01 * part.rows, part.by_relation
        assert part.unlike_real == 0
    assert made > 20
    assert verify_suite(suite.layout.root) == []


def test_without_relations_made_rows_break_them(tmp_path):
    suite = generate(tmp_path, "--no-mine")
    infeasible, _ = measure_feasibility(read_task(suite, "table"))
    assert infeasible.passed is False
    assert infeasible.value > 0.2
    summary = next(iter(suite.tasks["table"].folds.values())).summary
    assert "relations" not in summary
    assert "put_back" not in suite.provenance("table_ga", 0)


def test_frozen_columns_are_the_parents_and_one_way_ones_only_grow(tmp_path):
    frozen = ["--frozen", "city", "--frozen", "noise"]
    suite = generate(tmp_path, *frozen, "--one-way", "rooms=up")
    table = pd.read_csv(tmp_path / "table.csv")
    for part in ("table_ga", "table_synthetic"):
        provenance = suite.provenance(part, 0)
        made = pd.read_csv(suite.pair(part, 0)[1])
        parents = table.iloc[provenance["parent_row"].to_numpy()].reset_index(drop=True)
        assert len(made)
        assert (made["city"] == parents["city"]).all()
        assert np.allclose(made["noise"], parents["noise"])
        assert (made["rooms"] >= parents["rooms"]).all()


def test_a_declared_rule_is_kept_and_rows_that_break_it_make_no_rows(tmp_path):
    suite = generate(tmp_path, "--no-mine", "--relation", "noise <= 0.5")
    table = pd.read_csv(tmp_path / "table.csv")
    for part in ("table_ga", "table_synthetic"):
        made = pd.read_csv(suite.pair(part, 0)[1])
        assert (made["noise"] <= 0.5).all()
        parents = table.iloc[suite.provenance(part, 0)["parent_row"].to_numpy()]
        assert (parents["noise"] <= 0.5).all()
    real = pd.read_csv(suite.pair("table_full", 0)[1])
    assert (real["noise"] > 0.5).any()
    fold = next(iter(suite.tasks["table"].folds.values()))
    assert "infeasible failures" in {note.kind for note in fold.notes}


def test_a_target_that_can_be_read_off_is_told(tmp_path):
    rows = make_table(tmp_path / "table.csv", target="total")
    assert any(
        "total" in r.columns for r in mine_relations(rows).relations if r.kind == "sum"
    )
    suite = generate(tmp_path, target="total", baseline="ridge")
    fold = next(iter(suite.tasks["table"].folds.values()))
    [note] = [note for note in fold.notes if note.kind == "target read off"]
    assert note.words["flags"].startswith("--drop")
    assert audit_made_rows(read_task(suite, "table")).parts["ga"].infeasible == 0


def test_the_command_lists_and_audits(tmp_path, output_of, capsys):
    table = tmp_path / "table.csv"
    make_table(table)
    listed = tmp_path / "relations.yaml"
    assert hardsynth("relations", table, "--target label -o", listed, "-q") == 0
    assert "- city determines country  # E = " in listed.read_text()
    suite = generate(tmp_path, "--relations", str(listed))
    capsys.readouterr()
    found = json.loads(output_of("relations", suite.layout.root, "--json"))["table"]
    assert found["parts"]["ga"]["infeasible"] == 0
    assert "infeasible" in output_of("relations", suite.layout.root)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--relation", "romms <= 3"], "'romms'"),
        (["--frozen", "label"], "target"),
        (["--relation", "rooms < 0"], "every one of 500"),
        (["--relation", '__import__("os")'], "comparison is expected"),
    ],
)
def test_bad_declarations_write_nothing(tmp_path, refused, flags, message):
    table = tmp_path / "table.csv"
    make_table(table)
    out = tmp_path / "out"
    command = words_of("generate", table, "--target label -o", out, FAST, flags)
    assert message in refused(command)
    assert not out.exists()
