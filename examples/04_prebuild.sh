#!/bin/sh
# Tuning ahead of a deployment: prebuild a bundle, ship it, and use it on another machine without tuning anything there.
set -eu
here=$(dirname "$0")

# On the machine that builds. A bundle is a folder, or an archive by its name.
ascendopt-tune prebuild "$here/prebuild.toml" -o bundle.tar.gz --json > bundle.json
digest=$(sed -n 's/.*"digest": "\(.*\)".*/\1/p' bundle.json)

# On the machine that serves (here: another, empty cache folder). The digest says which bundle is trusted.
ascendopt-tune cache unpack bundle.tar.gz bundle
export ASCENDOPT_CACHE_DIR="$PWD/other-machine" ASCENDOPT_CACHE_LAYERS="$PWD/bundle" ASCENDOPT_TRUST="$digest"
ascendopt-tune cache list

# A shape that was not prebuilt misses, and explain says in what it differs from the closest result.
ascendopt-tune cache explain rms_norm --input 'x=float16[32,1024]' --input 'gamma=float16[1024]' --attr epsilon=1e-5

# Whoever doesn't trust a bundle can have it rebuilt: every result is compiled from its sources, checked and measured here.
export ASCENDOPT_CACHE_LAYERS="" ASCENDOPT_TRUST=""
ascendopt-tune cache import bundle
ascendopt-tune cache verify
