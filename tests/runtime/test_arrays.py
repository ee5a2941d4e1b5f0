"""Arguments: what arrays are, which fit, and the messages for those that do not."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.waiting import costs_less_than
from tilebench.errors import ArgumentError, Place, remember_source
from tilebench.ir.dtypes import ALL
from tilebench.record import ParamRecord
from tilebench.runtime.arrays import ArgumentChecker, check_arguments, is_row_major
from tilebench.runtime.describe import describe, numpy_pointer
from tilebench.runtime.dlpack import read_dlpack

PARAMS = (
    ParamRecord("A", (6, 8), "float16"),
    ParamRecord("B", (6, 8), "float16"),
    ParamRecord("C", (6, 8), "float16", written=True, read=False),
)


def arrays() -> list[Any]:
    return [np.ones((6, 8), np.float16) for _ in PARAMS]


class OnlyDLPack:
    """An array of a library that nobody here imports."""

    def __init__(self, array: np.ndarray[Any, Any], versioned: bool = True) -> None:
        self.array, self.versioned = array, versioned

    def __dlpack__(self, **options: Any) -> object:
        if not self.versioned and options:
            raise TypeError("unexpected keyword")
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.array.__dlpack_device__()


class Tensor:
    """The attributes of a torch tensor that are used."""

    __module__ = "torch"

    def __init__(
        self, array: np.ndarray[Any, Any], dtype: str, device: str = "cpu", grad: bool = False
    ) -> None:
        self.array, self.shape, self.dtype, self.requires_grad = array, array.shape, dtype, grad
        self.device = type("device", (), {"type": device, "index": 1})()

    def data_ptr(self) -> int:
        return self.array.ctypes.data

    def stride(self) -> tuple[int, ...]:
        return tuple(s // self.array.itemsize for s in self.array.strides)


class OnCard:
    def __init__(self, shape: tuple[int, ...], strides: tuple[int, ...] | None = None) -> None:
        self.__cuda_array_interface__ = {
            "shape": shape, "strides": strides, "typestr": "<f2", "data": (4096, False), "version": 3,
        }  # fmt: skip


@pytest.mark.parametrize("name", list(ALL))
def test_every_dtype_is_recognised_in_numpy(name: str) -> None:
    array = np.zeros((3, 5), ALL[name].numpy)
    info = describe(array)
    assert info.dtype is ALL[name]
    assert info.pointer == array.ctypes.data
    assert info.strides == (5, 1)
    assert info.shape == (3, 5)
    assert info.device == "cpu"
    assert info.writable
    assert info.bytes == array.nbytes


def test_pointer_of_views() -> None:
    base = np.arange(1000, dtype=np.int16)
    for view in (base[3:], base[::-1], base.reshape(10, 100).T[5:, 2:], base[:0], base.view(np.int8)[1:]):
        assert numpy_pointer(view) == view.ctypes.data


@pytest.mark.parametrize("versioned", [True, False])
def test_dlpack_says_what_numpy_says(versioned: bool) -> None:
    array = np.arange(24, dtype=np.int32).reshape(4, 6)[1:, ::2]
    got = read_dlpack(OnlyDLPack(array, versioned))
    assert (got.pointer, got.shape, got.strides) == (array.ctypes.data, (3, 3), (6, 2))
    assert (got.dtype, got.device, got.writable) == ("int32", "cpu", True)
    frozen = np.zeros(3, np.float64)
    frozen.flags.writeable = False
    assert describe(OnlyDLPack(frozen)).writable is False
    assert describe(OnlyDLPack(np.zeros(3, bool))).dtype is ALL["bool"]


def test_torch_and_cuda_by_their_attributes() -> None:
    array = np.zeros((4, 6), np.uint16)[:, ::2]
    info = describe(Tensor(array, "torch.bfloat16"))
    assert (info.pointer, info.strides, info.dtype) == (array.ctypes.data, (6, 2), ALL["bfloat16"])
    assert describe(Tensor(array, "torch.float16", "cuda")).device == "cuda:1"
    info = describe(OnCard((4, 6), (32, 2)))
    assert (info.pointer, info.strides, info.device, info.dtype.name) == (4096, (16, 1), "cuda:0", "float16")
    assert describe(OnCard((4, 6))).strides == (6, 1)


def test_fitting_arrays_pass_also_read_only_inputs_and_odd_strides_of_one() -> None:
    given = arrays()
    given[0].flags.writeable = False
    infos = check_arguments(PARAMS, given)
    assert [each.pointer for each in infos] == [each.ctypes.data for each in given]
    assert [each.writable for each in infos] == [False, True, True]
    one = np.zeros((4, 8), np.float16)[:1]
    strange = np.lib.stride_tricks.as_strided(one, (1, 8), (6, 2))
    assert check_arguments([ParamRecord("A", (1, 8), "float16")], [strange])[0].pointer == one.ctypes.data
    mixed = check_arguments(PARAMS, [Tensor(given[0], "torch.float16"), OnlyDLPack(given[1]), given[2]])
    assert [each.pointer for each in mixed] == [each.ctypes.data for each in given]
    bf = [np.zeros((2, 2), ml_dtypes.bfloat16)]
    assert (
        check_arguments([ParamRecord("A", (2, 2), "bfloat16", written=True)], bf)[0].dtype is ALL["bfloat16"]
    )


def test_empty_arrays_never_overlap() -> None:
    params = [ParamRecord("A", (0, 8), "float16"), ParamRecord("C", (0, 8), "float16", written=True)]
    empty = np.zeros((0, 8), np.float16)
    assert len(check_arguments(params, [empty, empty])) == 2


def swap(index: int, array: Any) -> list[Any]:
    given = arrays()
    given[index] = array
    return given


BIG = np.zeros((12, 16), np.float16)
FROZEN = np.zeros((6, 8), np.float16)
FROZEN.flags.writeable = False
BYTES = np.zeros(200, np.uint8)
WRONG: list[tuple[str, list[Any], list[str]]] = [
    ("count", arrays()[:2], ["takes 3 arrays, 2 were given", "A: float16[6, 8]"]),
    ("kind", swap(0, [[1.0] * 8] * 6), ["A is no array", "found: list", "numpy.asarray"]),
    (
        "rank",
        swap(1, np.zeros(48, np.float16)),
        ["B has 1 dimension, the kernel wants 2", "B.reshape(6, 8) fits"],
    ),
    (
        "shape",
        swap(1, np.zeros((6, 9), np.float16)),
        ["B has the wrong shape", "expected: (6, 8)", "found: (6, 9)"],
    ),
    ("transposed", swap(0, np.zeros((8, 6), np.float16)), ["numpy.ascontiguousarray(A.T)"]),
    (
        "dtype",
        swap(2, np.zeros((6, 8), np.float32)),
        ["C has the wrong dtype", "expected: float16", "found: float32", "C.astype(numpy.float16)"],
    ),
    (
        "order",
        swap(0, np.zeros((6, 8), ">f2")),
        ["A has the bytes of its elements in the other order", "found: '>f2'"],
    ),
    ("complex", swap(0, np.zeros((6, 8), complex)), ["A has elements of type complex128"]),
    (
        "stride",
        swap(0, BIG[:6, ::2]),
        ["A is not contiguous", "strides (8, 1)", "strides (16, 2)", "pass numpy.ascontiguousarray(A)"],
    ),
    ("fortran", swap(1, np.zeros((6, 8), np.float16, order="F")), ["found: strides (1, 6)"]),
    ("torch stride", swap(0, Tensor(BIG[:6, ::2], "torch.float16")), ["pass A.contiguous()"]),
    ("torch dtype", swap(0, Tensor(BIG[:6, :8], "torch.bfloat16")), ["A.to(torch.float16)"]),
    ("output stride", swap(2, BIG[:6, :8]), ["C is not contiguous", "the result is written there"]),
    (
        "misaligned",
        swap(0, BYTES[1:97].view(np.float16).reshape(6, 8)),
        ["A does not start at a whole element"],
    ),
    ("read-only", swap(2, FROZEN), ["C is written", "a read-only array", "C.copy()"]),
    (
        "gradient",
        swap(2, Tensor(arrays()[0], "torch.float16", grad=True)),
        ["requires a gradient", "C.detach()"],
    ),
    (
        "device",
        swap(0, OnCard((6, 8))),
        ["A is on the wrong device", "expected: cpu", "found: cuda:0", "A.cpu()"],
    ),
]


@pytest.mark.parametrize(("given", "words"), [row[1:] for row in WRONG], ids=[row[0] for row in WRONG])
def test_what_does_not_fit_is_told(given: list[Any], words: list[str]) -> None:
    with pytest.raises(ArgumentError) as caught:
        check_arguments(PARAMS, given)
    for word in words:
        assert word in str(caught.value)


def test_overlap_of_outputs_only() -> None:
    base = np.zeros(200, np.float16)
    first, second = base[:48].reshape(6, 8), base[47:95].reshape(6, 8)
    with pytest.raises(ArgumentError, match="C is written by the kernel and shares memory with B"):
        check_arguments(PARAMS, [arrays()[0], first, second])
    with pytest.raises(ArgumentError, match="shares memory with A"):
        check_arguments(PARAMS, [first, arrays()[0], first])
    beside = base[48:96].reshape(6, 8)
    assert len(check_arguments(PARAMS, [first, first, beside])) == 3


def test_arrays_that_share_one_byte_overlap() -> None:
    params = [ParamRecord("A", (8,), "uint8"), ParamRecord("C", (8,), "uint8", written=True)]
    base = np.zeros(16, np.uint8)
    for given in ([base[:8], base[7:15]], [base[7:15], base[:8]]):
        with pytest.raises(ArgumentError, match="C is written by the kernel and shares memory with A"):
            check_arguments(params, given)
    assert len(check_arguments(params, [base[:8], base[8:]])) == 2


def test_a_strided_parameter_takes_its_own_strides_alone() -> None:
    params = [ParamRecord("A", (6, 8), "float16", strides=(16, 1))]
    assert check_arguments(params, [np.zeros((6, 16), np.float16)[:, :8]])[0].strides == (16, 1)
    for other in (np.zeros((6, 8), np.float16), np.zeros((6, 32), np.float16)[:, :8]):
        with pytest.raises(ArgumentError, match=r"16, 1"):
            check_arguments(params, [other])


def test_cpu_arrays_for_a_card() -> None:
    with pytest.raises(ArgumentError, match="expected: cuda"):
        check_arguments(PARAMS, arrays(), device="cuda")
    cards = [OnCard((6, 8)) for _ in range(2)]
    with pytest.raises(ArgumentError, match="shares memory"):
        check_arguments([PARAMS[0], PARAMS[2]], cards, device="cuda")


def test_the_message_shows_the_parameter_in_the_source() -> None:
    remember_source("<cell 7>", "def main(A: T.Tensor((6, 8), 'float16')):\n    pass")
    place = Place("<cell 7>", 1, 9, 1, 10)
    with pytest.raises(ArgumentError) as caught:
        check_arguments(PARAMS, swap(0, np.zeros((6, 9), np.float16)), places={"A": place})
    assert "<cell 7>:1" in str(caught.value)
    assert "\n             ^\n" in str(caught.value)


def test_is_row_major_agrees_with_numpy() -> None:
    base = np.zeros((4, 1, 6), np.int32)
    for view in (base, base[::2], base[:1], base[:, :, :1], base.T, base[:, 0], base[:0], base[0, :, ::2]):
        strides = tuple(s // 4 for s in view.strides)
        assert is_row_major(view.shape, strides) == view.flags.c_contiguous


def test_the_check_of_three_arrays_is_quick() -> None:
    checker, given = ArgumentChecker(PARAMS), arrays()
    with costs_less_than(10_000 * 20e-6):  # measured 2 to 4 us each; the margin is for a busy machine
        for _ in range(10_000):
            checker(given)
