"""What bounds a kernel and what keeps it from being faster, in words, with evidence and what to try next.

A `Case` is what is known: a record with its remarks, what was observed in the laid-out stage, a machine, and,
where there are any, runs with ceilings and checks. Each cause is a row: a function from the case to a finding
or nothing. A finding names its figures; nothing is said that the case does not hold.
"""

from .case import Case, Cause, Evidence
from .diagnose import CAUSES, Diagnosis, diagnose

__all__ = ["CAUSES", "Case", "Cause", "Diagnosis", "Evidence", "diagnose"]
