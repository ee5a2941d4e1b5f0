"""What the package is called where it is installed, and the command that adds an extra to it."""

from __future__ import annotations

# The name `tilebench` of the public index is another project's; the package that is imported keeps it.
DISTRIBUTION = "tilebench-kernels"


def install_command(extra: str = "") -> str:
    """The command that installs an extra. pip takes the distribution that is there, and adds to it."""
    return f'pip install "{DISTRIBUTION}[{extra}]"' if extra else "pip install . in the folder of tilebench"
