# Shapers in front of a line of 1 Mb/s: cake in this customer's guest, and HTB with stab at the Linux host inside, which
# knows the line from the other end. Packets of 117 octets take 4 cells with LLC, and 3 for a shaper that counts 10 octets
# too few. The harness judges the backlog from the recording: port 5211 is at half load, 5212 has the right overhead, 5213
# ten octets less.
EACH=60
nas 0 0 8.35 10.9.1.2
check "the host inside answers" waitfor 20 ping -c 1 -W 1 10.9.1.1
host link set sw1-sw2 rate=1Mbps
# load PORT BITS: UDP one way, then the other way from PORT + 10, so many bit/s of data in packets of 89 octets
load() { for way in "-p $1" "-R -p $(($1+10))"; do
  host "exec inside -- iperf3 -s -1 -D -p ${way#*p }"
  sleep 1
  iperf3 -u -c 10.9.1.1 $way -t $EACH -l 89 -b $2 | tail -4; done; }
# shape OCTETS: both shapers, at 98 % of the line, with so many octets beyond the IP packet; stab counts from the frame
shape() {
  /usr/sbin/tc qdisc replace dev nas0 root cake bandwidth 980kbit besteffort atm overhead $1
  host "exec inside -- sh -c 'tc qdisc del dev nas0 root 2>/dev/null; tc qdisc add dev nas0 root handle 1: stab mtu 2048 tsize 512 linklayer atm overhead $(($1-14)) htb default 1 && tc class add dev nas0 parent 1: classid 1:1 htb rate 980kbit burst 106 cburst 106 && tc qdisc add dev nas0 parent 1:1 pfifo limit 100'"; }
shape 32
load 5211 200k
load 5212 1300k
shape 22
load 5213 1300k
host inspect sw2 port
