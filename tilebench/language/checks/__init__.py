"""What is checked of a kernel as a whole, once it is traced or read back from a text."""

from ...ir import Function
from .own_state import refuse_shared_state
from .shared_sums import refuse_shared_sums


def check_iterations(function: Function) -> None:
    """Raise `LanguageError` at its line where iterations of `T.Parallel` share more than what they read."""
    refuse_shared_state(function)
    refuse_shared_sums(function)


__all__ = ["check_iterations"]
