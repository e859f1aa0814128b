# Calls of plain sockets between two Linux hosts, through the lab's switches.
case $ESI in
  *B0) caller=yes; PEER=$PREFIX.0020EA0000C0;;
  *C0) caller=no;;
esac
if [ $caller = no ]; then
  ttcp_atm -r -a -s -l 4096 >/tmp/ttcp 2>&1 &
  sleep 1; meet listening
  check "20 SDUs of 4096 octets came" waitfor 20 grep -q "81920 bytes" /tmp/ttcp
  cat /tmp/ttcp; meet done
  svc_recv >/tmp/recv 2>&1 & sleep 1; meet svc_recv
  check "PDUs of svc_send came" waitfor 30 grep -q "received [1-9][0-9]* PDUs" /tmp/recv
  cat /tmp/recv; meet refused
else
  meet listening
  check "ttcp_atm calls the other host" ttcp_atm -t -a -s -l 4096 -n 20 $PEER.00
  meet done; meet svc_recv
  check "svc_send calls the other host" svc_send $PEER.00 ubr,aal5:tx:max_sdu=512,rx:none
  refused() { ttcp_atm -t -a -s -n 1 $PEER.01 >/tmp/refused 2>&1 & p=$!; sleep 3; cat /tmp/refused
    kill $p 2>/dev/null && return 1; grep -qi "refused" /tmp/refused; }
  check "nobody listens there: refused at once" refused
  check "with cause 88, which the other host gave" grep -qi "cause 88" /tmp/sigd.log
  meet refused
fi
# Either end was told how the calls ended that the other released.
check "cause $NORMAL in the log of atmsigd" waitfor 5 grep -q "Cause $NORMAL " /tmp/sigd.log
meet causes
