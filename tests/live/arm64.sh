#!/usr/bin/env bash
# The client on a Raspberry Pi's processor, emulated: installs from the wheel, starts, reports over
# gRPC and MQTT with mutual TLS, and scores; what it weighs is printed.
#
#   EMULATED="arm64_here.sh run" tests/live/arm64.sh [FOLDER]
#
# EMULATED runs a command in a Debian for arm64 with Python 3.11 and pip, with the current folder
# in view and 127.0.0.1 shared; with qemu-user and binfmt: a chroot. FOLDER keeps what was fetched
# and installed for the next time. PYTHON, here, has `submerge[aggregator,pki]` and `build`.
#
# Times there say nothing. Of memory two numbers are printed: what the emulator's process holds, its
# translations of every instruction included, and what of that is the program's own pages, which
# is still too much by the emulator's own lists. A bare Python stands beside the client.
set -euo pipefail
: "${EMULATED:?expected the command that runs another in an arm64 Debian}"
root=$(cd "$(dirname "$0")/../.." && pwd)
PYTHON=${PYTHON:-$root/.venv/bin/python}
SUBMERGE="$PYTHON -m submerge_operate"
folder=${1:-$(mktemp -d)}
mkdir -p "$folder" && cd "$folder"
rows=${ROWS:-3000} rate=${RATE:-100}
export OPENBLAS_NUM_THREADS=1
started=()
end() {
  for pid in ${started[@]+"${started[@]}"}; do kill "$pid" 2>/dev/null || true; done
  wait 2>/dev/null || true
}
trap end EXIT
say() { printf '\n== %s\n' "$*"; }
die() { printf 'FAILED: %s\n' "$*" >&2; exit 1; }
until_so() { # SECONDS WHAT COMMAND...
  local ends=$((SECONDS + $1)) what=$2
  shift 2
  until "$@" >/dev/null 2>&1; do
    [ $SECONDS -lt $ends ] || die "waited for $what"
    sleep 0.5
  done
}
port() {
  "$PYTHON" -c 'import socket
with socket.socket() as probe:
    probe.bind(("127.0.0.1", 0))
    print(probe.getsockname()[1])'
}
# The pump's last twenty rows are odd: their scores must stand out.
stand_out() {
  "$PYTHON" - "$1" <<'END'
import json, statistics, sys

spe = [json.loads(line)["spe"] for line in open(sys.argv[1])]
odd, usual = statistics.median(spe[-20:]), statistics.median(spe[:-20])
print(f"{len(spe)} rows scored; median SPE {usual:.3g}, of the last twenty {odd:.3g}")
sys.exit(0 if odd > 3 * usual else 1)
END
}

say "the wheel, and what it brings, for aarch64 and Python 3.11"
rm -rf dist && "$PYTHON" -m build --wheel --outdir dist "$root" >build.log 2>&1 ||
  die "build: $(tail -3 build.log)"
wheel=$(echo dist/submerge-*.whl)
mkdir -p wheels && rm -f wheels/submerge-*.whl
platforms=(--platform manylinux_2_28_aarch64 --platform manylinux_2_27_aarch64
  --platform manylinux_2_17_aarch64 --platform manylinux2014_aarch64)
"$PYTHON" -m pip download -q --only-binary=:all: --python-version 3.11 --implementation cp \
  "${platforms[@]}" -d wheels "${wheel}[client]" 2>pip.log || die "pip: $(tail -3 pip.log)"
(cd wheels && ls -lS --block-size=K ./*.whl) |
  awk '{n += $5; printf "%8s  %s\n", $5, $9} END {printf "%7dK  in all\n", n}'

say "pip install, there"
install="$EMULATED python3 -m pip install -q --root-user-action=ignore --no-index --target site"
stamp=$(cd wheels && ls -l ./*.whl | grep -v submerge- | cksum)
if [ "$(cat site/.stamp 2>/dev/null)" != "$stamp" ]; then
  rm -rf site
  $install --find-links wheels 'submerge[client]'
  echo "$stamp" >site/.stamp
else
  $install --no-deps --upgrade "$wheel"
fi
du -sm site | awk '{print $1 " MiB installed"}'
$EMULATED env PYTHONPATH=site python3 -m submerge_operate --version
$EMULATED python3 -c 'import platform; print(platform.machine(), platform.python_version())'

say "an authority, kits, a broker and a root, here"
[ -d pki ] || $SUBMERGE pki init >/dev/null
for node in root broker; do
  [ -e pki/kits/$node.kit ] || $SUBMERGE pki issue $node --host localhost --host 127.0.0.1
done
for node in pi-grpc pi-mqtt; do [ -e pki/kits/$node.kit ] || $SUBMERGE pki issue $node; done
grpc=$(port) mqtt=$(port)
mosquitto=$(command -v mosquitto || echo /usr/sbin/mosquitto)
cp "$root/deploy/mosquitto/acl" acl && chmod 600 acl
printf '%s\n' "listener $mqtt 127.0.0.1" "certfile $PWD/pki/kits/broker.kit" \
  "keyfile $PWD/pki/kits/broker.kit" "cafile $PWD/pki/kits/broker.kit" "tls_version tlsv1.2" \
  "require_certificate true" "use_identity_as_username true" "allow_anonymous false" \
  "acl_file $PWD/acl" "max_queued_messages 0" "user $(id -un)" >mosquitto.conf
"$mosquitto" -c mosquitto.conf >mosquitto.log 2>&1 &
started+=($!)
rm -f root.db*
cat >root.toml <<END
node = "root"
store = "root.db"
kit = "pki/kits/root.kit"
[listen.grpc]
address = "127.0.0.1:$grpc"
[listen.mqtt]
url = "mqtts://127.0.0.1:$mqtt"
[status]
address = ""
[timing]
model_every_s = 2.0
[advanced]
scaling_rows = 200
[groups.pumps.schema]
channels = ["flow", "pressure", "current", "temperature"]
lags = 4
scaling = "fleet"
END
until_so 10 "the broker" bash -c "</dev/tcp/127.0.0.1/$mqtt"
$SUBMERGE aggregator --config root.toml 2>root.log &
started+=($!)
until_so 30 "the root" grep -q serving root.log

client_toml() { # NODE URL
  cat <<END
kit = "pki/kits/$1.kit"
group = "pumps"
parent = "root"
state = "$1.state"
[uplink]
url = "$2"
[schema]
channels = ["flow", "pressure", "current", "temperature"]
lags = 4
scaling = "fleet"
[sensor]
kind = "ndjson"
[timing]
report_every_s = 2.0
[scores]
to = "stdout"
END
}
# MiB that a process holds, and those of the program that it emulates: not what can be executed
# here (the emulator, and what it has translated), and not the emulator's heap.
held() {
  "$PYTHON" - "$1" <<'END'
import sys

held = own = 0.0
skip = True
for line in open(f"/proc/{sys.argv[1]}/smaps"):
    first, *rest = line.split()
    if not first.endswith(":"):
        skip = "x" in rest[0] or (rest[4:] and ("qemu" in rest[4] or rest[4].startswith("[")))
    elif first == "Rss:":
        held += int(rest[0]) / 1024
        own += 0 if skip else int(rest[0]) / 1024
print(f"{held:.0f} MiB as the emulator's process, {own:.0f} as its own pages")
END
}
bare() {
  # shellcheck disable=SC2016
  $EMULATED sh -c 'echo $$ > bare.pid; exec python3 -c "import time; time.sleep(30)"' &
  started+=($!)
  until_so 20 "a bare Python" test -s bare.pid
  sleep 5
  say "a bare Python: $(held "$(cat bare.pid)")"
}
rm -f bare.pid && bare

for way in grpc mqtt; do
  node=pi-$way
  [ $way = grpc ] && url=grpcs://127.0.0.1:$grpc || url=mqtts://127.0.0.1:$mqtt
  say "$node over $url: $rows rows at $rate a second"
  rm -f $node.*
  client_toml $node $url >$node.toml
  # shellcheck disable=SC2016
  "$PYTHON" "$root/examples/pump.py" --rows "$rows" --rate "$rate" | $EMULATED sh -c '
    echo $$ > "$1.pid"
    exec env PYTHONPATH=site OPENBLAS_NUM_THREADS=1 python3 -m submerge_operate client \
      --config "$1.toml"' sh $node >$node.scores 2>$node.log &
  job=$!
  started+=($job)
  until_so 60 "its process" test -s $node.pid
  pid=$(cat $node.pid) last=
  while now=$(held "$pid" 2>/dev/null); do
    last=$now
    sleep 1
  done
  wait $job || die "the client: $(tail -3 $node.log)"
  grep -q 'waiting=0 lost=0' $node.log || die "not all arrived: $(tail -1 $node.log)"
  grep -E "reading|scoring|ended" $node.log
  tail -1 $node.scores
  stand_out $node.scores || die "the odd rows do not stand out"
  say "$node in its last second: $last"
done
$SUBMERGE nodes list --config root.toml

say "doctor, there"
sed -i 's/kind = "ndjson"/kind = "file"\npaths = ["rows.csv"]/' pi-grpc.toml
printf 'flow,pressure,current,temperature\n40,4.5,10,53\n' >rows.csv
$EMULATED env PYTHONPATH=site python3 -m submerge_operate doctor --config pi-grpc.toml
say "all of it done"
