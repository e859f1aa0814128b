# Behind lib.sh in tests of the ATM stack: joins the host to the lab. The harness defines PORT (atmtcp), ESI, UNI,
# ADDRESS: typed, or registered by the script, and SIDE of the UNI, if it is not the user's.
PREFIX=47.0005.80FFE1000000F21A26D8
OWN=$PREFIX.$ESI.00
SILENT=$PREFIX.$ESI.01
# Normal call clearing: UNI 3.0 has no cause 16.
if [ $UNI = 3.0 ]; then NORMAL=31; else NORMAL=16; fi
NOWHERE=$PREFIX.0020EA0000A0.00
atmtcp virtual 0 connect $OUTSIDE $PORT bg
sleep 1
esi $ESI 0
signalling() {
  atmsigd -c /dev/null -d -l /tmp/sigd.log -m ${SIDE:-user} -u $UNI >/dev/null 2>&1 &
  check "signalling is up" waitfor 20 signalling_up; }
# Where the lab knows the address, nobody has to register it.
if [ $ADDRESS = typed ]; then atmaddr -a 0 $OWN; signalling; fi
