"""A cached pair made ready for torch tensors: binary loaded, tiling data on the device, nothing left but the launch."""

from __future__ import annotations

import ctypes
import tempfile
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from ...build.toolkit import Toolkit
from ...device.acl import Acl
from ...device.launch import SYSTEM_WORKSPACE, list_descriptor
from ...errors import CaseError
from ...evaluate.symbolize import locate
from ...nouns.case import flatten
from ...store.cache import Entry
from ..device import faults
from .binding import TORCH_DTYPES, CallPlan, Fresh, Given, Pick, Shared
from .straight import straight

if TYPE_CHECKING:
    from .form import CallForm

ALIGNMENT = 32  # bytes; results were verified on tensors that begin at a multiple of this
_LAUNCH = "aclrtLaunchKernelWithArgsArray"
# On the virtual NPU a launch is over when it returns, and says whether the kernel failed: another can serve the call.
_LAUNCH_AT_ONCE = "vnpu_launch_at_once"
_NEVER = 1 << 62
_DESCRIPTORS = 64  # descriptor blocks of tensor lists kept on the device

Args = tuple[Any, ...]
Kwargs = Mapping[str, Any]


@cache
def device_of(toolkit: Toolkit, index: int) -> Acl:
    """The binding for device ``index`` of this process, whose runtime torch_npu has set up."""
    return Acl(toolkit, index)


def upload(data: bytes, device: torch.device) -> torch.Tensor:
    """``data`` in device memory; never null."""
    return torch.frombuffer(bytearray(data or bytes(ALIGNMENT)), dtype=torch.uint8).to(device)


class UnfitError(CaseError):
    """These tensors can't be served: the original has to, and nothing is wrong with the pair."""


#: The area the system keeps before a kernel's workspace, by (device, stream): kernels of one stream run in turn.
_system_areas: dict[tuple[int, int], torch.Tensor] = {}


def system_area(index: int, stream: int) -> int:
    """The address, on a stream of device ``index``, that kernels without a workspace of their own get for one."""
    area = _system_areas.get((index, stream))
    if area is None:
        area = torch.empty(SYSTEM_WORKSPACE + ALIGNMENT, dtype=torch.uint8, device=torch.device("npu", index))
        _system_areas[index, stream] = area
    return area.data_ptr() + SYSTEM_WORKSPACE


class Launcher:
    """Called with a call's arguments, launches on torch's current stream of ``device`` and returns what the call does.

    Threads may call it at the same time. Building one raises DeviceError if the binary can't be loaded. Calling one
    raises UnfitError for tensors that are not where results were verified to be right, DeviceError or torch's errors if
    the launch fails, LostError for a tensor that a kernel which failed was given. A kernel that fails raises
    KernelFault on the virtual NPU; on a device it shows at the next synchronization.
    """

    def __init__(self, acl: Acl, entry: Entry, plan: CallPlan, device: torch.device) -> None:
        import torch_npu

        if entry.tiling.tells_shapes:
            raise CaseError("the kernel decides its outputs' shapes, which is not served.")
        self.entry, self.plan = entry, plan
        #: Calls served. Kept here by the dispatcher, as is the number of launches that failed.
        self.calls = 0
        self.failures = 0
        #: From this number on, calls that Python serves are looked at by the dispatcher: one may be sampled.
        self.due = _NEVER
        self.sample_at = _NEVER
        #: False once the dispatcher has taken it out of its table.
        self.serving = True
        #: What C++ knows its calls by, and its case there, which counts its calls itself (fast_path.py).
        self.form: CallForm | None = None
        self.fast: Any = None
        #: What several results are returned in. None: one tensor, or nothing. Set by the dispatcher.
        self.container: Callable[[list[torch.Tensor]], Any] | None = None
        self._acl, self.device, self.index = acl, device, device.index
        # The form that waits for torch_npu's task queue: what was called before is on the stream when we launch.
        self.raw_stream: Callable[[int], int] = torch_npu._C._npu_getCurrentRawStream
        self.current_device: Callable[[], int] = torch_npu._C._npu_getDevice
        self._binary = acl.load(entry.binary)
        self.function = self._binary.function(entry.kernel_name)
        self._tiling = upload(entry.tiling.data, device)
        self.launch, self.block_dim = acl.raw(_LAUNCH_AT_ONCE if acl.virtual else _LAUNCH), entry.tiling.block_dim
        self.workspace_bytes = entry.tiling.workspace_bytes
        self.outputs = self._output_forms()
        # A launch's words for parameters: taken and given back, so that threads don't write into each other's.
        self._count = len(plan.inputs) + sum(not isinstance(d, Shared) or d.listed for d in plan.outputs) + 2
        self.slots: list[tuple[Any, int, Any]] = []
        self._descriptors: dict[bytes, torch.Tensor] = {}
        self._captured: list[torch.Tensor] = []  # descriptors that graphs hold the addresses of
        self._checks_overlap = bool(plan.changed)
        #: Arguments that the kernel writes, and of these the ones that it also reads.
        self.written = [p.pick for p in plan.outputs if isinstance(p, Given) and not p.copied]
        shared = [plan.inputs[place.position] for place in plan.outputs if isinstance(place, Shared)]
        self.in_place = [pick for pick in shared if pick is not None]
        self.written += self.in_place
        self.has_fills = any(fill is not None for *_, fill in self.outputs)
        self.areas: dict[int, int] = {}  # the system's area by stream
        #: As calling the launcher, quicker where it can be; see :meth:`prepare`.
        self.go: Callable[[Args, Kwargs], Any] = self.__call__

    def prepare(self) -> None:
        """Makes :attr:`go`, once the container is known."""
        if not self.has_fills and not self.workspace_bytes and not any(is_list for _, is_list, *_ in self.outputs):
            forms = [specs for _, _, specs, _ in self.outputs]
            self.go = straight(self.plan, forms, self.container is not None, self._names()) or self.__call__

    def _names(self) -> dict[str, Any]:
        """What a call as straight-line code refers to."""
        return {
            "current": self.current_device,
            "index": self.index,
            "elsewhere": self.raise_elsewhere,
            "misaligned": self.raise_misaligned,
            "slots": self.slots,
            "pop": self.slots.pop,
            "push": self.slots.append,
            "words_of_a_launch": self.new_words,
            "stream_of": self.raw_stream,
            "areas": self.areas,
            "area_of": self.system_area,
            "launch": self.launch,
            "function": self.function,
            "block_dim": self.block_dim,
            "fail": self.raise_failed,
            "lost": faults.lost,
            "check_lost": self.check_lost,
            "device": self.device,
            "container": self.container,
        }

    def _output_forms(self) -> list[tuple[Any, ...]]:
        """Per output that is a parameter of its own: destination, whether a list, (shape, strides, dtype)s, fill."""
        fills = self.entry.tiling.initial_values
        forms = []
        for i, (argument, place) in enumerate(zip(self.entry.outputs, self.plan.outputs, strict=True)):
            specs = [(s.shape, _strides(s.shape), TORCH_DTYPES[s.dtype]) for s in flatten([argument])]
            forms.append((place, isinstance(argument, tuple), specs, fills[i] if i < len(fills) else None))
        return forms

    def __call__(self, args: Args, kwargs: Kwargs) -> Any:
        return self.packed(self.run(args, kwargs))

    def packed(self, results: list[torch.Tensor]) -> Any:
        """Results as the call returns them."""
        if self.container is not None:
            return self.container(results)
        return results[0] if results else None

    def run(self, args: Args, kwargs: Kwargs, before: Callable[[list[torch.Tensor]], None] | None = None) -> Any:
        """The launch; returns the results flat.

        Args:
            before: called with the new tensors for outputs, right before they are filled and the kernel is launched.
        """
        index = self.index
        if self.current_device() != index:
            self.raise_elsewhere()
        if faults.lost:
            self.check_lost(args, kwargs)
        if self.fast is not None and self.fast.code:  # C++ has just met a fault
            code, self.fast.code = self.fast.code, 0
            self.raise_failed(code, args, kwargs)
        words, pointers, keep = self.slots.pop() if self.slots else self.new_words()
        made: list[Any] = []
        late: list[tuple[torch.Tensor, torch.Tensor]] = []
        bits, i = self._put_inputs(words, args, kwargs)
        bits, i = self._put_outputs(words, args, kwargs, made, late, bits, i)
        if before is not None:
            fresh = [ts for ts, form in zip(made, self.outputs, strict=True) if form[0].__class__ is Fresh]
            before([t for tensors in fresh for t in tensors])
        if self.has_fills:
            self._fill(made)
        if bits % ALIGNMENT:
            self.raise_misaligned()
        if self._checks_overlap:
            self._check_overlap(args, kwargs)
            self._check_behind(args, kwargs)
        stream = self.raw_stream(index)
        if self.workspace_bytes:
            # Dropped when this returns, and used again in the stream's order, so after the launch.
            workspace = torch.empty(SYSTEM_WORKSPACE + self.workspace_bytes, dtype=torch.uint8, device=self.device)
            words[i] = workspace.data_ptr() + SYSTEM_WORKSPACE
        else:
            words[i] = self.areas.get(stream) or self.system_area(stream)
        code = self.launch(self.function, self.block_dim, stream, None, pointers, None)
        self.slots.append((words, pointers, keep))
        if code:
            self.raise_failed(code, args, kwargs)
        if late or self._checks_overlap:
            self._finish(args, kwargs, late)
        out: list[torch.Tensor] = []
        for value in self.plan.returned:
            if value.__class__ is int:
                out += made[value]
            else:
                pick = value[0]  # type: ignore[index]
                out.append(args[pick] if pick.__class__ is int else kwargs[pick])  # type: ignore[index]
        return out

    def _put_inputs(self, words: Any, args: Args, kwargs: Kwargs) -> tuple[int, int]:
        """Writes the inputs' addresses; all their bits, and how many words that took."""
        i = bits = 0
        for pick in self.plan.inputs:
            if pick is None:
                words[i] = None
            else:
                value = args[pick] if pick.__class__ is int else kwargs[pick]  # type: ignore[index]
                if value.__class__ is list or value.__class__ is tuple:
                    address = self._list(value)
                else:
                    address = value.data_ptr()
                bits |= address
                words[i] = address
            i += 1
        return bits, i

    def _put_outputs(
        self,
        words: Any,
        args: Args,
        kwargs: Kwargs,
        made: list[Any],
        late: list[tuple[torch.Tensor, torch.Tensor]],
        bits: int,
        i: int,
    ) -> tuple[int, int]:
        """Makes what is new, appends every output's tensors to ``made`` and what is to be copied to ``late``."""
        for place, is_list, specs, _ in self.outputs:
            if place.__class__ is Shared:
                pick = self.plan.inputs[place.position]
                value = args[pick] if pick.__class__ is int else kwargs[pick]  # type: ignore[index]
                made.append(value if is_list else [value])
                if place.listed:
                    words[i] = words[place.position]
                    i += 1
                continue
            tensors = self._output(place, is_list, specs, args, kwargs, late)
            address = self._list(tensors) if is_list else tensors[0].data_ptr() if tensors else 0
            bits |= address
            words[i] = address
            made.append(tensors)
            i += 1
        return bits, i

    def _output(
        self,
        place: Any,
        is_list: bool,
        specs: Any,
        args: Args,
        kwargs: Kwargs,
        late: list[tuple[torch.Tensor, torch.Tensor]],
    ) -> list[torch.Tensor]:
        """One output's tensors: the caller's, or new ones."""
        given: list[torch.Tensor] = []
        if place.__class__ is Given:
            pick = place.pick
            value = args[pick] if pick.__class__ is int else kwargs[pick]  # type: ignore[index]
            given = list(value) if is_list else [value]
            self._check_form(given, specs)
            if not place.copied:
                return given
        tensors = [
            torch.empty_strided(shape, strides, dtype=dtype, device=self.device) for shape, strides, dtype in specs
        ]
        if given:
            late += zip(given, tensors, strict=True)
        return tensors

    def _fill(self, made: list[Any]) -> None:
        """What the definition says new outputs begin with."""
        for tensors, (_, _, _, fill) in zip(made, self.outputs, strict=True):
            if fill is not None:
                for tensor in tensors:
                    tensor.fill_(fill)

    def changed(self, args: Args, kwargs: Kwargs) -> list[torch.Tensor]:
        """The arguments such a call changes, lists opened."""
        return [t for pick in self.plan.changed for t in _tensors(args, kwargs, pick)]

    def unload(self) -> None:
        """Gives the binary back to the runtime; the launcher can't be called any more."""
        self._binary.unload()

    def _finish(self, args: Args, kwargs: Kwargs, late: list[tuple[torch.Tensor, torch.Tensor]]) -> None:
        """Copies results over the inputs they replace, and tells autograd what changed behind its back."""
        with torch._C._AutoDispatchBelowAutograd():
            for target, source in late:
                target.copy_(source)
        torch.autograd.graph.increment_version([t for t in self.changed(args, kwargs) if not t.is_inference()])

    def raise_elsewhere(self) -> None:
        raise UnfitError("the tensors are not on the current device.")

    def raise_misaligned(self) -> None:
        raise UnfitError(f"a tensor begins at an address that is not a multiple of {ALIGNMENT} bytes.")

    def check_lost(self, args: Args, kwargs: Kwargs) -> None:
        for pick in {*self.plan.inputs, *self.plan.changed} - {None}:
            faults.check(_tensors(args, kwargs, pick))

    def raise_failed(self, code: int, args: Args, kwargs: Kwargs) -> None:
        """Raises what a launch's error code means, for a call with these arguments."""
        faults.look()
        if self._acl.report().get("status") != code:  # the kernel never ran
            self._acl.fail(_LAUNCH, code)
        text = f"{self.entry.key.operator} {self.entry.case}: {self._acl.recent_message()}{self._place_of_fault()}"
        # What it read and was about to write in place is neither the old nor the new.
        faults.lose((t.untyped_storage() for pick in self.in_place for t in _tensors(args, kwargs, pick)), text)
        raise faults.KernelFault(text, code=code)

    def _place_of_fault(self) -> str:
        """Where this thread's last launch failed, as " at file:line (function)"; empty if that isn't known."""
        sites = [e["pc"] for e in self._acl.report().get("errors", ()) if e.get("pc") is not None]
        with tempfile.NamedTemporaryFile(suffix=".bin") as binary:
            binary.write(self.entry.binary)
            binary.flush()
            places = locate(Path(binary.name), sites[:1], self._acl.foreign)
        return "".join(f" at {place}" for place in places.values())

    def new_words(self) -> tuple[Any, int, Any]:
        """Space for one launch's parameters: the words, the address of pointers to them, and what keeps these alive."""
        words = (ctypes.c_void_p * self._count)()
        words[self._count - 1] = self._tiling.data_ptr()
        base = ctypes.addressof(words)
        pointers = (ctypes.c_void_p * self._count)(*(base + 8 * i for i in range(self._count)))
        return words, ctypes.addressof(pointers), pointers

    def system_area(self, stream: int) -> int:
        """The address that kernels without a workspace of their own get for one."""
        self.areas[stream] = system_area(self.index, stream)
        return self.areas[stream]

    @property
    def tiling_address(self) -> int:
        return self._tiling.data_ptr()

    def schedule(self, sample_at: int | None = None) -> None:
        """Has the call with number ``sample_at`` of this case sampled next (sampling.py). Where C++ serves, a call
        that comes to Python may have been handed over as due."""
        self.sample_at = self.sample_at if sample_at is None else sample_at
        self.due = self.sample_at if self.fast is None else 0
        if self.fast is not None:
            self.fast.due = self.sample_at - self.calls

    def put_off(self, calls: int) -> None:
        """No call is sampled now: the next so many aren't looked at."""
        self.due = self.calls + calls
        if self.fast is not None:
            self.fast.due = max(self.fast.due, self.fast.calls + calls)

    def served(self) -> int:
        """Calls served, in Python and in C++."""
        return self.calls + self.served_fast()

    def served_fast(self) -> int:
        return self.fast.calls if self.fast is not None else 0

    def _list(self, tensors: Any) -> int:
        """The address of a tensor list's descriptor block; kept, because lists of weights come again."""
        addresses = [t.data_ptr() for t in tensors]
        if any(a % ALIGNMENT for a in addresses):
            self.raise_misaligned()
        data = list_descriptor([tuple(t.shape) for t in tensors], addresses)
        block = self._descriptors.get(data)
        capturing = torch.npu.is_current_stream_capturing()  # type: ignore[attr-defined]
        if block is not None and capturing:
            self._captured.append(block)
        if block is None:
            if capturing:
                raise UnfitError(
                    "a tensor list's addresses would have to be copied to the device during graph capture."
                )
            if len(self._descriptors) >= _DESCRIPTORS:
                # A launch that is under way may still read the oldest; the allocator reuses it in the stream's order.
                self._descriptors.pop(next(iter(self._descriptors)), None)
            block = self._descriptors[data] = upload(data, self.device)
        return block.data_ptr()

    def _check_form(self, tensors: list[torch.Tensor], specs: list[Any]) -> None:
        for tensor, (shape, strides, dtype) in zip(tensors, specs, strict=True):
            if tensor.shape != shape or tensor.dtype != dtype or tensor.stride() != strides:
                wanted = f"{dtype}{list(shape)}"
                raise UnfitError(
                    f"a tensor to write into is {tensor.dtype}{list(tensor.shape)} with strides {tensor.stride()}, the "
                    f"operator gives contiguous {wanted}."
                )

    def _check_overlap(self, args: Args, kwargs: Kwargs) -> None:
        """Raises UnfitError if a tensor that the kernel changes shares memory with another argument."""
        changed = self.plan.changed
        for pick in changed:
            for other in {*self.plan.inputs, *changed} - {pick, None}:
                for tensor in _tensors(args, kwargs, pick):
                    begin, end = tensor.data_ptr(), tensor.data_ptr() + tensor.nbytes
                    for beside in _tensors(args, kwargs, other):
                        if begin < beside.data_ptr() + beside.nbytes and beside.data_ptr() < end:
                            raise UnfitError("a tensor that is written shares memory with another argument.")

    def _check_behind(self, args: Args, kwargs: Kwargs) -> None:
        """Raises UnfitError if a tensor of the caller's ends inside a block that a neighbour's bytes are in, too: pairs
        may write whole blocks."""
        for pick in self.written:
            for tensor in _tensors(args, kwargs, pick):
                end = tensor.storage_offset() * tensor.itemsize + tensor.nbytes
                if tensor.nbytes % ALIGNMENT and end < tensor.untyped_storage().nbytes():
                    raise UnfitError(
                        f"a tensor to write into is a view that ends inside a block of {ALIGNMENT} bytes, and its "
                        "storage goes on there."
                    )


def _tensors(args: Args, kwargs: Kwargs, pick: Pick | None) -> list[torch.Tensor]:
    value = args[pick] if isinstance(pick, int) else kwargs[pick]  # type: ignore[index]
    return list(value) if isinstance(value, (list, tuple)) else [value]


def _strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Of a contiguous tensor, as torch has them (an axis of length 0 counts as 1)."""
    out: list[int] = []
    step = 1
    for n in reversed(shape):
        out.append(step)
        step *= max(n, 1)
    return tuple(reversed(out))
