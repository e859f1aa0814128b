# A LANE client joins the lab's ELAN and talks to a host inside, 10.8.0.1.
zeppelin -m ffff -2 -l $OWN -i 0 >/tmp/zeppelin.log 2>&1 &
check "zeppelin joins the ELAN" waitfor 30 grep -q "Joined ELAN" /tmp/zeppelin.log
ifconfig lec0 10.8.0.2 netmask 255.255.255.0 up
check "ping" waitfor 10 ping -c 1 -W 1 10.8.0.1
pings() { ping -c 20 -i 0.1 -s $1 10.8.0.1 >/tmp/ping; tail -3 /tmp/ping; grep -q " 0% packet loss" /tmp/ping; }
check "20 pings of 64 octets" pings 56
check "20 pings of 1500 octets" pings 1472
direct() { cat /proc/net/atm/lec; grep -qi "02:a7:03.*FORWARD_DIRECT" /proc/net/atm/lec; }
check "the data direct connection is in use" direct
