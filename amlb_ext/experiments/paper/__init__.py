"""Tables and figures of the paper behind ``generate``; see :mod:`amlb_ext.experiments`."""
