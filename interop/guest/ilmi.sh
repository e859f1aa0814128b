# A host that knows only its ESI: ilmid gets the prefix and registers the address. lib.sh has typed none.
ilmid -b -d -v -u $UNI -l /tmp/ilmid.log 0 2>/dev/null
own_address() { atmaddr -n | grep -qi "$(echo $ESI)"; }
check "ilmid gets an address from the switch" waitfor 10 own_address
atmaddr -n; OWN=$(atmaddr -n | head -1); OWN=${OWN#*: }; echo "own address: $OWN"
signalling
registered() { host inspect sw1 ilmi >/tmp/ilmi; cat /tmp/ilmi; grep -q "linux .*verifying .*user .*$UNI" /tmp/ilmi && grep -qi "$(echo $ESI | tr A-Z a-z)" /tmp/ilmi; }
check "the switch shows it registered" waitfor 10 registered
cat /tmp/ilmi
lines() { ttcp_atm -r -a -s -l 4096 >/tmp/ttcp 2>&1; }
lines & sleep 1
check "a call to ourselves" ttcp_atm -t -a -s -l 4096 -n 20 $OWN
sleep 1; cat /tmp/ttcp
check "all 20 SDUs of 4096 octets came" grep -q "81920 bytes" /tmp/ttcp
# The LECS is in the service registry: zeppelin asks there first.
zeppelin -m ffff -2 -i 0 >/tmp/zeppelin.log 2>&1 &
check "zeppelin joins the ELAN, with no address typed" waitfor 30 grep -q "Joined ELAN" /tmp/zeppelin.log
ifconfig lec0 10.8.0.2 netmask 255.255.255.0 up
check "ping" waitfor 10 ping -c 1 -W 1 10.8.0.1
# The host forgets: the switch does, too.
killall ilmid
gone() { host inspect sw1 ilmi >/tmp/ilmi; ! grep -qi "$(echo $ESI | tr A-Z a-z)\\.00" /tmp/ilmi; }
check "the address goes with ilmid" waitfor 30 gone
cat /tmp/ilmid.log | tail -20
