# ruff: noqa: E501
"""Kernels that would do what the virtual NPU can't see: most are refused where they are built, by looking at the object.

Every one is a program somebody could write in plain text; what it would have done stands in its name.
"""

from __future__ import annotations

import pytest
from hostile import attack

from ascendopt_tune.evaluate.gate import Gate
from ascendopt_tune.nouns.outcome import CompileFailed, LaunchFailed, Outcome, OutOfBounds, Timed

_V4 = "typedef float v4 __attribute__((vector_size(16)));\n"
_V2 = "typedef float v2 __attribute__((vector_size(8)));\n"
_IDLE = "static volatile int n;\nstatic void early() { n = 1; }\n"

#: name: statements at the kernel's start (x and y are its tensors), declarations before it, a word of the refusal.
REFUSED_AT_BUILD: dict[str, tuple[str, str, str]] = {
    # -- stores and loads without a check
    "copies 24 bytes by va_copy": (
        "__builtin_va_copy(*(__builtin_va_list*)y, *(__builtin_va_list*)x);", "", "__builtin_va_copy"),
    "stores by va_start": ("begin(y, 1);", "static void begin(void* p, ...) { __builtin_va_start(*(__builtin_va_list*)p, p); }",
                           "__builtin_va_start"),
    "sets a byte by test-and-set": ("__atomic_test_and_set(y, 0);", "", "__atomic_test_and_set"),
    "clears a byte": ("__atomic_clear((bool*)y, 0);", "", "__atomic_clear"),
    "stores the real part": ("__real__ *(_Complex float*)y = 1.0f;", "", "a part of a complex number"),
    "stores the imaginary part": ("__imag__ *(_Complex float*)y = 1.0f;", "", "a part of a complex number"),
    "loads the real part": ("volatile float f = __real__ *(_Complex float*)x; (void)f;", "", "a part of a complex number"),
    "stores around the caches": ("__builtin_ia32_movnti((int*)y, 1);", "", "__builtin_ia32_movnti"),
    "stores a vector around the caches": ("__builtin_ia32_movntps((float*)y, v4{});", _V4, "__builtin_ia32_movntps"),
    "stores half a vector": ("__builtin_ia32_storelps((v2*)y, v4{});", _V4 + _V2, "__builtin_ia32_storelps"),
    "stores under a mask": (
        "__builtin_ia32_maskmovdqu(b16{}, b16{}, (char*)y);",
        "typedef char b16 __attribute__((vector_size(16)));\n", "__builtin_ia32_maskmovdqu"),
    "stores the processor's state": (
        "wide(y);", '__attribute__((target("fxsr"))) static void wide(void* p) { __builtin_ia32_fxsave(p); }',
        "__builtin_ia32_fxsave"),
    "uses wider vectors": (
        "wide((v8*)y, v8{});",
        "typedef float v8 __attribute__((vector_size(32)));\n"
        '__attribute__((target("avx2"), noinline)) static void wide(v8* p, v8 v) { *p = v * v; }', "instruction"),
    "switches optimization off": (
        "plain((int*)y);", '__attribute__((optimize("O0"), noinline)) static void plain(int* p) { *p = 1; }',
        "compiler options of its own"),
    "leaves frame pointers out": (
        "plain((int*)y);",
        '__attribute__((optimize("omit-frame-pointer"), noinline)) static void plain(int* p) { *p = 1; }',
        "compiler options of its own"),
    "switches optimization off by pragma": (
        "plain((int*)y);", '#pragma GCC optimize("O0")\nstatic void plain(int* p) { *p = 1; }',
        "compiler options of its own"),
    "copies through a function of its own": (
        "__builtin_strcpy((char*)y, (const char*)x);", "", "strcpy"),
    "prints into memory": ('__builtin_sprintf((char*)y, "%d", n);', "static volatile int n;", "sprintf"),
    # -- control
    "prints by a stream": ("std::cout << 1;", "#include <iostream>", "_ZSt4cout"),
    "saves where it is": ("void* b[5]; if (__builtin_setjmp(b)) return; __builtin_longjmp(b, 1);", "", "__builtin_"),
    "jumps to where it likes": ("__builtin_longjmp((void**)y, 1);", "", "__builtin_longjmp"),
    "calls a pointer": ("void (*volatile f)() = (void (*)())0x1000; f();", "", "a call through a pointer"),
    "calls a library's inside": (
        "auto f = (int (*volatile)(const char*))((char*)static_cast<double (*)(double)>(&sqrt) + 0x10000); f(\"x\");",
        "#include <cmath>", "a call through a pointer"),
    "calls a virtual function": (
        "A* volatile a = (A*)y; a->f();", "struct A { virtual void f(); };", "a call through a pointer"),
    "jumps to a computed label": (
        "static void* const to[] = {&&a, &&b}; volatile int i = 1; goto *to[i]; a: i = 2; b: i = 3;", "", "a call through a pointer"),
    "moves its stack into a tensor": ("__builtin_stack_restore(y);", "", "__builtin_stack_restore"),
    "allocates up to a tensor": (
        "char* volatile p = (char*)__builtin_alloca((char*)__builtin_frame_address(0) - (char*)y); p[0] = 1;", "",
        "__builtin_alloca"),
    "has an array of any length": (
        "volatile int n = 9; char a[n]; char* volatile p = a; p[0] = 1;", "", "a stack frame"),
    "has a frame that steps over everything": (
        "char a[4 << 20]; char* volatile p = a; p[0] = 1;", "", "a stack frame"),
    "calls the unwinder's helper": (
        "__gxx_personality_v0(1, 2, 0, y, y);",
        'extern "C" int __gxx_personality_v0(int, int, unsigned long, void*, void*);', "__gxx_personality_v0"),
    "makes a table of registers": ("__builtin_init_dwarf_reg_size_table((char*)y);", "", "__builtin_init_dwarf"),
    "changes how numbers are rounded": ("__builtin_ia32_ldmxcsr(0x7f80);", "", "__builtin_ia32_ldmxcsr"),
    "reads the clock": ("volatile long t = __builtin_ia32_rdtsc(); (void)t;", "", "__builtin_ia32_rdtsc"),
    "writes what belongs to its thread": ("mine = 1;", "thread_local volatile int mine;", "__tls_get_addr"),
    # -- what the loader runs
    "constructor": ("", _IDLE + "__attribute__((constructor)) static void first() { early(); }", ".init_array"),
    "constructor of a priority": ("", _IDLE + "__attribute__((constructor(101))) static void first() { early(); }",
                                  ".init_array"),
    "destructor": ("", _IDLE + "__attribute__((destructor)) static void last() { early(); }", ".fini_array"),
    "initializer": ("", "static volatile int n = 1; int k = n + 1; int* volatile keep = &k;", ""),
    "destructor of a variable": ("", "struct A { ~A() { n = 1; } static volatile int n; }; volatile int A::n; A a;", ""),
    **{
        f"function in {section}": (
            "", _IDLE + f'__attribute__((used, section("{section}"))) static void (*const p)() = early;',
            "the attribute section")
        for section in (".init_array", ".preinit_array", ".fini_array", ".ctors", ".dtors")
    },
    "code in .init": ("", '__attribute__((used, section(".init"))) static void first() {}', "the attribute section"),
    "code in .fini": ("", '__attribute__((used, __section__(".fini"))) static void last() {}', "the attribute section"),
    "function chosen at loading": (
        "volatile int k = pick(); (void)k;",
        '__attribute__((target_clones("default", "avx2"), noinline)) static int pick() { volatile int n = 1; return n; }',
        ""),
    "ifunc": ("", 'static void* r() { return 0; }\nextern "C" int g() __attribute__((ifunc("r")));', "poisoned"),
    # -- machine code and names
    "machine code in a section's name": (
        "", 'extern const int n __attribute__((section(".text.a,\\"ax\\",@progbits\\n\\tsyscall\\n\\t.section .x"))) = 3;',
        "the attribute section"),
    "machine code in a raw string": (
        "", 'extern const int n __attribute__((section(u8R"q(.text.a,"ax",@progbits\n\tsyscall\n\t.section .x)q"))) = 3;',
        "the attribute section"),
    "machine code in a weak reference": (
        "f();", 'static void f() __attribute__((weakref("x\\n\\tsyscall")));', "the attribute weakref"),
    "machine code as data": (
        "", '[[gnu::section(".text")]] extern const unsigned char code[] = {0x0f, 0x05, 0xc3};', "the attribute section"),
    "inner function by its name": (
        "_ZN4vnpu11scalar_costEd(0);", 'extern "C" void _ZN4vnpu11scalar_costEd(double);',
        "inner functions of the virtual NPU"),
    "answers the checks itself": (
        "*(volatile long*)8 = 1;", 'extern "C" void __asan_store8_noabort(const void*) {}',
        "its own version of __asan_store8_noabort"),
    "copies in the checked one's place": (
        "void* (*volatile copy)(void*, const void*, unsigned long) = __wrap_memcpy; (void)copy;",
        'extern "C" void* __wrap_memcpy(void* a, const void*, unsigned long) { return a; }',
        "its own version of __wrap_memcpy"),
    "copies unchecked": (
        "__real_memcpy(y, x, 64);", 'extern "C" void* __real_memcpy(void*, const void*, unsigned long);',
        "the function memcpy"),
    "renames by pragma": (
        "secretly();", 'extern "C" int secretly();\n#pragma redefine_extname secretly fork\n', "the function fork"),
    "finds a weak function": (
        "if (mmap) mmap(0, 4096, 7, 34, -1, 0);",
        'extern "C" __attribute__((weak)) void* mmap(void*, unsigned long, int, int, int, long);', "the function mmap"),
    "starts another stream": (
        "void* s; aclrtCreateStream(&s);", 'extern "C" int aclrtCreateStream(void**);', "aclrtCreateStream"),
    "pins its data in the cache": (
        "aclrtSetStreamAttribute(x, 1, y);", 'extern "C" int aclrtSetStreamAttribute(void*, int, void*);',
        "aclrtSetStreamAttribute"),
    "asks for another time": (
        "aclrtEventElapsedTime((float*)y, x, x);",
        'extern "C" int aclrtEventElapsedTime(float*, void*, void*);', "aclrtEventElapsedTime"),
    "allocates": ("volatile char* p = (char*)__builtin_malloc(64); p[0] = 1;", "", "malloc"),
    "throws": ("throw 1;", "", "__cxa_"),
    "needs a lot of the compiler": (
        "volatile int k = T<900, 900>::v; (void)k;",
        "template <int a, int b> struct T { enum { v = T<a - 1, b>::v + T<a, b - 1>::v }; };"
        "template <int b> struct T<0, b> { enum { v = 1 }; }; template <int a> struct T<a, 0> { enum { v = 1 }; };", ""),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED_AT_BUILD)
def test_refused_at_build(gate: Gate, name: str) -> None:
    code, declarations, word = REFUSED_AT_BUILD[name]
    outcome = attack(gate, code, declarations)
    assert type(outcome) is CompileFailed, outcome
    assert word in outcome.reason + outcome.log


#: name: statements, declarations, kind of outcome, a word of its reason.
REFUSED_AT_RUN: dict[str, tuple[str, str, type[Outcome], str]] = {
    "overwrites its return address": (
        "away();",
        "__attribute__((noinline)) static void away() {"
        " void* volatile* frame = (void* volatile*)__builtin_frame_address(0); frame[1] = (void*)0x1234; }",
        OutOfBounds, "return address"),
    "overwrites its caller's return address": (
        "outer();",
        "__attribute__((noinline)) static void away(volatile long* up) { up[1] = 0x1234; }\n"
        "__attribute__((noinline)) static void outer() { away((volatile long*)__builtin_frame_address(0)); }",
        OutOfBounds, "return address"),
    "clears up to its return address": (
        "away();",
        "#include <cstring>\n__attribute__((noinline)) static void away() {"
        " void* (*p)(void*, int, size_t) = memset; char a[64]; p(a, 0, 128 + (char*)__builtin_frame_address(0) - a); volatile char* q = a; q[1] = q[2]; }",
        OutOfBounds, "return address"),
    "loads its tiling data over the host": (
        "AOT_LOAD_TILING((void*)static_cast<double (*)(double)>(&sqrt), tiling, 8);", "#include <cmath>",
        OutOfBounds, "not the kernel's own"),
    "unwinds what it made up": (
        "long e[8] = {}; _Unwind_Resume(e);", 'extern "C" void _Unwind_Resume(void*);', LaunchFailed,
        "an exception of its own making"),
    "prints into memory": ('AscendC::PRINTF("%1$n", x);', "", LaunchFailed, "%n"),
    "stores by modf": (
        "modf(2.0, (double*)(void*)static_cast<double (*)(double)>(&sqrt));", "#include <cmath>",
        OutOfBounds, "through a pointer"),
    "is too large to be loaded": (
        "volatile char c = large[GetBlockIdx()];", "static const char large[1 << 28] = {1};",
        LaunchFailed, "can't be loaded"),
    "stores by frexp": (
        "volatile double n = 2.0; frexp(n, (int*)(void*)static_cast<double (*)(double)>(&sqrt));",
        "#include <cmath>", OutOfBounds, "through a pointer"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED_AT_RUN)
def test_refused_where_it_runs(gate: Gate, name: str) -> None:
    code, declarations, kind, word = REFUSED_AT_RUN[name]
    outcome = attack(gate, code, declarations)
    assert type(outcome) is kind, outcome
    assert word in outcome.reason


#: What kernels do write in plain C++, and is no reason to refuse them.
RIGHT = {
    "an array and a structure": (
        "struct S { int a[24]; } s = {}; S t = s; S* volatile p = &t; p->a[1] = 2;", ""),
    "copies of its own": (
        "char a[64], b[64]; void* volatile p = a; memset(p, 0, 64); memcpy(b, p, 64); memmove(p, b, 64);",
        "#include <cstring>"),
    "a switch": (
        "volatile int k = 3; switch (k) { case 0: k = 9; break; case 1: k = 4; break; case 2: k = 7; break;"
        " case 3: k = 1; break; case 4: k = 2; break; case 5: k = 8; break; }", ""),
    "recursion": (
        "volatile int k = depth(9); (void)k;",
        "__attribute__((noinline)) static int depth(int n) { volatile int m = n; return n == 0 ? 0 : m + depth(n - 1); }"),
    "arithmetic of numbers": (
        "volatile double d = 2; volatile float f = (float)d; volatile half h = (half)f; volatile long l = (long)d;"
        " volatile unsigned __int128 w = (unsigned __int128)l * l / 3; d = sqrt(d) + f + (float)h + (double)w;",
        "#include <cmath>"),
    "sine and cosine of one number": (
        "volatile float a = 1, s = sinf(a), c = cosf(a); float whole; s = modff(a, &whole) + whole + c;",
        "#include <cmath>"),
    "bits": (
        "volatile unsigned b = 12; b = __builtin_clz(b) + __builtin_ctz(b) + __builtin_popcount(b);", ""),
    "a template with an inner class": (
        "Outer<int>::Inner i{3}; Outer<int>::Inner* volatile p = &i; p->n = p->n + 1;",
        "template <typename T> struct Outer { struct Inner { T n; }; };"),
    "headers of the host, without a print": (
        "volatile int k = std::max(1, 2); k = k + 1;",
        "#include <iostream>\n#include <algorithm>\n#include <string>\n#include <vector>\n#include <map>"),
}  # fmt: skip


#: What depends on what lay on the stack before, at the depth of a small array, of a large one, and below a call.
OF_THE_STACK = {
    "a small array": ("volatile float a[64]; if (a[9] != 0.0f) return;", ""),
    "a large array": ("volatile float a[50000]; if (a[3] != 0.0f) return;", ""),
    "an array of a function": (
        "if (left() != 0.0f) return;",
        "__attribute__((noinline)) static float left() { volatile float a[9000]; return a[5]; }"),
}  # fmt: skip


@pytest.mark.parametrize("name", OF_THE_STACK)
def test_what_lay_on_the_stack_decides_nothing(gate: Gate, name: str) -> None:
    outcome = attack(gate, *OF_THE_STACK[name])
    assert not isinstance(outcome, (Timed, CompileFailed)), outcome


@pytest.mark.parametrize("name", RIGHT)
def test_plain_code_is_not_refused(gate: Gate, name: str) -> None:
    code, declarations = RIGHT[name]
    outcome = attack(gate, code, declarations)
    assert isinstance(outcome, Timed), outcome
