"""Files that are written many times."""


def rewrite(path, content):
    """Write a file anew: where an old one is cut to nothing, some file systems wait for the disk."""
    path.unlink(missing_ok=True)
    path.write_bytes(content)
