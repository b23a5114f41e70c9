import pytest

from amlb_ext.core.config import PRESETS, build_config
from amlb_ext.core.errors import ConfigError


@pytest.mark.parametrize("preset", PRESETS)
def test_presets_are_valid(preset):
    config = build_config({"preset": preset})
    for stage, changes in PRESETS[preset].items():
        # the composition is no stage with settings of its own
        if not isinstance(changes, dict):
            assert getattr(config, stage) == changes
            continue
        chosen = getattr(config, stage).model_dump()
        for key, value in changes.items():
            found = chosen[key]
            # of operators and parameters a preset names some
            assert found == (found | value if isinstance(value, dict) else value)


def test_parameters_of_a_preset_are_those_of_its_synthesizer():
    assert build_config({"preset": "literal"}).synthesizer.params["latent"] == 256
    other = build_config({"preset": "literal", "synthesizer": {"name": "vae"}})
    assert other.synthesizer.params == {}
    assert other.synthesizer.epochs == 100


def test_labels_of_a_generator_are_those_of_population_rows():
    with pytest.raises(ConfigError, match="add --learn-from population"):
        build_config({"synthesizer": {"labels": "literal"}})
    swarm = {"name": "swarm", "labels": "literal"}
    assert build_config({"synthesizer": swarm}).synthesizer.learn_from == "population"


def test_kappa_is_open_only_where_nobody_set_it():
    assert build_config().search.kappa is None
    assert build_config().search.pressure == 0  # until a calibration has settled it
    assert build_config({"search": {"kappa": 0.005}}).search.pressure == 0.005
    assert build_config({"preset": "literal"}).search.pressure == 0.5
    assert (
        build_config({"preset": "literal"}, {"search": {"kappa": None}}).search.kappa
        is None
    )
