"""Where the names of TileLang's modules are here: module -> name -> `room.file:name`, below `tilebench`."""

from __future__ import annotations

from collections.abc import Mapping


def _all_of(home: str, names: str) -> dict[str, str]:
    return {name: f"{home}:{name}" for name in names.split()}


# Modules of TileLang's that are a module of ours as it is.
ALIASES: Mapping[str, str] = {"tilelang.language": "language"}

_ARITHMETIC = _all_of("compat.arithmetic", "cdiv next_power_of_2")
_TUNING = _all_of("compat.tuning", "autotune AutoTuner set_autotune_inputs")
_CACHE = _all_of("compat.caching", "enable_cache disable_cache is_cache_enabled")
_CONFIGS = _all_of("compat.configurations", "PassConfigKey")
_DRIVER = _all_of(
    "compat.machines",
    "get_num_sms get_device_name get_shared_memory_per_block get_max_dynamic_shared_size_bytes "
    "get_registers_per_block",
)
_DEVICES = _all_of(
    "compat.machines",
    "TileDevice CUDA CPU CDNA RDNA METAL get_arch auto_infer_current_arch is_cuda_arch is_cpu_arch "
    "is_cdna_arch is_rdna_arch is_metal_arch",
)
_PRODUCTS = _all_of("compat.products", "MatmulTemplate")
_ORDERS = _all_of("compat.products", "NoRasterization Rasterization2DColumn Rasterization2DRow")
_SUPPLY = _all_of("kernel.measuring.profiler", "TensorSupplyType")
_PROFILER = {**_all_of("kernel.measuring.profiler", "Profiler do_bench"), **_SUPPLY}
_COMPILING = {**_all_of("compat.compiling", "jit compile par_compile"), "JITKernel": "kernel.kernel:Kernel"}

MODULES: Mapping[str, Mapping[str, str]] = {
    "tilelang": {
        **_ARITHMETIC, **_CACHE, **_COMPILING, **_CONFIGS, **_SUPPLY, **_all_of("compat.tuning", "autotune"),
        "Profiler": "kernel.measuring.profiler:Profiler", "DataType": "language:dtype",
        **_all_of("compat.expressions", "set_log_level"),
    },
    "tilelang.autotuner": _TUNING,
    "tilelang.carver": {**_DEVICES, **_PRODUCTS},
    "tilelang.carver.arch": _DEVICES,
    "tilelang.carver.arch.driver": _DRIVER,
    "tilelang.carver.roller": _ORDERS,
    "tilelang.carver.roller.hint": {"Hint": "compat.products:TileHint"},
    "tilelang.carver.roller.rasterization": _ORDERS,
    "tilelang.carver.template": _PRODUCTS,
    "tilelang.contrib": {},
    "tilelang.contrib.nvcc": _all_of("compat.card", "get_target_compute_version"),
    "tilelang.cuda": {},
    "tilelang.cuda.intrinsics": _all_of("language.layouts", "make_mma_swizzle_layout"),
    "tilelang.engine": {},
    "tilelang.engine.callback": _all_of("compat.card", "register_cuda_postproc_callback"),
    "tilelang.env": _CACHE,
    "tilelang.language.fp8": _all_of("compat.arithmetic", "determine_fp8_type"),
    "tilelang.language.dtypes": {"dtype": "language:dtype"},
    "tilelang.layout": {**_all_of("language", "Layout Fragment"), **_all_of(
        "language.layouts",
        "make_swizzled_layout make_linear_layout make_volta_swizzled_layout "
        "make_wgmma_swizzled_layout make_full_bank_swizzled_layout make_half_bank_swizzled_layout "
        "make_quarter_bank_swizzled_layout make_gemm_fragment_8x8 make_gemm_fragment_8x8_transposed "
        "make_fully_replicated_layout_fragment",
    )},
    "tilelang.math": _ARITHMETIC,
    "tilelang.profiler": _PROFILER,
    "tilelang.testing": _all_of(
        "compat.testing",
        "main set_random_seed requires_cuda requires_cuda_compute_version requires_cuda_compute_version_ge "
        "requires_cuda_compute_version_gt requires_cuda_compute_version_le requires_cuda_compute_version_lt "
        "requires_cuda_compute_version_eq requires_rocm requires_metal requires_package "
        "torch_assert_close",
    ),
    "tilelang.tileop": {},
    "tilelang.tileop.base": {"GemmWarpPolicy": "language:GemmWarpPolicy"},
    "tilelang.tools": _all_of("compat.analyzer", "Analyzer"),
    "tilelang.transform": {**_CONFIGS, **_all_of("compat.compiling", "simplify_prim_func")},
    "tilelang.utils": {**_SUPPLY, **_all_of("compat.supply", "get_tensor_supply torch_assert_close")},
    "tvm": {"DataType": "language:dtype"},
    "tvm.testing": _all_of("compat.testing", "requires_package"),
    "tvm.tirx": _all_of("compat.expressions", "Cast Max Min PrimExpr Select const reinterpret"),
    "tilelang.utils.tensor": {**_SUPPLY, **_all_of("compat.supply", "get_tensor_supply torch_assert_close")},
}  # fmt: skip
