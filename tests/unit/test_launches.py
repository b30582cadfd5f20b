"""Host code in kernel files: what launches the kernel is no part of a build of the kernel alone."""

from __future__ import annotations

from ascendopt_tune.build.kernel import without_launches

BODY = """\
void run(int blocks, void* stream) {
  if (blocks > 1) {
    scale<<<blocks, nullptr, stream>>>(x, y);
  }
  scale<half,
        2><<<1,
             nullptr, stream>>>(x, y);
  WAIT
}
int other() { return 1; }
"""


def test_launches_do_nothing_and_lines_stay() -> None:
    text = without_launches(BODY)
    assert "<<<" not in text
    assert text.count("AOT_HOST_LAUNCH") == 2
    assert [n for n, line in enumerate(text.splitlines()) if "other()" in line] == [9]


def test_a_block_that_needs_a_runtime_nobody_included_is_left_out() -> None:
    waits = BODY.replace("WAIT", "aclrtSynchronizeStream(stream);")
    text = without_launches(waits)
    assert "aclrt" not in text
    assert "AOT_HOST_LAUNCH" not in text
    assert text.splitlines()[0] == "void run(int blocks, void* stream) {"
    assert text.splitlines()[8:] == ["}", "int other() { return 1; }"]
    assert "aclrtSynchronizeStream" in without_launches('#include "acl/acl.h"\n' + waits)
