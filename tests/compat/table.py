"""The example files of TileLang's, and with which sizes each is run."""

from __future__ import annotations

from tests.compat.files import Row

SHORT = ("warmup=500", "warmup=50")
SMALL = "--batch 1 --heads 2 --seq_len 256 --dim 64"
SINK = "--batch 1 --heads 2 --seq_q 256 --seq_kv 256 --dim 64"

WAVES = (
    Row("quickstart.py", replaced=(("1024", "256"),), wave=1),
    Row("gemm/example_gemm.py", replaced=(("1024", "256"),), wave=1),
    Row("elementwise/example_elementwise_add.py", "--m 256 --n 250", wave=1),
    Row("norm/rms_norm.py", "", (("8192, 8192, 1, 512", "256, 1024, 1, 512"), SHORT), wave=1),
    Row("online_softmax/online_softmax.py", "", (("M = 8192", "M = 64"),), wave=1),
    Row("dynamic_shape/example_dynamic.py", call="main(256, 200, 320)", wave=1),
    Row("flash_attention/example_mha_fwd_bshd.py", SMALL, (SHORT,), wave=1),
    Row("flash_attention/example_mha_fwd_bshd.py", f"{SMALL} --is_causal --tune", (SHORT,), wave=1),
    Row("flash_attention/example_mha_fwd_bhsd.py", "--heads 2 --is_causal", (SHORT,), wave=1),
    Row("flash_attention/example_gqa_fwd_bshd.py", "--heads 4 --groups 2 --seq_len 256 --dim 64", (SHORT,),
        wave=1),
    Row("gemm_splitk/example_tilelang_gemm_splitk.py", replaced=(("1024", "256"),), wave=1),
    Row("blocksparse_gemm/example_blocksparse_gemm.py", "--m 256 --n 256 --k 256", wave=1),
    Row("blocksparse_gemm/example_blocksparse_gemm.py", "--m 256 --n 256 --k 256 --use_autotune", (
        ("[64, 128, 256]", "[64, 128]"), ("[128, 256]", "[128]"),
        ("num_stages = [1, 2, 3]", "num_stages = [1, 2]"),
    ), wave=1),
    Row("norm/layernorm.py", "", (("4096, 8192", "128, 512"),), wave=1),
    Row("topk/example_topk.py", wave=1),
    Row("attention_sink/example_mha_sink_fwd_bhsd.py", f"{SINK} --window_size 128", (SHORT,), wave=1),
    Row("attention_sink/example_mha_sink_fwd_bhsd.py", f"{SINK} --tune", (SHORT, ("[128]", "[64]")), wave=1),
    Row("flash_attention/example_mha_bwd_bshd.py", "--batch 1 --h 2 --n_ctx 128 --d_head 64", wave=2),
    Row("flash_attention/example_gqa_bwd.py",
        "--batch 1 --h 4 --n_ctx 128 --d_head_qk 64 --d_head_v 64 --groups 2", wave=2),
    Row("flash_decoding/example_mha_inference.py", "", (
        ("H=32, Q_CTX=128, KV_CTX=8192, D_HEAD=128", "H=4, Q_CTX=128, KV_CTX=1024, D_HEAD=64"),
    ), wave=2),
    Row("flash_decoding/example_gqa_decode.py",
        "--batch 1 --heads 8 --groups 2 --kv_seqlen 1024 --dim 64", wave=2),
    Row("deepseek_mla/example_mla_decode.py", "--batch 1 --heads 16 --kv_ctx 4096", wave=2),
    Row("gemm/example_gemm_persistent.py", "--M 512 --N 512 --K 256", wave=2),
    Row("gemm/example_gemm_autotune.py", "--m 256 --n 256 --k 256", wave=2),
    Row("gemm_streamk/example_tilelang_gemm_streamk.py", wave=2),
    Row("grouped_gemm/example_grouped_gemm_fwd.py", "--batch_sizes 64,128 --K 256 --M 256", wave=2),
    Row("grouped_gemm/example_grouped_gemm_bwd.py", "--batch_sizes 64,128 --K 256 --M 256", wave=2),
    Row("convolution/example_convolution.py", "--n 2 --c 32 --h 16 --w 16 --f 32", wave=2),
    Row("linear_attention/example_mamba_chunk_scan.py", "--batch 1 --heads 2 --seq_len 512", wave=2),
    Row("linear_attention/example_mamba_chunk_state.py", "--batch 1 --heads 2 --seq_len 512", wave=2),
    Row("gemv/example_gemv.py", "--n 256 --k 256", wave=2),
    # What it times last is another maker's kernel, which needs a card.
    Row("cast/example_per_token_cast_to_fp8.py", "", (("M=8192, N=8192", "M=512, N=512"),
        ("from example_triton_cast_to_fp8 import per_token_group_quant_fp8",
         "per_token_group_quant_fp8 = lambda *a, **k: (None, None)"),
    ), wave=2),
    Row("blocksparse_attention/example_tilelang_block_sparse_attn.py", wave=2),
    Row("seer_attention/block_sparse_attn_tilelang.py", wave=2),
)  # fmt: skip
OTHERS: tuple[Row, ...] = ()
ROWS = WAVES + OTHERS
