"""Modules that are no part of the package."""

import importlib.util
import sys

from amlb_ext.core.assets import asset_path


def import_file(path, name):
    """Import a file as a module of this name."""
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up there
    spec.loader.exec_module(module)
    return module


def sklearn_pipeline():
    """Import ``frameworks/HardsynthSklearn/pipeline.py``."""
    path = asset_path("frameworks", "HardsynthSklearn", "pipeline.py")
    return import_file(path, "hardsynth_sklearn_pipeline")
