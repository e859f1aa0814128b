# The BRAS: pppoe-server over br2684ctl, and pppd with PPPoA both ways; bridged
# PDUs for the staircase; the customer is the other guest (ppp.sh, stairs.sh).
nas 0 0 1.40
nas 1 0 1.43 10.9.6.1
cat >/etc/ppp/pppoe-server-options <<'X'
noauth
noipv6
lcp-echo-interval 2
lcp-echo-failure 10
X
pppoe-server -F -I nas0 -L 10.67.15.1 -R 10.67.15.100 >/tmp/server 2>&1 & server=$!
pppd plugin pppoatm.so vc-encaps 1.41 unit 1 10.68.1.1:10.68.1.2 $PPP >/tmp/pppoa1 2>&1 &
pppd plugin pppoatm.so llc-encaps 1.42 unit 2 10.68.2.1:10.68.2.2 $PPP >/tmp/pppoa2 2>&1 &
iperf3 -s >/dev/null 2>&1 &
check "the server of PPPoE runs" kill -0 $server
meet bras-is-there
meet done
cat /tmp/server /tmp/pppoa1 /tmp/pppoa2
ifconfig
