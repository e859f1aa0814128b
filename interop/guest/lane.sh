# A LANE client joins the lab's ELAN and talks to a Linux kernel inside, 10.8.0.1: as version 1 and 2, through the LECS at its
# well-known address, and by the address of the LES alone.
host inspect inside lec >/tmp/lec
LES=$(awk '$1 == "lec0" { print $9; exit }' /tmp/lec); echo "the LES inside: $LES"
pings() { ping -c 10 -i 0.1 -s $1 10.8.0.1 >/tmp/ping; tail -3 /tmp/ping; grep -q " 0% packet loss" /tmp/ping; }
inside() { host "exec inside -- ping -c 10 -i 0.1 -s 1472 10.8.0.2" >/tmp/inside; tail -3 /tmp/inside; grep -q " 0% packet loss" /tmp/inside; }
direct() { cat /proc/net/atm/lec; grep -qi "02:a7:03.*FORWARD_DIRECT" /proc/net/atm/lec; }
# Our LES lists its clients: LECID, address, state, version 2 or not.
version() { host inspect lane les >/tmp/les; grep -i "$(echo $ESI).00 " /tmp/les; grep -i "$(echo $ESI).00 .*joined  *$1 " /tmp/les >/dev/null; }
gone() { host inspect lane les >/tmp/les; ! grep -qi "$(echo $ESI)" /tmp/les; }
# joins NAME V2 OPTIONS...
joins() {
  name=$1; v2=$2; shift 2; rm -f /tmp/zeppelin.log
  zeppelin -m ffff $@ -l $OWN -i 0 >/tmp/zeppelin.log 2>&1 & zeppelin=$!
  check "$name: zeppelin joins the ELAN" waitfor 30 grep -q "Joined ELAN" /tmp/zeppelin.log
  ifconfig lec0 10.8.0.2 netmask 255.255.255.0 up
  check "$name: the LES knows its version" version $v2
  check "$name: ping" waitfor 10 ping -c 1 -W 1 10.8.0.1
  check "$name: pings of 64 octets" pings 56
  check "$name: pings of 1500 octets" pings 1472
  check "$name: the data direct connection is in use" direct
  check "$name: pings from the host inside" inside
  check "$name: a megabyte by TCP to the host inside" tcp_to inside 10.8.0.1
  check "$name: a megabyte by TCP from there" tcp_from inside 10.8.0.2
  kill $zeppelin; waitfor 10 gone; ifconfig lec0 down; }
joins "v2, LECS" yes -2
joins "v1, LECS" no
joins "v2, LES" yes -2 -s $LES
joins "v1, LES" no -s $LES
