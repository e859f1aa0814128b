# Calls of plain sockets through the lab's switch, from this host to itself.
lines() { ttcp_atm -r -a -s -l 4096 >/tmp/ttcp 2>&1; }
lines & r=$!
sleep 1
# No more than fits the receiver's socket buffer: on a busy machine Linux drops the rest.
check "a call to ourselves" ttcp_atm -t -a -s -l 4096 -n 20 $OWN
sleep 2; cat /tmp/ttcp
check "all 20 SDUs of 4096 octets came" grep -q "81920 bytes" /tmp/ttcp
# refused WORD COMMAND...: fails at once, not when a timer expires
refused() { ttcp_atm -t -a -s -n 1 $1 >/tmp/refused 2>&1 & p=$!; sleep 3; cat /tmp/refused
  kill $p 2>/dev/null && return 1; grep -qi "$2" /tmp/refused; }
check "nobody listens: refused at once" refused $SILENT "refused"
check "no such address: unreachable at once" refused $NOWHERE "no route\|unreachable"
calls() { for n in 1 2 3 4 5 6 7 8 9 10; do
    ttcp_atm -r -a -s -l 1000 >/dev/null 2>&1 & usleep 300000; ttcp_atm -t -a -s -l 1000 -n 3 $OWN >/tmp/call 2>&1 || return 1; usleep 300000
  done; }
check "ten calls, one after the other" calls
grep -iE "fatal|error" /tmp/sigd.log
