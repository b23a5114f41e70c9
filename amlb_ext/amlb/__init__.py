"""The AMLB wing: the rules of the AutoML Benchmark v2.1.7, each written once.

Nothing here runs AMLB or imports it; the tests put each disputed rule to AMLB itself.

``definition`` which tasks and jobs a benchmark definition asks for · ``configuration`` where AMLB
looks for definitions, constraints and data · ``frameworks`` what it runs under a framework's name ·
``safe_text`` which texts it reads back as they were written · ``coding`` a task's values in its CSV
and back · ``loader_rules`` what a training file and its test file must satisfy.
"""
