# In front of every script for the guest. The harness defines HOSTPORT (see host).
export PATH=/bin:/sbin:/usr/bin:/usr/sbin
OUTSIDE=10.0.2.2

# check NAME COMMAND...: a line that the harness counts
check()   { what=$1; shift; if "$@"; then echo "CHECK ok $what"; else echo "CHECK failed $what"; fi; }
waitfor() { # waitfor SECONDS COMMAND...: again and again until it succeeds
  n=$(($1*5)); shift
  while [ $n -gt 0 ]; do "$@" >/dev/null 2>&1 && return 0; usleep 200000; n=$((n-1)); done
  return 1; }
# host ARGUMENTS...: runs aerostat outside, for this lab, and prints what it says
host() { echo "aerostat $@" | nc $OUTSIDE $HOSTPORT; }
# meet NAME: goes on when all guests of the test are there
meet() { echo "meet $1" | nc $OUTSIDE $HOSTPORT; }
# A megabyte by TCP, compared by its MD5. nc ends when either side does, so its input is a pipe that nobody closes.
# tcp_to HOST ADDRESS: from this host to a host inside, at ADDRESS
tcp_to() {
  [ -f /tmp/sent ] || head -c 1000000 /dev/urandom >/tmp/sent
  host "exec $1 -- sh -c 'f=\$(mktemp -u); mkfifo \$f; timeout 20 busybox nc -l -p 49777 <>\$f | md5sum; rm \$f'" >/tmp/sum & p=$!
  sleep 2; nc $2 49777 </tmp/sent >/dev/null; wait $p; cat /tmp/sum; [ "$(head -1 /tmp/sum)" = "$(md5sum </tmp/sent)" ]; }
# tcp_from HOST ADDRESS: from a host inside to this host, whose address is ADDRESS
tcp_from() {
  [ -p /tmp/pipe ] || mkfifo /tmp/pipe
  nc -l -p 49778 <>/tmp/pipe >/tmp/got & p=$!
  sleep 1; host "exec $1 -- sh -c 'f=\$(mktemp); head -c 1000000 /dev/urandom >\$f; md5sum <\$f; timeout 20 busybox nc $2 49778 <\$f; rm \$f'" >/tmp/sum
  n=40; while [ $n -gt 0 ] && [ $(wc -c </tmp/got) != 1000000 ]; do usleep 200000; n=$((n-1)); done
  kill $p 2>/dev/null; cat /tmp/sum; [ "$(head -1 /tmp/sum)" = "$(md5sum </tmp/got)" ]; }
signalling_up() { grep -q "SSCF.*entering state 4/10" /tmp/sigd.log; }

# DSL lines.
# nas N ENCAPSULATION VC [ADDRESS]: interface nasN; 0 is LLC, 1 VC multiplexing
nas() {
  br2684ctl -b -c $1 -e $2 -a $3 >/dev/null 2>&1
  waitfor 5 ifconfig nas$1
  if [ -n "$4" ]; then ifconfig nas$1 $4 netmask 255.255.255.252 up; else ifconfig nas$1 up; fi; }
# whole ADDRESS OCTETS: pings with so much data, never fragmented
whole() { /usr/bin/ping -c 2 -M do -s $2 $1; }
# iperf PEER: one direction after the other; prints what the sender and the receiver counted
iperf() { for way in "" -R; do
  timeout 15 iperf3 -c $1 -t 3 $way >/tmp/iperf || { cat /tmp/iperf; return 1; }
  grep -E "sender|receiver" /tmp/iperf; done; }
# Options of pppd: no compression, so that octets can be counted; the session comes back whatever ends it.
PPP="noauth nodetach noipv6 lcp-echo-interval 2 lcp-echo-failure 10 noaccomp nopcomp novj nobsdcomp nodeflate persist maxfail 0"
