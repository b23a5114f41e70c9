"""From one fold of a task to its hard rows.

A row's way: ``split`` (folds where a source has none) → ``encode`` (tables to matrices and
back) → ``baseline`` (the model F) → ``oracle`` (T, a strong cross-fitted ensemble, and what it says
of labels) → ``hardness`` (K: which rows are bad, by one of the ``rules``) → ``weights`` (where
failures are likely, by features alone) → ``judged_rows`` (rows with what F, K and T say of them) →
``prepare`` (a fold before anything is made) → ``made_rows`` (rows made from failures, by the
genetic ``search`` and by synthesizers) → ``assemble`` (parts with provenance, as the suite wants
them) → ``fold`` (all of it, for both sides). ``identifiers`` finds columns that only number rows,
and ``feasibility`` holds made rows to the relations between columns.

A fold has k >= 1 targets; only ``assemble`` writes one file for each.

Public names: :func:`~amlb_ext.hardening.split.split_task`,
:class:`~amlb_ext.hardening.encode.Encoder`,
:func:`~amlb_ext.hardening.baseline.fitted.make_baseline`,
:func:`~amlb_ext.hardening.fold.harden_fold`,
:func:`~amlb_ext.hardening.fold.harden_group`.
"""
