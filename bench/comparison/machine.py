"""The machine: processes that end with this process, network namespaces that vanish with it, CPUs, and how busy it is."""

import ctypes
import os
import pathlib
import platform
import re
import select
import shutil
import signal
import socket
import subprocess
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None, use_errno=True)


def prioritise():
    """Everything that is measured runs before the other programs of the machine: real-time scheduling, in turns.

    Niceness is not enough: the scheduler lets a running program finish its slice of milliseconds before one that wakes.
    """
    try:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    except PermissionError as error:
        raise Missing("root: --priority") from error


def before_others():
    """Words in front of a command that has a CPU before another one, and of that other one."""
    if os.sched_getscheduler(0) == os.SCHED_RR:
        return ["chrt", "--rr", "2"], []
    return [], ["nice", "-n", "15"]


class Missing(Exception):
    """Something is not installed or not allowed here: the text says what, and how to get it."""


class Died(Exception):
    """A peer ended, or did not answer, while it was measured."""


def need(program, how):
    """The path of a program."""
    path = shutil.which(program)
    if path is None:
        raise Missing(f"{program}: {how}")
    return path


def need_root():
    if os.geteuid() != 0:
        raise Missing("root: namespaces and TAPs; run bench/compare as root")
    if not os.path.exists("/dev/net/tun"):
        raise Missing("/dev/net/tun: TAPs; modprobe tun")
    for program in ("ip", "nsenter", "unshare"):
        need(program, "apt-get install iproute2 util-linux")


def ends_with_parent(last_signal):
    """For a child, before it becomes another program: the kernel ends it when this process ends, however it ends."""
    def prepare():
        LIBC.prctl(PR_SET_PDEATHSIG, last_signal)
    return prepare


class Processes:
    """Children of this run. On leaving, all of them are ended, and waited for."""

    def __init__(self):
        self.all = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in reversed(self.all):
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
        for process in reversed(self.all):
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def start(self, command, last_signal=signal.SIGKILL, **settings):
        """Starts a program that goes on until this run ends."""
        settings.setdefault("stdin", subprocess.DEVNULL)
        settings.setdefault("stdout", subprocess.DEVNULL)
        settings.setdefault("stderr", subprocess.DEVNULL)
        process = subprocess.Popen([str(word) for word in command], start_new_session=True,
                                   preexec_fn=ends_with_parent(last_signal), **settings)
        self.all.append(process)
        return process

    def serve(self, command, word, seconds=30, **settings):
        """Starts a program that says a line that holds `word` when it is ready."""
        process = self.start(command, stdout=subprocess.PIPE, **settings)
        end = time.monotonic() + seconds
        seen = b""
        while word.encode() not in seen:
            ready, _, _ = select.select([process.stdout], [], [], max(0, end - time.monotonic()))
            more = os.read(process.stdout.fileno(), 65536) if ready else b""
            if not more:
                text = seen.decode(errors="replace").strip()[-200:]
                raise Died(f"{command[0]} is not ready: {text or 'it said nothing'}")
            seen += more
        return process

    def stop(self, process):
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        if process in self.all:
            self.all.remove(process)


def run(command, seconds=120, **settings):
    """Runs a program to its end and gives its output; it ends with this process, too."""
    command = [str(word) for word in command]
    settings.setdefault("stdin", subprocess.DEVNULL)
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=seconds,
                              preexec_fn=ends_with_parent(signal.SIGKILL), **settings)
    except subprocess.TimeoutExpired as late:
        raise Died(f"{command[0]} takes longer than {seconds} s") from late
    if done.returncode:
        raise Died(f"{' '.join(command[:6])} failed with {done.returncode}: {(done.stderr or done.stdout).strip()[-300:]}")
    return done.stdout


class Namespace:
    """A network namespace without a name. A process that sleeps in it holds it, and it vanishes with that process."""

    def __init__(self, pid):
        self.pid = pid

    @classmethod
    def create(cls, processes):
        process = processes.start(["unshare", "--net", "sleep", "infinity"])
        own = os.readlink("/proc/self/ns/net")
        for _ in range(500):
            try:
                if os.readlink(f"/proc/{process.pid}/ns/net") != own:
                    break
            except OSError as error:
                raise Missing("root: unshare makes no network namespace") from error
            time.sleep(0.01)
        else:
            raise Missing("root: unshare makes no network namespace")
        space = cls(process.pid)
        space.ip("link", "set", "lo", "up")
        return space

    def inside(self, command):
        return ["nsenter", f"--net=/proc/{self.pid}/ns/net", "--", *command]

    def ip(self, *words):
        run(self.inside(["ip", *words]))

    def address(self, device, address, mtu):
        self.ip("addr", "add", address, "dev", device)
        self.ip("link", "set", device, "mtu", str(mtu), "up")

    def has(self, device):
        return device in pathlib.Path(f"/proc/{self.pid}/net/dev").read_text()


def descendants(pid):
    """A process with all its children, theirs, and so on."""
    found = [pid]
    for parent in found:
        try:
            for task in os.listdir(f"/proc/{parent}/task"):
                children = pathlib.Path(f"/proc/{parent}/task/{task}/children").read_text()
                found += [int(child) for child in children.split()]
        except OSError:
            pass
    return found


def pin(pids, cpus):
    """All threads of these processes and of their descendants stay on these CPUs."""
    for root in pids:
        for pid in descendants(root):
            try:
                for task in os.listdir(f"/proc/{pid}/task"):
                    os.sched_setaffinity(int(task), cpus)
            except OSError:
                pass


def pinned(cpu, command):
    return ["taskset", "-c", str(cpu), *command]


def ports(count, kind=socket.SOCK_DGRAM):
    """Free ports of the loopback."""
    sockets = [socket.socket(socket.AF_INET, kind) for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    numbers = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return numbers


def cpus():
    return sorted(os.sched_getaffinity(0))


def cpu_time(pids):
    """Processor time that these processes and their descendants have used, s."""
    total = 0
    for root in pids:
        for pid in descendants(root):
            try:
                for task in os.listdir(f"/proc/{pid}/task"):
                    total += int(pathlib.Path(f"/proc/{pid}/task/{task}/schedstat").read_text().split()[0])
            except OSError:
                pass
    return total / 1e9


def timed_run(command, folder, seconds=900, environment=None):
    """Runs a program to its end: its processor time in s, and its output."""
    out = folder / f"out-{time.monotonic_ns()}"
    with open(out, "w", encoding="utf-8") as file:
        process = subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=file,
                                   stderr=subprocess.DEVNULL, preexec_fn=ends_with_parent(signal.SIGKILL), env=environment)
    end = time.monotonic() + seconds
    try:
        while True:
            pid, status, usage = os.wait4(process.pid, os.WNOHANG)
            if pid:
                break
            if time.monotonic() > end:
                raise Died(f"{command[0]} takes longer than {seconds} s")
            time.sleep(0.02)
    except BaseException:
        process.kill()
        process.wait()
        raise
    process.returncode = os.waitstatus_to_exitcode(status)
    text = out.read_text(encoding="utf-8")
    out.unlink()
    if process.returncode not in (0, 3):
        raise Died(f"{command[0]} failed with {process.returncode}")
    return usage.ru_utime + usage.ru_stime, text


def ticks():
    fields = [int(word) for word in pathlib.Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
    return sum(fields), fields[3] + fields[4]


def busy_cores(seconds=0.15):
    """CPUs that are busy now, on average over a short time."""
    before = ticks()
    time.sleep(seconds)
    after = ticks()
    return os.cpu_count() * (1 - (after[1] - before[1]) / max(1, after[0] - before[0]))


def load():
    return " ".join(f"{n:.2f}" for n in os.getloadavg())


def first_line(command):
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return None
    lines = (done.stdout or done.stderr).strip().splitlines()
    return lines[0] if done.returncode == 0 and lines else None


def facts():
    """What the figures depend on."""
    cpu = "unknown"
    try:
        cpu = re.search(r"model name\s*:\s*(.*)", pathlib.Path("/proc/cpuinfo").read_text()).group(1)
    except (OSError, AttributeError):
        pass
    changed = first_line(["git", "status", "--porcelain", "--untracked-files=no"])
    return {
        "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "commit": (first_line(["git", "rev-parse", "--short", "HEAD"]) or "unknown") + (" with changes" if changed else ""),
        "rustc": first_line(["rustc", "--version"]),
        "kernel": platform.release(),
        "cpu": cpu,
        "cpus": len(cpus()),
        "load before": load(),
    }
