# A customer's pppd: PPPoE over bridged PDUs, and PPPoA both ways, against the other guest (ppp-bras.sh); everything
# crosses a shaped VP of the DSLAM.
# up N PEER: session pppN is up, and its other end answers
up() { ifconfig ppp$1 2>/dev/null | grep -q "P-t-P:$2 " && ping -c 1 -W 1 $2; }
meet bras-is-there
nas 5 0 8.40
pppd plugin rp-pppoe.so nas5 unit 0 $PPP >/tmp/pppoe 2>&1 &
check "PPPoE: the session comes up" waitfor 30 up 0 10.67.15.1
check "PPPoE: 1492 octets in one piece" whole 10.67.15.1 1464
check "PPPoE: iperf3 both ways" iperf 10.67.15.1
for unit in 1 2; do
  case $unit in 1) how=vc-encaps; vc=8.41;; 2) how=llc-encaps; vc=8.42;; esac
  pppd plugin pppoatm.so $how $vc unit $unit 10.68.$unit.2:10.68.$unit.1 $PPP >/tmp/pppoa$unit 2>&1 &
  check "PPPoA, $how: the session comes up" waitfor 30 up $unit 10.68.$unit.1
  check "PPPoA, $how: 1500 octets in one piece" whole 10.68.$unit.1 1472
  check "PPPoA, $how: iperf3 both ways" iperf 10.68.$unit.1
done
# The line trains for three seconds, which is less than LCP's patience: no session ends, and each carries again.
host link retrain trunk 3s >/tmp/retrain; cat /tmp/retrain
sleep 1
silent() { for peer in 10.67.15.1 10.68.1.1 10.68.2.1; do ping -c 1 -W 1 $peer && return 1; done; return 0; }
check "no session carries while the line trains" silent
all_up() { up 0 10.67.15.1 && up 1 10.68.1.1 && up 2 10.68.2.1; }
check "all sessions carry after it" waitfor 15 all_up
lived() { ! grep -hE "terminated|Modem hangup|LCP down|Connection terminated" /tmp/pppoe /tmp/pppoa1 /tmp/pppoa2; }
check "they are the sessions from before" lived
cat /tmp/pppoe /tmp/pppoa1 /tmp/pppoa2
ifconfig
meet done
