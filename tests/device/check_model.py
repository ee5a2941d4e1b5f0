"""Attention's gradients through torch, and a model of two transformer blocks by `torch.compile`, on a card.

`python tests/device/check_model.py [gradients] [operations] [compiled] [decode] [time]`, all but the last by
default. They compare gradients through `library.attention` with those of torch in float64, have torch look
for faults of the operations, and compile without a break of the graph. `time` trains and runs the model with
our attention and with torch's own. Exits non-zero when something is wrong.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import torch

from tests.device.check_card import seconds
from tests.device.check_training import LIMIT, off, right
from tilebench import library
from tilebench.library import torch_attention, torch_ops


def own(q: Any, k: Any, v: Any) -> Any:
    return library.attention(q, k, v, causal=True)


def theirs(q: Any, k: Any, v: Any) -> Any:
    return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)


class Block(torch.nn.Module):
    def __init__(self, width: int, heads: int, attend: Any) -> None:
        super().__init__()
        self.heads, self.attend = heads, attend
        self.before, self.middle = torch.nn.LayerNorm(width), torch.nn.LayerNorm(width)
        self.qkv, self.out = torch.nn.Linear(width, 3 * width), torch.nn.Linear(width, width)
        self.up, self.down = torch.nn.Linear(width, 4 * width), torch.nn.Linear(4 * width, width)

    def forward(self, x: Any) -> Any:
        b, s, w = x.shape
        q, k, v = (
            self.qkv(self.before(x))
            .view(b, s, 3, self.heads, w // self.heads)
            .permute(2, 0, 3, 1, 4)
            .unbind(0)
        )
        if self.attend is own:
            q, k, v = (x.contiguous() for x in (q, k, v))
        x = x + self.out(self.attend(q, k, v).transpose(1, 2).reshape(b, s, w))
        return x + self.down(torch.nn.functional.gelu(self.up(self.middle(x))))


class Inference(torch.nn.Module):
    """The same with products, norms and activations of the library too."""

    def __init__(self, block: Block) -> None:
        super().__init__()
        self.block = block

    def forward(self, x: Any) -> Any:
        m, (b, s, w) = self.block, x.shape

        def linear(layer: Any, y: Any, **more: Any) -> Any:
            flat = y.reshape(-1, y.shape[-1])
            return library.matmul(flat, layer.weight.t(), bias=layer.bias, **more)

        y = library.layer_norm(x, m.before.weight, m.before.bias)
        q, k, v = (
            linear(m.qkv, y)
            .view(b, s, 3, m.heads, w // m.heads)
            .permute(2, 0, 3, 1, 4)
            .contiguous()
            .unbind(0)
        )
        o = library.attention(q, k, v, causal=True).transpose(1, 2).reshape(b * s, w)
        x = x + linear(m.out, o).view(b, s, w)
        up = linear(m.up, library.layer_norm(x, m.middle.weight, m.middle.bias), activation="gelu")
        return x + linear(m.down, up).view(b, s, w)


def model(attend: Any, width: int = 2048, heads: int = 16) -> Any:
    torch.manual_seed(0)
    return torch.nn.Sequential(*(Block(width, heads, attend) for _ in range(2))).cuda().half()


def check_gradients() -> bool:
    good = True
    for h, kv, d, causal, dtype in (
        (4, 4, 64, False, "float16"),
        (4, 2, 128, True, "bfloat16"),
        (2, 2, 96, True, "float16"),
    ):
        kind = getattr(torch, dtype)
        q = torch.randn(2, h, 150, d, device="cuda").to(kind).requires_grad_()
        k = torch.randn(2, 170, kv, d, device="cuda").to(kind).transpose(1, 2).detach().requires_grad_()
        v = torch.randn(2, kv, 170, d, device="cuda").to(kind).requires_grad_()
        g = torch.randn(2, 150, h, d, device="cuda").to(kind).transpose(1, 2)
        exact = right(torch, q.detach(), k.detach(), v.detach(), g, causal)
        for name, call in (("library", library.attention), ("torch.ops", torch.ops.tilebench.attention)):
            for x in (q, k, v):
                x.grad = None
            o = call(q, k, v, causal)
            o.backward(g)
            errors = [
                off(a, e)
                for a, e in zip((o.detach(), q.grad, k.grad, v.grad), (exact[0], *exact[2:]), strict=True)
            ]
            fits = max(errors) < LIMIT[dtype]
            good &= fits
            print(
                name,
                h,
                kv,
                d,
                causal,
                dtype,
                *(f"{e:.1e}" for e in errors),
                "ok" if fits else "WRONG",
                flush=True,
            )
        q.grad = None
        library.attention(q, k, v, causal).sum().backward()  # a gradient without strides
        good &= bool(q.grad.isfinite().all())
    return good


def check_operations() -> bool:
    q, k, v = (torch.randn(1, 2, 33, 64, device="cuda").half().requires_grad_() for _ in range(3))
    tests = ("test_schema", "test_faketensor", "test_aot_dispatch_dynamic", "test_autograd_registration")
    good = True
    for op in (torch_attention.attention_lse_op, torch_ops.attention):
        try:
            torch.library.opcheck(op, (q, k, v, True), test_utils=tests, atol=1e-2, rtol=1e-2)
            print("opcheck", op, "ok", flush=True)
        except Exception as error:
            good = False
            print("opcheck", op, "WRONG", str(error)[:1500], flush=True)
    return good


def check_compiled() -> bool:
    good = True
    # Gradients of the size of one: smaller ones of float16 have few bits.
    x, g = (torch.randn(2, 256, 512, device="cuda").half() for _ in "xg")
    ours, reference = model(own, 512, 8), model(theirs, 512, 8)
    for way, made in (("training", ours), ("inference", torch.nn.Sequential(*map(Inference, ours)))):
        try:
            compiled = torch.compile(made, fullgraph=True)
            if way == "training":
                given = x.clone().requires_grad_()
                (compiled(given) * g).float().sum().backward()
                other = x.clone().requires_grad_()
                (reference(other) * g).float().sum().backward()
                error = max(
                    off(given.grad, other.grad.double()),
                    off(ours[0].qkv.weight.grad, reference[0].qkv.weight.grad.double()),
                )
            else:
                with torch.no_grad():
                    error = off(compiled(x), reference(x).double())
            good &= error < 1e-2
            print("compiled", way, f"{error:.1e}", "ok" if error < 1e-2 else "WRONG", flush=True)
        except Exception as error:
            good = False
            print("compiled", way, "WRONG", type(error).__name__, str(error)[:2500], flush=True)
    return good


def check_decode() -> bool:
    """Decoding in a trace, as torch's own operation of the library."""
    q, (k, v) = (
        torch.randn(2, 8, 64, device="cuda").half(),
        torch.randn(2, 2, 2, 300, 64, device="cuda").half(),
    )
    lengths = torch.tensor([300, 77], device="cuda", dtype=torch.int32)
    tests = ("test_schema", "test_faketensor", "test_aot_dispatch_dynamic")
    torch.library.opcheck(torch_attention.decode_op, (q, k, v, lengths), test_utils=tests)
    compiled = torch.compile(lambda *x: library.decode(*x) * 2, fullgraph=True, backend="aot_eager")
    good = torch.equal(compiled(q, k, v, lengths), library.decode(q, k, v, lengths) * 2)
    print("decode in a trace", "ok" if good else "WRONG", flush=True)
    return good


def time() -> bool:
    flush = torch.empty(256 << 20, dtype=torch.int8, device="cuda")
    x = torch.randn(2, 4096, 2048, device="cuda").half()
    for name, attend in (("torch", theirs), ("ours", own), ("torch", theirs), ("ours", own)):
        made = model(attend)
        compiled = torch.compile(made, fullgraph=True)

        def train(compiled: Any = compiled) -> None:
            (compiled(x) * x).float().sum().backward()

        with torch.no_grad():
            ran = seconds(torch, lambda c=compiled: c(x), flush, 9)
        print(
            f"model {name}: forward {ran * 1e3:.3f} ms, "
            f"a step {seconds(torch, train, flush, 9) * 1e3:.3f} ms",
            flush=True,
        )
        if attend is own:
            whole = torch.compile(torch.nn.Sequential(*map(Inference, made)), fullgraph=True)
            with torch.no_grad():
                ran = seconds(torch, lambda w=whole: w(x), flush, 9)
            print(f"model ours whole: forward {ran * 1e3:.3f} ms", flush=True)
    return True


def main() -> int:
    checks = {
        "gradients": check_gradients,
        "operations": check_operations,
        "compiled": check_compiled,
        "decode": check_decode,
    }
    todo = {**checks, "time": time}
    found = [todo[word]() for word in sys.argv[1:] or checks]
    return 0 if all(found) else 1


if __name__ == "__main__":
    sys.exit(main())
