"""The error function as LLVM vector code; errors stand in `functions`."""

from __future__ import annotations

from ..llvm import Function, Value
from .convert import magnitude
from .elementary import clamp, constant, copy_sign, exp, is_double, polynomial

_SMALL = (
    1.1283791659136677, -0.3761262713535905, 0.11283600169130364, -0.026854444286280976,
    0.0051895347475973035, -0.0008020836003292261, 7.889101898464204e-05,
)  # fmt: skip
_LARGE = (
    0.0001990165433205263, -1.1296342459978703, -0.633097884273058, -0.10856818244761747, 0.02532075663268469,
    -0.004257662529367336, 0.0004566935473514534, -2.41741100944569e-05, 1.726759982940679e-07,
)  # fmt: skip

# Rational functions of fdlibm's s_erf.c (Sun Microsystems, 1993), over and under, by interval of |x|.
# Up to 0.84375 of x**2: erf(x) = x + x * R.
_P0 = (
    1.28379167095512558561e-01, -3.25042107247001499370e-01, -2.84817495755985104766e-02,
    -5.77027029648944159157e-03, -2.37630166566501626084e-05,
)  # fmt: skip
_Q0 = (
    1.0, 3.97917223959155352819e-01, 6.50222499887672944485e-02, 5.08130628187576562776e-03,
    1.32494738004321644526e-04, -3.96022827877536812320e-06,
)  # fmt: skip
# Up to 1.25 of |x| - 1: erf(x) = this constant + R.
_AT_ONE = 8.45062911510467529297e-01
_P1 = (
    -2.36211856075265944077e-03, 4.14856118683748331666e-01, -3.72207876035701323847e-01,
    3.18346619901161753674e-01, -1.10894694282396677476e-01, 3.54783043256182359371e-02,
    -2.16637559486879084300e-03,
)  # fmt: skip
_Q1 = (
    1.0, 1.06420880400844228286e-01, 5.40397917702171048937e-01, 7.18286544141962662868e-02,
    1.26171219808761642112e-01, 1.36370839120290507362e-02, 1.19844998467991074170e-02,
)  # fmt: skip
# Up to 1 / 0.35, and above, of 1 / x**2: erf(x) = 1 - exp(-x**2 - 0.5625 + R) / x.
_P2 = (
    -9.86494403484714822705e-03, -6.93858572707181764372e-01, -1.05586262253232909814e01,
    -6.23753324503260060396e01, -1.62396669462573470355e02, -1.84605092906711035994e02,
    -8.12874355063065934246e01, -9.81432934416914548592e00,
)  # fmt: skip
_Q2 = (
    1.0, 1.96512716674392571292e01, 1.37657754143519042600e02, 4.34565877475229228821e02,
    6.45387271733267880336e02, 4.29008140027567833386e02, 1.08635005541779435134e02,
    6.57024977031928170135e00, -6.04244152148580987438e-02,
)  # fmt: skip
_P3 = (
    -9.86494292470009928597e-03, -7.99283237680523006574e-01, -1.77579549177547519889e01,
    -1.60636384855821916062e02, -6.37566443368389627722e02, -1.02509513161107724954e03,
    -4.83519191608651397019e02,
)  # fmt: skip
_Q3 = (
    1.0, 3.03380607434824582924e01, 3.25792512996573918826e02, 1.53672958608443695994e03,
    3.19985821950859553908e03, 2.55305040643316442583e03, 4.74528541206955367215e02,
    -2.24409524465858183362e01,
)  # fmt: skip


def erf(f: Function, x: Value) -> Value:
    """The error function."""
    size = magnitude(f, x)
    if is_double(x):
        return copy_sign(f, _of_double(f, size), x)
    z = f.fmul(size, size)
    near = f.fmul(size, polynomial(f, z, _SMALL))
    far = f.fsub(constant(x, 1), exp(f, polynomial(f, clamp(f, size, 0.0, 4.0), _LARGE)))
    return copy_sign(f, f.select(f.compare("olt", size, constant(x, 1)), near, far), x)


def _of_double(f: Function, size: Value) -> Value:
    """The error function of what is not negative, float64."""
    small = clamp(f, size, 0.0, 0.84375)
    near = f.fma(small, _ratio(f, f.fmul(small, small), _P0, _Q0), small)
    middle = f.fadd(_ratio(f, f.fsub(size, constant(size, 1)), _P1, _Q1), constant(size, _AT_ONE))
    x = clamp(f, size, 1.25, 6.0)
    square = f.fmul(x, x)
    inverse = f.fdiv(constant(x, 1), square)
    steep = f.compare("olt", x, constant(x, 1 / 0.35))
    rest = f.select(steep, _ratio(f, inverse, _P2, _Q2), _ratio(f, inverse, _P3, _Q3))
    left = exp(f, f.fsub(f.fsub(rest, constant(x, 0.5625)), square))
    far = f.fsub(constant(x, 1), f.fdiv(left, x))
    above = f.select(f.compare("olt", size, constant(x, 1.25)), middle, far)
    return f.select(f.compare("olt", size, constant(x, 0.84375)), near, above)


def _ratio(f: Function, x: Value, over: tuple[float, ...], under: tuple[float, ...]) -> Value:
    return f.fdiv(polynomial(f, x, over), polynomial(f, x, under))
