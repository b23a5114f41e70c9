"""A gate: may a candidate replace F? Decided on what ``compare`` and ``report`` have computed.

checks (text, JUnit, GitHub) → suites, pytest_plugin
"""
