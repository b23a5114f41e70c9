"""Relations between columns: found in real rows, declared by users, kept in made rows.

A *relation* is a condition that real rows satisfy, such as ``total_bedrooms <= total_rooms`` or
``education determines education_num``. Modules, from the bottom:

``conditions``
    what a condition means on rows, missing values included.
``grammar``
    the language in which a condition is written, and its parser.
``values``
    the values of a column as integer codes, rounded, and as they are written.
``kinds``
    what a relation is: a rule, a dependency between columns, known combinations.
``equations``
    equalities of numbers, which compute one of them.
``groups``
    one-hot columns, and shares within a band.
``mining_table``, ``number_rules``, ``equality_search``, ``product_search``, ``value_rules``, \
``mining``
    which relations hold in a table, and how much evidence there is for each.
``wording``
    relations in plain words, and mined ones as a file to edit.
``feasible``
    made rows that satisfy all relations: corrected, rejected, or given their parent's values.
``declared``
    relations that a user writes down, in YAML or as SDV's constraints.

Nothing here knows a model.
"""
