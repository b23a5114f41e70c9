"""What is evaluated: rows of a table and windows of series, judged in one form.

labelled → rows, and windows, weigh units where F fails (region) → judged: the record and its answer
"""
