"""Headers and bodies that an operator takes of its neighbours and of its repository's shared folders."""

from __future__ import annotations

from pathlib import Path

from test_open_repositories import write_repository

from ascendopt_tune.sources.project import load_project


def write(folder: Path, files: dict[str, str]) -> None:
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)


def include(source: Path, header: str) -> None:
    source.write_text(f'#include "{header}"\n{source.read_text()}')


def test_the_way_to_a_neighbours_header_leads_through_one_for_another_architecture(tmp_path: Path) -> None:
    """ops-transformer's grouped_matmul_add: its tiling includes arch35/, which isn't part of the pair."""
    root = write_repository(tmp_path)
    write(
        tmp_path / "math",
        {
            "beside/op_host/rows.h": "#pragma once\n",
            f"{root.name}/op_host/arch35/other_platform.h": '#pragma once\n#include "../../../beside/op_host/rows.h"\n',
        },
    )
    include(root / "op_host" / "arch22" / "scale_rows_tiling.cpp", "../arch35/other_platform.h")
    operator = load_project(root)
    assert (tmp_path / "math" / "beside" / "op_host").resolve() in operator.host_include_dirs
    assert not any("arch35" in path for path in operator.baseline.tiling)


def test_what_lies_in_op_host_of_a_shared_folder_is_found_by_its_name_alone(tmp_path: Path) -> None:
    """ops-nn: common/inc/op_host is searched for headers, and their bodies are in common/src/op_host."""
    root = write_repository(tmp_path)
    write(
        tmp_path,
        {
            "common/src/op_host/rows_cached.cpp": '#include "op_host/rows_cached.h"\n'
            "int CachedOf(int rows) { return LoadedOf(rows); }\n",
            "common/inc/op_host/rows_cached.h": '#pragma once\n#include "loader.h"\nint CachedOf(int rows);\n',
            "common/inc/loader.h": "#pragma once\nint LoadedOf(int rows);\n",
            "common/src/loader.cpp": '#include "loader.h"\nint LoadedOf(int rows) { return rows; }\n',
        },
    )
    source = root / "op_host" / "arch22" / "scale_rows_tiling.cpp"
    include(source, "rows_cached.h")
    source.write_text(f"{source.read_text()}\nstatic int Ask() {{ return CachedOf(1); }}\n")
    operator = load_project(root)
    assert tmp_path / "common" / "inc" / "op_host" in operator.host_include_dirs
    assert {"shared/rows_cached.cpp", "shared/loader.cpp"} <= set(operator.host_sources)  # what a body calls, too


def test_the_top_of_a_repository_may_lie_above_folders_without_lists(tmp_path: Path) -> None:
    """flash-linear-attention-npu: five folders lie between the operators and the only CMakeLists.txt above them."""
    root = write_repository(tmp_path / "ops" / "kinds" / "rows")
    for between in (root.parent, root.parent.parent):
        (between / "CMakeLists.txt").unlink()
    write(tmp_path, {"CMakeLists.txt": "", "common/include/kinds/of_rows.h": "#pragma once\n"})
    include(root / "op_host" / "arch22" / "scale_rows_tiling.cpp", "kinds/of_rows.h")
    shared = tmp_path / "common" / "include"
    assert shared not in load_project(root).host_include_dirs
    write(tmp_path, {"LICENSE": ""})
    assert shared in load_project(root).host_include_dirs


def test_a_neighbours_source_leads_to_its_own_neighbours(tmp_path: Path) -> None:
    """cann-ops' batch_mat_mul_v3: what it inherits from mat_mul_v3 calls functions of that operator's other sources."""
    root = write_repository(tmp_path)
    write(
        tmp_path / "math" / "beside" / "op_host",
        {
            "rows.h": "#pragma once\nint Rows();\n",
            "rows.cpp": '#include "rows.h"\n#include "deeper.h"\nint Rows() { return Deeper(); }\n',
            "deeper.h": "#pragma once\nint Deeper();\n",
            "deeper.cpp": '#include "deeper.h"\nint Deeper() { return 1; }\n',
        },
    )
    include(root / "op_host" / "arch22" / "scale_rows_tiling.cpp", "../../../beside/op_host/rows.h")
    write(
        tmp_path / "math" / "beside" / "op_host",
        {
            "arch35/later.h": "#pragma once\nint Later();\n",
            "arch35/later.cpp": "int Later() { return Missing(); }\n",
            "rows.cpp": '#include "deeper.h"\n#include "arch35/later.h"\nint Rows() { return Deeper(); }\n',
        },
    )
    spares = {p.name for p in load_project(root).spare_sources}
    assert "deeper.cpp" in spares
    assert "later.cpp" not in spares, "ops-nn's quant_batch_matmul_v3: nobody calls it here, and it needs still more"


def test_a_tiling_function_that_a_neighbour_registers_is_taken(tmp_path: Path) -> None:
    """ops-cv's upsample_nearest2d_grad: one program serves two operators, and stands in the other one's folder."""
    root = write_repository(tmp_path)
    tiling = root / "op_host" / "arch22" / "scale_rows_tiling.cpp"
    beside = tmp_path / "math" / "scale_columns" / "op_host"
    write(beside, {"scale_columns_tiling.cpp": tiling.read_text(), "columns.h": "#pragma once\n"})
    tiling.unlink()
    definition = root / "op_host" / "scale_rows_def.cpp"
    definition.write_text(definition.read_text().replace(".SetTiling(optiling::Tiling)", ""))
    operator = load_project(root)
    assert "shared/scale_columns_tiling.cpp" in operator.host_sources
    assert beside in operator.host_include_dirs
    write(beside, {"scale_columns_tiling.cpp": "IMPL_OP_OPTILING(Another).Tiling(Any);\n"})
    assert "shared/scale_columns_tiling.cpp" not in load_project(root).host_sources


def test_kernel_headers_are_found_where_cann_installs_them(tmp_path: Path) -> None:
    """ops-nn: its build copies common/inc/op_kernel to inc, and a neighbour's op_kernel to its name, beside the kernel;
    what these include lies there, too."""
    root = write_repository(tmp_path)
    write(
        tmp_path,
        {
            "common/inc/op_kernel/platform_of.h": '#pragma once\n#include "sizes.h"\n',
            "common/inc/op_kernel/sizes.h": "#pragma once\n",
            "math/beside/op_kernel/rows/held.h": '#pragma once\n#include "../../inc/more.h"\n#include "near.h"\n',
            "math/beside/op_kernel/rows/near.h": "#pragma once\n",
            "common/inc/op_kernel/more.h": "#pragma once\n",
            "math/beside/op_kernel/arch35/other.h": "#pragma once\n",
        },
    )
    kernel = root / "op_kernel" / "scale_rows.cpp"
    for header in ("../inc/platform_of.h", "../beside/rows/held.h", "../beside/arch35/other.h", "../nowhere/a.h"):
        include(kernel, header)
    operator = load_project(root)
    found = {key: path for key, path in operator.shared_sources if not key.startswith("row_utils/")}
    assert {key: path.relative_to(tmp_path).as_posix() for key, path in found.items() if "op_kernel" in str(path)} == {
        "inc/platform_of.h": "common/inc/op_kernel/platform_of.h",
        "inc/sizes.h": "common/inc/op_kernel/sizes.h",
        "inc/more.h": "common/inc/op_kernel/more.h",
        "beside/rows/held.h": "math/beside/op_kernel/rows/held.h",
        "beside/rows/near.h": "math/beside/op_kernel/rows/near.h",
    }
    assert set(found) <= {*operator.baseline.kernel, *operator.baseline.tiling}


def test_a_header_of_the_kernels_own_folder_is_no_neighbours(tmp_path: Path) -> None:
    root = write_repository(tmp_path)
    write(tmp_path, {"math/inc/op_kernel/own.h": "#pragma once\n"})
    write(root, {"op_kernel/inc/own.h": "#pragma once\n", "op_kernel/sub/it.h": '#include "../inc/own.h"\n'})
    include(root / "op_kernel" / "scale_rows.cpp", "sub/it.h")
    assert "inc/own.h" not in load_project(root).baseline.kernel


def test_kernel_headers_are_found_by_their_way_through_the_repository(tmp_path: Path) -> None:
    """ops-transformer: mla_prolog_v2 names a neighbour's header by the way there, from a folder below its own."""
    root = write_repository(tmp_path)
    write(tmp_path, {"math/beside/op_kernel/held.h": '#include "near.h"\n', "math/beside/op_kernel/near.h": ""})
    write(root, {"op_kernel/arch22/it.h": '#include "../../../beside/op_kernel/held.h"\n'})
    include(root / "op_kernel" / "scale_rows.cpp", "arch22/it.h")
    folders = load_project(root).kernel_include_dirs
    assert (root / "op_kernel" / "arch22").resolve() in folders
    assert (tmp_path / "math" / "beside" / "op_kernel").resolve() in folders


def test_kernels_are_searched_for_what_lies_in_op_kernel_of_a_shared_folder(tmp_path: Path) -> None:
    """ops-transformer: common/include/op_kernel."""
    root = write_repository(tmp_path)
    write(tmp_path, {"common/include/op_kernel/held_rows.h": "#pragma once\n"})
    shared = tmp_path / "common" / "include" / "op_kernel"
    assert shared not in load_project(root).kernel_include_dirs
    include(root / "op_kernel" / "scale_rows.cpp", "held_rows.h")
    assert shared in load_project(root).kernel_include_dirs
    write(root, {"op_kernel/scale_rows.cpp": (root / "op_kernel" / "scale_rows.cpp").read_text().partition("\n")[2]})
    write(tmp_path, {"math/beside/op_kernel/held.h": '#include "held_rows.h"\n'})
    assert shared not in load_project(root).kernel_include_dirs
    include(root / "op_kernel" / "scale_rows.cpp", "../../beside/op_kernel/held.h")
    assert shared in load_project(root).kernel_include_dirs, "fused_infer_attention_score: by way of a neighbour's"
