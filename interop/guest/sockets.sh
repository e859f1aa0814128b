# Calls between sockets of this host and programs of the host inside, both ways; then permanent connections.
INSIDE=47.0091.8100.0000.02A700000200.02A703000100
# 20 PDUs of 4096 octets with the pattern of ttcp: their CRC-32 there, MD5 here. What ttcp_atm sends has 4 octets in front
# of them, and five times behind.
CRC=a7b8727b
CRC_TTCP=99aac7c6
MD5=c00805506ae0f9a5aa0476b0773a553a
# calls PROGRAM PATTERN: the host inside has such a call in its list
calls() { host inspect inside sockets >/tmp/inside; grep "$1 " /tmp/inside | grep -q "$2"; }

check "ttcp_atm calls a program inside" ttcp_atm -t -a -s -l 4096 -n 20 $INSIDE.e0
check "all its PDUs arrived whole" waitfor 5 calls sink " 26  *81944  *$CRC_TTCP "
check "svc_send calls a program inside" svc_send $INSIDE.e0 ubr,aal5:tx:max_sdu=512,rx:none
check "its PDUs arrived" waitfor 5 calls receiver " ended .* [1-9][0-9]*  *[1-9][0-9]* "
refused() { ttcp_atm -t -a -s -n 1 $1 >/tmp/refused 2>&1 & p=$!; sleep 3; cat /tmp/refused
  kill $p 2>/dev/null && return 1; grep -qi "refused" /tmp/refused; }
check "nobody listens inside: refused at once" refused $INSIDE.ee
cause_88() { grep -i "cause" /tmp/sigd.log | grep -q 88; }
check "with cause 88 in the log of atmsigd" cause_88

ttcp_atm -r -a -l 4096 >/tmp/got 2>/tmp/ttcp & r=$!
check "a program inside calls ttcp_atm" waitfor 20 calls bulk " 20  *81920  *$CRC .* \(16\|31\) "
waitfor 5 grep -q . /tmp/got
sum() { [ "$(head -c 81920 /tmp/got | md5sum | cut -d' ' -f1)" = $MD5 ]; }
check "all its PDUs arrived whole here" waitfor 5 sum
kill $r 2>/dev/null
check "nobody listens here: the program inside shows cause 88" waitfor 10 calls nobody " ended .* 88  *peer"

written() { awrite 0.100 "PVC: a text" && waitfor 3 calls reader " 1  *11 "; }
check "awrite writes to a program inside" written
# It prints whole blocks: some 70 PDUs, 20 a second.
aread -c 0.102 >/tmp/aread 2>&1 & r=$!
check "aread reads from a program inside" waitfor 15 grep -q '^20: .* ! " # $ %.* 2 3$' /tmp/aread
kill $r; head -2 /tmp/aread; grep "^\(reader\|writer\)" /tmp/inside
cat /tmp/ttcp; grep "^bulk.*$CRC" /tmp/inside; grep "^nobody" /tmp/inside | tail -1
grep -iE "fatal" /tmp/sigd.log

# The program that nobody listened for finds its listener.
svc_recv >/tmp/recv 2>&1 & r=$!
check "a program inside calls svc_recv: all its PDUs arrive" waitfor 15 grep -q "received 20 PDUs" /tmp/recv
cat /tmp/recv; kill $r 2>/dev/null
# After a RELEASE that came from inside, and after those of this host.
told() { grep -A1 "FROM SAAL.*RELEASE .*CR 0x8" /tmp/sigd.log | grep -q "Cause $NORMAL "; }
causes() { calls nobody " ended .* 16  *us" && calls sink " ended .* 16  *peer" && told; }
check "released calls: the same cause inside (16) and here ($NORMAL)" waitfor 5 causes
grep "^nobody.* 16  *us" /tmp/inside; grep ^sink /tmp/inside; grep Cause /tmp/sigd.log | tail -3
