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
cat /tmp/pppoe /tmp/pppoa1 /tmp/pppoa2
ifconfig
meet done
