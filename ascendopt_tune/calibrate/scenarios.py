"""The fidelity kernels on the device at hand, timed by events: ``python -m ascendopt_tune.calibrate.scenarios``.

Prints one JSON document: the microseconds of a launch by scenario, and why a scenario was left out. What a model says
to the same scenarios is in ``ascendopt-tune fidelity --json --chip FILE``.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict

from ..build import toolkit as toolkits
from ..device.acl import Acl
from ..errors import AscendOptError
from ..fidelity import runner, table
from ..fidelity.table import Scenario
from .measure import Loaded, Measured, Stopwatch, summary
from .measuring import chip_of

_SAMPLES, _LAUNCHES = 30, 3


def _timed(acl: Acl, watch: Stopwatch, scenario: Scenario, samples: int) -> Measured:
    binary = runner.compiled(acl, scenario)
    with runner.arguments(acl, scenario) as buffers, acl.load(binary) as loaded:
        function = loaded.function(scenario.kernel)

        def launch(stream: int) -> None:
            acl.launch(function, scenario.blocks, buffers, stream)

        flushed = scenario.state == "flushed"
        launches = 1 if acl.virtual or flushed else _LAUNCHES
        with acl.with_options(state=scenario.state):
            watch.timed(launch, 1)  # once to warm up
            found = [watch.timed(launch, launches, flushed) for _ in range(samples)]
    return summary(scenario.name, "", found)


def _main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--target", default="auto")
    options.add_argument("--chip")
    options.add_argument("names", nargs="*")
    given = options.parse_args()
    acl = Acl(toolkits.find(given.target))
    chip = chip_of(acl, given.chip)
    cores = int(chip.values["core.aiv"])
    times, left_out = {}, {}
    with Loaded(acl) as loaded:
        watch = Stopwatch(loaded, chip)
        for scenario in table.chosen(given.names, slow=False):
            if scenario.state == "cold" or scenario.blocks > cores:
                first = scenario.state == "cold"
                left_out[scenario.name] = "a first launch" if first else f"needs {scenario.blocks} cores"
                continue
            try:
                times[scenario.name] = asdict(_timed(acl, watch, scenario, 1 if acl.virtual else _SAMPLES))
            except AscendOptError as error:
                left_out[scenario.name] = error.message
        watch.close()
    time = "modelled" if acl.virtual else "measured"
    print(json.dumps({"time": time, "chip": chip.name, "scenarios": times, "left_out": left_out}))


if __name__ == "__main__":
    _main()
