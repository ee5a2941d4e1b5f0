"""From LLVM text to a callable: parse, code generation, load. No pass pipeline runs.

An object file is made first and then loaded, for two reasons: its bytes can be cached on disk, and
its symbol table tells which symbols it needs. A symbol that the process lacks would crash at the
call without a word, so it is refused here.
"""

from __future__ import annotations

import importlib
import re
import struct
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from ....errors import InternalError, Place, TargetError
from ..machine import Isa, host_isa


@lru_cache(maxsize=1)
def _binding() -> Any:
    binding: Any = importlib.import_module("llvmlite.binding")
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    binding.initialize_native_asmparser()
    return binding


def versions() -> dict[str, str]:
    """What generated code depends on besides our own version: LLVM and this processor."""
    binding = _binding()
    isa = host_isa()
    llvm = ".".join(str(each) for each in binding.llvm_version_info)
    return {"llvm": llvm, "cpu": isa.cpu, "features": isa.features}


@lru_cache(maxsize=16)
def target_machine(isa: Isa, level: int = 2) -> Any:
    """The cached LLVM target machine. `level` is the effort of code generation, 0 to 3.

    2 and 3 gave the same GEMM speed here; 2 is a little quicker to compile.
    """
    binding = _binding()
    if isa.triple.split("-")[0] != host_isa().triple.split("-")[0]:
        binding.initialize_all_targets()
        binding.initialize_all_asmprinters()
    target = binding.Target.from_triple(isa.triple)
    return target.create_target_machine(
        cpu=isa.cpu, features=isa.features, opt=level, reloc="pic", codemodel="small"
    )


_codegen_lock = threading.Lock()


@contextmanager
def _quick() -> Generator[None]:
    """Code generation without loop strength reduction.

    It took 60 % of the time of a GEMM module (27 ms with it off, 66 with it on) and gains nothing
    here: emitters index with one register and constants, and inner loops carry their own pointers.
    The switch is global in LLVM, so it is put back for other users of llvmlite.
    """
    binding = _binding()
    with _codegen_lock:
        binding.set_option("tilebench", "-disable-lsr=true")
        try:
            yield
        finally:
            binding.set_option("tilebench", "-disable-lsr=false")


@dataclass
class Compiled:
    """Machine code in this process. Keep it alive as long as an address from it is used.

    `seconds` has the time of `parse`, `codegen` and `load`.
    """

    isa: Isa
    text: str
    object_bytes: bytes
    addresses: dict[str, int]
    seconds: dict[str, float]
    _engine: Any = field(repr=False, default=None)

    def address(self, name: str) -> int:
        """The address of a function that was asked for when compiling."""
        return self.addresses[name]

    @property
    def assembly(self) -> str:
        """The assembly text, made when first asked for (a second code generation)."""
        return assembly(self.text, self.isa)


def parse(text: str) -> Any:
    """LLVM's module of a text; `InternalError` with LLVM's message when it does not parse or verify."""
    binding = _binding()
    try:
        return binding.parse_assembly(text)
    except RuntimeError as error:
        raise InternalError("the generated LLVM text is refused: {why}", why=str(error).strip()) from error


_REFUSED = re.compile(r"<string>:(\d+):(\d+): error: (.*)")


def check_edited(text: str, file: str) -> None:
    """Raise `TargetError`, at its line of `file`, for text of a person's that LLVM does not take."""
    try:
        _binding().parse_assembly(text)
    except RuntimeError as error:
        said = str(error).strip()
        found = _REFUSED.search(said)
        place = None
        if found is not None:
            line, column = int(found[1]), int(found[2]) - 1
            lines = text.splitlines()
            quoted = lines[line - 1] if line <= len(lines) else ""
            word = re.match(r"[\w.%@]+|.", quoted[column:])
            place = Place(file, line, column, line, column + (len(word.group()) if word else 1))
        raise TargetError(
            "LLVM refuses the text: {why}", at=place, why=found[3] if found else said.replace("\n", " "),
        ) from None  # fmt: skip


@lru_cache(maxsize=64)
def assembly(text: str, isa: Isa, level: int = 2) -> str:
    """Assembly text of a module for any instruction set (it need not be this machine's)."""
    with _quick():
        return target_machine(isa, level).emit_assembly(parse(text))


def assembly_of(text: str, isa: Isa, level: int = 2) -> str:
    """Assembly text with LLVM's comments, which name the block that code comes from."""
    machine = target_machine(isa, level)
    machine.set_asm_verbosity(True)
    with _quick():
        return machine.emit_assembly(parse(text))


def can_assemble(isa: Isa) -> bool:
    """Whether LLVM's assembler for the instruction set is at hand: llvmlite offers this machine's alone."""
    return isa.triple.split("-")[0] == host_isa().triple.split("-")[0]


def assemble(text: str, isa: Isa) -> bytes:
    """The object file of an assembly text, by LLVM's own assembler; see `can_assemble`."""
    escaped = text.replace("\\", "\\5C").replace('"', "\\22").replace("\n", "\\0A")
    module = parse(f'target triple = "{isa.triple}"\nmodule asm "{escaped}"\n')
    with _codegen_lock:
        return target_machine(isa).emit_object(module)


def object_code(text: str, isa: Isa, level: int = 2) -> bytes:
    """The object file of a module for any instruction set."""
    with _quick():
        return target_machine(isa, level).emit_object(parse(text))


def compile_text(text: str, names: tuple[str, ...], isa: Isa | None = None, *, level: int = 2) -> Compiled:
    """Compile a module for this machine and load it; `names` are the functions to be called.

    Raises `InternalError` when LLVM refuses the text or the code needs a symbol the process lacks.
    """
    isa = isa or host_isa()
    start = time.perf_counter()
    module = parse(text)
    parsed = time.perf_counter()
    with _quick():
        data: bytes = target_machine(isa, level).emit_object(module)
    done = time.perf_counter()
    compiled = load_object(data, names, isa, text)
    compiled.seconds |= {"parse": parsed - start, "codegen": done - parsed}
    return compiled


def load_object(data: bytes, names: tuple[str, ...], isa: Isa | None = None, text: str = "") -> Compiled:
    """Load an object file made by `compile_text` for the same instruction set, say from a cache."""
    isa = isa or host_isa()
    binding = _binding()
    start = time.perf_counter()
    missing = [each for each in undefined_symbols(data) if binding.address_of_symbol(each) is None]
    if missing:
        raise InternalError(
            "the generated code calls {missing}, which this process does not have", missing=", ".join(missing)
        )
    engine = binding.create_mcjit_compiler(_empty_module(isa), _engine_machine(isa))
    engine.add_object_file(binding.ObjectFileRef.from_data(data))
    engine.finalize_object()
    addresses = {each: int(engine.get_function_address(each)) for each in names}
    absent = [each for each, at in addresses.items() if not at]
    if absent:
        raise InternalError("the object file has no function {absent}", absent=", ".join(absent))
    return Compiled(isa, text, data, addresses, {"load": time.perf_counter() - start}, engine)


def _empty_module(isa: Isa) -> Any:
    return parse(f'target triple = "{isa.triple}"\n')


def _engine_machine(isa: Isa) -> Any:
    # An engine takes its target machine over, so each needs one of its own (0.1 ms).
    target = _binding().Target.from_triple(isa.triple)
    return target.create_target_machine(
        cpu=isa.cpu, features=isa.features, opt=1, reloc="pic", codemodel="small"
    )


def undefined_symbols(data: bytes) -> list[str]:
    """Names an ELF64 object file needs from elsewhere; empty for other formats."""
    if data[:5] != b"\x7fELF\x02":
        return []
    (offset,) = struct.unpack_from("<Q", data, 40)
    size, count = struct.unpack_from("<HH", data, 58)
    sections = [struct.unpack_from("<IIQQQQIIQQ", data, offset + at * size) for at in range(count)]
    needed: list[str] = []
    for _, kind, _, _, start, length, link, _, _, entry in sections:
        if kind != 2:  # SHT_SYMTAB
            continue
        strings = sections[link][4]
        for first in range(start, start + length, entry):
            name, _, _, section = struct.unpack_from("<IBBH", data, first)
            if section == 0 and name:
                end = data.index(b"\0", strings + name)
                needed.append(data[strings + name : end].decode())
    return [each for each in needed if each != "_GLOBAL_OFFSET_TABLE_"]
