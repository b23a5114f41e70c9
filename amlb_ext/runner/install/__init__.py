"""A suite added to a user's own AMLB configuration, and taken back without a trace.

``change`` does both (``install``, ``uninstall``, ``Change``), in a user directory · ``copies`` the
suite's files as it gets them · ``config_edit`` our entries in the user's ``config.yaml``.
"""

from amlb_ext.runner.install.change import Change, install, uninstall

__all__ = ["Change", "install", "uninstall"]
