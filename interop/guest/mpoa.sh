# An MPOA client of Linux: packets to a host behind the router leave the routed path for a shortcut, both ways.
# mpcd learns of the router's MPOA server from LE_ARP, and takes its parameters from the LECS.
zeppelin -m ffff -2 -l $OWN -i 0 >/tmp/zeppelin.log 2>&1 &
check "zeppelin joins the ELAN" waitfor 30 grep -q "Joined ELAN" /tmp/zeppelin.log
ifconfig lec0 10.8.0.2 netmask 255.255.255.0 up
route add -net 10.7.0.0/24 gw 10.8.0.1
mpcd -i 0 -s $PREFIX.$ESI.50 -l $PREFIX.$ESI.51 -L $OWN >/tmp/mpcd.log 2>&1 & mpcd=$!
sleep 2
check "ping by the routed path" waitfor 10 ping -c 1 -W 1 10.7.0.1
pings() { ping -c $1 -i 0.05 10.7.0.1 >/tmp/ping; tail -3 /tmp/ping; grep -q " 0% packet loss" /tmp/ping; }
# Under load Linux itself may lose one here: its mpcd accepts a call first, and hands it to the kernel then. MPOA has no
# READY message that would make the caller wait.
check "no ping is lost on the way to the shortcut" pings 60
# Ends in the VPI and VCI: the entry has its connection.
ingress() { cat /proc/net/atm/mpc; grep -q "^10.7.0.1 *resolved  *[0-9]*  *[0-9]*  *0  *[0-9]" /proc/net/atm/mpc; }
egress() { grep -q "^[0-9]*  *resolved .* 10.7.0.1  *0  *[0-9]" /proc/net/atm/mpc; }
check "Linux sends on a shortcut" waitfor 5 ingress
ingress
check "Linux receives on a shortcut" waitfor 5 egress
host inspect inside mpc -o proc >/tmp/inside; cat /tmp/inside
inside() { grep -q "^10.8.0.2 *resolved  *[0-9]*  *[0-9]*  *0  *[0-9]" /tmp/inside; }
check "the host inside sends on a shortcut to Linux" inside
both() { host inspect router mps; host inspect router mps >/tmp/mps; grep -q "^10.7.0.1/32  Resolved  10.8.0.2 " /tmp/mps && grep -q "^10.8.0.2/32  Resolved  10.7.0.1 " /tmp/mps; }
check "the router's MPOA server knows both" both
routed() { host inspect router lec | awk '/^sent_direct/ { n += $2 } END { print n }'; }
around() { before=$(routed); pings 40 || return 1; after=$(routed); echo "the router sent $before frames, then $after"; [ $((after - before)) -lt 5 ]; }
check "40 pings pass the router by" around

# SIGHUP: mpcd purges what it was imposed, and starts over.
kill -HUP $mpcd
nothing_imposed() { host inspect router mps >/tmp/mps; ! grep -q "10.8.0.2/32  Imposed" /tmp/mps; }
check "mpcd restarts: its egress entry is gone at the server" waitfor 5 nothing_imposed
again() { pings 40; ingress; }
check "the shortcut comes back" waitfor 60 again

# The MPOA server dies: without a sign of life both clients forget what it told them, and go back to the routed path.
host fault crash router/mps
forgotten() { ! grep -q resolved /proc/net/atm/mpc; }
check "the MPOA server dies: Linux forgets what it was told" waitfor 15 forgotten
forgotten_inside() { host inspect inside mpc -o proc >/tmp/inside; ! grep -q resolved /tmp/inside; }
check "so does the host inside" waitfor 10 forgotten_inside
check "the routed path goes on without the server" pings 40
host fault restart router/mps
check "the server starts again: the shortcut comes back" waitfor 60 again

# SIGTERM: the same, and the routed path serves on.
kill $mpcd
check "mpcd ends: its egress entry is gone at the server" waitfor 5 nothing_imposed
check "the routed path goes on without mpcd" pings 40
tail -40 /tmp/mpcd.log
