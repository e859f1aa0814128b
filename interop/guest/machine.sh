# In front of `aerostat host`: this host plays the network side of the UNI, and is the ATMARP server of the machine.
atmarpd -b -l /tmp/arpd.log
atmarp -c atm0
ifconfig atm0 10.5.0.2 netmask 255.255.255.0 mtu 9180 up
registered() { host inspect machine clip >/tmp/machine; grep -q "10.5.0.1 .* no  *yes" /tmp/machine; }
check "the machine registers with atmarpd" waitfor 30 registered
pings() { ping -c 10 -i 0.1 -s $2 $1 >/tmp/ping; tail -3 /tmp/ping; grep -q " 0% packet loss" /tmp/ping; }
fragments() { awk '/^Ip:/ && $2 ~ /[0-9]/ { print $17 + $19 }' /proc/net/snmp; }
whole() { before=$(fragments); pings $1 9152 || return 1; [ $(fragments) = $before ]; }
check "pings to the machine" waitfor 10 pings 10.5.0.1 56
check "9180 octets in one piece" whole 10.5.0.1
back() { host "exec machine -- ping -c 5 -i 0.2 -M do -s 9152 10.5.0.2" >/tmp/back; tail -3 /tmp/back; grep -q " 0% packet loss" /tmp/back; }
check "the machine pings, 9180 octets, never fragmented" back
check "TCP to the machine" tcp_to machine 10.5.0.1
check "TCP from the machine" tcp_from machine 10.5.0.2
atmarp -a
# A program of the machine calls an IP address: atmarpd tells it where that is.
ttcp_atm -r -a -s -l 4096 >/tmp/got.log 2>&1 & r=$!
sleep 1
called() { host "exec machine -- $CALL 10.5.0.2" >/tmp/called; cat /tmp/called; grep -q "20 PDUs" /tmp/called; }
check "a program of the machine calls 10.5.0.2, where ttcp_atm listens" waitfor 10 called
check "all its PDUs arrived here" waitfor 10 grep -q "81920 bytes" /tmp/got.log
kill $r 2>/dev/null; cat /tmp/called /tmp/got.log
unknown() { host "exec machine -- $CALL 10.5.0.9" >/tmp/called; cat /tmp/called; grep -q "cause 1\b" /tmp/called; }
check "atmarpd knows no 10.5.0.9: cause 1" unknown
cat /tmp/arpd.log | tail -20
host inspect machine clip; host inspect machine sockets
