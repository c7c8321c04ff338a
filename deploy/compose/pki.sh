#!/bin/sh
# The pki service of docker-compose.yml: makes missing kits, renews those that expire soon, and
# puts each kit where its service finds it. It may run as often as you like.
set -eu
umask 077

[ -e /pki/ca.pem ] || submerge pki init --dir /pki --fleet compose
submerge kits /etc/submerge/nodes.csv --dir /pki
submerge pki renew --dir /pki --all --within 30d >/dev/null

# Replace the file at once: a reader gets either the old kit or the new one.
lay() {
  cp "/pki/kits/$1.kit" "/kits/$2/.$1.kit"
  # Mosquitto runs as another user, and is in this group only.
  [ "$1" != broker ] || { chgrp 1883 "/kits/$2/.$1.kit" && chmod 0640 "/kits/$2/.$1.kit"; }
  mv "/kits/$2/.$1.kit" "/kits/$2/$1.kit"
}

tail -n +2 /etc/submerge/nodes.csv | while IFS=, read -r node hosts service; do
  lay "$node" "$service"
done
