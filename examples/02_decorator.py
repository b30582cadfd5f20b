"""A function on npu tensors, served by the tuned pair of an operator. Needs torch and torch_npu; no NPU, no CANN."""

import ascendopt_tune as aot  # before torch: it is what lets torch_npu start on the virtual NPU

import torch  # isort: skip


@aot.tune("add", policy="blocking", budget=8)  # budget: evaluations per case; the default is 40
def add(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """The original: it serves whatever is not tuned, needs a gradient, or fails."""
    return x + y


def main() -> None:
    x, y = (torch.randn(8, 2048, dtype=torch.float16).npu() for _ in range(2))

    add(x, y)  # not in the cache yet: tuned now, which takes seconds
    start, end = torch.npu.Event(enable_timing=True), torch.npu.Event(enable_timing=True)
    start.record()
    z = add(x, y)  # from now on: one launch of the best pair's binary
    end.record()
    end.synchronize()

    word = "modelled" if aot.is_virtual() else "measured"
    torch.testing.assert_close(z.cpu(), x.cpu() + y.cpu())
    print(f"one call: {1000 * start.elapsed_time(end):.2f} us ({word})")
    print(aot.status())


if __name__ == "__main__":
    main()
