# In front of every script for the guest. The harness defines PORT (atmtcp), HOSTPORT (see host), ESI, UNI
# and ADDRESS: typed, or registered by the script.
export PATH=/bin:/sbin:/usr/bin:/usr/sbin
OUTSIDE=10.0.2.2
PREFIX=47.0005.80FFE1000000F21A26D8
OWN=$PREFIX.$ESI.00
SILENT=$PREFIX.$ESI.01
# Normal call clearing: UNI 3.0 has no cause 16.
if [ $UNI = 3.0 ]; then NORMAL=31; else NORMAL=16; fi
NOWHERE=$PREFIX.0020EA0000A0.00

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
signalling_up() { grep -q "SSCF.*entering state 4/10" /tmp/sigd.log; }

atmtcp virtual 0 connect $OUTSIDE $PORT bg
sleep 1
esi $ESI 0
signalling() {
  atmsigd -c /dev/null -d -l /tmp/sigd.log -m user -u $UNI >/dev/null 2>&1 &
  check "signalling is up" waitfor 20 signalling_up; }
# Where the lab knows the address, nobody has to register it.
if [ $ADDRESS = typed ]; then atmaddr -a 0 $OWN; signalling; fi
