"""What runs in the image: the bundle serves, nothing is tuned, compiled or written."""

import ascendopt_tune as aot  # before torch: it is what lets torch_npu start without CANN

import torch  # isort: skip


@aot.tune("silu")
def silu(x: torch.Tensor) -> torch.Tensor:
    return x * torch.sigmoid(x)


def main() -> None:
    x = torch.randn(8, 512).npu()
    for _ in range(2):
        y = silu(x)
    torch.testing.assert_close(y.cpu(), torch.nn.functional.silu(x.cpu()), rtol=1e-5, atol=1e-5)
    print(aot.status())


if __name__ == "__main__":
    main()
