"""The operator that run.sh tuned, serving a function on npu tensors."""

import ascendopt_tune as aot  # before torch: it is what lets torch_npu start without CANN

import torch  # isort: skip


@aot.tune("clipped_relu_op")  # the folder; what it has not tuned, this function serves
def clipped_relu(x: torch.Tensor, limit: float = 6.0) -> torch.Tensor:
    return torch.clamp(x, 0.0, limit)


def main() -> None:
    x = 10 * torch.randn(64, 1000).npu()
    for _ in range(2):  # the first call serves both, and compares them
        y = clipped_relu(x)
    torch.testing.assert_close(y.cpu(), x.cpu().clamp(0.0, 6.0))
    print(aot.status())


if __name__ == "__main__":
    main()
