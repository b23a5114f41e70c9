"""Any model, asked in one way: the one adapter between models and everything else.

:class:`~amlb_ext.models.adapter.ModelAdapter` asks; ``native``, ``columns`` and ``answers`` each
answer some of its questions: of which kind a model is, which columns it wants, and what its answers
mean. ``predictions`` reads what stands for answers, ``files`` and ``service`` bring a model from a
file or an address, ``registry`` those with a short name; ``given_table`` says what a model makes of
a table that a user gives, and whether it has seen the rows.
"""
