"""Writes docs/api_names.csv: which AscendC APIs exist, from the pages of asc-devkit's API documentation.

    ASCENDOPT_ASC_DEVKIT=<checkout of asc-devkit> python docs/api_names.py

Only names are taken, with the chapter they stand in and whether the page lists Atlas A2 (architecture 2201).
"""

from __future__ import annotations

import csv
import re
import sys
from pathlib import Path

from ascendopt_tune.settings import settings

OUT = Path(__file__).with_name("api_names.csv")
_SUPPORTED = re.compile(r"^\s*-?\s*Atlas A2 训练系列产品/Atlas A2 推理系列产品\s*[：:]\s*(支持|不支持)", re.MULTILINE)

# Chapter (a folder of the documentation) -> what the table calls it. The longest folder that fits wins.
CHAPTERS = {
    "SIMD-API/基础API/数据结构": "tensors",
    "SIMD-API/基础API/辅助数据结构": "auxiliary structures",
    "SIMD-API/基础API/data_structure_TensorAPI": "tensor API (layouts)",
    "SIMD-API/基础API/矩阵计算（ISASI）": "cube",
    "SIMD-API/基础API/矩阵计算（TensorAPI）": "tensor API (layouts)",
    "SIMD-API/基础API/Memory矢量计算": "vector",
    "SIMD-API/基础API/Memory矢量计算/数据搬运": "data movement",
    "SIMD-API/基础API/Memory矢量计算/基础算术": "vector: arithmetic",
    "SIMD-API/基础API/Memory矢量计算/逻辑计算": "vector: logic",
    "SIMD-API/基础API/Memory矢量计算/复合计算": "vector: fused",
    "SIMD-API/基础API/Memory矢量计算/比较与选择": "vector: compare and select",
    "SIMD-API/基础API/Memory矢量计算/类型转换": "vector: conversion",
    "SIMD-API/基础API/Memory矢量计算/归约计算": "vector: reduction",
    "SIMD-API/基础API/Memory矢量计算/数据填充": "vector: filling",
    "SIMD-API/基础API/Memory矢量计算/数据排布转换": "vector: transposition",
    "SIMD-API/基础API/Memory矢量计算/排序组合（ISASI）": "vector: sorting",
    "SIMD-API/基础API/Memory矢量计算/离散与聚合": "vector: gather and scatter",
    "SIMD-API/基础API/Memory矢量计算/掩码操作": "vector: mask",
    "SIMD-API/基础API/Reg矢量计算": "register vector API",
    "SIMD-API/基础API/标量计算": "scalar",
    "SIMD-API/基础API/资源管理": "queues, buffers, workspace",
    "SIMD-API/基础API/同步控制": "synchronization",
    "SIMD-API/基础API/缓存控制": "caches",
    "SIMD-API/基础API/原子操作": "atomics",
    "SIMD-API/基础API/调试接口": "debugging",
    "SIMD-API/基础API/工具接口": "system",
    "SIMD-API/基础API/Cube分组管理（ISASI）": "cube groups",
    "SIMD-API/基础API/Kernel-Tiling": "tiling data in the kernel",
    "SIMD-API/基础API/特殊寄存器访问": "special registers",
    "SIMD-API/高阶API/数学计算": "high-level: mathematics",
    "SIMD-API/高阶API/量化操作": "high-level: quantization",
    "SIMD-API/高阶API/归一化操作": "high-level: normalization",
    "SIMD-API/高阶API/激活函数": "high-level: activation",
    "SIMD-API/高阶API/归约操作": "high-level: reduction",
    "SIMD-API/高阶API/排序操作": "high-level: sorting",
    "SIMD-API/高阶API/数据过滤": "high-level: selection",
    "SIMD-API/高阶API/张量变换": "high-level: transformation",
    "SIMD-API/高阶API/索引计算": "high-level: indices",
    "SIMD-API/高阶API/随机函数": "high-level: random numbers",
    "SIMD-API/高阶API/矩阵计算": "high-level: matrix multiplication",
    "SIMD-API/高阶API/卷积计算": "high-level: convolution",
    "SIMD-API/高阶API/HCCL通信类": "high-level: communication",
    "Utils-API/平台信息获取": "host: platform",
    "Utils-API/Tiling模板编程": "tiling templates",
    "Utils-API/RTC": "host: run-time compilation",
}
_CLASSES = ("LocalTensor", "GlobalTensor", "TPipe", "TQue", "TQueBind", "TBuf", "TBufPool", "TSCM", "LocalMemAllocator",
            "TensorDesc", "PlatformAscendC", "PlatformAscendCManager")  # fmt: skip
_OWN_POOL = "自定义TBufPool"  # what a class of the user's has to define
_HOST = re.compile(r"Get\w*(Tmp|Temp)\w*|Is\w+Reus\w*|\w+Tiling\w*|Get\w+Tiling\w*|TensorShape|TensorDataType")


def names(root: Path) -> set[tuple[str, str, str, str]]:
    """(chapter, class or "", name, yes or no) of every page below ``root`` that tells which products have the API."""
    found: dict[tuple[str, str, str], bool] = {}
    for page in sorted(root.rglob("*.md")):
        folder = page.relative_to(root).parent.as_posix()
        chapters = [c for c in CHAPTERS if folder == c or folder.startswith(c + "/")]
        text = page.read_text()
        supported = _SUPPORTED.search(text)
        if not chapters or supported is None or page.parent.name == _OWN_POOL:
            continue
        chapter = CHAPTERS[max(chapters, key=len)]
        owner = page.parent.name if page.parent.name in _CLASSES else ""
        title = re.sub(r"<a name.*?</a>|\\", "", text.splitlines()[0].removeprefix("#")).strip()
        for part in re.split(r"[/、&]", re.sub(r"[(（].*", "", title)):
            name = part.strip()
            if not re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII) or name == "operator":
                continue
            if chapter.startswith("high-level") and _HOST.fullmatch(name):
                chapter_of = "host: tiling of high-level APIs"
            else:
                chapter_of = chapter
            key = (chapter_of, "" if name == owner else owner, name)
            found[key] = found.get(key, False) or supported[1] == "支持"
            if owner:
                found[chapter_of, "", owner] = True
    return {(*key, "yes" if there else "no") for key, there in found.items()}


def main() -> None:
    checkout = settings().asc_devkit
    if checkout is None:
        sys.exit("ASCENDOPT_ASC_DEVKIT is not set: name a checkout of asc-devkit.")
    version = re.search(r'VERSION "([\d.]+)"', (checkout / "version.cmake").read_text())
    assert version is not None
    with open(OUT, "w", newline="") as file:
        file.write(f"# Names of APIs in asc-devkit {version[1]}, docs/zh/api; written by docs/api_names.py\n")
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("chapter", "class", "name", "on_2201"))
        order = list(dict.fromkeys(CHAPTERS.values()))
        rows = names(checkout / "docs/zh/api")
        writer.writerows(sorted(rows, key=lambda r: (order.index(r[0]) if r[0] in order else 99, r)))


if __name__ == "__main__":
    main()
