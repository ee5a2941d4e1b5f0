"""Random numbers: Philox's known answers, cuRAND's order, the same numbers on every road, and refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilebench
import tilebench.language as T
from tests.everywhere import everywhere, kernel_of
from tests.roads import everywhere as everywhere_in_blocks
from tilebench.errors import LanguageError
from tilebench.language.meanings.philox import philox
from tilebench.targets.cuda.compiler.nvrtc import compile_cuda
from tilebench.targets.cuda.machines import machine_of

# Of Random123's file of known answers (kat_vectors, philox4x32 10): counter, key, words.
KNOWN = [
    ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    ((0xFFFFFFFF,) * 4, (0xFFFFFFFF,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    ((0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344), (0xA4093822, 0x299F31D0),
     (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1)),
]  # fmt: skip


def words(seed: int, sequence: int, first: int, count: int) -> Any:
    """The numbers that cuRAND's state gives one after the other, from its definition."""
    n = np.arange(first, first + count, dtype=np.uint64)
    parts = [n, n >> np.uint64(2), n >> np.uint64(34)]
    parts += [np.full_like(n, x & 0xFFFFFFFF) for x in (sequence, sequence >> 32, seed, seed >> 32)]
    return philox(*[(part & np.uint64(0xFFFFFFFF)).astype(np.uint32) for part in parts])


@pytest.mark.parametrize(("counter", "key", "wanted"), KNOWN)
def test_known_answers(counter: Any, key: Any, wanted: Any) -> None:
    for word in range(4):
        found = philox(np.uint32(word), *[np.uint32(part) for part in (*counter, *key)])
        assert int(found) == wanted[word]


@pytest.mark.parametrize(
    ("seed", "sequence", "offset"), [(42, 0, 0), (2**63 + 5, 2**40 + 1, 4 * 2**32 - 6), (-1, 3, 17)]
)
def test_a_state_goes_on_as_curands(seed: int, sequence: int, offset: int) -> None:
    """In loops, branches and T.Parallel, each element in the order of the loop."""
    body = f"""
    s = T.alloc_var("int64", init={seed if seed < 2**63 else seed - 2**64})
    T.rng_init(s, T.cast({sequence}, "uint64"), T.cast({offset}, "uint64"))
    for i in T.serial(6):
        O[i] = T.rng_rand()
        if i % 2 == 0:
            O[6 + i // 2] = T.rng_rand()
    for i, j in T.Parallel(8, 8):
        P[i, j, 0] = T.rng_rand()
        for k in T.serial(3):
            P[i, j, 1 + k] = T.rng_rand()
    Q[0] = T.rng_rand()
    """
    head = 'O: T.Tensor((9,), "uint32"), P: T.Tensor((8, 8, 4), "uint32"), Q: T.Tensor((1,), "uint32")'
    found = everywhere(body, head)
    drawn = words(seed & (2**64 - 1), sequence, offset, 9 + 256 + 1)
    order = [0, 6, 1, 2, 7, 3, 4, 8, 5]
    np.testing.assert_array_equal(found["O"][order], drawn[:9])
    np.testing.assert_array_equal(found["P"].reshape(-1), drawn[9:265])
    np.testing.assert_array_equal(found["Q"], drawn[265:])


def test_each_element_may_begin_numbers_of_its_own() -> None:
    body = """
    T.rng_init(1, 0)
    for i in T.Parallel(64):
        T.rng_init(9, i, 2)
        O[i, 0] = T.rng_rand()
        for k in T.serial(2):
            O[i, 1 + k] = T.rng_rand()
    for i in T.Parallel(64):
        P[i] = T.rng_rand()
    """
    head = 'O: T.Tensor((64, 3), "uint32"), P: T.Tensor((64,), "uint32")'
    with pytest.raises(LanguageError, match="rng_next__2 is used after the block"):
        everywhere(body, head)
    found = everywhere(body.replace("        P[i] = T.rng_rand()", "        P[i] = T.uint32(0)"), head)["O"]
    for element in range(64):
        np.testing.assert_array_equal(found[element], words(9, element, 2, 3))


def test_each_thread_has_a_sequence() -> None:
    body = """
        tx = T.get_thread_binding()
        T.rng_init(7)
        for k in T.serial(5):
            O[b0, tx, k] = T.rng_rand()
        T.rng_init(7, tx, 100)
        O[b0, tx, 5] = T.rng_rand()
    """
    found = everywhere_in_blocks(body, launch="2, threads=64", O=np.zeros((2, 64, 6), np.uint32))["O"]
    for block in range(2):
        for thread in range(64):
            np.testing.assert_array_equal(found[block, thread, :5], words(7, block * 64 + thread, 0, 5))
            assert found[block, thread, 5] == words(7, thread, 100, 1)[0]


def test_the_number_of_the_one_thread_of_a_block_is_zero() -> None:
    """TileLang's own example: an offset by the thread, and a parallel loop that goes on from there."""
    body = """
        tx = T.get_thread_binding()
        T.rng_init(42, 0, b0 * 128 + tx * 128)
        for i, j in T.Parallel(1, 128):
            if b0 * 128 + j < 300:
                O[b0 * 128 + j] = T.rng_rand()
    """
    found = everywhere_in_blocks(body, launch="3, threads=1", O=np.zeros(300, np.uint32))["O"]
    np.testing.assert_array_equal(found, words(42, 0, 0, 300))


def test_a_loop_goes_on_by_what_it_draws() -> None:
    body = """
    T.rng_init(3, 0)
    n = T.alloc_var("int32", init=0)
    while T.rng_rand() % T.uint32(8) != 0:
        n = n + 1
    O[0] = n
    """
    found = everywhere(body, 'O: T.Tensor((1,), "int32")')
    assert found["O"][0] == np.argmax(words(3, 0, 0, 100) % 8 == 0)


def test_floats() -> None:
    body = """
    T.rng_init(1, 2, 3)
    for i in T.Parallel(512):
        U[i] = T.rng_rand_float()
        D[i] = T.rng_rand_float(64)
        N[i] = T.rng_rand_float(dist="normal")
    """
    head = 'U: T.Tensor((512,), "float32"), D: T.Tensor((512,), "float64"), N: T.Tensor((512,), "float32")'
    found = everywhere(body, head, exact=False)
    drawn = words(1, 2, 3, 512 * 4).reshape(512, 4)
    uniform = drawn[:, 0].astype(np.float32) * np.float32(2.0**-32) + np.float32(2.0**-33)
    np.testing.assert_array_equal(found["U"], uniform)
    np.testing.assert_array_equal(found["D"], drawn[:, 1].astype(np.float64) * 2.0**-32 + 2.0**-33)
    size, turn = (drawn[:, k].astype(np.float64) * 2.0**-32 + 2.0**-33 for k in (2, 3))
    normal = np.sqrt(-2 * np.log(size)) * np.sin(2 * np.pi * turn)
    np.testing.assert_allclose(found["N"], normal, rtol=1e-4, atol=1e-5)
    assert abs(normal.mean()) < 0.1
    assert abs(normal.std() - 1) < 0.1


def test_normals_of_a_thread_come_in_pairs() -> None:
    """As cuRAND's: the second of two numbers waits, and a new beginning forgets it."""
    body = """
        tx = T.get_thread_binding()
        T.rng_init(5, tx, 0)
        for k in T.serial(3):
            O[tx, k] = T.rng_rand_float(32, "normal")
        B[tx] = T.rng_rand()
        T.rng_init(5, tx, 0)
        O[tx, 3] = T.rng_rand_float(32, "normal")
    """
    head = 'O: T.Tensor((64, 4), "float32"), B: T.Tensor((64,), "uint32")'
    found = everywhere(body, head, threads=64, exact=False)
    for thread in range(64):
        drawn = words(5, thread, 0, 5)
        size, turn = drawn[[0, 2]] * 2.0**-32 + 2.0**-33, drawn[[1, 3]] * 2.0**-32 + 2.0**-33
        radius = np.sqrt(-2 * np.log(size))
        wanted = [
            radius[0] * np.sin(2 * np.pi * turn[0]), radius[0] * np.cos(2 * np.pi * turn[0]),
            radius[1] * np.sin(2 * np.pi * turn[1]),
        ]  # fmt: skip
        np.testing.assert_allclose(found["O"][thread], [*wanted, wanted[0]], rtol=1e-4, atol=1e-5)
        assert found["B"][thread] == drawn[4]


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
def test_it_compiles_for_cards(arch: str) -> None:
    body = """
    T.rng_init(b0, 1, 0)
    for i, j in T.Parallel(64, 64):
        O[i, j] = T.cast(T.rng_rand_float(64, "normal"), "float32") + T.rng_rand_float()
    """
    text = kernel_of(body).using(target=f"cuda:{arch}")().stage("cuda")
    compile_cuda(text, machine_of(f"cuda:{arch}"))


@pytest.mark.parametrize(
    ("body", "what"),
    [
        ("O[0, 0] = T.rng_rand()", "T.rng_rand has nothing to go on from"),
        ('T.rng_init(0, 0, 0, "curandStateXORWOW_t")', "T.rng_init has no generator 'curandStateXORWOW_t'"),
        ('T.rng_init(0, 0, 0, "mt19937")', "T.rng_init has no generator 'mt19937'"),
        ("T.rng_init(0.5)", "T.rng_init takes integers"),
        ('T.rng_init(0, 0)\nO[0, 0] = T.rng_rand_float(16)', "T.rng_rand_float has no 'uniform' of 16 bits"),
        ('T.rng_init(0, 0)\nO[0, 0] = T.rng_rand_float(dist="gamma")',
         "T.rng_rand_float has no 'gamma' of 32 bits"),
        ("T.rng_init(0, 0)\nfor i in T.Parallel(64):\n    for k in T.serial(i):\n        T.rng_rand()",
         "how many random numbers this loop draws depends on the running kernel"),
        ("T.rng_init(0)\nfor i in T.Parallel(64):\n    O[i, 0] = T.rng_rand_float()",
         "all threads do this together, and rng_sequence is another in each thread"),
    ],
)  # fmt: skip
def test_what_is_refused(body: str, what: str) -> None:
    with pytest.raises(LanguageError) as caught:
        kernel_of(body).using(target="cuda:sm_80")()
    assert what in str(caught.value)


def test_the_stages_print_where_a_number_stands() -> None:
    @tilebench.jit(target="cpu")
    def drawn() -> Any:
        @T.prim_func
        def main(O: T.Tensor((4, 8), "uint32")):  # noqa: E741
            with T.Kernel(1, threads=32):
                T.rng_init(1, 2, 3)
                for i, j in T.Parallel(4, 8):
                    O[i, j] = T.rng_rand()

        return main

    text = drawn().stage("tile")
    assert "rng_next = T.alloc_var(T.uint64, init=T.uint64(3))" in text
    assert "rng_next + T.cast(i * 8 + j, T.uint64)" in text
    assert "rng_next = rng_next + T.uint64(32)" in text
