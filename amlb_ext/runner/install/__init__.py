"""A suite added to a user's own AMLB configuration, and taken back without a trace.

``change`` does both (``install``, ``uninstall``, ``Change``) · ``files`` what is copied · ``state``
what is installed, and which names are taken · ``text`` and ``place`` the user's ``config.yaml``,
changed by a few lines · ``write`` files written and removed.
"""

from amlb_ext.runner.install.change import Change, install, uninstall

__all__ = ["Change", "install", "uninstall"]
