# Set-up times in one virtual machine: Aerostat's, in memory and through a lab over ATM over TCP, then linux-atm's, to
# itself, over ATM over TCP. The harness defines FILEPORT, RATE and SECONDS. One line per result.
export PATH=/bin:/sbin:/usr/bin:/usr/sbin
mkdir /tmp/bench /tmp/run; cd /tmp/bench; export XDG_RUNTIME_DIR=/tmp/run
nc 10.0.2.2 $FILEPORT </dev/null | tar x
echo "RESULT memory $(./soak --rate $RATE --seconds $SECONDS --json)"
./aerostat up --embedded lines.atm.yml --set links.0.1.atmtcp.listen=127.0.0.1:2813 --set links.1.1.atmtcp.listen=127.0.0.1:2814 >up.log 2>&1 & lab=$!
n=0; until grep -q "^ready" up.log || [ $n = 50 ]; do usleep 200000; n=$((n+1)); done
echo "RESULT atmtcp $(./soak --rate $RATE --seconds $SECONDS --json --atmtcp 127.0.0.1:2813,127.0.0.1:2814)"
./aerostat inspect call -o json >calls.json; kill -INT $lab; wait $lab; cat up.log
echo "RESULT left $(tr -d '\n' <calls.json)"

A=47.0005.80FFE1000000F21A26D8.0020EA0000A0.00
B=47.0005.80FFE1000000F21A26D8.0020EA0000B0.00
atmtcp virtual 0 listen 2812 bg >/dev/null 2>&1 &
sleep 1
atmtcp virtual 1 connect 127.0.0.1 2812 bg >/dev/null 2>&1
sleep 1
atmaddr -a 0 $A; atmaddr -a 1 $B
printf 'entity 0.0.5 { mode user }\nentity 1.0.5 { mode network }\n' >/tmp/sigd.conf
atmsigd -c /tmp/sigd.conf -d -l /tmp/sigd.log >/dev/null 2>&1 &
sleep 5
n=0
while [ $n -lt 50 ]; do
  ttcp_atm -r -a -s -l 100 >/dev/null 2>&1 &
  r=$!
  usleep 200000
  ttcp_atm -t -a -s -l 100 -n 1 $A >/dev/null 2>&1
  wait $r
  n=$((n+1))
done
# From the kernel's request to the daemon's answer, as the daemon's own log has them; milliseconds.
awk '
  function at(t,  p) { split(t, p, ":"); return (p[1] * 3600 + p[2] * 60 + p[3]) * 1000 }
  /FROM KERNEL: as_connect/ { match($0, /\([0-9a-f]+\//); id = substr($0, RSTART + 1, RLENGTH - 2); asked[id] = at($3) }
  /TO KERNEL: as_okay/ { split($NF, p, "/"); if (p[1] in asked) { printf "RESULT linux-atm %.3f\n", at($3) - asked[p[1]]; delete asked[p[1]] } }
' /tmp/sigd.log
