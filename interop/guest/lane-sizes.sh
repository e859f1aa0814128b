# One client on each of four ELANs: whole packets of the largest size both ways, and TCP.
# whole HOST ADDRESS OWN SIZE: never fragmented, by the counts of this kernel and by the order not to
fragments() { awk '/^Ip:/ && $2 ~ /[0-9]/ { print $17 + $19 }' /proc/net/snmp; }
whole() {
  before=$(fragments)
  ping -c 10 -i 0.1 -s $4 $2 >/tmp/ping; tail -3 /tmp/ping; grep -q " 0% packet loss" /tmp/ping || return 1
  [ $(fragments) = $before ] || return 1
  host "exec $1 -- ping -c 10 -i 0.1 -M do -s $4 $3" >/tmp/inside; tail -3 /tmp/inside; grep -q " 0% packet loss" /tmp/inside; }
# joins NUMBER FRAME HOST OPTIONS...
joins() {
  i=$1; frame=$2; inside=$3; shift 3; mtu=$((frame-16)); net=10.1$i.0
  zeppelin -m ffff $@ -n s$frame -t $frame -e 00:20:EA:00:01:0$i -l $PREFIX.$ESI.0$i -i $i >/tmp/zeppelin$i.log 2>&1 &
  check "$frame: zeppelin joins the ELAN" waitfor 30 grep -q "Joined ELAN" /tmp/zeppelin$i.log
  grep -q "Joined ELAN" /tmp/zeppelin$i.log || return
  ifconfig lec$i $net.2 netmask 255.255.255.0 mtu $mtu up
  check "$frame: ping" waitfor 10 ping -c 1 -W 1 $net.1
  check "$frame: packets of $mtu octets in one piece" whole $inside $net.1 $net.2 $((mtu-28))
  check "$frame: a megabyte by TCP to the host inside" tcp_to $inside $net.1
  check "$frame: a megabyte by TCP from there" tcp_from $inside $net.2
  ifconfig lec$i | head -4; tail -3 /tmp/zeppelin$i.log; }
joins 1 1580 one -2
joins 2 4544 two -2
joins 3 9234 three
joins 4 18190 four -2
host inspect lane les
