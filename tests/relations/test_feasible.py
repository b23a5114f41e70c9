"""Made rows end feasible, whatever they were, and parents stay as they are."""

import pandas as pd
import pytest
from planted_relations import planted_table, shuffled

from amlb_ext.core.config import RelationsConfig
from amlb_ext.relations.declared import settle_relations


def settled(rows, **settings):
    return settle_relations(
        RelationsConfig(**{"mine": True, **settings}), rows, ["spouse"]
    )[0]


@pytest.mark.parametrize("seed", range(2))
def test_putting_back_ends_with_nothing_broken(seed):
    parents, _ = planted_table(seed)
    relations = settled(parents, frozen=["noise"], one_way={"rooms": "up"})
    made, before = shuffled(parents, seed), parents.copy()
    corrected = relations.correct(made, parents)
    assert relations.broken(corrected, parents).any(axis=1).mean() > 0.2
    rows, put_back, is_broken = relations.put_back(corrected, parents)
    assert not is_broken.any()
    assert not relations.broken(rows, parents).any()
    for name, form in relations.forms.items():
        assert not form.breaks(rows[name].to_numpy()).any()
    pd.testing.assert_frame_equal(parents, before)
    assert (rows["noise"] == parents["noise"]).all()
    # cells that were not put back are those of the corrected row
    for position, name in enumerate(made):
        kept = ~put_back[:, position]
        assert (rows[name][kept] == corrected[name][kept]).all()
    corrected = relations.correct(rows, parents)
    again, put_back, _ = relations.put_back(corrected, parents)
    pd.testing.assert_frame_equal(again, rows)
    assert not put_back.any()


def test_determined_columns_and_sums_are_computed():
    parents, _ = planted_table(1)
    relations = settled(parents)
    pd.testing.assert_frame_equal(relations.correct(parents, parents), parents)
    assert not relations.broken(parents, parents).any()
    assert {"country", "total"} <= set(relations.derived)
    # of two columns that determine each other the number is computed
    coded = parents.assign(city_code=parents["city"].cat.codes.astype(float))
    derived = settled(coded).derived
    assert "city_code" in derived
    assert "city" not in derived
    made = parents.assign(country=shuffled(parents, 0)["country"], total=0.25)
    pd.testing.assert_frame_equal(relations.correct(made, parents), parents)


def test_a_target_is_never_computed():
    parents, _ = planted_table(5)
    relations = settle_relations(
        RelationsConfig(mine=True), parents, ["total", "country"]
    )[0]
    assert not {"total", "country"} & set(relations.derived)
    assert "registered" in relations.derived
    made = parents.assign(registered=0.0)
    pd.testing.assert_frame_equal(relations.correct(made, parents), parents)


def test_a_parent_that_breaks_a_rule_is_no_way_back():
    parents, _ = planted_table(3)
    relations = settled(parents, mine=False, rules=["noise <= 1"])
    made = parents.assign(noise=5.0)
    _, _, is_broken = relations.put_back(made, parents)
    assert (is_broken == (parents["noise"] > 1)).all()
