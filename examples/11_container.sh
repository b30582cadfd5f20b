#!/bin/sh
# What `docker build` does with container/Dockerfile, without docker: a bundle in a folder that can't be written, and a
# program that is served from it. container/build.sh builds the image.
set -eu
here=$(dirname "$0")

# On the machine that builds.
ascendopt-tune prebuild "$here/container/manifest.toml" -o bundle --json > bundle.json
digest=$(sed -n 's/.*"digest": "\(.*\)".*/\1/p' bundle.json)
echo "sh $here/container/build.sh $digest"

# In the image: the variables that the Dockerfile sets, and an empty cache.
chmod -R a-w bundle
ASCENDOPT_CACHE_DIR="$PWD/empty" ASCENDOPT_CACHE_LAYERS="$PWD/bundle" ASCENDOPT_TRUST="$digest" ASCENDOPT_POLICY=lookup \
  python "$here/container/serve.py"
chmod -R u+w bundle
