"""Matrix products on a CPU by the faster of the two libraries that torch has for them.

On AMD's CPUs MKL, which `torch.mm` calls, seems to leave AVX-512 unused; oneDNN uses it. A layer of 256-256
and a batch of 256 on two cores of a Zen 5 take 148 µs by MKL and 75 by oneDNN (150 if limited to AVX2). The
CPU's kind decides, not a measurement: a resumed run must round as before.
"""

import llvmlite.binding as llvm
import torch
from torch import Tensor

SMALL = 16
"""Below as many rows or columns of the result, calling oneDNN costs more than it saves."""
USE_ONEDNN = (
    llvm.get_host_cpu_name().startswith("znver")
    and llvm.get_host_cpu_features().get("avx512f", False)
    and torch.backends.mkldnn.is_available()
)
EVEN_ROWS = 128 if USE_ONEDNN else 1
"""Where the number of rows changes from product to product, it should be a multiple of this: oneDNN prepares
a product anew for each number."""


def product(a: Tensor, b: Tensor, out: Tensor | None = None) -> Tensor:
    """a @ b"""
    if not USE_ONEDNN or len(a) < SMALL or b.shape[1] < SMALL:
        return torch.mm(a, b, out=out)
    # With two threads oneDNN takes twice as long if `a` is transposed; copying it costs less.
    found = torch.ops.mkldnn._linear_pointwise.default(a.contiguous(), b.t(), None, "none", [], "")
    return found if out is None else out.copy_(found)
