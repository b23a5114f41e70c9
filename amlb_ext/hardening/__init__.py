"""From one fold of a task to its hard rows.

A row's way: ``split`` (folds where a source has none) → ``encode`` (tables to matrices and
back) → ``baseline`` (the model F; ``forests`` asks forests
without detours) → ``oracle`` (a strong cross-fitted ensemble T) →
``crossfit`` (F and T on parts of the training rows, fitted once for all that needs them) →
``hardness`` (K: which rows are bad) → ``weights`` (where failures are likely, by features
alone) → ``genetic`` (augmentation: ``draws``, ``operators``, ``block``; ``deap_engine`` is the
reference) →
``augment`` (one side of a fold; ``synthesis`` and ``population`` are its second half, ``made``
what they make) → ``parts`` (rows with provenance) → ``prepare`` (a fold before anything is made)
→ ``fold`` (all of it) → ``shared`` (a fold of several tasks with the same rows; ``several`` makes
their models look like one).

Public names: :func:`~amlb_ext.hardening.split.split_task`,
:class:`~amlb_ext.hardening.encode.Encoder`,
:func:`~amlb_ext.hardening.baseline.from_file.make_baseline`,
:func:`~amlb_ext.hardening.fold.harden_fold`,
:func:`~amlb_ext.hardening.shared.harden_shared`.
"""
