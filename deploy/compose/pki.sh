#!/bin/sh
# The pki service of docker-compose.yml: makes missing kits, renews those that expire soon or whose
# role, groups or hosts have changed in nodes.csv, and puts each kit where its service finds it. The
# broker gets its rules and the list of revoked certificates, too (send it SIGHUP), and aggregators
# what nodes may do, and who is revoked. It may run as often as you like.
set -eu
umask 077

[ -e /pki/ca.pem ] || submerge pki init --dir /pki --fleet compose
submerge pki kits /etc/submerge/nodes.csv --dir /pki --renew
submerge pki renew --dir /pki --all --within 30d >/dev/null
# In a volume from before there was a list of revoked certificates; else the same again.
submerge pki revoke --dir /pki >/dev/null
submerge pki acl --dir /pki --out /pki/acl --roster /pki/roster.csv

# Replace the file at once: a reader gets either the old one or the new one.
lay() { # FILE SERVICE NAME
  cp "$1" "/kits/$2/.$3"
  # Mosquitto runs as another user, and is in this group only.
  [ "$2" != broker ] || { chgrp 1883 "/kits/$2/.$3" && chmod 0640 "/kits/$2/.$3"; }
  mv "/kits/$2/.$3" "/kits/$2/$3"
}

tail -n +2 /etc/submerge/nodes.csv | while IFS=, read -r node hosts role groups service; do
  # A revoked node has no kit.
  [ ! -e "/pki/kits/$node.kit" ] || lay "/pki/kits/$node.kit" "$service" "$node.kit"
done
for aggregator in root north south; do
  lay /pki/roster.csv "$aggregator" roster.csv
  lay /pki/revoked "$aggregator" revoked
done
lay /pki/acl broker acl
lay /pki/crl.pem broker crl.pem
