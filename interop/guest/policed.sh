# Four calls and a permanent connection with contracts, all at once. linux-atm hands every PDU to TCP when it is
# written, whatever the contract says. The connections stay open until the host has noted what it has counted.
INSIDE=47.0091.8100.0000.02A700000200.02A703000100
# sender N SIZE OPTIONS...: ttcp_atm, which sends a PDU for each SIZE octets that are written to descriptor N
sender() {
  n=$1; size=$2; shift 2
  mkfifo /tmp/pipe$n; ttcp_atm -t -a -l $size "$@" </tmp/pipe$n >/tmp/ttcp$n 2>&1 & eval pid$n=$!
  eval "exec $n>/tmp/pipe$n"; }
sender 3 4096 -P cbr:pcr=10000 $INSIDE.e0
sender 4 200 -P ubr:max_pcr=8000 $INSIDE.e0
sender 5 40 -P cbr:pcr=2000 $INSIDE.e0
sender 6 1000 -P cbr:pcr=20000 0.103
nc $OUTSIDE $PROGRAM </dev/null >/tmp/answer; chmod +x /tmp/answer
mkfifo /tmp/pipe7; /tmp/answer 1000 30000 </tmp/pipe7 >/tmp/ttcp7 2>&1 & pid7=$!; exec 7>/tmp/pipe7
# accepted N: the switch shows its calls, and N of them are accepted
accepted() {
  host inspect sw1 call -o json >/tmp/calls
  grep -q '"rows"' /tmp/calls && [ $(grep -o '"accepted": *"yes"' /tmp/calls | wc -l) = $1 ]; }
check "four calls with contracts" waitfor 15 accepted 4
cat /tmp/calls /tmp/ttcp*
# burst N SIZE COUNT: PDUs of lines of eight octets, each line different
lines=1000000
burst() { seq $lines $((lines+$2*$3/8)) | dd bs=$2 count=$3 iflag=fullblock >&$1 2>/dev/null; lines=$((lines+$2*$3/8)); }
# Bursts, so that the buckets fill and drain.
for n in 1 2 3 4 5 6; do burst 3 4096 12; burst 4 200 120; burst 5 40 300; burst 6 1000 60; burst 7 1000 60; usleep 150000; done
counted() { host inspect inside sockets -o json >/tmp/now; cmp -s /tmp/now /tmp/before; r=$?; cp /tmp/now /tmp/before; return $r; }
check "no more PDUs arrive" waitfor 20 counted
host note vcs inspect vc -o json >/dev/null
host note sockets inspect inside sockets -o json >/dev/null
# Killed, ttcp_atm says no goodbye.
kill -9 $pid3 $pid4 $pid5 $pid6 $pid7
check "the calls are released" waitfor 10 accepted 0
