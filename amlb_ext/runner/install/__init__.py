"""A suite added to a user's own AMLB configuration, and taken back without a trace.

``change`` does both (``install``, ``uninstall``, ``Change``) · ``copies`` the suite's files as a
user directory gets them · ``state`` what is installed, which names are taken, and the files
written and removed · ``config_edit`` the user's ``config.yaml``, by round trip.
"""

from amlb_ext.runner.install.change import Change, describe_change, install, uninstall

__all__ = ["Change", "describe_change", "install", "uninstall"]
