"""Whether what is claimed holds: rates over many draws of populations that are known."""
