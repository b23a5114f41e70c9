"""Relations between columns: found in real rows, declared by users, kept in made rows.

A *relation* is a condition that real rows satisfy, such as ``total_bedrooms <= total_rooms`` or
``education determines education_num``. Modules, from the bottom:

``grammar``
    the language in which a relation is written, and how a condition is evaluated.
``kinds``
    what a relation is: a rule, a dependency between columns, the written form of numbers.
``mining``
    which relations hold in a table, and how much evidence there is for each.
``declared``
    relations that a user writes down, in YAML or as SDV's constraints.
``feasible``
    made rows that satisfy all relations: corrected, rejected, or given their parent's values.

Nothing here knows a model.
"""
