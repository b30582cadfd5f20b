"""The folder of links to a Matmul of others: what is linked, what is the virtual NPU's, what is said."""

from __future__ import annotations

import platform
from pathlib import Path

import pytest

from ascendopt_tune.build.matmul_headers import MatmulHeaders, chosen, matmul_headers
from ascendopt_tune.errors import ToolchainError
from ascendopt_tune.settings import override

ENTRY = "include/adv_api/matmul/matmul.h"
FILES = {
    "LICENSE": "\nA License, Version 3\n\nlong text\n",
    ENTRY: '#include "../../../impl/adv_api/detail/matmul/a.h"\n#include <cmath>\n#include "kernel_tensor.h"\n',
    "impl/adv_api/detail/matmul/a.h": '#  include "b/b.h"\n#include "kernel_operator.h"\n',
    "impl/adv_api/detail/matmul/b/b.h": '#include "include/adv_api/matmul/matmul.h"\n#include "../../../../other.h"\n',
    "impl/adv_api/detail/matmul/unused.h": "#error\n",
    "include/basic_api/kernel_tensor.h": "#error\n",
    "impl/other.h": "#error\n",
}


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / "kit" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "kit" / name).write_text(text)
    return tmp_path / "kit"


def found(checkout: Path) -> MatmulHeaders:
    matmul_headers.cache_clear()  # as another process
    return matmul_headers(checkout, checkout.parent / "links")


def test_the_matmul_is_linked_and_the_rest_is_ours(checkout: Path) -> None:
    links = found(checkout).links
    files = {str(p.relative_to(links)): p for p in links.rglob("*") if not p.is_dir()}
    own = {name for name in FILES if "matmul" in name and "unused" not in name}
    assert {name for name, path in files.items() if path.is_symlink()} == own
    assert {name: files[name].read_text() for name in files.keys() - own} == dict.fromkeys(
        ("include/basic_api/kernel_tensor.h", "impl/other.h"), '#include "kernel_operator.h"\n'
    )
    assert all(files[name].resolve() == checkout / name for name in own)


def test_the_license_is_named_once(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert found(checkout).license == "A License, Version 3"
    said = capsys.readouterr().err
    assert "A License, Version 3. Nothing of it is copied" in said
    found(checkout)
    assert capsys.readouterr().err == ""
    (checkout / "LICENSE").unlink()
    assert found(checkout).license == "no file LICENSE there says which"


def test_keys_follow_the_contents(checkout: Path) -> None:
    before = found(checkout)
    assert found(checkout) == before
    (checkout / "impl/adv_api/detail/matmul/unused.h").write_text("// never reached\n")
    assert found(checkout) == before
    (checkout / "impl/adv_api/detail/matmul/b/b.h").write_text("// another version\n")
    after = found(checkout)
    assert after.digest != before.digest
    assert after.links != before.links
    elsewhere = checkout.rename(checkout.parent / "moved")
    assert found(elsewhere).digest == after.digest
    assert found(elsewhere).links != after.links


def test_a_folder_without_a_matmul(tmp_path: Path) -> None:
    with override(matmul_headers=tmp_path), pytest.raises(ToolchainError, match="there is no Matmul in") as refused:
        chosen(tmp_path / "links")
    assert ENTRY in str(refused.value)
    assert "--matmul-headers" in refused.value.hint
    with override(matmul_headers=None):
        assert chosen(tmp_path / "links") is None


@pytest.mark.parametrize("folder", ["asc", f"{platform.machine()}-linux/asc"])
def test_a_cann_has_them_in_a_folder_of_its_own(checkout: Path, folder: str) -> None:
    cann = checkout.parent / "cann"
    (cann / folder).parent.mkdir(parents=True)
    here = found(checkout)
    checkout.rename(cann / folder)
    there = found(cann)
    assert there.source == cann / folder
    assert there.digest == here.digest
    assert found(cann / folder).source == there.source


def test_an_older_cann_is_told(tmp_path: Path) -> None:
    old = tmp_path / "compiler/tikcpp/tikcfw/lib/matmul_intf.h"
    old.parent.mkdir(parents=True)
    old.write_text("")
    with pytest.raises(ToolchainError, match="laid out in another way"):
        found(tmp_path)


def test_what_mixed_kernels_need_is_linked_where_it_is(checkout: Path) -> None:
    name = "impl/adv_api/detail/kfc/kernel_kfc.h"
    without = found(checkout)
    assert not (without.links / name).exists()
    (checkout / name).parent.mkdir(parents=True)
    (checkout / name).write_text('#include "../matmul/unused.h"\n')
    linked = found(checkout)
    assert linked.digest != without.digest
    assert (linked.links / name).is_symlink()
    assert (linked.links / "impl/adv_api/detail/matmul/unused.h").is_symlink()
