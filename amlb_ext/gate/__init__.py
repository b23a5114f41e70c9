"""A gate: may a candidate replace F? Decided on what ``compare`` and ``report`` have computed.

checks → outputs (text, JUnit, GitHub), pytest_plugin
"""
