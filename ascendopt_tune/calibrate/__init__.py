"""A chip file from the device at hand: microbenchmarks timed by events, and the constants that explain the times.

In order of processing:

1. ``microbenchmarks.py`` and ``kernels/``: what is run, each to show a few constants; kernels of this project's own.
2. ``measure.py``: compiles, loads, launches and times them through CANN's interface, on whatever device answers.
3. ``model.py``: the same sources once on the virtual NPU; their traces are timed again under other constants.
4. ``fit.py``: robust least squares over replays; which constants the benchmarks determine, and how well.
5. ``write.py``: the chip file, with residuals and intervals.

``calibration.py`` goes through them; ``played.py`` is a device to try them on, which the virtual NPU plays.
"""
