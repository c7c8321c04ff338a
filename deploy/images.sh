#!/usr/bin/env bash
# The three images of a commit, labelled; each must hold what its SBOM in dist/ lists, and no more.
#
#   make release && deploy/images.sh          writes dist/IMAGES: names, and digests of what was built
#
# PYTHON_IMAGE is the base, by its digest for a release (docs/upgrading.md). A registry's digest
# differs: it is known when an image is pushed.
set -euo pipefail
cd "$(dirname "$0")/.."
base=${PYTHON_IMAGE:-python:3.12-slim}
version=$(sed -n 's/^__version__ = "\(.*\)"/\1/p' core/submerge/__init__.py)
label=org.opencontainers.image
: >dist/IMAGES.new
for name in client aggregator pki; do
  file=aggregator/Dockerfile
  [ $name = client ] && file=client/Dockerfile
  tag=submerge-$name:$version
  docker build --quiet --file $file --build-arg PYTHON="$base" --build-arg EXTRAS=$name \
    --label $label.title="submerge-$name" --label $label.version="$version" \
    --label $label.revision="$(git rev-parse HEAD)" \
    --label $label.created="$(TZ=UTC git log -1 --format=%cd --date=format-local:%Y-%m-%dT%H:%M:%SZ)" \
    --label $label.base.name="$base" --label $label.licenses=Apache-2.0 --tag "$tag" . >/dev/null
  docker run --rm --interactive --network none --entrypoint python "$tag" -c '
import importlib.metadata, json, sys
here = [each for each in sys.path if each.startswith("/opt/submerge")]
held = {(each.name, each.version) for each in importlib.metadata.distributions(path=here)}
listed = {(each["name"], each["version"]) for each in json.load(sys.stdin)["components"]}
sys.exit(None if held == listed else f"expected what the SBOM lists, got {held ^ listed}")' \
    <"dist/submerge-image-$name-$version.cdx.json"
  echo "$tag $(docker image inspect --format '{{.Id}}' "$tag")" | tee -a dist/IMAGES.new
done
mv dist/IMAGES.new dist/IMAGES
