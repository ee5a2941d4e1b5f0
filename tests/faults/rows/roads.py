"""Faults on the way from a kernel to code: front end, schedule, printing, keys and manifests."""

from __future__ import annotations

from ..fault import Fault

FAULTS = (
    Fault(
        "cache/key-without-machine",
        "code for one machine is served for another",
        "tilebench.compiler:Compilation._key",
        "self.machine.name",
        "''",
        ("tests/test_compiler.py",),
    ),
    Fault(
        "cache/key-without-versions",
        "code of another compiler is served",
        "tilebench.compiler:Compilation._key",
        "self.manifest.versions()",
        "{}",
        ("tests/test_compiler.py",),
    ),
    Fault(
        "cache/types-fall-together",
        "1 and True are one key",
        "tilebench.runtime.cache:_feed",
        "f'{type(value).__name__}:{value!r}'",
        "f'{value!r}'",
        ("tests/runtime/test_cache.py",),
    ),
    Fault(
        "manifest/a-stage-name-twice",
        "two stages of a target may have one name",
        "tilebench.targets.manifest:Manifest.__post_init__",
        "stage in stages",
        "False",
        ("tests/targets/test_manifest.py",),
    ),
    Fault(
        "compiler/a-remark-twice",
        "what was noted before a stage was refused stays",
        "tilebench.compiler:Compilation._run_row",
        "del each[count:]",
        "pass",
        ("tests/test_compiler.py",),
    ),
)
