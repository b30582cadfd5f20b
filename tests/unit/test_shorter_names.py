"""Names of CANN's headers that only lead elsewhere: what kernels and tiling programs of others include."""

from __future__ import annotations

from pathlib import Path

import pytest

from ascendopt_tune.build.headers import write_forwarding_headers

LISTED = Path(__file__).resolve().parents[2] / "ascendopt_tune" / "vnpu" / "forwarding.toml"


@pytest.mark.parametrize(
    ("name", "leads_to"),
    [
        ("alog_pub.h", "base/alog_pub.h"),
        ("err_msg.h", "base/err_msg.h"),
        ("lib/matmul/matmul.h", "lib/matmul_intf.h"),
        ("lib/matmul/constant_tiling.h", "lib/matmul_intf.h"),
        ("lib/std/tuple.h", "kernel_operator.h"),
    ],
)
def test_shorter_names_lead_there(tmp_path: Path, name: str, leads_to: str) -> None:
    write_forwarding_headers(LISTED, tmp_path)
    assert f'#include "{leads_to}"' in (tmp_path / name).read_text()
