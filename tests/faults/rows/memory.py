"""Faults in shared memory: its map, its barriers, what is worked in."""

from __future__ import annotations

from ..fault import Fault

MAP = ("tests/passes/test_map_shared.py",)
BARRIERS = ("tests/passes/test_insert_barriers.py",)
READ_BEFORE = ("tests/passes/test_reads_before.py",)

FAULTS = (
    Fault(
        "map/lives-meet",
        "a buffer that is filled by the statement that last reads another shares its bytes",
        "tilebench.passes.analysis.lives:Span.meets",
        "_a <= _b and _c <= _d",
        "_a < _b and _c < _d",
        MAP,
    ),
    Fault(
        "map/loops-are-forgotten",
        "what a loop carries to its next step lives to its last use only",
        "tilebench.passes.analysis.lives:Lives._loop",
        "used - allocated",
        "set()",
        MAP,
    ),
    Fault(
        "map/one-version-of-a-ring",
        "a ring takes the bytes of one version",
        "tilebench.passes.analysis.shared_bytes:shared_size",
        "_a * alloc.versions * _b",
        "_a * _b",
        MAP,
    ),
    Fault(
        "map/swizzles-start-anywhere",
        "a swizzled buffer is not aligned to its pattern",
        "tilebench.passes.threaded.map_shared:Life.own_align",
        "max(SWIZZLED_ALIGN, _a)",
        "ALIGN",
        MAP,
    ),
    Fault(
        "barriers/write-after-read",
        "what is overwritten while others read it needs no barrier",
        "tilebench.passes.threaded.insert_barriers:_Search.clash",
        "not (old.write or new.write)",
        "not old.write",
        BARRIERS,
    ),
    Fault(
        "barriers/write-after-write",
        "two writes of one place need no barrier",
        "tilebench.passes.threaded.insert_barriers:_Search.clash",
        "not (old.write or new.write)",
        "old.write == new.write",
        BARRIERS,
    ),
    Fault(
        "barriers/shared-bytes",
        "buffers in the same bytes are not in each other's way",
        "tilebench.passes.threaded.insert_barriers:_Search.clash",
        "a is not None and b is not None and a.meets(b)",
        "False",
        BARRIERS,
    ),
    Fault(
        "barriers/one-step-of-a-loop",
        "a loop is walked without its earlier steps",
        "tilebench.passes.threaded.insert_barriers:_Search._loop",
        "min(self.versions + 1, MOST_STEPS)",
        "1",
        BARRIERS,
    ),
    Fault(
        "barriers/boxes-side-by-side",
        "boxes that share a row count as apart",
        "tilebench.passes.analysis.accesses:apart",
        "distance >= ny or -distance >= nx",
        "distance >= ny - 1 or -distance >= nx - 1",
        BARRIERS,
    ),
    Fault(
        "barriers/versions-of-a-ring",
        "all versions of a ring count as different",
        "tilebench.passes.analysis.accesses:versions_differ",
        "distance is not None and distance % n != 0",
        "True",
        BARRIERS,
    ),
    Fault(
        "barriers/a-branch-ends-it",
        "what a branch touches is forgotten behind it",
        "tilebench.passes.threaded.insert_barriers:_Search._if",
        "return _joined(then, orelse)",
        "return orelse",
        BARRIERS,
    ),
    Fault(
        "barriers/divergence-through-names",
        "a name of what differs from thread to thread is believed to be one",
        "tilebench.passes.analysis.divergence:divergence",
        "isinstance(part, Var) and part.name in names",
        "False",
        BARRIERS,
    ),
    Fault(
        "barriers/bounds-of-a-loop",
        "a loop's bound is read while others may still write it",
        "tilebench.passes.threaded.insert_barriers:_Search._loop",
        "self._meet(stmt, pending, bounds)",
        "pending",
        READ_BEFORE,
    ),
    Fault(
        "reads-before/value-of-a-fill",
        "what a statement reads of its own memory is read again while it is written",
        "tilebench.passes.bounded.name_reads:name_reads",
        "step(function)",
        "function",
        READ_BEFORE,
    ),
    Fault(
        "barriers/work-of-a-reduction",
        "the memory that a reduction works in is free again without a barrier",
        "tilebench.passes.threaded.insert_barriers:_Search.statement",
        "return [_read(access) if access.buffer.name in works else access for access in new]",
        "return []",
        (*BARRIERS, "tests/passes/test_threads_reduce.py"),
    ),
    Fault(
        "workspace/too-small",
        "the parts of a reduction meet in one row less than there are warps",
        "tilebench.passes.threads.rows.reduce:workspace",
        "exchange.parts * _a",
        "(exchange.parts - 1) * _a",
        ("tests/passes/test_threads_reduce.py",),
    ),
)
