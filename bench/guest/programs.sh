# connect and close of one program in C in one virtual machine: over the preload library to a lab, and over the sockets
# of the kernel with atmsigd, to itself, over ATM over TCP. The harness defines FILEPORT and COUNT. One line per result.
export PATH=/bin:/sbin:/usr/bin:/usr/sbin
mkdir /tmp/bench /tmp/run; chmod 700 /tmp/run; cd /tmp/bench; export XDG_RUNTIME_DIR=/tmp/run
nc 10.0.2.2 $FILEPORT </dev/null | tar x
n=0
waitfor() { n=0; until "$@" || [ $n = 50 ]; do usleep 200000; n=$((n+1)); done; }

# at PATH COMMAND...: with the preload library, at the socket service there
at() { service=$1; shift; LD_PRELOAD=/tmp/bench/libaerostat_preload.so AEROSTAT_ATM=$service "$@"; }
./aerostat up --embedded programs.atm.yml >up.log 2>&1 & lab=$!
waitfor grep -q "^ready" up.log
S=/tmp/run/aerostat/programs/atm
A=$(at $S/far.sock atmaddr -n | head -1 | sed 's/ //g; s/\.00$/.e0/')
at $S/far.sock ./connect serve $A >serve.log 2>&1 & server=$!
waitfor grep -q "^ready" serve.log
echo "RESULT preload $(at $S/near.sock ./connect $A $COUNT 2>&1)"
kill $server; kill -INT $lab; wait $lab; cat up.log serve.log

A=47.0005.80FFE1000000F21A26D8.0020EA0000A0.00
B=47.0005.80FFE1000000F21A26D8.0020EA0000B0.00
atmtcp virtual 0 listen 2812 bg >/dev/null 2>&1 &
sleep 1
atmtcp virtual 1 connect 127.0.0.1 2812 bg >/dev/null 2>&1
sleep 1
atmaddr -a 0 $A; atmaddr -a 1 $B
printf 'entity 0.0.5 { mode user }\nentity 1.0.5 { mode network }\n' >/tmp/sigd.conf
atmsigd -b -c /tmp/sigd.conf -l /tmp/sigd.log >/dev/null 2>&1
sleep 5
./connect serve $A >serve.log 2>&1 & server=$!
waitfor grep -q "^ready" serve.log
echo "RESULT kernel $(./connect $A $COUNT 2>&1)"
kill $server; cat serve.log; tail -3 /tmp/sigd.log
