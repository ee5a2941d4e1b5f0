"""Arrays whose memory is not simply their elements: each is right, or refused by name with a cure.

A stand-in has the attributes of a torch tensor that are asked for; tests do without the library.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided

import tilebench
import tilebench.language as T
from tests.kernels import add_kernel
from tilebench.errors import ArgumentError
from tilebench.kernel.calls.host_arrays import host_copy
from tilebench.record import ParamRecord
from tilebench.runtime.arrays import ArgumentChecker, check_arguments, may_share_elements
from tilebench.runtime.describe import describe
from tilebench.runtime.dlpack import read_dlpack


@tilebench.jit
def shift_kernel():
    n = T.dynamic("n")

    @T.prim_func
    def shift(A: T.Tensor((n,), "float32"), C: T.Tensor((n,), "float32")):
        with T.Kernel(T.ceildiv(n, 32), threads=32) as bx:
            for i in T.Parallel(32):
                C[bx * 32 + i] = A[bx * 32 + i] + 1.0

    return shift


ROW = ParamRecord("A", (8,), "float32")


class Tensor:
    """A torch tensor of a device, by its attributes; `changes` sets others."""

    __module__ = "torch"

    def __init__(self, device: str = "cpu", **changes: Any) -> None:
        self.array = np.arange(8, dtype=np.float32)
        self.size: Any = self.array.shape
        self.dtype, self.layout, self.requires_grad = "torch.float32", "torch.strided", False
        self.device = type("device", (), {"type": device, "index": 0})()
        self.is_nested = self.is_quantized = self.negative = False
        self.address = self.array.ctypes.data
        self.stored = self.array.nbytes
        self.__dict__.update(changes)

    @property
    def shape(self) -> Any:
        if self.is_nested:
            raise RuntimeError("Internal error: NestedTensorImpl doesn't support sizes")
        return self.size

    def is_neg(self) -> bool:
        return self.negative

    def is_conj(self) -> bool:
        return False

    def data_ptr(self) -> int:
        if self.address is None:
            raise RuntimeError("Cannot access data pointer of Tensor that doesn't have storage")
        return self.address

    def stride(self) -> tuple[int, ...]:
        if self.layout != "torch.strided":
            raise RuntimeError("sparse tensors do not have strides")
        return (1,)

    def is_contiguous(self) -> bool:
        if self.layout != "torch.strided":
            raise RuntimeError("Tensors of type SparseTensorImpl do not have is_contiguous")
        return True

    def get_device(self) -> int:
        return self.device.index if self.device.type == "cuda" else -1

    @property
    def is_cpu(self) -> bool:
        return self.device.type == "cpu"

    def storage_offset(self) -> int:
        return 0

    def element_size(self) -> int:
        return 4

    def untyped_storage(self) -> Any:
        return type("Storage", (), {"nbytes": lambda _: self.stored})()


class FakeTensor(Tensor):
    """A subclass that stands for another tensor."""

    __module__ = "torch"


ODD: list[tuple[str, dict[str, Any], list[str]]] = [
    ("negative", {"negative": True}, ["A is the negative of what its memory holds", "A.resolve_neg()"]),
    ("sparse", {"layout": "torch.sparse_coo"}, ["A has the layout torch.sparse_coo", "A.to_dense()"]),
    ("mkldnn", {"layout": "torch._mkldnn"}, ["A has the layout torch._mkldnn", "A.to_dense()"]),
    ("nested", {"is_nested": True}, ["A is a nested tensor", "A.to_padded_tensor(0.0)"]),
    (
        "quantized",
        {"is_quantized": True, "dtype": "torch.qint8"},
        ["A is quantized", "A.dequantize()", "A.int_repr()"],
    ),
    ("meta", {"device": "meta"}, ["A is a meta tensor, which has a shape and no elements"]),
    ("fake", {"address": None}, ["A is a FakeTensor without memory of its own", "doesn't have storage"]),
    ("null", {"address": 0}, ["without memory of its own: its address is 0"]),
    ("freed", {"stored": 0}, ["its storage has 0 bytes of the 32 that its shape needs"]),
    ("short", {"stored": 28}, ["its storage has 28 bytes of the 32 that its shape needs"]),
    ("qint", {"dtype": "torch.qint8"}, ["A has elements of type qint8"]),
]


@pytest.mark.parametrize(("changes", "words"), [row[1:] for row in ODD], ids=[row[0] for row in ODD])
@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_a_tensor_that_is_not_its_memory_is_refused(
    changes: dict[str, Any], words: list[str], device: str
) -> None:
    """Also where a plain one of its class and shape has passed before, which is remembered."""
    checker = ArgumentChecker([ROW], device)
    if "stored" not in changes:  # a storage is asked for once: it takes longer than all else of a launch
        assert checker([FakeTensor(device)])[0].shape == (8,)
        assert checker([FakeTensor(device)])[0].shape == (8,)
    with pytest.raises(ArgumentError) as caught:
        checker([FakeTensor(**{"device": device, **changes})])
    for word in words:
        assert word in str(caught.value)


def test_an_empty_tensor_needs_no_memory() -> None:
    empty = Tensor(size=(0,), address=0, stored=0)
    assert describe(empty).shape == (0,)


def test_a_masked_array_is_refused_as_an_array_and_as_a_number() -> None:
    with pytest.raises(ArgumentError, match=r"pass A\.filled\(value\)"):
        check_arguments([ROW], [np.ma.masked_array(np.ones(8, np.float32), mask=[True] * 8)])
    card = type("Card", (), {})()
    card.__cuda_array_interface__ = {
        "shape": (8,), "typestr": "<f4", "data": (4096, False), "version": 3, "mask": object(),
    }  # fmt: skip
    with pytest.raises(ArgumentError, match="A is a masked array"):
        check_arguments([ROW], [card], device="cuda")


def test_strides_of_parts_of_elements_are_refused() -> None:
    """Counted as elements they were a row of 1, and 5 elements for 5 bytes."""
    record = np.zeros(8, [("tag", "i1"), ("x", "f4")])
    overlapping = as_strided(np.zeros(16, np.float32), (8,), (1,))
    for odd, strides in ((record["x"], "(5,)"), (overlapping, "(1,)")):
        for params in ([ROW], [ParamRecord("A", (8,), "float32", strides=(5,))]):
            with pytest.raises(ArgumentError, match="do not lie a whole number of elements apart") as caught:
                check_arguments(params, [odd])
            assert f"strides {strides} in bytes" in str(caught.value)
    assert check_arguments([ParamRecord("A", (8,), "int8", strides=(5,))], [record["tag"]])[0].strides == (5,)
    assert describe(record["x"][:1]).shape == (1,)  # the stride of an extent of 1 means nothing


@pytest.mark.parametrize(
    ("shape", "strides", "shares"),
    [
        ((8, 8), (8, 1), False), ((8, 8), (1, 8), False), ((8, 8), (9, 1), False), ((8, 8), (0, 1), True),
        ((8, 8), (4, 1), True), ((8, 8), (1, 1), True), ((1, 8), (0, 1), False), ((8, 8), (-8, 1), False),
        ((2, 3, 4), (12, 4, 1), False), ((2, 3, 4), (12, 3, 1), True), ((8,), (0,), True),
    ],
)  # fmt: skip
def test_elements_that_share_memory(shape: Any, strides: Any, shares: bool) -> None:
    places = sum(np.arange(n).reshape([-1 if k == axis else 1 for k in range(len(shape))]) * stride
                 for axis, (n, stride) in enumerate(zip(shape, strides, strict=True)))  # fmt: skip
    assert (np.unique(places).size < np.size(places)) == shares
    assert may_share_elements(shape, strides) == shares


def test_an_output_whose_elements_share_memory_is_refused() -> None:
    array = as_strided(np.zeros(64, np.float32), (8, 8), (16, 4))
    written = ParamRecord("A", (8, 8), "float32", written=True, strides=(4, 1))
    with pytest.raises(ArgumentError, match="A is written by the kernel, and elements of it share memory"):
        check_arguments([written], [array])
    read = ParamRecord("A", (8, 8), "float32", strides=(4, 1))
    assert check_arguments([read], [array])[0].strides == (4, 1)


class Produced:
    """An array of a library that exports capsules with a flag."""

    def __init__(self, flags: int) -> None:
        self.array, self.flags = np.zeros(8, np.float32), flags

    def __dlpack__(self, **options: Any) -> object:
        if self.flags:
            options["copy"] = True
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.array.__dlpack_device__()


class Immutable(Produced):
    __module__ = "jaxlib._jax"


def test_a_copy_or_an_array_that_never_changes_is_no_output() -> None:
    written = ParamRecord("A", (8,), "float32", written=True)
    assert check_arguments([written], [Produced(0)])[0].writable
    assert not read_dlpack(Produced(2)).writable
    for odd in (Produced(2), Immutable(0)):
        assert check_arguments([ROW], [odd])[0].pointer
        with pytest.raises(ArgumentError, match="A is written by the kernel but cannot be"):
            check_arguments([written], [odd])


def test_four_bits_of_numpy_are_packed_at_every_call() -> None:
    checker = ArgumentChecker([ParamRecord("A", (8,), "int4")])
    for _ in range(2):
        assert checker([np.zeros(8, ml_dtypes.int4)])[0].pointer


def test_four_bits_of_another_library_are_told_how_to_come() -> None:
    with pytest.raises(ArgumentError, match="A is not what a parameter of int4 takes"):
        check_arguments([ParamRecord("A", (8,), "int4")], [Tensor(dtype="torch.int4")])


@pytest.mark.filterwarnings("ignore:the matrix subclass")
def test_subclasses_of_arrays_are_their_elements() -> None:
    """A matrix stays one in each row of it, so that checks and measurements take the plain array."""
    kernel = add_kernel.using(target="cpu")(8, 8, dtype="float32")
    a, b, c = (np.asmatrix(np.full((8, 8), k, np.float32)) for k in (1, 2, 0))
    kernel(a, b, c)
    assert (np.asarray(c) == 3).all()
    assert kernel.check(a, b, c).ok
    assert type(host_copy(a)) is np.ndarray


def test_a_host_copy_of_any_library_keeps_its_dtype_and_strides() -> None:
    array = np.arange(24, dtype=np.float32).reshape(4, 6)[::2, 1:]
    producer = Produced(0)
    producer.array = array
    found = host_copy(producer)
    assert np.array_equal(found, array)
    assert not np.shares_memory(found, array)
    assert host_copy(ml_dtypes.bfloat16(1.5) * np.ones(3, ml_dtypes.bfloat16)).dtype == ml_dtypes.bfloat16


def test_a_nested_tensor_says_no_size_of_a_call() -> None:
    a, c = (np.zeros(8, np.float32) for _ in range(2))
    shift = shift_kernel.using(target="cpu")()
    shift(a, c)
    assert (c == 1).all()
    with pytest.raises(ArgumentError, match="A is a nested tensor"):
        shift(Tensor(is_nested=True), c)


def test_a_class_of_arrays_is_no_array() -> None:
    with pytest.raises(ArgumentError, match="the array is no array") as caught:
        describe(np.ndarray)
    assert "found: the class ndarray itself" in str(caught.value)
