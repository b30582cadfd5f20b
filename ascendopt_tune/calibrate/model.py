"""The microbenchmarks on the virtual NPU: each is executed once, and timed again under as many clocks as it takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..device.acl import Acl
from .measure import Loaded
from .microbenchmarks import Microbenchmark

Clock = Mapping[str, float]


class Models:
    """Traces of microbenchmarks, from a chip whose facts (cores, sizes) are those of the device.

    A context manager: the traces are kept until its end.

    Args:
        chip: a chip's name, or a chip file.

    Raises:
        DeviceError: a kernel of ours failed; it names the launch.
    """

    def __init__(self, acl: Acl, chip: str, benchmarks: Sequence[Microbenchmark]) -> None:
        self._acl = acl
        self._kept: dict[str, int] = {}
        try:
            with Loaded(acl) as loaded:
                for one in benchmarks:
                    with acl.with_options(chip=chip, hazards=False, state=one.state):
                        loaded.launch(one, loaded.function(one))
                    acl.synchronize()
                    self._kept[one.name] = acl.keep_replay()
        except BaseException:
            self.close()
            raise

    def times_us(self, name: str, clocks: Sequence[Clock]) -> list[float]:
        """Modelled times of one microbenchmark under each of the clocks."""
        return self._acl.replay(clocks, self._kept[name])

    def close(self) -> None:
        """Frees the traces."""
        while self._kept:
            self._acl.release_replay(self._kept.popitem()[1])

    def __enter__(self) -> Models:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
