"""What would be sent, and every limit of the server."""

from xml.etree import ElementTree

import pandas as pd
import pytest
from small_suites import table, take, write_suite
from written_suites import entry_of, finish, put_fold

from amlb_ext.core.errors import PublishError, SuiteError
from amlb_ext.core.tables import make_task
from amlb_ext.core.task import Origin
from amlb_ext.publish import plan, plan_suite, unit, write_plan
from amlb_ext.publish.limits import DATA, STUDY, check_xml
from amlb_ext.suite import (
    Layout,
    Part,
    SuiteRequest,
    begin_suite,
    verify_suite,
)
from amlb_ext.suite.sealed_json import sealed_text

NS = {"oml": "http://openml.org/openml"}


def texts(xml):
    return {e.tag.split("}")[1]: e.text for e in ElementTree.fromstring(xml)}


def odd_suite(root, frame, name="odd", **origin):
    """A suite of one table as it is; the last third is for testing."""
    task, layout = make_task(frame, frame.columns[-1], name=name), Layout(root)
    begin_suite(layout, {})
    n = len(task)
    parts = {"": Part(take(task, range(2 * n // 3, n)))}
    train = take(task, range(2 * n // 3), False)
    record = put_fold(layout, task, train, parts, name=name)
    source = Origin(**{"spec": "x", "licence": "CC0", **origin})
    entry = entry_of(task, [record], origin=source, source_name="")
    request = SuiteRequest(command="hardsynth generate odd.csv -o DIR")
    finish(layout, [entry], config={}, seed=0, version="1", request=request)
    return root


def test_the_main_definition_is_planned_unless_told_otherwise(suite):
    names = [p.unit.name for p in plan_suite(suite).units]
    assert names == [
        f"hardsynth.{t}{s}.0" for t in ("cars", "homes", "wines") for s in ("", "_full")
    ]
    measures = [p.unit.measure for p in plan_suite(suite).units]
    # logloss is none of OpenML's
    assert measures[::2] == ["area_under_roc_curve", "root_mean_squared_error", None]
    with pytest.raises(PublishError, match="no task has fold 7") as caught:
        plan_suite(suite, folds=[7])
    assert "0 to 0" in caught.value.remedy
    only = plan_suite(suite, only=["cars_region", "cars_region"])
    assert [p.unit.name for p in only.units] == ["hardsynth.cars_region.0"]
    assert only.alias != plan_suite(suite).alias


def test_an_unknown_task_is_named_with_the_nearest(suite):
    with pytest.raises(PublishError, match="--only car: no such task") as caught:
        plan_suite(suite, only=["car"])
    assert "did you mean 'cars'" in caught.value.remedy


def test_the_description_says_what_it_is(suite):
    (suite / "hardsynth" / "cars").mkdir(exist_ok=True)
    content = {
        "key": "",
        "certificate": {"verdict": "describe", "reason": "tau is .1."},
    }
    (suite / "hardsynth/cars/certificate.json").write_text(sealed_text(content))
    planned = plan_suite(
        suite, only=["cars"], url="https://example.org/hard.zip"
    ).units[0]
    said = texts(planned.xml)["description"]
    for words in (
        "hard rows of cars set (openml/t/4)",
        "112 rows: 90 of 90 training rows and 11 of 12 test rows, each of them 2 times",
        "estimation procedure 28, '20% Holdout (Ordered)'",
        "Certificate. describe: tau is .1.",
        "Licence: CC BY 4.0",
        "data_id 7",
        "hardsynth generate openml/t/1 -o DIR",
        "https://example.org/hard.zip",
        "authoritative form",
        "Original column names: ",
        "the_target = 'the target'",
        planned.unit.label,
    ):
        assert words in said, words
    homes = plan_suite(suite, only=["homes"]).units[0]
    assert "Certificate. no certificate" in texts(homes.xml)["description"]
    assert "procedure 12" in texts(homes.xml)["description"]


def test_coded_labels_and_values_have_their_way_back(suite):
    planned = plan_suite(suite, only=["wines"]).units[0]
    said = texts(planned.xml)["description"]
    assert "Original labels: c0_1e5 = '1e5', c1_high = 'High', c2_low = 'low'." in said
    target = planned.unit.attributes[-5]
    assert target.values == ("c0_1e5", "c1_high", "c2_low")


def test_the_row_column_joins_to_the_suites_files(suite):
    found = plan_suite(suite, only=["cars"]).units[0].unit
    lines = found.arff().split("@data\n")[1].splitlines()
    train, test = (pd.read_csv(p, dtype=str) for p in found.suite.pair("cars", 0))
    origin = found.suite.provenance("cars", 0)["origin"]
    for line in lines:
        first, *_, name, side, of, source = line.split(",")
        side_, row, *again = name.split(".")
        assert side_ == side
        assert first == {"train": train, "test": test}[side]["count"][int(row)]
        assert of == ("train" if side == "train" else origin[int(row)])
        assert source == "3" if of in ("ga", "synthetic") else source.isdigit()
        assert bool(again) == (side == "test")


def test_the_same_suite_gives_the_same_bytes_and_another_seed_others(tmp_path):
    sizes = {"t": ("binary", 50, 11)}
    one, two, other = (
        plan_suite(write_suite(tmp_path / str(i), sizes, seed=seed))
        for i, seed in enumerate((1, 1, 2))
    )
    assert one.alias == two.alias
    assert [p.unit.md5 for p in one.units] == [p.unit.md5 for p in two.units]
    assert one.units[0].unit.key != other.units[0].unit.key


def test_a_changed_file_is_refused(suite):
    path = suite / "data" / "cars" / "cars_test_0.csv"
    path.write_text(path.read_text().replace("yes", "no", 1))
    assert verify_suite(suite)
    changed = r"cars_test_0\.csv of the suite .*was changed"
    with pytest.raises(SuiteError, match=changed) as caught:
        plan_suite(suite)
    assert "hardsynth verify" in caught.value.remedy


def test_long_and_foreign_texts_are_cut_and_said(tmp_path):
    words = [f"Wert Nr. {i} — naïve ÄÖÜ {'x' * 30}" for i in range(900)]
    frame = table("binary", 900).assign(**{"what's it": words})
    frame.insert(0, "id", [str(i) for i in range(900)])
    root = odd_suite(
        tmp_path / "hard",
        frame,
        citation="Müller, " * 400,
        url="https://e.org/" + "a" * 3000,
    )
    planned = plan_suite(root).units[0]
    found = texts(planned.xml)
    assert list(check_xml(planned.xml, DATA)) == []
    assert len(found["citation"]) == 1024
    assert found["citation"].startswith("Muller")
    assert found["citation"].endswith("...")
    assert len(found["description"]) <= 16384
    assert any("citation was cut" in note for note in planned.notes)
    assert any("in ASCII" in note for note in planned.notes)
    assert "original_data_url" not in found


def test_names_of_columns_and_tasks_fit_the_server(tmp_path):
    frame = table("binary", 90)
    frame = frame.rename(columns={"count": "hardsynth_row", "the target": "Ziel=5?"})
    root = odd_suite(tmp_path / "hard", frame, name="n" * 145)
    planned = plan_suite(root).units[0]
    found = texts(planned.xml)
    assert len(found["name"]) == 128
    assert found["default_target_attribute"] == "Ziel_5_"
    assert found["row_id_attribute"] == "hardsynth_row_"
    assert any("renamed" in note for note in planned.notes)
    assert planned.unit.renamed == {"Ziel=5?": "Ziel_5_"}


def test_every_limit_of_data_sets_and_suites():
    for limits in (DATA, STUDY):
        for field, limit in limits.items():
            letters = "" if limit.pattern == "task" else "a" * (limit.length + 1)
            for value in ("", "\u00e4", letters):
                xml = f'<o:d xmlns:o="{NS["oml"]}"><o:{field}>{value}</o:{field}></o:d>'
                (problem,) = check_xml(xml, limits)
                assert field in problem


def test_what_the_server_would_refuse_stops_the_plan(suite, monkeypatch):
    monkeypatch.setattr(plan, "UPLOAD_LIMIT", 3000)
    with pytest.raises(PublishError, match="cars, fold 0: its data file has") as caught:
        plan_suite(suite)
    assert "--only" in caught.value.remedy
    monkeypatch.setattr(plan, "UPLOAD_LIMIT", 10**8)
    monkeypatch.setattr(plan, "UPLOAD_DEFAULT", 1000)
    assert "nobody configured" in plan_suite(suite, only=["cars"]).units[0].notes[-1]
    monkeypatch.setattr(
        unit, "server_name", lambda text, length=128: text.replace("_", " ")
    )
    with pytest.raises(PublishError, match="default_target_attribute 'the target'"):
        plan_suite(suite, only=["cars"])


def test_the_suites_own_texts_fit_with_many_tasks(tmp_path):
    tasks = {f"{'long' * 50}_{i}": ("binary", 20, 4) for i in range(14)}
    found = plan_suite(write_suite(tmp_path / "hard", tasks), only=[*tasks])
    about = found.to_json()["suite"]
    assert len(about["description"]) == 4096
    assert len(about["name"]) <= 256
    assert len(about["alias"]) <= 32


def test_files_of_a_dry_run(suite, tmp_path):
    found = plan_suite(suite)
    paths = write_plan(found, tmp_path / "out")
    assert len(paths) == 3 * len(found.units) + 1
    assert paths[0].read_text(encoding="utf-8") == found.units[0].unit.arff()
    root = ElementTree.fromstring(paths[2].read_text())
    asked = {e.attrib["name"]: e.text for e in root.findall("oml:input", NS)}
    assert asked["estimation_procedure"] == "28"
    assert asked["target_feature"] == "the_target"
