# A customer of DSL: br2684ctl with LLC and VC multiplexing against hosts behind the DSLAM, a Linux kernel and an embedded
# one, against an interface that takes the line for one of PPP, and behind a bridge as a station of an ELAN.
answers() { waitfor 20 ping -c 1 -W 1 $1 && ping -c 5 -i 0.2 $1; }
both_ways() { tcp_to inside $1 && tcp_from inside $2; }
inside_serves() { host "exec inside -- sh -c 'for n in 1 2; do timeout 15 iperf3 -s -1 >/dev/null 2>&1; done'" >/tmp/served & sleep 2; iperf $1; }
nas 0 0 8.35 10.9.1.2
nas 1 1 8.36 10.9.2.2
nas 2 0 8.37 10.9.3.2
nas 3 1 8.38 10.9.4.2
for net in 1 2; do
  case $net in 1) how=LLC;; 2) how="VC multiplexing";; esac
  check "$how: pings of the host inside" answers 10.9.$net.1
  check "$how: 1500 octets in one piece" whole 10.9.$net.1 1472
  check "$how: TCP both ways" both_ways 10.9.$net.1 10.9.$net.2
  check "$how: iperf3 both ways" inside_serves 10.9.$net.1
done
check "LLC: pings of the embedded host" answers 10.9.3.1
check "VC multiplexing: pings of the embedded host" answers 10.9.4.1
# The line is a port of a bridge on an ELAN.
nas 5 0 8.40
ifconfig nas5 10.9.6.3 netmask 255.255.255.248 up
check "bridged to an ELAN: pings of the host there" answers 10.9.6.1
check "bridged to an ELAN: 1500 octets in one piece" whole 10.9.6.1 1472
check "bridged to an ELAN: pings of the bridge" answers 10.9.6.2
mistakes() { host inspect inside line -o json >/tmp/lines; sed 's/[{}]/\n/g' /tmp/lines | grep -E '"counter": *"(fcs_errors|too_long|too_short|other_protocol|malformed|other_encapsulation)"' | grep -vc '"value": *0'; }
check "no host inside counts a mistake" [ $(mistakes) = 0 ]
# The host inside takes this line for one of PPP.
nas 4 0 8.39 10.9.5.2
ping -c 3 -W 1 10.9.5.1 >/dev/null 2>&1
check "frames on a line of PPP are counted and named" [ $(mistakes) = 1 ]
host inspect inside line
