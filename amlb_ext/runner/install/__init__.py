"""A suite added to a user's own AMLB configuration, and taken back without a trace.

``change`` does both (``install``, ``uninstall``, ``Change``) · ``copies`` the suite's files as a
user directory gets them · ``userdir`` its paths, what is installed, the files written and removed
· ``names`` those that are taken there · ``config_edit`` our entries in the user's ``config.yaml``.
"""

from amlb_ext.runner.install.change import Change, describe_change, install, uninstall

__all__ = ["Change", "describe_change", "install", "uninstall"]
