#!/usr/bin/env bash
# docker-compose.yml, really run: brought up, cut, killed and restarted, and every reading counted.
#
#   tests/live/compose.sh              some eight minutes; ends with "compose: OK", or what is wrong
#   PARTITION=path/to/tool tests/live/compose.sh
#
# PARTITION names a tool that cuts a container off, `TOOL partition CONTAINER` and `TOOL heal
# CONTAINER`; without one it is taken from its network and put back. Killing a container's process
# needs a right to do so: run it as root where the engine does. It uses a project and volumes of
# its own, and takes them down whatever happens.
set -euo pipefail
cd "$(dirname "$0")/../.."
export COMPOSE_PROJECT_NAME=submerge-live-$$
CUT_S=${CUT_S:-60}
CHILDREN="crowd-north crowd-south host-north host-south"
TABLE=$(mktemp)

say() { printf '%4d s  %s\n' "$SECONDS" "$*"; }
fail() {
  say "WRONG: $*"; docker compose ps -a; docker compose logs --tail 20 2>&1 | tail -120
  exit 1
}
trap 'docker compose down --volumes --timeout 5 >/dev/null 2>&1; rm -f "$TABLE"' EXIT
container() { docker compose ps -aq "$1"; }
row() { printf '%-42s %10s %11s %12s %10s\n' "$@" | tee -a "$TABLE"; }

# What an aggregator holds: readings learnt, withheld and lost, of one child or of all of a group.
held() { # AGGREGATOR GROUP [NODE]
  docker compose exec -T "$1" submerge nodes list --json --group "$2" \
    --config /etc/submerge/aggregator.toml 2>/dev/null | python3 -c '
import json, sys
nodes = [each for each in json.load(sys.stdin) if each["node"] in (sys.argv[1:] or [each["node"]])]
parts = [part for each in nodes for part in each["rows"] + each["sealed"]]
print(sum(part[kind] for part in parts for kind in ("learnt", "withheld", "lost")))' "${@:3}" \
    || echo -1
}
lives() { # AGGREGATOR GROUP NODE: its incarnations
  docker compose exec -T "$1" submerge nodes list --json --group "$2" \
    --config /etc/submerge/aggregator.toml | python3 -c '
import json, sys
print(*[row["incarnation"] for each in json.load(sys.stdin) for row in each["rows"]
        if each["node"] == sys.argv[1]])' "$3"
}
# What a client says: rows that it has scored go to its standard output, its log to the other.
read_by() { docker logs "$(container "$1")" 2>/dev/null | tail -1 | python3 -c '
import json, sys
print(json.loads(sys.stdin.readline() or "{\"row\": -1}")["row"] + 1)'; }
acknowledged() { docker logs "$(container "$1")" 2>&1 >/dev/null | grep '"acknowledged"' | tail -1 \
  | python3 -c '
import json, sys
print(json.loads(sys.stdin.readline() or "{\"readings\": 0}")["readings"])'; }

until_s() { # SECONDS WHAT COMMAND...: wait for it
  local ends=$((SECONDS + $1)) what=$2
  until "${@:3}"; do
    [ "$SECONDS" -lt "$ends" ] || fail "waited $1 s for $what"
    sleep 0.5
  done
}
now() { date +%s.%N; }
since() { python3 -c 'import sys, time; print(f"{time.time() - float(sys.argv[1]):.1f}")' "$1"; }
holds() { [ "$(held "$1" "$2" "${@:4}")" -ge "$3" ]; } # AGGREGATOR GROUP READINGS [NODE]
inspect() { docker inspect -f "{{.State.$2}}" "$(container "$1")"; }
is_healthy() { [ "$(inspect "$1" Health.Status)" = healthy ]; }
scores() { [ "$(read_by "$1")" -gt 0 ]; }
all_score() { docker logs "$(container "$1")" 2>/dev/null | tail -1 | grep -q '"scoring": 4'; }

cut() { # SERVICE: its network is gone
  local who; who=$(container "$1")
  if [ -n "${PARTITION:-}" ]; then "$PARTITION" partition "$who" >/dev/null
  else docker network disconnect "${COMPOSE_PROJECT_NAME}_${1#host-}" "$who"; fi
}
heal() {
  local who; who=$(container "$1")
  if [ -n "${PARTITION:-}" ]; then "$PARTITION" heal "$who" >/dev/null
  else docker network connect --alias "$1" "${COMPOSE_PROJECT_NAME}_${1#host-}" "$who"; fi
}
kill_9() { kill -9 "$(inspect "$1" Pid)"; }

# A disturbance, and how long it is until its child's readings are counted again.
strike() { # WHAT SERVICE AGGREGATOR GROUP CHILD HOW...
  local what=$1 service=$2 aggregator=$3 group=$4 child=$5 before after known began healthy
  before=$(held "$aggregator" "$group" "$child"); known=$(lives "$aggregator" "$group" "$child")
  began=$(now); "${@:6}"
  until_s 120 "$service to be healthy again" is_healthy "$service"
  healthy=$(since "$began")
  until_s 30 "$aggregator to answer" holds "$aggregator" "$group" 0
  after=$(held "$aggregator" "$group" "$child")
  [ "$after" -ge "$before" ] || fail "$what: $before were held, $after are"
  until_s 180 "$child to be counted again" holds "$aggregator" "$group" $((after + 1)) "$child"
  [ "$known" = "$(lives "$aggregator" "$group" "$child")" ] \
    || fail "$what: $child began another life"
  row "$what" "$healthy s" "$(since "$began") s" "$before" "$(held "$aggregator" "$group" "$child")"
}

say "docker compose up --build --wait"
began=$(now)
docker compose --progress quiet up --build --wait || fail "it did not come up"
UP="$(since "$began") s"
docker compose ps --format '{{.Service}} {{.Status}}' | grep -v '(healthy)' \
  && fail "not all are healthy"
docker image ls --format '{{.Repository}} {{.Size}}' | grep '^submerge-' || true
row "what" "healthy" "counted on" "held before" "held then"
row "up --build --wait" "$UP" - - -

say "all kits are renewed, and nobody is restarted: who connects from here on shows the new one"
docker compose --progress quiet run --rm --entrypoint submerge pki \
  pki renew --all --within 3650d --dir /pki >/dev/null
docker compose --progress quiet run --rm pki >/dev/null 2>&1
docker compose --progress quiet kill --signal HUP broker

say "until everybody scores"
for each in host-north host-south; do until_s 180 "scores of $each" scores "$each"; done
for each in crowd-north crowd-south; do until_s 180 "scores of $each" all_score "$each"; done

say "host-north and host-south are cut off for $CUT_S s"
for side in north south; do
  declare "acked_$side=$(acknowledged "host-$side")"
  cut "host-$side"
  declare "read_$side=$(read_by "host-$side")"
done
sleep 5 # what was on its way has arrived
for side in north south; do declare "held_$side=$(held $side hosts "host-$side")"; done
sleep $((CUT_S - 5))
for side in north south; do
  child=host-$side acked=acked_$side held=held_$side read=read_$side
  [ "$(held $side hosts "$child")" = "${!held}" ] || fail "$child was heard while it was cut off"
  [ "${!held}" -ge "${!acked}" ] || fail "$child: ${!acked} acknowledged, ${!held} held"
  [ "$(read_by "$child")" -ge $((${!read} + CUT_S / 2)) ] || fail "$child did not read on"
done
for side in north south; do
  child=host-$side acked=acked_$side
  goal=$(read_by "$child"); began=$(now); heal "$child"
  until_s 180 "what $child read while it was cut off" holds $side hosts "$goal" "$child"
  [ "$(lives $side hosts "$child" | wc -w)" = 1 ] || fail "$child began another life"
  row "$child cut off for $CUT_S s" - "$(since "$began") s" \
    "${!acked}" "$(held $side hosts "$child")"
done

strike "kill -9 of north" north north hosts host-north kill_9 north
strike "kill -9 of south" south south hosts host-south kill_9 south
strike "kill -9 of the root" root root hosts north kill_9 root
strike "the broker restarted" broker south hosts host-south \
  docker compose --progress quiet restart --timeout 5 broker
strike "kill -9 of the broker" broker south hosts host-south kill_9 broker

say "everybody is told to end, and all that was read must be in the root"
# shellcheck disable=SC2086
docker compose --progress quiet stop $CHILDREN
for child in $CHILDREN; do
  [ "$(inspect "$child" ExitCode)" = 0 ] || fail "$child did not end well"
done
fed_hosts=0 fed_room=0
for side in north south; do
  rows=$(docker logs "$(container "host-$side")" 2>&1 >/dev/null | grep '"ended"' | python3 -c '
import json, sys
print(json.loads(sys.stdin.readline())["rows"])')
  fed_hosts=$((fed_hosts + rows))
  rows=$(docker logs "$(container "crowd-$side")" 2>/dev/null | tail -1 | python3 -c '
import json, sys
facts = json.loads(sys.stdin.readline())
assert not facts["unreported"], facts
print(facts["rows"])')
  fed_room=$((fed_room + rows))
done
began=$(now)
for group in hosts room; do
  fed=fed_$group
  until_s 90 "$group: ${!fed} readings in the root" holds root $group "${!fed}"
  [ "$(held root $group)" = "${!fed}" ] || fail "$group: ${!fed} fed, $(held root $group) counted"
  row "$group: fed, and in the root" - "$(since "$began") s" "${!fed}" "$(held root $group)"
done
docker compose exec -T root submerge nodes list --config /etc/submerge/aggregator.toml
echo; cat "$TABLE"; echo "compose: OK"
