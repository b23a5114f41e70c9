"""The safe swap, measured: coverage, false alarms, power."""
