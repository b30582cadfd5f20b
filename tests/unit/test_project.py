"""Operators from folders and files."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest
from host_examples import write_operator, write_shared_tiling

from ascendopt_tune.errors import OperatorError
from ascendopt_tune.sources.kernels import template_arguments, template_parameters
from ascendopt_tune.sources.project import load_direct, load_project
from ascendopt_tune.sources.registry import LazyReference, load_folder, load_operator, operator_names


def test_a_folder_without_cmake_lists(tmp_path: Path) -> None:
    root = write_operator(tmp_path)
    operator = load_project(root)
    assert (operator.name, operator.entry) == ("scale_rows", "scale_rows")
    assert operator.kernel_main == "op_kernel/scale_rows.cpp"
    assert operator.host_sources == ("op_host/scale_rows.cpp",)
    assert set(operator.baseline.tiling) == {"op_host/scale_rows.cpp", "op_host/scale_rows_tiling.h"}
    assert operator.auto_sync


def test_cmake_lists_decide_sources_options_and_folders(tmp_path: Path) -> None:
    root = write_operator(tmp_path / "src" / "math")
    common = tmp_path / "src" / "common"
    (common / "inc" / "op_kernel").mkdir(parents=True)
    (common / "tiling.cpp").write_text("")
    (root / "op_host" / "old.cpp").write_text("#error not built\n")
    (tmp_path / "CMakeLists.txt").write_text("set(OP_COMMON_DIR ${CMAKE_CURRENT_SOURCE_DIR}/src/common)\n")
    (root / "CMakeLists.txt").write_text(
        """
        add_ops_compile_options(
            OP_NAME ScaleRows
            OPTIONS -I${OP_COMMON_DIR}/inc/op_kernel
                    --cce-auto-sync=off  # (by hand)
                    -Wno-deprecated-declarations
        )
        # target_sources(optiling PRIVATE op_host/old.cpp)
        target_sources(optiling PRIVATE ${OP_COMMON_DIR}/tiling.cpp)
        target_sources(opsproto PRIVATE
            op_host/scale_rows.cpp)
        target_sources(opapi PRIVATE op_host/aclnn_scale_rows.cpp)
        """
    )
    operator = load_project(root)
    assert operator.host_sources == ("op_host/scale_rows.cpp", "shared/tiling.cpp")
    assert operator.shared_sources == (("shared/tiling.cpp", common / "tiling.cpp"),)
    assert operator.baseline.tiling["shared/tiling.cpp"] == (common / "tiling.cpp").read_text()
    assert operator.kernel_include_dirs == (common / "inc" / "op_kernel",)
    assert operator.kernel_options == ("--cce-auto-sync=off",)
    assert not operator.auto_sync
    assert common / "inc" in operator.host_include_dirs


@pytest.mark.parametrize("whole", ["add_subdirectory(${SUB_DIR})", None, "project(operator)"])
def test_lists_of_op_host_count_where_the_build_gets_there(tmp_path: Path, whole: str | None) -> None:
    root = write_operator(tmp_path)
    for name in ("scale_rows_tiling.cpp", "scale_rows_proto.cpp"):
        (root / "op_host" / name).write_text("")
    if whole is not None:
        (root / "CMakeLists.txt").write_text(whole)
    (root / "op_host" / "CMakeLists.txt").write_text(
        """
        target_sources(op_host_aclnn PRIVATE scale_rows.cpp)
        add_modules_sources(OPTYPE scale_rows ACLNNTYPE aclnn)
        add_ops_compile_options(OP_NAME ScaleRows OPTIONS --cce-auto-sync=off)
        """
    )
    operator = load_project(root)
    read = whole != "project(operator)"
    assert operator.auto_sync == (not read)
    assert ("op_host/scale_rows_proto.cpp" in operator.host_sources) == (not read)
    assert "op_host/scale_rows_tiling.cpp" in operator.host_sources


def test_sources_that_a_repository_adds_to_its_tiling_library_by_name(tmp_path: Path) -> None:
    """ops-transformer's sparse_flash_attention_grad: a template registers itself there, and nobody calls it."""
    root = write_operator(tmp_path)
    for name in ("arch22/rows.cpp", "arch22/rows.h", "arch35/later.cpp"):
        (root / "op_host" / name).parent.mkdir(exist_ok=True)
        (root / "op_host" / name).write_text("")
    (root / "op_host" / "CMakeLists.txt").write_text(
        """
        add_modules_sources(OPTYPE scale_rows ACLNNTYPE aclnn)
        target_sources(${OPHOST_NAME}_tiling_obj PRIVATE ./arch22/rows.cpp ./arch22/rows.h ./arch35/later.cpp)
        """
    )
    sources = load_project(root).host_sources
    assert "op_host/arch22/rows.cpp" in sources
    assert "op_host/arch22/rows.h" not in sources
    assert "op_host/arch35/later.cpp" not in sources


def test_a_shared_header_that_defines_tiling_data_is_part_of_the_pair(tmp_path: Path) -> None:
    root, shared = write_shared_tiling(tmp_path)
    operator = load_project(root)
    keys = {"shared/rows/tiling.h": shared / "rows/tiling.h", "shared/rows/more/data.h": shared / "rows/more/data.h"}
    assert dict(operator.shared_sources) == keys
    assert all(operator.baseline.tiling[key] == path.read_text() for key, path in keys.items())
    assert operator.host_sources == ("op_host/scale_rows.cpp",), "headers are not compiled on their own"


def test_shared_headers_that_lead_out_of_their_folder_stay_where_they_are(tmp_path: Path) -> None:
    root, shared = write_shared_tiling(tmp_path)
    (shared / "rows" / "tiling.h").write_text('#include "../rows/more/data.h"\n')
    assert load_project(root).shared_sources == ()


def test_bodies_of_a_neighbours_header_are_built_with_the_operator(tmp_path: Path) -> None:
    root = write_operator(tmp_path / "math")
    common = tmp_path / "math" / "other" / "op_host"
    common.mkdir(parents=True)
    (common / "common.h").write_text("int common();\n")
    (common / "common.cc").write_text("int common() { return 1; }\n")
    (root / "op_host" / "scale_rows_more.h").write_text('#include "../../other/op_host/common.h"\n')
    operator = load_project(root)
    assert operator.shared_sources == (("shared/common.cc", common / "common.cc"),)
    assert operator.host_sources == ("op_host/scale_rows.cpp", "shared/common.cc")


def test_definition_and_tiling_function_are_built_when_cmake_lists_leave_them_out(tmp_path: Path) -> None:
    root = write_operator(tmp_path)
    (root / "op_host" / "tiling.cc").write_text("IMPL_OP_OPTILING(ScaleRows).Tiling(Tiling);\n")
    (root / "op_host" / "definition.cpp").write_text("OP_ADD(ScaleRows);\n")
    (root / "op_host" / "scale_rows.cpp").write_text("// shapes\n")
    (root / "CMakeLists.txt").write_text("target_sources(opsproto PRIVATE op_host/scale_rows.cpp)\n")
    sources = ("op_host/scale_rows.cpp", "op_host/definition.cpp", "op_host/tiling.cc")
    assert load_project(root).host_sources == sources


def test_the_entry_is_found_where_it_is_not_called_as_the_folder(tmp_path: Path) -> None:
    kernel = 'extern "C" __global__ __aicore__ void other_name(GM_ADDR x) {}\n'
    assert load_project(write_operator(tmp_path, kernel=kernel)).entry == "other_name"


@pytest.mark.parametrize(
    ("kernel", "text"),
    [
        ("void scale_rows() {}\n", "has a kernel"),
        ("__global__ __aicore__ void a(GM_ADDR x) {}\n__global__ __aicore__ void b(GM_ADDR x) {}\n", "several kernels"),
    ],
)
def test_no_or_several_kernels(tmp_path: Path, kernel: str, text: str) -> None:
    with pytest.raises(OperatorError, match=text):
        load_project(write_operator(tmp_path, kernel=kernel))


def test_folders_that_are_no_operators(tmp_path: Path) -> None:
    with pytest.raises(OperatorError, match="is not a folder"):
        load_project(tmp_path / "nowhere")
    with pytest.raises(OperatorError, match="has no op_host/"):
        load_project(tmp_path)


def test_direct_launch_takes_the_file_and_its_own_headers(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "part.h").write_text('#include "more.h"\n')
    (tmp_path / "inner" / "more.h").write_text("")
    (tmp_path / "unused.h").write_text("")
    file = tmp_path / "add.asc"
    file.write_text(
        '#include "inner/part.h"\n#include "acl/acl.h"\n'
        "__global__ __vector__ void add(GM_ADDR x) {}\nint main() { add<<<8, nullptr, nullptr>>>(nullptr); }\n"
    )
    operator = load_direct(file, "add", 8, [("N", "4")])
    assert set(operator.baseline.kernel) == {"add.asc", "inner/part.h", "inner/more.h"}
    assert operator.direct is not None
    assert (operator.direct.block_dim, operator.direct.defines) == (8, (("N", "4"),))
    with pytest.raises(OperatorError, match=r"no kernel called 'sub'\. Its kernels: add"):
        load_direct(file, "sub", 8)
    with pytest.raises(OperatorError, match="block dim 0"):
        load_direct(file, "add", 0)
    with pytest.raises(OperatorError, match="does not exist"):
        load_direct(tmp_path / "none.cpp", "add", 1)


def test_the_registrys_operators_load_with_settings_and_reference() -> None:
    names = operator_names()
    assert "rms_norm" in names
    for name in names:
        operator = load_operator(name)
        assert operator.settings["summary"]
        assert operator.reference is not None
    with pytest.raises(OperatorError, match=r"unknown operator 'rms_norn'.*rms_norm"):
        load_operator("rms_norn")


def test_reference_is_read_at_the_first_call(tmp_path: Path) -> None:
    root = write_operator(tmp_path)
    (root / "reference.py").write_text("def reference(x, k=1):\n    return x * k\n")
    operator = load_folder(root)
    assert operator.reference is not None
    assert pickle.loads(pickle.dumps(operator.reference))(3, k=2) == 6
    (root / "empty.py").write_text("")
    with pytest.raises(OperatorError, match="defines no function"):
        LazyReference(root / "empty.py")()


def test_an_unknown_key_in_op_toml(tmp_path: Path) -> None:
    root = write_operator(tmp_path)
    (root / "op.toml").write_text('sumary = "x"\n')
    with pytest.raises(OperatorError, match="unknown key 'sumary'"):
        load_folder(root)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('name = "../x"', "no name of an operator"),
        ('name = ""', "no name of an operator"),
        ('[tolerance.float16]\nrtol = "a"', "rtol = 'a' of tolerance.float16 is no tolerance"),
        ("[tolerance.float16]\natol = nan", "is no tolerance. It holds rtol, atol, ratio"),
        ("[tolerance.float16]\nratio = -1", "is no tolerance"),
        ("[tolerance.float16]\nrtoll = 1", "is no tolerance"),
        ("a" + ".a" * 30000 + " = 1", "a key in it has more than 64 parts"),
    ],
)
def test_a_value_that_op_toml_does_not_hold(tmp_path: Path, text: str, said: str) -> None:
    root = write_operator(tmp_path)
    (root / "op.toml").write_text(text)
    with pytest.raises(OperatorError, match=said):
        load_folder(root)


def test_kernels_that_macros_define(tmp_path: Path) -> None:
    kernel = tmp_path / "scale.cpp"
    kernel.write_text(
        "#define DECLARE(TYPE)   \\\n"
        '  extern "C" __global__ __aicore__ void scale_##TYPE(__gm__ void* x, uint32_t n, \\\n'
        "                                                     float a) { run<TYPE>(x, n, a); }\n"
        "DECLARE(half)\nDECLARE(float)\n"
    )
    operator = load_direct(kernel, "scale_half", 2)
    assert operator.direct is not None
    assert operator.direct.parameters == (("x", "void *"), ("n", "uint32_t"), ("a", "float"))
    with pytest.raises(OperatorError, match="Its kernels: scale_half, scale_float"):
        load_direct(kernel, "scale_int", 2)


def test_headers_and_sources_of_the_repository(tmp_path: Path) -> None:
    operator = tmp_path / "repository" / "group" / "scale"
    for path, text in {
        "CMakeLists.txt": "",
        "utils/inc/log.h": "",
        "group/CMakeLists.txt": "",
        "group/scale/op_host/scale_def.cpp": '#include "log.h"\nOP_ADD(Scale);\nIMPL_OP_OPTILING(Scale)',
        "group/scale/op_host/scale.cpp": '#include "opdev/make_op_executor.h"',
        "group/scale/op_host/scale_proto.cpp": "REG_OP(Scale)",
        "group/scale/op_kernel/scale.cpp": 'extern "C" __global__ __aicore__ void scale(GM_ADDR x) {}',
        "group/scale/op_kernel/scale_apt.cpp": 'extern "C" __global__ __aicore__ void scale(GM_ADDR x) {}',
    }.items():
        file = tmp_path / "repository" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    loaded = load_project(operator)
    assert loaded.kernel_main == "op_kernel/scale.cpp"
    assert loaded.host_sources == ("op_host/scale_def.cpp",), "aclnn interfaces and graph nodes are other libraries'"
    assert tmp_path / "repository" / "utils" / "inc" in loaded.host_include_dirs


def test_an_operator_in_a_folder_that_no_build_file_lists(tmp_path: Path) -> None:
    repository = tmp_path / "repository"
    for path, text in {
        "CMakeLists.txt": "",
        "common/inc/op_host/util.h": "",
        "trial/loss/CMakeLists.txt": "",
        "trial/loss/scale/op_host/scale.cpp": '#include "op_host/util.h"\n#include "scale/op_kernel/data.h"\n'
        "OP_ADD(Scale);\nIMPL_OP_OPTILING(Scale)",
        "trial/loss/scale/op_kernel/data.h": "",
        "trial/loss/scale/op_kernel/scale.cpp": 'extern "C" __global__ __aicore__ void scale(GM_ADDR x) {}',
    }.items():
        (repository / path).parent.mkdir(parents=True, exist_ok=True)
        (repository / path).write_text(text)
    found = load_project(repository / "trial/loss/scale").host_include_dirs
    assert {repository / "common/inc", repository, repository / "trial/loss"} <= set(found)
    alone = tmp_path / "a/b/scale"
    (alone / "op_host").mkdir(parents=True)
    (alone / "op_kernel").mkdir()
    (alone / "op_host/scale.cpp").write_text("OP_ADD(Scale);\nIMPL_OP_OPTILING(Scale)")
    (alone / "op_kernel/scale.cpp").write_text('extern "C" __global__ __aicore__ void scale(GM_ADDR x) {}')
    assert load_project(alone).host_include_dirs == (alone / "op_host",)


_TEMPLATE = "template <uint32_t mode, typename T>\n__global__ __aicore__ void roll(GM_ADDR x) {}\n"
_PLAIN = 'extern "C" __global__ __aicore__ void roll(GM_ADDR x) {}\n'


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (_TEMPLATE, [("uint32_t", "mode"), ("typename", "T")]),
        (f"{_TEMPLATE}{_PLAIN}", []),
        (f"#ifdef __CCE_KT_TEST__\n{_PLAIN}#else\n{_TEMPLATE}#endif\n", [("uint32_t", "mode"), ("typename", "T")]),
        (f"#ifdef __CCE_KT_TEST__\n{_TEMPLATE}#else\n{_PLAIN}#endif\n", []),
    ],
)
def test_the_kernel_that_is_launched_says_whether_it_is_a_template(text: str, expected: list[tuple[str, str]]) -> None:
    assert template_parameters(text, "roll") == expected


def test_a_templates_arguments_may_be_templates() -> None:
    text = "template <typename H = aot::Held<ops::Tiling<half, 2>>, int N = 3>\n__global__ void mul(GM_ADDR a, H h) {}"
    assert template_parameters(text, "mul") == [("typename", "H"), ("int", "N")]
    assert template_arguments(text, "mul", "aot::Held<ops::Tiling<half, 2>>, 4>") == [
        "aot::Held<ops::Tiling<half, 2>>",
        "4",
    ]
    with pytest.raises(OperatorError, match="is a template <typename H, int N>"):
        template_arguments(text, "mul", "a<b, c>, 2, 3>")


def test_what_a_tiling_function_calls_is_built_where_cmake_lists_name_the_definition_alone(tmp_path: Path) -> None:
    root = write_operator(tmp_path)
    host = root / "op_host"
    (root / "CMakeLists.txt").write_text("target_sources(op_host_aclnnInner PRIVATE op_host/definition.cpp)\n")
    (host / "definition.cpp").write_text("OP_ADD(ScaleRows);\n")
    (host / "scale_rows.cpp").write_text("// shapes\n")
    (host / "register.cpp").write_text("IMPL_OP_OPTILING(ScaleRows).Tiling([](Context* c) { return Rows(c); });\n")
    (host / "rows.cpp").write_text("LINKED int Rows(Context* c)\n{\n  return Checked(c);\n}\n")
    (host / "check.cpp").write_text("int Check::Checked(Context* c) const { return 0; }\n")
    (host / "unused.cpp").write_text("int Unused(Context* c) { return 0; }\n")
    names = ("definition", "register", "rows", "check")
    assert load_project(root).host_sources == tuple(f"op_host/{name}.cpp" for name in names)


def test_headers_beside_the_kernels_folder_are_part_of_the_kernel(tmp_path: Path) -> None:
    root = write_operator(tmp_path)
    (root / "modules").mkdir()
    (root / "modules" / "rows.h").write_text('#include "../modules/more.h"\n#include "../op_host/tiling.h"\n')
    (root / "op_host" / "tiling.h").write_text("#pragma once\n")
    (root / "modules" / "more.h").write_text('#pragma once\n#include ".."\n')
    kernel = root / "op_kernel" / "scale_rows.cpp"
    kernel.write_text(f'#include "../modules/rows.h"\n{kernel.read_text()}')
    own = {"op_kernel/scale_rows.cpp", "modules/rows.h", "modules/more.h"}
    assert set(load_project(root).baseline.kernel) == own
