"""torch.compile with the backend ``ascendopt``: operators are tuned while a model is compiled, and bound in its graph.

On the virtual NPU all times are modelled.
"""

from __future__ import annotations

import ascendopt_tune as aot  # before torch: it is what lets torch_npu start without CANN

import torch  # isort: skip

aot.registry_ops()
ops = torch.ops.ascendopt


@aot.tune("registry/add")  # a function of one's own: it stays one node of the graph
def residual(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return x + y


def block(x: torch.Tensor, gamma: torch.Tensor) -> torch.Tensor:
    return residual(x, torch.tanh(ops.rms_norm(x, gamma)))


def main() -> None:
    torch.manual_seed(0)
    x, gamma = torch.randn(64, 512).half().npu(), torch.rand(512).half().npu()
    with torch.no_grad():
        expected = block(x, gamma).cpu()
        with aot.install():
            compiled = torch.compile(block, backend="ascendopt", fullgraph=True, options={"inner": "aot_eager"})
            with aot.policy("blocking"):
                compiled(x, gamma)  # compiles and tunes; pair and original both serve, and are compared
            for _ in range(3):
                torch.testing.assert_close(compiled(x, gamma).cpu(), expected, rtol=1e-2, atol=1e-2)
            print(aot.status())


if __name__ == "__main__":
    main()
