"""What people see first when a kernel is not as it should be: a page each, and the command to go on with.

`FILE:KERNEL` in a command stands for a Python file and a kernel of it; `-D NAME=VALUE` gives its parameters.
"""

from __future__ import annotations

from dataclasses import dataclass
from textwrap import fill


@dataclass(frozen=True)
class Symptom:
    """A page: its name on the command line, what is seen, what it comes of, and a command that says which."""

    name: str
    title: str
    text: str
    command: str

    def __str__(self) -> str:
        return f"{self.title}\n\n{fill(self.text, 100)}\n\nNow: {self.command}"


SYMPTOMS: tuple[Symptom, ...] = (
    Symptom(
        "error-points-at-ir",
        "An error points at a stage, and not at my line",
        "An error names your line where there is one: also through macros, loops that a pass made and "
        "code of threads. It names a stage (`<threaded stage>`) where somebody wrote that stage: an "
        "edit in the bench, or `compile_from`. Then the line is that text's own. A line that several "
        "passes have been at is easiest to read beside the stage: each line of the stage with the "
        "line of your file it came from.",
        "tilebench show FILE:KERNEL --stage laid_out --lines",
    ),
    Symptom(
        "slower-than-expected",
        "It is slower than expected",
        "First what bounds it: a product by arithmetic, most else by memory, a small problem by its "
        "launch. Then what keeps it from that bound. Usual causes, each told with its figures and its "
        "line where the kernel has it: an instruction that the target lacks (multiply-adds instead of "
        "tensor cores); tiles far too small, or far larger than the result; accesses that are narrow "
        "or not coalesced; too few bytes in flight; registers that spill; few blocks, or a last round "
        "that is nearly empty; stages that do not overlap; a fragment that every thread holds; clocks "
        "that fell. A figure above memory's bandwidth came from a cache.",
        "tilebench bench FILE:KERNEL --diagnosis",
    ),
    Symptom(
        "slower-with-swizzle",
        "It is slower with a swizzle than without",
        "A swizzle moves elements so that the lanes of a warp fall on different banks. If it moves "
        "single elements, what a thread reads beside each other is apart afterwards, and one access "
        "of 16 bytes becomes several: fewer conflicts and more instructions. Both are counted, on the "
        "addresses of the lanes, with the swizzle and without. The compiler's own swizzles move 16 "
        "bytes at a time and break no vector; where a kernel says a layout of its own, "
        "`T.make_swizzled_layout` does the same.",
        "tilebench bench FILE:KERNEL --swizzle",
    ),
    Symptom(
        "wrong-on-another-card",
        "It is right on one card and wrong on another",
        "Something holds on one of them by chance: threads of a warp that go in step, blocks that run "
        "in order, shared memory that held zeros, an element outside that was readable. The simulator "
        "has none of these chances and names the line of a race, a read of what nobody wrote, or an "
        "access outside. So the kernel is checked on everything that is here, and in the simulator "
        "for the cards that are not.",
        "tilebench run FILE:KERNEL --everywhere",
    ),
    Symptom(
        "pipeline-does-not-overlap",
        "The pipeline does not overlap",
        "Copies run ahead where they are at the head of the loop, each into a tile of its own that "
        "nothing else in the loop writes, and do not read what the loop computes. With `num_stages=1` "
        "nothing runs ahead, with 2 one copy is in flight. What was planned is in the remarks of "
        "`plan_pipeline`; what happens is in the timeline: copies are in flight until their waits "
        "end, and overlap is the share of that time in which some warp computes. Without a card it is "
        "the order of steps alone.",
        "tilebench show FILE:KERNEL --timeline --remarks",
    ),
)  # fmt: skip


def symptom(name: str) -> Symptom | None:
    """The page of a name; None where there is none."""
    return next((page for page in SYMPTOMS if page.name == name), None)


def list_of_symptoms() -> str:
    """The names of all pages, each with its title."""
    return "\n".join(f"  {page.name:<26} {page.title}" for page in SYMPTOMS)
