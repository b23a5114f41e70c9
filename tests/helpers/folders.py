"""What stands in a folder."""

import hashlib


def contents(root):
    """Return the sha256 of every file, as ``diff -r`` would compare them."""
    return {
        path.relative_to(root).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }
