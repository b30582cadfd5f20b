#!/bin/sh
# Builds the image of the Dockerfile beside this, with docker or buildah, and runs it once.
#   sh build.sh DIGEST        ./bundle is what `prebuild` made, DIGEST what it printed
# BASE names another base image; BUILD and RUN have more options for the tool. Exit code 3: neither tool is here, 4: the
# base image can't be had.
set -eu
here=$(dirname "$0")
base=${BASE:-debian:bookworm-slim}
if docker info > /dev/null 2>&1; then tool=docker
elif command -v buildah > /dev/null; then tool=buildah
else echo "neither docker (with its daemon) nor buildah is here" >&2; exit 3
fi
if ! $tool inspect --type image "$base" > /dev/null 2>&1 && ! $tool pull "$base" > /dev/null 2>&1; then
  echo "the base image $base can't be had" >&2; exit 4
fi

rm -rf image
mkdir -p image/wheels
pip wheel --quiet --no-deps --wheel-dir image/wheels "$here/../.."
cp -r bundle "$here/Dockerfile" "$here/serve.py" "$here/../../constraints.txt" image/
$tool build --build-arg "BASE=$base" --build-arg "BUNDLE=$1" ${BUILD:-} -t my-model image

if [ $tool = docker ]; then
  docker run --rm ${RUN:-} my-model
else
  container=$(buildah from my-model)
  buildah run ${RUN:-} "$container" -- python /srv/serve.py || { buildah rm "$container" > /dev/null; exit 1; }
  buildah rm "$container" > /dev/null
fi
