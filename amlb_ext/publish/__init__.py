"""The publish wing: a suite on an OpenML server, or behind an address that AMLB fetches from.

What is sent: ``procedures`` the two splits of OpenML that depend on row counts alone · ``rows``
which rows are sent, how often and where · ``arff`` the data file · ``limits`` what a server takes ·
``licence`` may it be published · ``unit`` one fold of an AMLB task · ``describe`` its texts ·
``objects`` its XML, by the OpenML client · ``plan`` everything that would be sent, checked.

How it is sent: ``address`` server and key · ``server`` requests, and errors in plain words ·
``lookup`` what the server has already · ``journal`` what was sent · ``steps`` each step, safe to
repeat · ``publish`` all steps in order.

:mod:`amlb_ext.publish.export` packs a suite for workers that fetch its data from an address.
"""

from amlb_ext.publish.address import api_key, server_url
from amlb_ext.publish.plan import PublishPlan, plan_suite, write_plan
from amlb_ext.publish.publish import WAIT, PublishReport, publish_plan
from amlb_ext.publish.server import Server

__all__ = [
    "WAIT",
    "PublishPlan",
    "PublishReport",
    "Server",
    "api_key",
    "plan_suite",
    "publish_plan",
    "server_url",
    "write_plan",
]
