# LECS, two LES and two BUS of linux-atm serve hosts inside: elan1 through the LECS, elan2 by the address of its LES.
atmaddr -a 0 47.0079.00000000000000000000.00A03E000001.00
hex=$(echo $PREFIX.$ESI | tr -d .)
# Who names an ELAN must also be among its clients' addresses.
cat >/tmp/lecs.conf <<CONF
4700790000000000000000000000A03E00000100
[elan1]
LES:=${hex}01
Type:=802_3
Max_Frame:=1516
4700918100000002a7xxxxxxxxxxxxxxxxxxxxxx
${hex}xx
CONF
# variables N: for the LES and the BUS number N, on selectors 01 and 02, or 03 and 04. S4: their patience with a client.
variables() {
  colons=:$(echo $hex | sed 's/../&:/g')
  printf '[main]\ndebug=True\n[conn]\ndebug=True\nS1=%s0%d\nS2="802.3"\nS3=1516\nS4=15\nS5=6\nS6=%s0%d\n' $colons $(($1*2-1)) $colons $(($1*2)) >/tmp/vars$1; }
variables 1; variables 2; cat /tmp/vars1
lecs -f /tmp/lecs.conf >/tmp/lecs.log 2>&1 &
les -f /tmp/vars1 >/tmp/les1.log 2>&1 & les1=$!
# Linux' bus may end when a client is gone: then another one starts.
while :; do bus -f /tmp/vars1; sleep 1; done >/tmp/bus1.log 2>&1 &
les -f /tmp/vars2 >/tmp/les2.log 2>&1 &
bus -f /tmp/vars2 >/tmp/bus2.log 2>&1 &

operational() { host inspect $1 lec >/tmp/lec; grep -q "^lec0 .*operational" /tmp/lec; }
check "a host inside joins elan1 through the LECS" waitfor 40 operational one
cat /tmp/lec
check "another host inside joins it" waitfor 20 operational two
check "a host inside joins elan2 by the address of its LES" waitfor 20 operational three
zeppelin -m ffff -2 -n elan1 -l $OWN -i 0 >/tmp/zeppelin.log 2>&1 &
check "zeppelin joins elan1" waitfor 30 grep -q "Joined ELAN" /tmp/zeppelin.log
ifconfig lec0 10.8.0.2 netmask 255.255.255.0 up
zeppelin -m ffff -2 -e 00:20:EA:00:00:B5 -s $PREFIX.$ESI.03 -l $PREFIX.$ESI.05 -i 1 >/tmp/zeppelin2.log 2>&1 &
check "zeppelin joins elan2 by the address of its LES" waitfor 30 grep -q "Joined ELAN" /tmp/zeppelin2.log
ifconfig lec1 10.9.0.2 netmask 255.255.255.0 up

# inside_pings HOST ADDRESS
inside_pings() { host "exec $1 -- ping -c 10 -i 0.2 -s 1400 $2" >/tmp/inside; tail -3 /tmp/inside; grep -q " 0% packet loss" /tmp/inside; }
pings() { ping -c 10 -i 0.1 -s 1400 $1 >/tmp/ping; tail -3 /tmp/ping; grep -q " 0% packet loss" /tmp/ping; }
check "pings between the hosts inside" inside_pings one 10.8.0.3
check "pings from inside to this host" inside_pings two 10.8.0.2
check "pings from this host to inside" pings 10.8.0.1
check "pings on elan2" pings 10.9.0.1
check "pings on elan2 from inside" inside_pings three 10.9.0.2

# between HOST ADDRESS HOST: a megabyte by TCP; the first host inside receives
between() {
  host "exec $1 -- sh -c 'f=\$(mktemp -u); mkfifo \$f; timeout 20 busybox nc -l -p 49779 <>\$f | wc -c; rm \$f'" >/tmp/count & p=$!
  sleep 2; host "exec $3 -- sh -c 'head -c 1000000 /dev/zero | busybox nc $2 49779'"; wait $p; [ "$(head -1 /tmp/count)" = 1000000 ]; }
check "TCP to a host inside" tcp_to one 10.8.0.1
check "TCP from a host inside" tcp_from two 10.8.0.2
check "TCP between the hosts inside" between one 10.8.0.1 two

# The LES goes, and comes back: everybody joins again.
lost() { host inspect $1 lec >/tmp/lec; ! grep -q "^lec0 .*operational" /tmp/lec; }
kill -9 $les1
check "the LES is killed: the clients inside leave" waitfor 10 lost one
# Its address is taken until the kernel has cleared up behind the old one: a LES that finds it so ends at once.
while :; do les -f /tmp/vars1; sleep 1; done >/tmp/les1b.log 2>&1 &
check "a new LES: a client inside joins again" waitfor 30 operational one
check "and the other one" waitfor 30 operational two
check "and zeppelin: pings" waitfor 40 ping -c 1 -W 1 10.8.0.1
check "pings between the hosts inside again" inside_pings two 10.8.0.1
host inspect one lec
tail -5 /tmp/zeppelin.log /tmp/zeppelin2.log /tmp/lecs.log /tmp/les1.log /tmp/bus1.log /tmp/les1b.log
