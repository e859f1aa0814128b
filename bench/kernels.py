"""Labs in real time whose hosts are Linux kernels, and streams of TCP between them, for programs beside it."""
import os, pathlib, select, shutil, signal, socket, struct, subprocess, sys, tempfile, time

ROOT = pathlib.Path(__file__).resolve().parent.parent
AEROSTAT = ROOT / "target" / "release" / "aerostat"
# Beyond these the machine was too busy, as in `aerostat reproduce --live`: events that were more than 20 ms late, and
# the mean time that the lab waited for a processor, in microseconds.
LATE, WAIT = 0, 30.0


def words(values):
    """Values of a lab as options of the command."""
    return [word for key, value in values.items() for word in ("--set", f"{key}={value}")]


class Lab:
    """A running lab, in a runtime directory of its own, with the processes inside it."""

    def __init__(self, aerostat, lab, options=(), first=False):
        """Starts the lab and waits until it is ready; `first`: lab and programs go before all others of the machine.
        Raises RuntimeError with what the lab says."""
        self.aerostat, self.children = aerostat, []
        self.before = ["chrt", "-f", "1"] if first else []
        self.env = dict(os.environ, XDG_RUNTIME_DIR=tempfile.mkdtemp(prefix="kernels."))
        self.process = self.begin(aerostat, "up", lab, "--quiet", "-o", "json", *options, stderr=subprocess.PIPE)
        told = []
        for line in self.process.stderr:
            told.append(line)
            if line.startswith("ready"):
                return
        self.end()
        raise RuntimeError("".join(told))

    def begin(self, *arguments, **more):
        """A process that ends with the lab."""
        more = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE} | more
        process = subprocess.Popen([*self.before, *map(str, arguments)], env=self.env, text=True, **more)
        self.children.append(process)
        return process

    def inside(self, host, *arguments, **more):
        """A process in the network of a host."""
        return self.begin(self.aerostat, "exec", host, "--", *arguments, **{"stderr": subprocess.PIPE} | more)

    def run(self, host, *arguments):
        process = self.inside(host, *arguments)
        out, err = process.communicate(timeout=30)
        if process.returncode:
            raise RuntimeError(f"{host}: {' '.join(map(str, arguments))}: {err.strip()}")
        return out

    def late(self):
        """Events of the network so far that were more than 20 ms late."""
        done = subprocess.run([self.aerostat, "inspect", "lab", "-o", "csv", "--table", "lab"], env=self.env, capture_output=True, text=True, timeout=30)
        rows = [line.rsplit(",", 1) for line in done.stdout.splitlines() if "more than 20 ms late" in line]
        if not rows:
            raise RuntimeError(f"the lab does not count late events: {done.stderr.strip()}")
        return int(rows[0][1])

    def waits(self):
        """Nanoseconds for which the process of the lab has waited for a processor, and how often it then ran."""
        return [int(word) for word in pathlib.Path(f"/proc/{self.process.pid}/schedstat").read_text().split()[1:3]]

    def end(self):
        """Ends the lab and all processes; returns the results of the lab."""
        results = ""
        for process in reversed(self.children):
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
            try:
                out, _ = process.communicate(timeout=20)
            except subprocess.TimeoutExpired:
                process.kill()
                out, _ = process.communicate()
            except ValueError:  # a pipe that has been read to its end already
                out = ""
            results = out if process is self.process else results
        shutil.rmtree(self.env["XDG_RUNTIME_DIR"], ignore_errors=True)
        return results


# --- streams: this file as a program inside hosts ---

CHUNK = bytes(64 << 10)
NETSTAT = {"RetransSegs": ("snmp", "Tcp:"), "TCPTimeouts": ("netstat", "TcpExt:")}


def counters():
    """Segments that the kernel of this network has sent again, and expirations of its timers."""
    found = []
    for name, (file, row) in NETSTAT.items():
        lines = [line.split() for line in pathlib.Path(f"/proc/net/{file}").read_text().splitlines() if line.startswith(row)]
        found.append(int(lines[1][lines[0].index(name)]))
    return found


def receive(port, connections):
    """Takes connections; each line `until TIME` of standard input makes it read all until then, by the monotonic clock,
    and print the octets of each."""
    with socket.create_server(("", port), backlog=64) as server:
        print("ready", flush=True)
        for line in sys.stdin:
            until = float(line.split()[1])
            open_, got = [], []
            while (left := until - time.monotonic()) > 0:
                ready, _, _ = select.select([server, *(one for one, _ in open_)], [], [], left)
                if server in ready:
                    open_.append((server.accept()[0], len(got)))
                    got.append(0)
                for connection, number in [entry for entry in open_ if entry[0] in ready]:
                    octets = len(connection.recv(len(CHUNK)))
                    if time.monotonic() < until:
                        got[number] += octets
                    if not octets:
                        open_.remove((connection, number))
                        connection.close()
            time.sleep(0.5)  # the senders look at their connections before these end
            for connection, _ in open_:
                reset(connection)
            if len(got) != connections:
                sys.exit(f"{len(got)} of {connections} connections")
            print(*got, flush=True)


def transmit(address, port, congestion):
    """Each line `from TIME until TIME` of standard input makes a connection that sends for this time; then it prints
    what the kernel counted, and the state of the connection in the words of `ss`."""
    print("ready", flush=True)
    for line in sys.stdin:
        start, until = (float(word) for word in line.split()[1::2])
        before = counters()
        time.sleep(max(0.0, start - time.monotonic()))
        with socket.socket() as connection:
            # A network namespace may take no other default than that of the machine.
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, congestion.encode())
            connection.settimeout(max(0.01, until - time.monotonic()))
            try:
                connection.connect((address, port))
                while (left := until - time.monotonic()) > 0:
                    connection.settimeout(left)
                    connection.send(CHUNK)
            except (TimeoutError, ConnectionResetError, BrokenPipeError):
                pass  # the time is over, here or at the receiver
            after = counters()
            said = subprocess.run(["ss", "-tinH", "dport", "=", f":{port}"], capture_output=True, text=True).stdout
            reset(connection)
        print(*(now - then for now, then in zip(after, before)), " ".join(said.split()), flush=True)


def reset(connection):
    """Ends a connection with nothing of it left under way."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


class Streams:
    """TCP from some hosts to one, again and again."""

    PORT = 5001

    def __init__(self, lab, senders, receiver, address, congestion):
        self.lab, self.senders = lab, senders
        for host in (*senders, receiver):
            # What one stream learns of a path is not for the next one, and a frame has one segment.
            lab.run(host, "sh", "-c", "echo 1 > /proc/sys/net/ipv4/tcp_no_metrics_save && ip link set dev atm0 gso_max_segs 1")
        for host in senders:
            lab.run(host, "ping", "-q", "-c", "2", "-i", "0.3", address)
        program = [sys.executable, __file__]
        self.programs = [lab.inside(receiver, *program, "receive", self.PORT, len(senders), stdin=subprocess.PIPE),
                         *(lab.inside(host, *program, "transmit", address, self.PORT, congestion, stdin=subprocess.PIPE) for host in senders)]
        for one in self.programs:
            if one.stdout.readline() != "ready\n":
                raise RuntimeError("a program inside the lab did not start")

    def carry(self, starts, seconds):
        """One stream of each sender, from its start on until `seconds`, both in seconds from now. Returns the octets
        that the receiver has read of each connection, and of each sender what was sent again, timers and its state;
        and what of the machine's load the lab felt: late events, mean wait in microseconds."""
        late, waits = self.lab.late(), self.lab.waits()
        begin = time.monotonic() + 0.1
        until = begin + seconds
        lines = [f"until {until}", *(f"from {begin + start} until {until}" for start in starts)]
        for program, line in zip(self.programs, lines):
            program.stdin.write(line + "\n")
            program.stdin.flush()
        said = [program.stdout.readline() for program in self.programs]
        for program in (program for program, line in zip(self.programs, said) if not line):
            raise RuntimeError(f"a program inside the lab has ended: {program.stderr.read().strip()}")
        octets = [int(word) for word in said[0].split()]
        found = [(int(again), int(timers), state) for again, timers, state in (line.strip().split(" ", 2) for line in said[1:])]
        waited, turns = (now - then for now, then in zip(self.lab.waits(), waits))
        return octets, found, (self.lab.late() - late, waited / 1e3 / max(1, turns))


if __name__ == "__main__":
    try:
        if sys.argv[1] == "receive":
            receive(int(sys.argv[2]), int(sys.argv[3]))
        else:
            transmit(sys.argv[2], int(sys.argv[3]), sys.argv[4])
    except KeyboardInterrupt:
        pass
