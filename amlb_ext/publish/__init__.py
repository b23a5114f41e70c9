"""The publish wing: a suite on an OpenML server, or behind an address that AMLB fetches from.

For an address: ``base_url`` is it one · ``archives`` the files to upload · ``target`` the folder
to write to · ``export`` all in order. For a server:

``splits`` the two splits that depend on row counts alone · ``rows`` which rows are sent, how often
and where · ``arff`` the data file · ``limits`` what a server takes · ``licence`` may it be
published · ``unit`` one fold of an AMLB task · ``describe`` its texts · ``objects`` the XML, by the
OpenML client · ``plan`` everything that would be sent, checked · ``address`` server and key ·
``codes`` its errors in plain words · ``wire`` requests · ``lookup`` what it has already ·
``journal`` what was sent · ``steps`` what can be done again · ``publish`` all in order.
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
