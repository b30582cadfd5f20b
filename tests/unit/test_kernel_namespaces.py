"""Template arguments that a header declares inside of a namespace: the unit that is written names them all the same."""

from __future__ import annotations

import pytest

from ascendopt_tune.build.kernel import _namespaces_of_declarations

DECLARED = "\nASCENDC_TPL_ARGS_DECL(Rows, ASCENDC_TPL_BOOL_DECL(WIDE, 0, 1));\n"


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (DECLARED, []),
        ("namespace Rows {" + DECLARED + "}", ["using namespace Rows;"]),
        ("namespace A::B { struct S { int x; }; namespace C {" + DECLARED + "} }", ["using namespace A::B::C;"]),
        ("namespace Rows { void f() {} }" + DECLARED, []),
        ("namespace Rows { int x; }", []),
    ],
    ids=["global", "one", "nested", "closed", "none"],
)
def test_the_namespace_of_a_declaration(text: str, lines: list[str]) -> None:
    assert _namespaces_of_declarations([text, text]) == lines
