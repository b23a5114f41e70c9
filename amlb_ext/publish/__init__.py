"""The publish wing: a suite on an OpenML server, behind an address, or as a data set.

What is sent: ``rows`` which rows, how often and where, for the two splits of OpenML that depend on
row counts alone · ``arff`` the data file · ``limits`` what a server takes, and what a licence
allows · ``unit`` one fold of an AMLB task · ``describe`` its texts and XML · ``plan`` everything
that would be sent, checked.

How it is sent: ``server`` address, key, requests, and errors in plain words · ``steps`` what was
sent and what the server has already; each step, safe to repeat · ``publish`` all steps in order.

:mod:`amlb_ext.publish.export` packs a suite for workers that fetch its data from an address.
``huggingface`` makes a data set of it, with a card · ``croissant`` the words of its metadata ·
``openml_files`` what the OpenML client reads in place of a server.
"""

from amlb_ext.publish.plan import PublishPlan, plan_suite, write_plan
from amlb_ext.publish.publish import WAIT, PublishReport, publish_plan
from amlb_ext.publish.server import Server, api_key, server_url

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
