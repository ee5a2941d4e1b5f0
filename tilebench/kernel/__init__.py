"""Kernels as a person holds them: the decorator, the kernel object, and its package for other processes."""

from .edited import compile_from
from .function import JitFunction, jit
from .kernel import Kernel
from .measuring.package import Package, load_package, pack

__all__ = ["JitFunction", "Kernel", "Package", "compile_from", "jit", "load_package", "pack"]
