"""What a user types to name a task of each source; apart, so that it is listed without pandas."""

#: The accepted specs by the name of the source, in the order in which sources are asked.
FORMS = {
    "openml": "openml/t/ID, openml/s/ID (also test.openml/...)",
    "bundled": "bundled, bundled/NAME",
    "weird": "weird, weird/NAME",
    "tabarena": "tabarena, tabarena/NAME",
    "data_foundry": "beyondarena, beyondarena/NAME, or the folder of a Data Foundry container",
    "files": (
        "a path ending in .csv, .tsv, .parquet, .feather, .xlsx, .jsonl or .arff, packed or not"
    ),
    "amlb": "a path ending in .yaml or .yml, or the name of an AMLB benchmark definition",
}
