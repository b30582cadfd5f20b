#!/bin/sh
# The clock's constants, fitted to microbenchmarks on the device at hand. Without one the virtual NPU plays the device,
# which shows the way and proves nothing. --reduced: a few microbenchmarks of each kind; leave it out on a device.
set -eu

ascendopt-tune calibrate -o mine.toml --target virtual --reduced

# The chip file goes wherever a chip's name goes.
ascendopt-tune run add --chip mine.toml --input 'x=float16[8,2048]' --input 'y=float16[8,2048]'
