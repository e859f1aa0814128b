# Classical IP: this host is a client of the lab's ATMARP server, then the server of a client inside; then a PVC.
atmarpd -b -l /tmp/arpd.log
atmarp -c atm0; atmarp -c atm1; atmarp -c atm2
ifconfig atm0 10.5.0.2 netmask 255.255.255.0 mtu 9180 up
ifconfig atm1 10.6.0.2 netmask 255.255.255.0 mtu 9180 up
ifconfig atm2 10.7.0.2 netmask 255.255.255.0 mtu 9180 up
host inspect one clip >/tmp/one
server=$(awk '$2 == "10.5.0.1" { print $3; exit }' /tmp/one); echo "the server inside: $server"
atmarp -s 10.5.0.0 $server arpsrv
# 9152 octets of data, 8 of ICMP and 20 of IP: the largest packet, in one piece.
pings() { ping -c 10 -i 0.1 -s $2 $1 >/tmp/ping; tail -3 /tmp/ping; grep -q " 0% packet loss" /tmp/ping; }
fragments() { awk '/^Ip:/ && $2 ~ /[0-9]/ { print $17 + $19 }' /proc/net/snmp; }
whole() { before=$(fragments); pings $1 9152 || return 1; [ $(fragments) = $before ]; }
# TCP, a megabyte each way; nc ends when either side does, so its input has to stay open. tcp HOST ITS_ADDRESS OWN_ADDRESS
head -c 1000000 /dev/urandom >/tmp/sent; sum=$(md5sum </tmp/sent)
tcp() {
  host "exec $1 -- sh -c 'sleep 8 | busybox nc -l -p 49777 | md5sum'" >/tmp/sum & p=$!
  sleep 2; nc $2 49777 </tmp/sent >/dev/null; wait $p; cat /tmp/sum; [ "$(head -1 /tmp/sum)" = "$sum" ] || return 1
  sleep 10 | nc -l -p 49778 >/tmp/got & p=$!
  sleep 1; host "exec $1 -- sh -c 'head -c 1000000 /dev/zero | busybox nc $3 49778'"
  n=20; while [ $n -gt 0 ] && [ $(wc -c </tmp/got) != 1000000 ]; do usleep 200000; n=$((n-1)); done
  [ $(wc -c </tmp/got) = 1000000 ]; }
check "client: the server answers" waitfor 20 ping -c 1 -W 1 10.5.0.1
check "client: pings" pings 10.5.0.1 56
check "client: 9180 octets in one piece" whole 10.5.0.1
check "client: TCP both ways" tcp one 10.5.0.1 10.5.0.2
atmarp -a; host inspect one clip >/tmp/one; cat /tmp/one
check "client: the server inside knows us" grep -qi "^10.5.0.2 .*0020ea0000b0.* known" /tmp/one
refused() { host "exec four -- ping -c 3 10.5.0.2" >/tmp/four; grep -q " 0% packet loss" /tmp/four || return 1
  host inspect four clip >/tmp/four; cat /tmp/four; grep -q "^calls_failed  *1$" /tmp/four; }
check "VC multiplexing is refused, LLC/SNAP taken" refused
registered() { host inspect two clip >/tmp/two; grep -q "10.6.0.1 .* no  *yes" /tmp/two; }
check "server: the client inside registers" waitfor 30 registered
check "server: pings" waitfor 10 pings 10.6.0.1 56
check "server: 9180 octets in one piece" whole 10.6.0.1
check "server: TCP both ways" tcp two 10.6.0.1 10.6.0.2
cat /tmp/two
atmarp -s 10.7.0.1 0.0.120
check "PVC: pings" waitfor 20 pings 10.7.0.1 56
check "PVC: 9180 octets in one piece" whole 10.7.0.1
check "PVC: TCP both ways" tcp three 10.7.0.1 10.7.0.2
inside() { host "exec three -- ping -c 5 -i 0.2 -M do -s 9152 10.7.0.2" >/tmp/inside; tail -3 /tmp/inside; grep -q " 0% packet loss" /tmp/inside; }
check "PVC: 9180 octets from the host inside, never fragmented" inside
atmarp -a; host inspect three clip
# The tools of the same names: what aerostat says has no line of a shape that Linux' has not.
shape() { sed -r 's/47\.[0-9A-F.]+/ATM/g; s/[0-9]+\.[0-9]+\.[0-9]+\.[0-9]+/IP/g; s/Itf [0-9]+/Itf N/; s/[0-9]+\.0\.[0-9]+$/PVC/
  s/buffer: [0-9]+/buffer: N/; s/0x[0-9a-f]+<[A-Z,]*>/FLAGS/; s/addr <none>/addr ATM/; s/\((act|pass)ive\)/(SIDE)/; s/max_pcr=[0-9]+,//'; }
same_shape() { atmarp -a | shape >/tmp/theirs; { host atmarp -a one; host atmarp -a three; } | shape >/tmp/ours; cat /tmp/ours
  [ $(wc -l </tmp/ours) -ge 15 ] && ! grep -vxFf /tmp/theirs /tmp/ours; }
check "atmarp -a looks as Linux' does" same_shape
same_tools() { [ "$(atmdiag | head -1)" = "$(host atmdiag one | head -1)" ] && [ "$(atmdiag | wc -l)" = "$(host atmdiag one | wc -l)" ] || return 1
  host atmaddr -n one >/tmp/addr; cat /tmp/addr; atmarp -a | grep -qF "addr $(cat /tmp/addr), "; }
check "atmdiag and atmaddr -n look as Linux' do" same_tools
cat /tmp/arpd.log | tail -30
