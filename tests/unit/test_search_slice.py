"""Reading tiling programs: parsing around macros, editing byte ranges, marking the evolvable region."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ascendopt_tune.search.tiling.slice import Template, synthesize
from ascendopt_tune.sources.cpp import (
    Edit,
    apply_edits,
    breaks_syntax,
    parse,
    program_of,
    syntax_errors,
    tiling_functions,
)

DATA = Path(__file__).parent / "data" / "tiling"
PROGRAMS = sorted(p.stem for p in DATA.glob("*.cpp"))


def program(name: str) -> dict[str, str]:
    return {f"op_host/{name}.cpp": (DATA / f"{name}.cpp").read_text()}


def found(template: Template) -> set[tuple[str, str]]:
    return {(s.purpose, s.name) for s in template.sites}


@pytest.mark.parametrize("name", PROGRAMS)
def test_sample_programs_parse_without_errors(name: str) -> None:
    ((path, text),) = program(name).items()
    assert syntax_errors(parse(path, text)) == 0


def test_macros_are_blanked_but_offsets_stay() -> None:
    head = 'A_MACRO(x)\nint f(int a) {\n  OP_CHECK(a == 0, "(", return 1);\n  CASE_OF(B, return 2)\n'
    text = head + "  return a + BLOCK_SIZE;\n}\n"
    source = parse("f.cpp", text)
    assert syntax_errors(source) == 0
    (function,) = program_of({"f.cpp": text}).functions
    assert (function.name, function.parameters) == ("f", ("a",))
    body = text.encode()[function.body.start_byte : function.body.end_byte].decode()
    assert body.startswith("{\n  OP_CHECK")
    assert body.endswith("BLOCK_SIZE;\n}")


def test_edits_count_bytes_and_refuse_overlap() -> None:
    files = {"a.cpp": "// 块\nint n = 8;"}
    start = files["a.cpp"].encode().index(b"8")
    assert apply_edits(files, [Edit("a.cpp", start, start + 1, "16")])["a.cpp"] == "// 块\nint n = 16;"
    with pytest.raises(ValueError, match="overlaps"):
        apply_edits(files, [Edit("a.cpp", 0, 6, ""), Edit("a.cpp", 4, 8, "")])
    with pytest.raises(ValueError, match="outside"):
        apply_edits(files, [Edit("a.cpp", 0, 999, "")])


def test_broken_edit_is_noticed() -> None:
    files = program("rows")
    ((path, text),) = files.items()
    assert breaks_syntax(files, {path: text.replace("coreNum = platform", "coreNum = ( platform")})
    assert not breaks_syntax(files, {path: text.replace("2048", "4096")})


def test_tiling_function_is_found_by_what_it_does() -> None:
    for name, function in (("fixed", "TilingFunc"), ("rows", "TilingFunc"), ("members", "Run")):
        assert [f.name for f in tiling_functions(program_of(program(name)))] == [function]


def test_roles_of_fixed_numbers() -> None:
    template = synthesize(program("fixed"))
    assert found(template) == {("block_dim", "BLOCK_DIM"), ("tile_length", "TILE_LENGTH"), ("buffer_num", "BUFFER_NUM")}
    assert {s.value for s in template.sites} == {8, 1024, 2}


def test_roles_of_a_row_split() -> None:
    template = synthesize(program("rows"))
    assert {
        ("core_count", "coreNum"),
        ("ub_size", "ubSize"),
        ("buffer_num", "BUFFER_COUNT"),
        ("alignment", "BLOCK_BYTES"),
        ("ub_reserve", "UB_RESERVED"),
        ("threshold", "SMALL_COLUMNS"),
        ("quantity", "rowsPerLoop"),
        ("tiling_key", "tiling_key"),
    } <= found(template)
    assert any(s.purpose == "branch" and "SMALL_COLUMNS" in s.text for s in template.sites)


def test_members_and_out_parameters_are_followed() -> None:
    template = synthesize(program("members"))
    assert {
        ("core_count", "cores_"),
        ("ub_size", "localBytes"),
        ("ub_share", "tileLen"),
        ("alignment", "tileLen"),
    } <= found(template)
    pair = next(s for s in template.sites if s.purpose == "alignment")
    assert pair.text == "256 * 256"
    assert pair.value == 256
    assert all(s.reach for s in template.sites)


@pytest.mark.parametrize("name", PROGRAMS)
def test_sites_cover_their_text_and_ids_are_unique(name: str) -> None:
    files = program(name)
    sites = synthesize(files).sites
    for s in sites:
        assert files[s.path].encode()[s.start : s.end].decode() == s.text
    assert len({s.id for s in sites}) == len(sites)
    assert list(sites) == sorted(sites, key=lambda s: -s.rank)


def test_what_does_not_reach_the_launch_is_left_alone() -> None:
    for s in synthesize(program("fixed")).sites:
        assert s.function != "InferShape"
        assert s.value != 4096


def test_names_are_hints_only() -> None:
    """With meaningless identifiers the same places are found; only ranks may differ."""
    files = program("rows")
    ((path, text),) = files.items()
    names = (
        "coreNum",
        "ubSize",
        "UB_RESERVED",
        "BLOCK_BYTES",
        "rowsPerCore",
        "rowsPerLoop",
        "loops",
        "columns",
        "rowBytes",
    )
    for i, name in enumerate(names):
        text = re.sub(rf"(?<!set_)\b{name}\b", f"v{i}", text)
    before = sorted((s.purpose, s.kind) for s in synthesize(files).sites)
    after = sorted((s.purpose, s.kind) for s in synthesize({path: text}).sites)
    assert before == after


def test_numbers_written_straight_into_the_tiling_data_are_found() -> None:
    text = """struct T { int a; };
    void F(gert::TilingContext* c) {
      auto t = c->GetTilingData<T>();
      t->a = 2048;
      MyTiling old;
      old.set_b(512);
      c->SetTilingKey(3);
      c->SetBlockDim(8);
    }"""
    sites = synthesize({"a.cpp": text}).sites
    assert {(s.purpose, s.name, s.value) for s in sites} == {
        ("tile_length", "a", 2048),
        ("tile_length", "b", 512),
        ("tiling_key", "tiling_key", 3),
        ("block_dim", "block_dim", 8),
    }


def test_no_tiling_function_no_sites() -> None:
    assert synthesize({"a.cpp": "int main() { return 4096; }"}).sites == ()
    assert synthesize({"a.cpp": "this is ((( not C++ at all \x00 }}}"}).sites == ()
    assert synthesize({}).sites == ()
