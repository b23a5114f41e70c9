"""Any model, asked in one way: the one adapter between models and everything else.

:class:`~amlb_ext.models.adapter.ModelAdapter` asks; ``kind``, ``columns``, ``labels``, ``answers``,
``native`` and ``clones`` each answer one of its questions; ``alignment`` and ``predictions`` read
what stands for answers, ``files`` and ``service`` bring a model from a file or an address,
``registry`` those with a short name; ``invariants`` holds every door to what the model said.
"""
