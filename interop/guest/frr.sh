# DMVPN of Debian's FRR: a hub and two spokes, each a network namespace of this machine with zebra and nhrpd of its own;
# a bridge is the transport network. Four captures of the hub's transport interface: without authentication, with a
# password, with spokes that have another one or none, and with a spoke whose GRE key is another one. KEEP is the port
# that takes files.
FRR=/frr
for d in proc sys dev; do mount -o bind /$d $FRR/$d; done
mount -t tmpfs run $FRR/run
while read m; do insmod /frr-modules/$m; done < /frr-modules/order
# No gre0, gretap0 and erspan0 in each namespace.
sysctl -q -w net.core.fb_tunnels_only_for_init_net=2
echo $$ >/tmp/network.pid
# at NAME COMMAND...: in the network namespace of a router, or of the transport network
at() { space=$1; shift; nsenter --net=/proc/$(cat /tmp/$space.pid)/ns/net "$@"; }
frr_at() { space=$1; shift; at $space chroot $FRR "$@"; }
ip_at() { space=$1; shift; frr_at $space /usr/bin/ip "$@"; }
# router NAME NUMBER: 192.0.2.NUMBER on the bridge, 10.0.0.NUMBER on the tunnel, 192.168.NUMBER.1 on a network of its own
router() {
  unshare -n sleep 1000 & echo $! >/tmp/$1.pid; usleep 300000
  ip_at network link add to-$1 type veth peer name eth0 netns $(cat /tmp/$1.pid)
  ip_at network link set to-$1 master transport up
  at $1 sysctl -q -w net.ipv4.ip_forward=1 net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.default.rp_filter=0 \
    net.ipv4.conf.all.send_redirects=0 net.ipv6.conf.all.disable_ipv6=1
  ip_at $1 -batch - <<E
link set lo up
link set eth0 address 02:00:00:00:00:0$2 up
addr add 192.0.2.$2/24 dev eth0
link add lan type dummy
link set lan up
addr add 192.168.$2.1/24 dev lan
E
}
# tunnel NAME NUMBER KEY: a GRE interface without a fixed other end, and what a routing protocol would tell
tunnel() {
  ip_at $1 -batch - <<E
link add gre1 type gre key $3 ttl 64 dev eth0 local 192.0.2.$2
link set gre1 mtu 1400 up
addr add 10.0.0.$2/32 dev gre1
E
  case $1 in
    hub) routes="192.168.2.0/24:2 192.168.3.0/24:3";;
    *) routes="10.0.0.0/24:1 192.168.0.0/16:1";;
  esac
  for r in $routes; do ip_at $1 route add ${r%:*} via 10.0.0.${r#*:} dev gre1 onlink; done; }
# daemon ROUTER NAME OPTION...: one of FRR's, in the background once it is ready
daemon() {
  router=$1 name=$2; shift 2
  frr_at $router /usr/lib/frr/$name "$@" -u root -g root -N $router -i /run/$router-$name.pid \
    --log file:/tmp/$router-$name.log --log-level debugging -d >/tmp/said 2>&1 || cat /tmp/said; }
# base NAME NUMBER [KEY]: the tunnel, and the daemons under nhrpd
base() {
  tunnel $1 $2 ${3:-42}
  mkdir -p $FRR/etc/frr/$1 $FRR/run/frr/$1; : >$FRR/etc/frr/$1/zebra.conf
  daemon $1 mgmtd; daemon $1 zebra -f /etc/frr/$1/zebra.conf; }
# nhrpd NAME PASSWORD LINE...: with these lines for the tunnel; "-" is no password
nhrpd() {
  router=$1 password=$2; shift 2
  {
    printf '%s\n' "debug nhrp common" "nhrp nflog-group 1" "interface gre1" " tunnel source eth0" " ip nhrp network-id 1" \
      " ip nhrp holdtime 300" " ip nhrp registration no-unique"
    [ $password = - ] || echo " ip nhrp authentication $password"
    printf ' ip nhrp %s\n' "$@"
  } >$FRR/etc/frr/$router/nhrpd.conf
  daemon $router nhrpd -f /etc/frr/$router/nhrpd.conf; }
hub() { nhrpd hub $1 redirect; }
# spoke NUMBER PASSWORD
spoke() { nhrpd spoke$1 $2 "nhs dynamic nbma 192.0.2.1" shortcut; }
# stop DAEMON ROUTER...: and waits for its end; zebra forgets the routes of a nhrpd that ends
stop() {
  what=$1; shift
  for r in "$@"; do
    pid=$(cat $FRR/run/$r-$what.pid); kill $pid
    while kill -0 $pid 2>/dev/null; do usleep 100000; done
  done; usleep 300000; }
# from NAME [OPTION...]: captures the transport interface of the hub to NAME.pcap, to the end of kept NAME
from() {
  name=$1; shift
  frr_at hub /usr/bin/tcpdump "$@" -Z root --immediate-mode -U -i eth0 -w /tmp/$name.pcap 'ip proto 47' 2>/dev/null & usleep 700000; }
kept() { kill $(pidof tcpdump) 2>/dev/null; usleep 500000; { echo $1.pcap; cat $FRR/tmp/$1.pcap; } | nc $OUTSIDE $KEEP; }
registered() { ip_at hub route | grep "^10.0.0.$1 .*dev gre1"; }
unregistered() { ! registered $1; }
# The kernel's answers come from 192.168.3.1 itself (TTL 64) if the hub is not between.
shortcut() { ip_at spoke$1 route | grep "^192.168.$2.0/24 .*via 10.0.0.$2 dev gre1"; }
pings() { at spoke2 ping -c $1 -i 0.5 -W 2 -I 192.168.2.1 192.168.$2.1; }
# refused NUMBER: the hub has told a spoke so
refused() { grep -q "From 192.0.2.$1: error: authentication failure" $FRR/tmp/hub-nhrpd.log; }

ip_at network link add transport type bridge; ip_at network link set transport up
router hub 1; router spoke2 2; router spoke3 3
# The hub hands nhrpd what it forwards back into the tunnel, at most one a second for each pair.
frr_at hub /usr/sbin/iptables -A FORWARD -i gre1 -o gre1 -m hashlimit --hashlimit-upto 1/second --hashlimit-burst 1 \
  --hashlimit-mode srcip,dstip --hashlimit-name nhrp -j NFLOG --nflog-group 1 --nflog-size 128

base hub 1; base spoke2 2; base spoke3 3

# both HOW OCTETS: registrations of two spokes, their shortcut, and OCTETS pings of the hub
both() {
  for n in 2 3; do check "$1: the hub registers spoke $n" waitfor 20 registered $n; done
  check "$1: pings from spoke to spoke, all answered" pings 6 3
  for way in "2 3" "3 2"; do check "$1: a shortcut of spoke ${way% *} to the network of the other" waitfor 10 shortcut $way; done
  check "$1: pings of the hub at the end" pings $2 1; }
from clean; hub -; spoke 2 -; spoke 3 -
both "no password" 12
kept clean; stop nhrpd hub spoke2 spoke3
from password; hub geheim; spoke 2 geheim; spoke 3 geheim
both "password" 2
kept password; stop nhrpd hub spoke2 spoke3
# FRR 10.3 with another password than its hub tells it of an error about each error, so this capture ends early.
rm $FRR/tmp/hub-nhrpd.log; from refused -c 60; hub geheim; spoke 3 -
check "the hub refuses a spoke without a password" waitfor 20 refused 3
spoke 2 anders
check "the hub refuses a spoke with another password" waitfor 20 refused 2
for n in 2 3; do check "spoke $n is not registered" unregistered $n; done
sleep 1
kept refused; stop nhrpd hub spoke2 spoke3
# A spoke with another GRE key.
stop zebra spoke3; stop mgmtd spoke3; ip_at spoke3 link del gre1; base spoke3 3 43
from key; hub -; spoke 3 -; spoke 2 -
check "the hub registers the spoke with its GRE key" waitfor 20 registered 2
check "pings of the hub with its GRE key" pings 22 1
check "spoke 3 with another GRE key is not registered" unregistered 3
kept key
while read p; do echo "PACKAGE $p"; done </frr-packages
