"""A language model that writes the program, as an AMLB framework; see ``README.md``."""


def version():
    """Return the version of the protocol, which AMLB writes into its results."""
    return "1"


def setup(*args, **kwargs):
    """Make the environment of the generated programs; AMLB calls this."""
    from amlb.utils import call_script_in_same_dir

    call_script_in_same_dir(__file__, "setup.sh", *args, **kwargs)


def run(*args, **kwargs):
    """Let the model solve one fold; AMLB calls this."""
    from .exec import run

    return run(*args, **kwargs)
