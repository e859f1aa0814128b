# The staircase of a line: the least round-trip time of 50 pings, one octet below and above ten steps, at 1 and 0.5 Mb/s;
# PPPoE, PPPoA and bridged PDUs against the BRAS (ppp-bras.sh).
meet bras-is-there
nas 5 0 8.40
nas 6 0 8.43 10.9.6.2
pppd plugin rp-pppoe.so nas5 unit 0 $PPP >/tmp/pppoe 2>&1 &
pppd plugin pppoatm.so vc-encaps 8.41 unit 1 10.68.1.2:10.68.1.1 $PPP >/tmp/pppoa1 2>&1 &
# least ADDRESS OCTETS: the least of 25 times, milliseconds; -A has one ping under way at a time
least() { /usr/bin/ping -A -q -n -c 25 -s $2 $1 | sed -n 's|.*= \([0-9.]*\)/.*|\1|p'; }
# stairs NAME ADDRESS OCTETS-BEYOND-THE-PACKET MBIT: lines "STAIR name mbit octets cells milliseconds", one below and
# one above each step. Both get two turns, so that a busy moment of this machine meets both.
stairs() {
  for cells in 3 6 9 12 15 18 21 24 27 30; do
    below=$((48*cells-28-$3))
    for more in 0 1 0 1; do echo "$1 $4 $((below+more)) $((cells+more)) $(least $2 $((below+more)))"; done
  done | awk '{ key = $1" "$2" "$3" "$4; if (!(key in least)) { order[++n] = key; least[key] = $5 } if ($5 < least[key]) least[key] = $5 }
    END { for (i = 1; i <= n; i++) print "STAIR", order[i], least[order[i]] }' >/tmp/stairs; cat /tmp/stairs; }
# A step is 2 * 424 bit. Each of the ten is there, half a step more or less, and the whole staircase has 28.
on_the_steps() { awk '{ step = 0.848/$3; if (NR % 2) below = $6; else { height = ($6-below)/step; if (height < 0.5 || height > 1.5) bad = 1 }
  if (NR == 1) first = $6; last = $6 } END { all = (last-first)/step; print "STAIRS", all; exit bad || NR != 20 || all < 26 || all > 31 }' /tmp/stairs; }
for mbit in 1 0.5; do
  host link set trunk rate=${mbit}Mbps
  for line in "bridged-llcsnap 10.9.6.1 32" "pppoe-llcsnap 10.67.15.1 40" "pppoa-vcmux 10.68.1.1 10"; do
    set -- $line
    waitfor 30 ping -c 1 -W 1 $2
    stairs $1 $2 $3 $mbit
    check "$1 at $mbit Mb/s: ten steps where arithmetic has them, and as high" on_the_steps
  done
done
meet done
