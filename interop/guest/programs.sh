# The same programs on both sides: here over the sockets of this kernel, inside over the preload library of the lab,
# where the kernel need not have ATM sockets.
INSIDE=47.0091.8100.0000.02A700000200.02A703000100.e0
inside() { host "exec inside -- timeout 30 $*"; }
check "the host inside has Debian's atm-tools" waitfor 20 inside sh -c "'command -v ttcp_atm'"
# listening PROGRAM: the host inside has a listener
listening() { host inspect inside sockets -o csv | grep -q listening; }

# sends COMMAND...: again until the other side listens
sends() { "$@" >/tmp/sent.log 2>&1; grep -q "81920 bytes" /tmp/sent.log; }
ttcp_atm -r -a -s -l 4096 >/tmp/got.log 2>&1 & r=$!
check "ttcp_atm inside calls ttcp_atm here" waitfor 20 sends inside ttcp_atm -t -a -s -l 4096 -n 20 $OWN
check "all its octets arrived here" waitfor 5 grep -q "81920 bytes" /tmp/got.log
kill $r 2>/dev/null; cat /tmp/sent.log /tmp/got.log

inside ttcp_atm -r -a -s -l 4096 >/tmp/got.log & r=$!
check "ttcp_atm listens inside" waitfor 10 listening
check "ttcp_atm here calls ttcp_atm inside" sends ttcp_atm -t -a -s -l 4096 -n 20 $INSIDE
check "all its octets arrived inside" waitfor 10 grep -q "81920 bytes" /tmp/got.log
kill $r 2>/dev/null; cat /tmp/sent.log /tmp/got.log

refused() { inside ttcp_atm -t -a -s -n 1 $OWN >/tmp/refused 2>&1; cat /tmp/refused; grep -qi "refused" /tmp/refused; }
check "nobody listens here: refused" refused

svc_recv >/tmp/recv 2>&1 & r=$!
# svc_send asks for 50 000 PDUs; those that its write refuses are not sent.
called() { inside svc_send $OWN ubr,aal5:tx:max_sdu=512,rx:none >/tmp/send.log 2>&1; grep -q "sending" /tmp/send.log; }
check "svc_send inside calls svc_recv here" waitfor 10 called
check "svc_recv here has its PDUs" waitfor 5 grep -q "received [1-9]" /tmp/recv
kill $r 2>/dev/null; cat /tmp/send.log /tmp/recv

inside svc_recv >/tmp/recv & r=$!
check "svc_recv listens inside" waitfor 10 listening
check "svc_send here calls svc_recv inside" svc_send $INSIDE ubr,aal5:tx:max_sdu=512,rx:none
check "it has got the call" waitfor 35 grep -q "[0-9]" /tmp/recv
kill $r 2>/dev/null; cat /tmp/recv

inside stdbuf -oL aread -c 0.101 >/tmp/read & r=$!
reading() { host inspect inside sockets -o csv | grep -q 'connected.*0\.101'; }
waitfor 10 reading
check "awrite here writes to aread inside" awrite 0.100 "PVC: a text"
aread -c 0.102 >/tmp/here 2>&1 & h=$!
sleep 1
check "awrite inside writes" inside awrite 0.102 Text_from_inside
# It prints whole blocks, so one text is told when it ends.
arrived() { host inspect inside sockets -o csv | grep -q ',0\.101,.*,1,11,'; }
check "its text has arrived" waitfor 5 arrived
sleep 1; kill $h; wait $h 2>/dev/null
host inspect inside sockets >/tmp/sockets; cat /tmp/sockets /tmp/here
