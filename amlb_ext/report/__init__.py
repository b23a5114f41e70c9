"""The report wing: from AMLB's results to an answer.

``model`` what a report is made of.
"""
