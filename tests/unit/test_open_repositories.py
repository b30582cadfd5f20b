"""Operators as CANN's open repositories lay them out: other architectures' sources, operators that depend on others."""

from __future__ import annotations

import struct
from contextlib import closing
from pathlib import Path

import pytest
from host_examples import HOST_CPP, KERNEL_CPP, TILING_H

from ascendopt_tune.build.host import _Build, compile_host, find_host
from ascendopt_tune.build.toolkit import virtual
from ascendopt_tune.errors import HostProgramError
from ascendopt_tune.nouns.case import Case, TensorSpec
from ascendopt_tune.nouns.chip import load_chip
from ascendopt_tune.nouns.operator import Operator
from ascendopt_tune.sources.architectures import is_elsewhere
from ascendopt_tune.sources.project import load_project

LISTS = """
set(UNITS "ascend910b" "ascend950")
set(FOLDERS "arch22" "arch35")
add_modules_sources(DIR ${CMAKE_CURRENT_SOURCE_DIR} OPTYPE scale_rows COMPUTE_UNIT ${UNITS} TILING_DIR ${FOLDERS}
                    DEPENDENCIES row_utils)
"""
DEFINITION, _, _ = HOST_CPP.partition("namespace optiling {")
TILING = HOST_CPP[HOST_CPP.index("namespace optiling {") : HOST_CPP.index("namespace ops {")]


def write_repository(top: Path) -> Path:
    """An operator with a tiling program for two architectures, which takes the rows of a core from another folder."""
    root, utils = top / "math" / "scale_rows", top / "math" / "row_utils"
    asks = "int NewerRows(int rows);\nint RowsOf(int rows);\n"
    tiling = TILING.replace("static ge::graphStatus Parse", f"{asks}static ge::graphStatus Parse", 1)
    tiling = tiling.replace(
        "data.set_rows(shape.GetDim(0));",
        "data.set_rows(shape.GetDim(0) == 77 ? NewerRows(1) : RowsOf(shape.GetDim(0)));",
    )
    files = {
        top / "CMakeLists.txt": "",
        top / "math" / "CMakeLists.txt": "",
        root / "CMakeLists.txt": "add_subdirectory(op_host)",
        root / "op_host" / "CMakeLists.txt": LISTS,
        root / "op_host" / "scale_rows_def.cpp": DEFINITION
        + "namespace optiling { ge::graphStatus Tiling(gert::TilingContext*); "
        + "ge::graphStatus InferShape(gert::InferShapeContext*); }\n"
        + HOST_CPP[HOST_CPP.index("namespace ops {") :],
        root / "op_host" / "scale_rows_tiling.h": TILING_H,
        root / "op_host" / "arch22" / "scale_rows_tiling.cpp": '#include "row_utils.h"\n'
        + DEFINITION.replace('"scale_rows_tiling.h"', '"../scale_rows_tiling.h"')
        + tiling.replace("static ge::graphStatus Tiling", "ge::graphStatus Tiling").replace(
            "static ge::graphStatus InferShape", "ge::graphStatus InferShape"
        ),
        root / "op_host" / "arch35" / "scale_rows_tiling.cpp": "#include <nowhere.h>\n"
        "namespace optiling { int NewerRows(int rows) { return rows; } }\n",
        root / "op_kernel" / "scale_rows.cpp": f'#include "../row_utils/row_utils_kernel.h"\n{KERNEL_CPP}',
        root / "op_kernel" / "scale_rows_apt.cpp": KERNEL_CPP,
        root / "op_kernel" / "arch35" / "scale_rows.cpp": KERNEL_CPP,
        utils / "op_host" / "row_utils.h": "#pragma once\n",
        utils
        / "op_host"
        / "row_utils_tiling.cpp": "namespace optiling { int RowsOf(int rows) { return 2 * rows; } }\n",
        utils / "op_host" / "op_api" / "aclnn_rows.cpp": "#include <nowhere.h>\n",
        utils / "op_host" / "row_utils_def.cpp": "#include <nowhere.h>\n",
        utils / "op_kernel" / "row_utils_kernel.h": "#pragma once\n",
    }
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


@pytest.fixture
def operator(tmp_path: Path) -> Operator:
    return load_project(write_repository(tmp_path))


def test_which_sources_are_for_other_architectures() -> None:
    for there in (
        "op_host/arch35/a.cpp",
        "op_host/a_arch35.cpp",
        "op_kernel/a_apt.cpp",
        "op_host/a_tiling_regbase.cpp",
    ):
        assert is_elsewhere(Path(there)), there
    for here in (
        "op_host/arch22/a.cpp",
        "op_kernel/arch32/a.h",
        "op_host/a.cpp",
        "op_kernel/search35.cpp",
        "op_host/monarch.cpp",
    ):
        assert not is_elsewhere(Path(here)), here


def test_the_operators_own_sources_are_those_for_this_architecture(operator: Operator) -> None:
    assert operator.kernel_main == "op_kernel/scale_rows.cpp"
    assert set(operator.baseline.kernel) == {"op_kernel/scale_rows.cpp", "row_utils/row_utils_kernel.h"}
    assert operator.host_sources == (
        "op_host/scale_rows_def.cpp",
        "op_host/arch22/scale_rows_tiling.cpp",
        "shared/row_utils_tiling.cpp",  # part of the pair, as it decides the tiling
    )
    assert "NewerRows" in operator.elsewhere
    assert "RowsOf" not in operator.elsewhere


def test_an_operator_may_list_its_sources_above_op_host(tmp_path: Path) -> None:
    root = write_repository(tmp_path)
    (root / "op_host" / "CMakeLists.txt").unlink()
    lists = LISTS.replace("add_modules_sources(DIR ${CMAKE_CURRENT_SOURCE_DIR} ", "add_all_modules_sources(")
    (root / "CMakeLists.txt").write_text(f"{lists}\nadd_subdirectory(tests)\n")
    assert load_project(root).host_sources == load_project(write_repository(tmp_path / "other")).host_sources


def test_an_operator_may_say_elsewhere_what_it_depends_on(tmp_path: Path) -> None:
    root = write_repository(tmp_path)
    (root / "op_host" / "CMakeLists.txt").write_text(LISTS.replace("DEPENDENCIES row_utils", ""))
    (root / "CMakeLists.txt").write_text("add_dependent_ops(row_utils)\nadd_subdirectory(op_host)\n")
    assert "shared/row_utils_tiling.cpp" in load_project(root).host_sources


def test_a_source_that_is_called_default_is_no_definition(tmp_path: Path) -> None:
    root = write_repository(tmp_path)
    folder = tmp_path / "math" / "row_utils" / "op_host"
    for name in ("rows_default", "row_utils_def", "row_utils_def_910b"):
        (folder / f"{name}.cpp").write_text("namespace optiling { int DefaultRows() { return 1; } }\n")
    names = [source.name for source in load_project(root).library_sources]
    assert "rows_default.cpp" in names
    assert not any("_def" in name and name != "rows_default.cpp" for name in names)


def test_what_another_operator_takes_of_the_repositorys_library_is_built_too(tmp_path: Path) -> None:
    root = write_repository(tmp_path)
    files = {
        "common/inc/op_host/rows_shared.h": "#pragma once\nint HalfOf(int rows);\n",
        "common/src/op_host/rows_shared.cpp": '#include "op_host/rows_shared.h"\n'
        "int HalfOf(int rows) { return rows / 2; }\n",
        "math/row_utils/op_host/row_utils_tiling.cpp": '#include "op_host/rows_shared.h"\n'
        "namespace optiling { int RowsOf(int rows) { return HalfOf(rows); } }\n",
    }
    for path, text in files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    assert "shared/rows_shared.cpp" in load_project(root).host_sources


@pytest.mark.parametrize(("name", "built"), [("legacy_common_manager", False), ("common_manager", True)])
def test_the_finder_of_canns_unpublished_library_is_ours(tmp_path: Path, name: str, built: bool) -> None:
    root = write_repository(tmp_path)
    files = {
        f"common/inc/op_host/{name}.h": "#pragma once\nint Instance();\n",
        f"common/src/op_host/{name}.cpp": "int Instance() { return 2; }\n",
        "common/inc/op_host/rows_shared.h": "#pragma once\nint HalfOf(int rows);\n",
        "common/src/op_host/rows_shared.cpp": f'#include "op_host/rows_shared.h"\n#include "op_host/{name}.h"\n'
        "int HalfOf(int rows) { return rows / Instance(); }\n",
        "math/row_utils/op_host/row_utils_tiling.cpp": '#include "op_host/rows_shared.h"\n'
        "namespace optiling { int RowsOf(int rows) { return HalfOf(rows); } }\n",
    }
    for path, text in files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    sources = load_project(root).host_sources
    assert "shared/rows_shared.cpp" in sources
    assert (f"shared/{name}.cpp" in sources) == built


def test_the_body_of_a_called_function_is_found_beside_a_header_named_from_a_folder_above(tmp_path: Path) -> None:
    root = write_repository(tmp_path)
    common = tmp_path / "common" / "inc" / "tiling"
    common.mkdir(parents=True)
    (common / "told.h").write_text("#pragma once\nnamespace optiling { int Told(int rows); int Other(); }\n")
    (common / "other.h").write_text("#pragma once\nnamespace optiling { int Unasked(); }\n")
    (common / "told.cpp").write_text("namespace optiling {\nint Told(int rows) { return rows; }\n}\n")
    (common / "other.cpp").write_text("namespace optiling {\nint Unasked() { return 1; }\n}\n")
    key = root / "op_host" / "arch22" / "scale_rows_tiling.cpp"
    before = load_project(root).library_sources
    includes = '#include "common/inc/tiling/told.h"\n#include "common/inc/tiling/other.h"\n'
    key.write_text(f"{includes}{key.read_text()}\nstatic int Ask() {{ return optiling::Told(1); }}\n")
    assert [p for p in load_project(root).library_sources if p not in before] == [common / "told.cpp"]


def test_a_compiler_may_read_what_host_sources_include_of_a_neighbour(tmp_path: Path) -> None:
    root = write_repository(tmp_path)
    beside, further = tmp_path / "math" / "beside" / "op_host", tmp_path / "math" / "further"
    for folder, name, text in (
        (beside, "rows.h", '#pragma once\n#include "../../further/more.h"\n'),
        (further, "more.h", '#pragma once\n#include "op_host/of_all.h"\n'),
        (tmp_path / "common" / "inc" / "op_host", "of_all.h", "#pragma once\n"),
    ):
        folder.mkdir(parents=True)
        (folder / name).write_text(text)
    (tmp_path.parent / "elsewhere.h").write_text("")
    key = root / "op_host" / "arch22" / "scale_rows_tiling.cpp"
    includes = '#include "../../../beside/op_host/rows.h"\n#include "../../../../../elsewhere.h"\n'
    key.write_text(f"{includes}{key.read_text()}")
    folders = load_project(root).host_include_dirs
    assert folders[-2:] == (beside.resolve(), further.resolve())
    assert tmp_path / "common" / "inc" in folders  # which the neighbour's header names
    assert tmp_path.parent.resolve() not in folders


def test_a_mark_of_byte_order_is_no_part_of_a_source(tmp_path: Path) -> None:
    root = write_repository(tmp_path)
    kernel = root / "op_kernel" / "scale_rows.cpp"
    text = kernel.read_text()
    kernel.write_text(text, encoding="utf-8-sig")
    assert load_project(root).baseline.kernel["op_kernel/scale_rows.cpp"] == text


def test_functions_that_are_elsewhere_are_missed_by_nobody_who_does_not_call_them(operator: Operator) -> None:
    x = TensorSpec("float32", (4, 8))
    case = Case((x, None, (x, x)), (x,), (("axes", (5, 6)),))
    out = operator.root.parent / "out"
    with closing(compile_host(operator, operator.baseline, virtual(), out)) as program:
        result = program.tiling(case, load_chip("ascend910b2"))
        structs = {s.name: s for s in program.describe().tiling_structs}
        (rows,) = [f for f in structs["ScaleRowsTilingData"].fields if f.name == "rows"]
        assert struct.unpack_from("<Q", result.data, rows.offset) == (8,)  # of the neighbour's function


def test_a_function_that_nobody_defines_is_named_though_others_are_elsewhere(operator: Operator) -> None:
    key = "op_host/arch22/scale_rows_tiling.cpp"
    text = operator.baseline.tiling[key].replace("RowsOf(", "RowsOfNobody(")
    with pytest.raises(HostProgramError, match=r"none of its sources defines: .*RowsOfNobody"):
        compile_host(operator, operator.baseline.with_tiling(key, text), virtual(), operator.root.parent / "out")


def test_what_a_class_of_a_neighbour_has_in_other_sources_is_compiled_when_it_is_missing(tmp_path: Path) -> None:
    root = write_repository(tmp_path)
    key = "op_host/arch22/scale_rows_tiling.cpp"
    beside = tmp_path / "math" / "beside" / "op_host"
    beside.mkdir(parents=True)
    base = "namespace optiling { class Rows { public: virtual int Of(int rows); virtual ~Rows() = default; }; }\n"
    (beside / "rows.h").write_text(f"#pragma once\n{base}")
    (beside / "rows_tiling_impl.cpp").write_text(
        '#include "rows.h"\n#include "more.h"\nnamespace optiling {\nint Rows::Of(int rows) { return More(rows); }\n}\n'
    )
    (beside / "more.h").write_text("namespace optiling { int More(int rows); }\n")
    (beside / "other_more.cpp").write_text("namespace optiling {\nint More(int rows) { return 3 * rows; }\n}\n")
    # Neither what doesn't compile here is used, nor is what 2201 has taken for another architecture's by its name.
    (beside / "broken_tiling.cpp").write_text(
        "#include <nowhere.h>\nnamespace optiling {\nint More(int rows) { return 0; }\n}\n"
    )
    (beside / "arch35").mkdir()
    (beside / "arch35" / "newer.cpp").write_text(
        "int Newer::Of(int rows) { return More(rows); }\nint Rows::More() { }\n"
    )
    text = (root / key).read_text().replace("RowsOf(shape.GetDim(0))", "Own().Of(shape.GetDim(0))")
    text = text.replace("int RowsOf(int rows);", "class Own : public Rows {};")
    (root / key).write_text(f'#include "../../../beside/op_host/rows.h"\n{text}')
    operator = load_project(root)
    assert {p.name for p in operator.spare_sources} >= {"rows_tiling_impl.cpp", "other_more.cpp"}
    x = TensorSpec("float32", (4, 8))
    case = Case((x, None, (x, x)), (x,), (("axes", (5, 6)),))
    out = tmp_path / "out"
    with closing(compile_host(operator, operator.baseline, virtual(), out)) as program:
        result = program.tiling(case, load_chip("ascend910b2"))
        structs = {s.name: s for s in program.describe().tiling_structs}
        (rows,) = [f for f in structs["ScaleRowsTilingData"].fields if f.name == "rows"]
        assert struct.unpack_from("<Q", result.data, rows.offset) == (12,)
    again = find_host(operator, operator.baseline, virtual(), out)
    assert again is not None  # nothing is linked a second time
    again.close()


def test_a_plain_struct_of_the_tiling_datas_name_in_another_file_is_another_one(tmp_path: Path) -> None:
    root = write_repository(tmp_path)
    (root / "op_host" / "arch22" / "a_plain.cpp").write_text(
        "namespace optiling {\n"
        "struct ScaleRowsTilingData {\n"
        "  unsigned long first = 0;\n"
        "  void set_rows(unsigned long value) { first = value; }\n"
        "};\n"
        "unsigned long Plain(unsigned long value) {\n  ScaleRowsTilingData data;\n  data.set_rows(value);\n"
        "  return data.first;\n}\n}\n"
    )
    operator = load_project(root)
    assert "op_host/arch22/a_plain.cpp" in operator.host_sources
    x = TensorSpec("float32", (4, 8))
    case = Case((x, None, (x, x)), (x,), (("axes", (5, 6)),))
    with closing(compile_host(operator, operator.baseline, virtual(), tmp_path / "out")) as program:
        result = program.tiling(case, load_chip("ascend910b2"))
        structs = {s.name: s for s in program.describe().tiling_structs}
        (rows,) = [f for f in structs["ScaleRowsTilingData"].fields if f.name == "rows"]
        assert struct.unpack_from("<Q", result.data, rows.offset) == (8,)


def test_a_tiling_template_that_every_chip_asks_is_built_whatever_it_is_for(tmp_path: Path) -> None:
    """ops-nn's quant_batch_matmul_v3: its sources register a template of another architecture for all of them, and ask
    whether the chip is one of that by a function that stands there, too."""
    root = write_repository(tmp_path)
    older = "#pragma once\nnamespace optiling { struct %s { virtual bool Fits(int rows); virtual ~%s() {} }; }\n"
    for folder, name in (("arch20", "Older"), ("arch35", "Newer")):
        write = root / "op_host" / folder / name.lower()
        write.parent.mkdir(exist_ok=True)
        write.with_suffix(".h").write_text(older % (name, name))
        answer = f"namespace optiling {{ bool {name}::Fits(int rows) {{ return rows == 9; }} }}\n"
        write.with_suffix(".cpp").write_text(f'#include "{name.lower()}.h"\n{answer}')
    asked = "namespace optiling {\nbool IsOld(int rows) { return rows == 5; }\n}\n"
    (root / "op_host" / "arch20" / "is_old.cpp").write_text(asked)
    key = root / "op_host" / "arch22" / "scale_rows_tiling.cpp"
    text = key.read_text().replace(
        ": RowsOf(", ": IsOld(shape.GetDim(0)) ? 2 : oldest->Fits(shape.GetDim(0)) ? 1 : RowsOf("
    )
    registered = (
        "#define REGISTER_TILING_TEMPLATE(type, name, priority) static name* const oldest = new name();\n"
        "#define REGISTER_TILING_TEMPLATE_WITH_ARCH(type, name, arch, priority) name* newest() { return new name(); }\n"
        'namespace optiling {\nbool IsOld(int rows);\nREGISTER_TILING_TEMPLATE("ScaleRows", Older, 1);\n'
        "REGISTER_TILING_TEMPLATE_WITH_ARCH(ScaleRows, Newer, 35, 1);\n}\n"
    )
    key.write_text(f'#include "../arch20/older.h"\n#include "../arch35/newer.h"\n{registered}{text}')
    operator = load_project(root)
    spare = [p.name for p in operator.spare_sources]
    # Newer is asked on its own chips alone; what defines NewerRows doesn't compile here.
    assert spare == ["is_old.cpp", "older.cpp", "scale_rows_tiling.cpp"]
    with closing(compile_host(operator, operator.baseline, virtual(), tmp_path / "out")) as program:
        structs = {s.name: s for s in program.describe().tiling_structs}
        (rows,) = [f for f in structs["ScaleRowsTilingData"].fields if f.name == "rows"]
        for asked, told in ((9, 1), (5, 2), (4, 8)):
            x = TensorSpec("float32", (asked, 8))
            result = program.tiling(Case((x, None, (x, x)), (x,), (("axes", (5, 6)),)), load_chip("ascend910b2"))
            assert struct.unpack_from("<Q", result.data, rows.offset) == (told,)


def test_a_source_that_does_not_compile_is_not_asked_again_until_its_headers_are_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A candidate changes the tiling program, and links anew; what the linker misses stands in a source that includes
    what this repository doesn't have."""
    root = write_repository(tmp_path)
    (root / "op_host" / "arch20").mkdir()
    (root / "op_host" / "arch20" / "newer.h").write_text("#pragma once\nint NewerRows(int rows);\n")
    broken = root / "op_host" / "arch20" / "newer.cpp"
    broken.write_text("#include <nowhere.h>\nint NewerRows(int rows) { return OF_NOWHERE; }\n")
    tiling = root / "op_host" / "arch22" / "scale_rows_tiling.cpp"
    tiling.write_text(
        f'#include "../arch20/newer.h"\n{tiling.read_text()}'.replace("int NewerRows(int rows);\nint R", "int R")
    )
    operator = load_project(root)
    assert broken in operator.spare_sources
    asked: list[str] = []
    run = _Build._run

    def counting(build: _Build, command: list[str]) -> None:
        asked.extend(word for word in command if word == str(broken) and "-c" in command)
        run(build, command)

    monkeypatch.setattr(_Build, "_run", counting)

    def candidate(number: int) -> None:
        name = "op_host/arch22/scale_rows_tiling.cpp"
        pair = operator.baseline.with_tiling(name, f"{operator.baseline.tiling[name]}\nint more_{number};\n")
        compile_host(operator, pair, virtual(), tmp_path / "out").close()

    for number in range(3):
        candidate(number)
    assert len(asked) == 1
    (root / "op_host" / "arch20" / "nowhere.h").write_text("#define OF_NOWHERE 3\n")
    candidate(3)
    assert len(asked) == 2
