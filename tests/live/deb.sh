#!/usr/bin/env bash
# A Debian package of the client, in a clean container: installed, run, and removed again.
#
#   tests/live/deb.sh dist/submerge-client_0.7.0+deb12_amd64.deb [IMAGE]
#
# IMAGE is a Debian of the package's kind (default: debian:bookworm-slim), also one for arm64 where
# the engine can run it. PYTHON, here, has `submerge[aggregator,pki]`. Ends with "deb: OK".
set -euo pipefail
deb=$(readlink -f "${1:?expected a package}")
image=${2:-debian:bookworm-slim}
root=$(cd "$(dirname "$0")/../.." && pwd)
PYTHON=${PYTHON:-$root/.venv/bin/python}
SUBMERGE="$PYTHON -m submerge_operate"
rows=${ROWS:-500} box=submerge-deb-$$
folder=$(mktemp -d)
cd "$folder"
aggregator=
end() {
  [ -z "$aggregator" ] || { kill "$aggregator"; wait "$aggregator" || true; }
  docker rm --force "$box" >/dev/null
  rm -rf "$folder"
}
trap end EXIT
say() { printf '%4d s  %s\n' "$SECONDS" "$*"; }
fail() { say "WRONG: $*"; exit 1; }
inside() { docker exec -i "$box" "$@"; }

docker run --detach --network host --name "$box" "$image" sleep 3600 >/dev/null
docker cp -q "$deb" "$box:/tmp/client.deb"
inside sh -ec 'export DEBIAN_FRONTEND=noninteractive
  apt-get -qq update && apt-get -qq install --no-install-recommends systemd /tmp/client.deb' \
  >apt.log 2>&1 || { cat apt.log; fail "not installed"; }
say "installed: $(inside submerge --version), $(inside uname -m), $(inside du -sm /opt/submerge | cut -f1) MiB"

inside /opt/submerge/bin/python3 -I -c '
import importlib.metadata, json
packages = {(each.name, each.version) for each in importlib.metadata.distributions()}
listed = json.load(open("/opt/submerge/sbom.cdx.json"))["components"]
assert packages == {(each["name"], each["version"]) for each in listed}, packages
print(f"        the SBOM lists these {len(packages)} packages, and no others")'
inside systemd-analyze verify --man=no submerge-client.service || fail "the unit"
# Slim images leave out what is below /usr/share/doc.
inside dpkg --verify submerge-client | grep -v '^missing .*/usr/share/doc' && fail "changed files"

port=$("$PYTHON" -c 'import socket
with socket.socket() as probe:
    probe.bind(("127.0.0.1", 0))
    print(probe.getsockname()[1])')
$SUBMERGE pki init >/dev/null
$SUBMERGE pki issue root --host 127.0.0.1 >/dev/null
$SUBMERGE pki issue pi-01 >/dev/null
schema='channels = ["flow", "pressure", "current", "temperature"]
scaling = "fleet"'
cat >root.toml <<END
node = "root"
store = "root.db"
kit = "pki/kits/root.kit"
[listen.grpc]
address = "127.0.0.1:$port"
[status]
address = ""
[advanced]
scaling_rows = 200
[groups.pumps.schema]
$schema
END
cat >client.toml <<END
group = "pumps"
parent = "root"
state = "node.state"
[uplink]
url = "grpcs://127.0.0.1:$port"
[schema]
$schema
[sensor]
kind = "ndjson"
[timing]
report_every_s = 2.0
END
$SUBMERGE aggregator --config root.toml 2>root.log &
aggregator=$!
until grep -q serving root.log; do kill -0 "$aggregator" || { cat root.log; fail "no root"; }; sleep 0.2; done
docker cp -q client.toml "$box:/etc/submerge/client.toml"
docker cp -q pki/kits/pi-01.kit "$box:/etc/submerge/node.kit"
"$PYTHON" "$root/examples/pump.py" --rows "$rows" --rate 200 | inside sh -c \
  'cd /var/lib && SUBMERGE__KIT=/etc/submerge/node.kit exec submerge client --config /etc/submerge/client.toml' \
  >scores 2>client.log || { cat client.log; fail "the client"; }
tail -n 1 client.log
held=$($SUBMERGE nodes list --json --config root.toml | "$PYTHON" -c '
import json, sys
parts = [part for each in json.load(sys.stdin) for part in each["rows"] + each["sealed"]]
print(sum(part[kind] for part in parts for kind in ("learnt", "withheld", "lost")))')
[ "$held" = "$rows" ] || fail "the root holds $held of $rows rows"
say "the root holds all $rows rows"

inside apt-get -qq purge -y submerge-client >/dev/null 2>&1 || fail "not removed"
inside sh -c '! [ -e /opt/submerge ] && ! [ -e /usr/bin/submerge ] && [ -e /etc/submerge/node.kit ]' ||
  fail "not all is gone, or what is the operator's is"
say "deb: OK"
