# ruff: noqa: E501
"""Reading what a kernel object refers to. Real kernels are in tests/gate/test_hostile.py."""

from __future__ import annotations

import struct
from collections.abc import Sequence

import pytest

from ascendopt_tune.build.elf import read
from ascendopt_tune.build.machine_code import _wrong
from ascendopt_tune.build.object import violations


def elf(undefined_names: list[str], defined: Sequence[str] = (), initializers: int = 0) -> bytes:
    """An ELF-64 object with a symbol table and nothing else of interest."""
    strings, symbols = b"\0", bytes(24)
    for where, names in ((0, undefined_names), (1, defined)):
        for name in names:
            symbols += struct.pack("<IBBHQQ", len(strings), 0x12, 0, where, 0, 0)
            strings += name.encode() + b"\0"
    contents = {"": b"", ".dynstr": strings, ".dynsym": symbols, ".init_array": bytes(8 * initializers)}
    names = b"".join(n.encode() + b"\0" for n in (*contents, ".shstrtab"))
    contents[".shstrtab"] = names
    body, headers = b"", b""
    for name, data in contents.items():
        at = names.index(name.encode() + b"\0") if name else 0
        headers += struct.pack("<IIQQQQIIQQ", at, 1, 0, 0, 64 + len(body), len(data), 0, 0, 0, 0)
        body += data
    head = b"\x7fELF\x02\x01" + bytes(10) + bytes(24)
    head += struct.pack("<QIHHHHHH", 64 + len(body), 0, 64, 0, 0, 64, len(contents), len(contents) - 1)
    return head + body + headers


ALLOWED = ["_ZN4vnpu9block_idxEv", "sqrt", "expf", "__truncsfhf2", "__cxa_pure_virtual", "__asan_load8_noabort"]


@pytest.mark.parametrize("name", ALLOWED)
def test_what_a_kernel_needs_is_allowed(name: str) -> None:
    assert violations(elf([name])) == []


@pytest.mark.parametrize(
    "name",
    ["exit", "memcpy", "dlsym", "PyRun_SimpleString", "vnpu_replay_release", "_ZN4vnpu6launchERKNS_10KernelInfoEjPPv",
     "_ZN4vnpu11gm_registerEPvmm", "_Znwm", "_ZSt4cout", "sqrtx", "__trunc"],
)  # fmt: skip
def test_anything_else_is_named(name: str) -> None:
    assert violations(elf([*ALLOWED, name])) == [f"the function {name}"]
    assert violations(elf(ALLOWED, [name])) == []


def test_code_that_runs_at_loading_is_named() -> None:
    assert violations(elf([], initializers=1)) == ["code that runs when the kernel is loaded or unloaded (.init_array)"]


def test_sections_and_what_is_no_object() -> None:
    binary = elf(["exit"], ["main"])
    kernel = read(binary)
    assert [s.name for s in kernel.dynamic_symbols if s.section is None] == ["", "exit"]
    assert kernel.section(".dynstr") == b"\0exit\0main\0"
    assert kernel.section(".text") == b""
    for text in (b"", b"#!/bin/sh", b"\x7fELF\x01\x01" + bytes(100)):
        with pytest.raises(ValueError, match="ELF-64"):
            read(text)
    for end in range(64, len(binary) - 64, 7):  # the last header is all zeros
        with pytest.raises(ValueError, match="damaged"):
            read(binary[:end])


@pytest.mark.parametrize(
    "line",
    ["mov %rax,0x8(%rbx)", "sub $0xe8,%rsp", "sub $0xffffffffffffff80,%rsp", "add $0x10,%rsp", "lea -0x10(%rsp),%rsp",
     "lea -0x28(%rbp),%rsp", "and $0xffffffffffffffe0,%rsp", "mov %rsp,%rbp", "mov %rbp,%rsp", "leave", "push %rsp",
     "call 1030 <__asan_store4_noabort@plt>", "jmp 1180 <k+0x20>", "repz ret", "rep stos %rax,%es:(%rdi)", "ret",
     "rep movsq %ds:(%rsi),%es:(%rdi)", "cvttss2si %xmm0,%rax", "movss 0x10(%rip),%xmm1", "data16 cs nopw 0x0(%rax)",
     "cmovne %eax,%ebx", "pxor %xmm0,%xmm0", "idivl 0x8(%rsp)", "endbr64", "xchg %ax,%ax", "ud2", "movabs $0x3ff0000000000000,%rax"],
)  # fmt: skip
def test_plain_instructions_pass(line: str) -> None:
    assert list(_wrong(line)) == []


@pytest.mark.parametrize(
    ("line", "word"),
    [("syscall", "instruction syscall"), ("call *%rax", "through a pointer"), ("jmp *0x8(%rbx)", "through a pointer"),
     ("notrack jmp *%rax", "through a pointer"), ("sub %rax,%rsp", "frame"), ("mov %rax,%rsp", "frame"),
     ("lea (%rax),%rsp", "frame"), ("lea -0x10(%rax),%rsp", "frame"), ("sub $0x400000,%rsp", "frame"), ("pop %rsp", "frame"),
     ("xchg %rax,%rsp", "xchg"), ("movntps %xmm0,(%rdi)", "movntps"), ("vmovaps %ymm0,(%rdi)", "vmovaps"),
     ("mov %fs:0x28,%rax", "memory of its thread"), ("lock addl $0x1,(%rdi)", "lock"), ("int3", "int3"), ("rdtsc", "rdtsc"),
     ("maskmovdqu %xmm1,%xmm0", "maskmovdqu"), ("fxsave (%rdi)", "fxsave"), ("wrfsbase %rax", "wrfsbase"),
     ("xsave (%rdi)", "xsave"), ("cpuid", "cpuid"), ("(bad)", "bad"), ("int $0x80", "int"), ("clflush (%rdi)", "clflush"),
     ("ldmxcsr (%rdi)", "ldmxcsr"), ("in (%dx),%al", "in"), ("movnti %eax,(%rdi)", "movnti"), ("mov %eax,%gs", "thread")],
)  # fmt: skip
def test_others_are_named(line: str, word: str) -> None:
    assert any(word in text for text in _wrong(line)), list(_wrong(line))
