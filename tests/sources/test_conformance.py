"""What every registered source must keep; a new source adds one line to SAMPLES."""

from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest
from commands import python
from foundry_container import write_container

from amlb_ext.core.config import SourceConfig
from amlb_ext.core.errors import HardsynthError, SourceError
from amlb_ext.core.task import Kind
from amlb_ext.sources import load_sources, open_specs
from amlb_ext.sources import openml as openml_source
from amlb_ext.sources.forms import FORMS
from amlb_ext.tasks import TASKS
from amlb_ext.tasks.drop4 import draw_games


def bundled_sample(table, folder, request):
    return "bundled/diabetes_gaps", SourceConfig(), "bundled/nothing"


def weird_sample(table, folder, request):
    # a thousand games take seconds to play
    few = replace(TASKS["drop4_winners"], draw=partial(draw_games, rows=60))
    request.getfixturevalue("monkeypatch").setitem(TASKS, few.name, few)
    return "weird/drop4_winners", SourceConfig(), "weird/nothing"


def files_sample(table, folder, request):
    table.to_csv(folder / "a.csv", index=False)
    return str(folder / "a.csv"), SourceConfig(), str(folder / "nothing.csv")


def amlb_sample(table, folder, request):
    table.iloc[:20].to_csv(folder / "a_train.csv", index=False)
    table.iloc[20:].to_csv(folder / "a_test.csv", index=False)
    good, bad = folder / "b.yaml", folder / "c.yaml"
    good.write_text("- {name: a, dataset: {path: .}}\n", encoding="utf-8")
    bad.write_text("- {name: a, dataset: {path: no}}\n", encoding="utf-8")
    return str(good), SourceConfig(userdir=str(folder)), str(bad)


def openml_sample(table, folder, request):
    server = request.getfixturevalue("openml_server")
    options = SourceConfig(openml_server=server.url, openml_cache=str(folder))
    return "openml/t/11", options, "openml/t/99"


def tabarena_sample(table, folder, request):
    # the loopback server has one task
    ids = {"small": 11, "lost": 99}
    request.getfixturevalue("monkeypatch").setattr(
        openml_source, "tabarena_task_ids", lambda: ids
    )
    _, options, _ = openml_sample(table, folder, request)
    return "tabarena/small", options, "tabarena/lost"


def data_foundry_sample(table, folder, request):
    container = write_container(
        folder / "container",
        table,
        target="class",
        problem="binary_classification",
        splits={"0": {"0": [list(range(20)), list(range(20, len(table)))]}},
    )
    empty = folder / "empty"
    empty.mkdir()
    (empty / "container_metadata.json").write_text("{}", encoding="utf-8")
    return str(container), SourceConfig(), str(empty)


#: source name -> a good spec, its options, and a spec of the right form that names nothing
SAMPLES = {
    "bundled": bundled_sample,
    "weird": weird_sample,
    "files": files_sample,
    "amlb": amlb_sample,
    "openml": openml_sample,
    "tabarena": tabarena_sample,
    "data_foundry": data_foundry_sample,
}


@pytest.fixture(params=[source.name for source in load_sources()])
def sample(request, table, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return SAMPLES[request.param](table, tmp_path, request)


def test_every_source_has_a_sample_and_says_what_it_accepts():
    names = [source.name for source in load_sources()]
    assert set(names) == set(SAMPLES)
    assert names == list(FORMS)


def test_canonical_form(sample):
    spec, options, _ = sample
    for ref in open_specs([spec], options):
        task = ref.load()
        assert isinstance(task.kind, Kind)
        assert task.features.index.equals(pd.RangeIndex(len(task)))
        assert list(task.features.columns) == [c.name for c in task.columns]
        for column in task.columns:
            values = task.features[column.name]
            assert column.has_missing == values.isna().any()
            if column.is_numeric:
                assert values.dtype == np.float64
                assert column.categories == ()
            else:
                assert isinstance(values.dtype, pd.CategoricalDtype)
                assert not values.cat.ordered
                assert tuple(values.cat.categories) == column.categories
                assert all(type(value) is str for value in values.cat.categories)
        assert task.target.name == task.target_name
        assert not task.target.isna().any()
        if task.kind.is_classification:
            assert tuple(task.target.cat.categories) == task.labels
            assert all(type(label) is str for label in task.labels)
            assert set(task.target) == set(task.labels)
        else:
            assert task.target.dtype == np.float64
            assert task.labels == ()
        assert task.row_ids.dtype == np.int64
        assert len(task.row_ids) == len(task)


def test_folds_origin_and_a_second_load(sample):
    spec, options, _ = sample
    ref = next(open_specs([spec], options))
    task = ref.load()
    assert task.origin.spec == ref.spec
    for key, value in task.origin.ids.items():
        assert type(key) is type(value) is str
    again = next(open_specs([ref.spec], options)).load()
    assert again.content_hash == task.content_hash
    for fold in task.folds:
        for part in (fold.train, fold.test):
            assert part.dtype == np.int64
            assert len(part)
            assert part.min() >= 0
            assert part.max() < len(task)
            assert len(set(part)) == len(part)
        assert not set(fold.train) & set(fold.test)


def test_what_is_not_there_is_said_with_a_remedy(sample):
    _, options, nothing = sample
    with pytest.raises(HardsynthError) as caught:
        [ref.load() for ref in open_specs([nothing], options)]
    assert caught.value.remedy
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "garbage",
    ["", " ", "openml/x/1", "openml/t/", "openml/t/one", "a.xls", "../..", "\x00", "#"],
)
def test_garbage_is_refused_at_once(garbage, tmp_path):
    options = SourceConfig(userdir=str(tmp_path))
    with pytest.raises(SourceError, match="no source understands") as caught:
        open_specs([garbage], options)
    for form in ("openml/t/ID", "bundled/NAME", ".csv", ".yaml"):
        assert form in caught.value.remedy


def test_nothing_heavy_is_imported_and_refs_read_no_data():
    code = (
        "import sys\n"
        "from amlb_ext.sources import open_specs\n"
        "names = [ref.name for ref in open_specs(['bundled', 'openml/t/31', 'no/such.csv'])]\n"
        "heavy = {'openml', 'arff', 'sklearn', 'requests', 'scipy'} & set(sys.modules)\n"
        "print(len(names) >= 9, sorted(heavy))\n"
    )
    assert python(code).strip() == "True []"


def test_order_of_specs_is_kept(table, tmp_path):
    table.to_csv(tmp_path / "a.csv", index=False)
    specs = ["bundled/wine", str(tmp_path / "a.csv"), "openml/t/31", "bundled/toy"]
    assert [ref.spec for ref in open_specs(specs)] == specs
