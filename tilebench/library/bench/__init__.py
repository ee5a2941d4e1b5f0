"""`tilebench bench`: the library's operators beside other libraries' on the same arrays, in one run.

A `BenchWork` (`works.py`) is an operator with sizes; a `Peer` (`peers.py`) makes the same of the same arrays.
Each work runs in the measuring child (`run.py`), all contenders interleaved by the one timing method, and
gives a `RunRecord` for each; a contender that is missing, fails or gives a wrong result has its reason in its
record.
"""
