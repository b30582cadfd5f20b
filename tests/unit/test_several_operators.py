"""One of several operators of a folder, as msopgen adds them to a project."""

from __future__ import annotations

from pathlib import Path

import pytest

from ascendopt_tune.build.host_signature import parse_description
from ascendopt_tune.deploy.manifest import read_manifest
from ascendopt_tune.errors import OperatorError
from ascendopt_tune.sources.cmake_lists import read_build_rules
from ascendopt_tune.sources.project import load_project
from ascendopt_tune.sources.registry import load_folder, load_operator
from ascendopt_tune.sources.several import folder_and_operator

_KERNEL = '#include "common.h"\nextern "C" __global__ __aicore__ void {}(GM_ADDR x, GM_ADDR y) {{}}\n'
_HOST = '#include "{0}_tiling.h"\nstatic int TilingFunc() {{ return {1}; }}\nOP_ADD({2});\n'


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """AddRows, AddRowsGrad and Fill; the gradient's tiling calls a function that only Fill's source has."""
    root = tmp_path / "project"
    (root / "op_host").mkdir(parents=True)
    (root / "op_kernel").mkdir()
    (root / "op_kernel" / "common.h").write_text("// for all\n")
    for entry, name, value in (
        ("add_rows", "AddRows", "0"),
        ("add_rows_grad", "AddRowsGrad", "Rows(1)"),
        ("fill", "Fill", "0"),
    ):
        (root / "op_kernel" / f"{entry}.cpp").write_text(_KERNEL.format(entry))
        (root / "op_host" / f"{entry}_tiling.h").write_text("int Rows(int count);\n")
        (root / "op_host" / f"{entry}.cpp").write_text(_HOST.format(entry, value, name))
    fill = root / "op_host" / "fill.cpp"
    fill.write_text(fill.read_text() + "int Rows(int count) {\n  return count;\n}\n")
    (root / "op_host" / "platform.cpp").write_text("int Cores() {\n  return 8;\n}\n")
    return root


def test_a_folder_with_several_asks_for_a_name(project: Path) -> None:
    with pytest.raises(OperatorError, match=r"several kernels \(add_rows, add_rows_grad, fill\)") as error:
        load_folder(project)
    assert error.value.hint == f"Name the operator behind the folder: {project}:add_rows."


@pytest.mark.parametrize("name", ["AddRows", "add_rows"])
def test_one_is_named_behind_the_folder(project: Path, name: str) -> None:
    operator = load_operator(f"{project}:{name}")
    assert (operator.name, operator.entry, operator.kernel_main) == ("add_rows", "add_rows", "op_kernel/add_rows.cpp")
    assert sorted(operator.baseline.kernel) == ["op_kernel/add_rows.cpp", "op_kernel/common.h"]
    assert operator.host_sources == ("op_host/add_rows.cpp", "op_host/platform.cpp")


def test_what_a_source_that_stays_calls_stays(project: Path) -> None:
    host = load_project(project, (), "AddRowsGrad").host_sources
    assert host == ("op_host/add_rows_grad.cpp", "op_host/fill.cpp", "op_host/platform.cpp")


def test_a_kernel_file_that_another_includes_stays(project: Path) -> None:
    kernel = project / "op_kernel" / "add_rows_grad.cpp"
    kernel.write_text('#include "fill.cpp"\n' + kernel.read_text())
    operator = load_project(project, (), "AddRowsGrad")
    assert "op_kernel/fill.cpp" in operator.baseline.kernel
    assert "op_kernel/add_rows.cpp" not in operator.baseline.kernel


def test_a_name_that_nobody_has(project: Path) -> None:
    with pytest.raises(OperatorError, match="has no kernel called AddColumns") as error:
        load_folder(Path(f"{project}:AddColumns"))
    assert "add_rows_grad" in error.value.hint


def test_settings_and_reference_of_one_have_its_name(project: Path) -> None:
    (project / "op.toml").write_text('torch_op = "my::none"\n')
    (project / "op_fill.toml").write_text('torch_op = "my::fill"\n')
    (project / "reference_fill.py").write_text("def reference(x):\n    return x\n")
    fill, add = load_folder(Path(f"{project}:Fill")), load_folder(Path(f"{project}:AddRows"))
    assert fill.settings["torch_op"] == "my::fill"
    assert fill.reference is not None
    assert add.settings == {}
    assert add.reference is None


def test_the_kernels_own_definition_comes_before_the_folders(project: Path) -> None:
    ops = [{"op_type": name, "inputs": [], "outputs": [], "attrs": []} for name in ("Project", "AddRowsGrad")]
    doc = {"ops": [o | {"has_infer_shape": True, "has_tiling": True} for o in ops], "tiling_structs": []}
    assert parse_description(doc, ("add_rows_grad", "project")).signature.op_type == "AddRowsGrad"


def test_a_manifest_names_one(project: Path) -> None:
    manifest = project.parent / "manifest.toml"
    manifest.write_text(
        '[[operator]]\nsource = "project:Fill"\n[[operator.case]]\ninputs = { x = "float32[8]" }\n'
        'outputs = { y = "float32[8]" }\n'
    )
    (wish,) = read_manifest(manifest)
    assert wish.source == f"{project}:Fill"
    assert wish.operator().entry == "fill"


def test_what_is_a_folder_stays_one(tmp_path: Path) -> None:
    (tmp_path / "a:b").mkdir()
    assert folder_and_operator(tmp_path / "a:b") == (tmp_path / "a:b", "")
    assert folder_and_operator(f"{tmp_path}:Fill") == (tmp_path, "Fill")
    assert folder_and_operator(f"{tmp_path}/none:Fill") == (Path(f"{tmp_path}/none:Fill"), "")


def test_a_folder_of_tilings_may_be_named_whole(project: Path) -> None:
    (project / "tilings").mkdir()
    (project / "tilings" / "more.cpp").write_text("int More() { return 1; }\n")
    (project / "CMakeLists.txt").write_text(
        "add_modules_sources(OPTYPE fill COMPUTE_UNIT ascend910b TILING_DIR ${CMAKE_CURRENT_SOURCE_DIR}/tilings)\n"
    )
    assert project / "tilings" / "more.cpp" in read_build_rules(project).host_sources
