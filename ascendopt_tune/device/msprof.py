"""msprof's CSV files as a Profile: what a device measured of a kernel, pipes included.

Two ways to get them, and the three files that are read:

* ``msprof op`` (msopprof) writes a folder per launch: ``OpBasicInfo.csv`` (name, duration, blocks) and beside it
  ``PipeUtilization.csv``, a row per block and core with the times of its pipes;
* ``msprof`` writes ``op_summary_*.csv``: a row per launch of the whole application, means over the cores in it.

Columns are those that CANN 8.0 to 8.5 write ("Output files" of the msprof and msopprof guides). Names vary between
versions in spaces, underscores, the micro sign, and ``Block Dim`` became ``Block Num``: all are read.
"""

from __future__ import annotations

import csv
import math
import re
import statistics
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ..errors import ProfileError
from ..files import TEXT_BYTES, read_plain
from ..nouns.profile import Profile

_BASIC, _PIPES, _SUMMARY = "OpBasicInfo", "PipeUtilization", "op_summary"
_COLLECT = (
    "Collect it with `msprof op --aic-metrics=PipeUtilization ...` or `msprof --aic-metrics=PipeUtilization ...`."
)
_UNITS = {"us": 1.0, "ms": 1e3, "ns": 1e-3}
_NOTHING = frozenset(("", "na", "n/a", "nan"))
_TIMES = ("aiv_vec", "aiv_scalar", "aiv_mte2", "aiv_mte3")
# "GB" of the active bandwidths is 2^30 bytes: in a public profile of CANN 8.3 (neo-pan/ascend-msprof-skill,
# real_default_vector_minimal) 2.036129 GB/s in 3.805556 us of MTE2 is the 8.125 KB that its Memory.csv counts.
_GB = float(1 << 30)


@dataclass(frozen=True)
class MsprofProfile:
    """One kernel as a device ran it. ``launches``: how many there were; the profile is that of the middle duration.

    ``files``: what it was read from. ``clock_mhz``: the clock then and the rated one, where they are told. The profile
    has, beyond times, ``block_time_min_us``, ``block_time_max_us``, ``mte2_bytes`` and ``mte3_bytes`` in its counters
    where the files tell them; nobody tells who waited for whom.
    """

    operator: str
    launches: int
    profile: Profile
    files: tuple[Path, ...]
    clock_mhz: tuple[float, float] | None = None

    @property
    def slowed(self) -> str:
        """A sentence where the device didn't run at its rated clock (it saves power, or is hot); else empty."""
        if self.clock_mhz is None or self.clock_mhz[0] >= self.clock_mhz[1]:
            return ""
        now, rated = self.clock_mhz
        return f"The device ran at {now:.0f} MHz, not at its {rated:.0f}: compare this with nothing else."


@dataclass(frozen=True)
class _Launch:
    operator: str
    kind: str
    profile: Profile
    files: tuple[Path, ...]
    clock_mhz: tuple[float, float] | None = None


def read(path: Path, operator: str | None = None) -> MsprofProfile:
    """The profile of one kernel, of a folder (searched with all below it) or one of the three files.

    Args:
        operator: its name (``Op Name`` or ``OP Type``), or a part of it, where the files tell of several.

    Raises:
        ProfileError: no such file, or it doesn't tell what it should; the text says which column or line.
    """
    launches = list(_launches(path))
    if not launches:
        raise ProfileError(f"{path} has no launch in it.", _COLLECT)
    names = Counter(launch.operator for launch in launches)
    if operator is not None:
        launches = _called(launches, operator)
        if not launches:
            raise ProfileError(f"{path} has no operator called {operator}.", f"It has {_listed(names)}.")
        names = Counter(launch.operator for launch in launches)
    if len(names) > 1:
        raise ProfileError(f"{path} has several operators: {_listed(names)}.", "Name one with --op.")
    launches.sort(key=lambda launch: launch.profile.task_duration_us)
    middle = launches[(len(launches) - 1) // 2]
    return MsprofProfile(middle.operator, len(launches), middle.profile, middle.files, middle.clock_mhz)


def _called(launches: Sequence[_Launch], wanted: str) -> list[_Launch]:
    """Those of exactly that name, else those whose name has it as a part."""
    exact = [launch for launch in launches if wanted in (launch.operator, launch.kind)]
    return exact or [launch for launch in launches if wanted.lower() in launch.operator.lower()]


def _listed(names: Mapping[str, int]) -> str:
    shown = [f"{name} ({count})" for name, count in sorted(names.items(), key=lambda item: (-item[1], item[0]))]
    return ", ".join(shown[:8]) + (f" and {len(shown) - 8} more" if len(shown) > 8 else "")


def _launches(path: Path) -> Iterator[_Launch]:
    """Of a folder the launches of ``msprof op``, which tell every core, else those of ``msprof``."""
    if not path.exists():
        raise ProfileError(f"there is no {path}.", "Name the folder that msprof wrote (OPPROF_* or PROF_*).")
    if path.is_file():
        kind = next((k for k in (_BASIC, _PIPES, _SUMMARY) if path.name.startswith(k)), None)
        if kind is None:
            known = f"{_BASIC}.csv, {_PIPES}.csv and {_SUMMARY}_*.csv"
            raise ProfileError(f"{path.name} is none of the files that are read ({known}).", "Name its folder instead.")
        if kind == _SUMMARY:
            yield from _summary(path)
            return
        path = path.parent
        files = sorted(path.glob(f"{_BASIC}*.csv"))
        if not files:
            raise ProfileError(f"{path} has no {_BASIC}.csv, which tells the duration of the task.", _COLLECT)
    else:
        files = sorted(path.rglob(f"{_BASIC}*.csv"))
    if files:
        for file in files:
            yield _one(file)
        return
    summaries = sorted(path.rglob(f"{_SUMMARY}*.csv"))
    if not summaries:
        raise ProfileError(f"{path} has neither {_BASIC}.csv nor {_SUMMARY}_*.csv in it or below it.", _COLLECT)
    for file in summaries:
        yield from _summary(file)


# -- the three files --------------------------------------------------------------------------------------------------


def _one(file: Path) -> _Launch:
    """A launch of ``msprof op``: OpBasicInfo.csv with, where it is there, PipeUtilization.csv."""
    rows = _rows(file)
    if len(rows) != 1:
        raise ProfileError(f"{file} has {len(rows)} rows; it should tell of one launch.", "Profile it again.")
    row = rows[0]
    name, kind, duration = row.text("opname"), row.text("optype"), row.needed("taskduration")
    now, rated = row.number("currentfreq"), row.number("ratedfreq")
    clock = (now, rated) if now and rated else None
    beside = file.with_name(file.name.replace(_BASIC, _PIPES, 1))
    if not beside.exists():
        return _Launch(name, kind, Profile(duration, block_dim=_blocks(row, kind)), (file,), clock)
    cores = [r for r in _rows(beside) if _tells_pipes(r)]
    profile = _profile(duration, cores, len(cores) or _blocks(row, kind))  # none: it runs on cube cores alone
    counters = {}
    if cores:
        core_times = [r.needed("aivtime") for r in cores]
        counters = {"block_time_min_us": min(core_times), "block_time_max_us": max(core_times)}
        for pipe in ("mte2", "mte3"):
            moved = [_moved(r, pipe) for r in cores]
            if None not in moved:
                counters[f"{pipe}_bytes"] = sum(m for m in moved if m is not None)
    return _Launch(name, kind, replace(profile, counters=counters), (file, beside), clock)


def _summary(file: Path) -> Iterator[_Launch]:
    """Every row of op_summary_*.csv that has a duration."""
    for row in _rows(file):
        if not {"taskduration", "duration"} & row.values.keys():
            row.needed("taskduration")
        duration = row.number("taskduration", "duration")
        if duration is not None:
            kind = row.text("tasktype", "acceleratorcore")
            profile = _profile(duration, [row] if _tells_pipes(row) else [], _blocks(row, kind))
            yield _Launch(row.text("opname", "name"), row.text("optype", "type"), profile, (file,))


def _profile(duration: float, cores: Sequence[_Row], blocks: int) -> Profile:
    """Means over the rows; without one the duration alone."""
    if not cores:
        return Profile(duration, block_dim=blocks)
    core = statistics.fmean(r.needed("aivtime") for r in cores)
    vec, scalar, mte2, mte3 = (statistics.fmean(_pipe(r, pipe) for r in cores) for pipe in _TIMES)
    return Profile(duration, core, vec, scalar, mte2, mte3, blocks)


def _blocks(row: _Row, kind: str) -> int:
    """Blocks of vector cores: of a mixed kernel that the cube cores lead, they are the second number."""
    main, second = row.number("blockdim", "blocknum"), row.number("mixblockdim", "mixblocknum")
    led_by_cube = kind.upper() in ("MIX", "MIX_AIC") and second
    return int((second if led_by_cube else main) or 0)


def _tells_pipes(row: _Row) -> bool:
    """Whether vector cores ran, and their pipes were what was counted (``--aic-metrics``)."""
    names = (f"{pipe.replace('_', '')}{what}" for pipe in _TIMES for what in ("time", "ratio"))
    return bool(row.number("aivtime")) and any(row.number(name) is not None for name in names)


def _pipe(row: _Row, pipe: str) -> float:
    """Microseconds of a pipe; from its ratio where a version writes no time."""
    name = pipe.replace("_", "")
    time = row.number(f"{name}time")
    if time is None:
        time = (row.number(f"{name}ratio") or 0.0) * (row.number("aivtime") or 0.0)
    return time


def _moved(row: _Row, pipe: str) -> float | None:
    """Bytes that a core's pipe moved: bandwidth while it was active, times that."""
    rate, time = row.number(f"aiv{pipe}activebw"), _pipe(row, f"aiv_{pipe}")
    return 0.0 if not time else rate * _GB * time * 1e-6 if rate is not None else None


# -- rows -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Row:
    """One line of a file. ``values``: by the column's name without unit, spaces and underscores, in lower case."""

    file: Path
    line: int
    values: Mapping[str, tuple[str, float]]  # text, and how many of our unit one of the column's is

    def text(self, *names: str) -> str:
        return next((self.values[n][0] for n in names if n in self.values), "")

    def number(self, *names: str) -> float | None:
        """None where there is no such column, or nothing in it. Raises ProfileError for anything else than a number."""
        for name in (n for n in names if n in self.values):
            text, unit = self.values[name]
            if text.lower() in _NOTHING:
                return None
            try:
                value = float(text) * unit
            except ValueError:
                value = math.nan
            if not (math.isfinite(value) and value >= 0):
                where = f"{self.file}, line {self.line}, column {name}"
                raise ProfileError(f"{where}: {text!r} is no number >= 0.", "The file may be damaged: profile again.")
            return value
        return None

    def needed(self, name: str) -> float:
        value = self.number(name)
        if value is None:
            what = "has nothing in" if name in self.values else "has no"
            raise ProfileError(f"{self.file}, line {self.line}, {what} column {name}.", _COLLECT)
        return value


def _rows(file: Path) -> list[_Row]:
    try:
        text = read_plain(file, TEXT_BYTES).decode("utf-8-sig", errors="replace")
    except OSError as error:
        raise ProfileError(f"{file} can't be read: {error.strerror or error}.", "Check the file.") from error
    lines = [[cell.strip() for cell in cells] for cells in csv.reader(text.splitlines())]
    if not lines:
        raise ProfileError(f"{file} is empty.", _COLLECT)
    columns = [_column(cell) for cell in lines[0]]
    out = []
    for number, cells in enumerate(lines[1:], start=2):
        if any(cells):
            values = {name: (cell, unit) for (name, unit), cell in zip(columns, cells, strict=False) if name}
            out.append(_Row(file, number, values))
    if not out:
        raise ProfileError(f"{file} has a header and nothing below it.", _COLLECT)
    return out


def _column(head: str) -> tuple[str, float]:
    """The column's plain name, and how many microseconds one of its unit is (1 where it is no time)."""
    plain = re.sub(r"[\s_]", "", head.replace("μ", "u").replace("µ", "u")).lower()
    name, _, unit = plain.partition("(")
    return name, _UNITS.get(unit.rstrip(")"), 1.0)
