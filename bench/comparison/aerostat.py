"""Labs of Aerostat in real time, each with a runtime directory of its own: other labs of this machine stay untouched."""

import json
import os
import pathlib
import signal
import subprocess
import tempfile

from .machine import ROOT, Died, Namespace, descendants, run, timed_run

LABS = ROOT / "bench" / "labs"


class Lab:
    """A lab that runs until the processes of this run end, in a network namespace if one is given."""

    def __init__(self, context, lab, *options, text=None, inside=None):
        self.program = context.aerostat
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="lab.", dir=context.scratch))
        self.environment = dict(os.environ, XDG_RUNTIME_DIR=str(self.folder))
        path = LABS / lab
        if text is not None:
            path = self.folder / lab
            path.write_text(text, encoding="utf-8")
        self.processes = context.processes
        command = [self.program, "up", *options, path]
        if inside is not None:
            command = inside.inside(command)
        # SIGTERM lets the lab take its namespaces and daemons down.
        self.process = context.processes.serve(command, "ready\n", seconds=90, last_signal=signal.SIGTERM,
                                               stderr=subprocess.STDOUT, env=self.environment, cwd=self.folder)
        # The story goes on: nobody may leave it in the pipe until the lab waits.
        self.drain = context.processes.start(["cat"], stdin=self.process.stdout)
        self.process.stdout.close()

    def ask(self, *words):
        """What a subcommand prints."""
        return run([self.program, *words], env=self.environment, cwd=self.folder)

    def table(self, *words):
        return json.loads(self.ask("inspect", *words, "-o", "json"))

    def namespace(self, host):
        """The network namespace of a kernel host, held by a process of ours."""
        command = [self.program, "exec", host, "--", "sh", "-c", "echo ready; exec sleep infinity"]
        process = self.processes.serve(command, "ready", env=self.environment, cwd=self.folder)
        # The lab has process identifiers of its own: the sleeper is the last descendant as seen from here.
        pid = descendants(process.pid)[-1]
        if os.readlink(f"/proc/{pid}/ns/net") == os.readlink("/proc/self/ns/net"):
            raise Died(f"aerostat exec {host} entered no namespace")
        return Namespace(pid)

    def follow(self, out):
        """Copies the events of the lab to a file until it is stopped."""
        return self.processes.start([self.program, "events", "--follow"], stdout=out, env=self.environment, cwd=self.folder)

    def stop(self):
        self.processes.stop(self.process)
        self.processes.stop(self.drain)


def run_in_virtual_time(context, lab, *options):
    return timed_run([context.aerostat, "run", "-q", "-o", "json", *options, LABS / lab], context.scratch,
                     environment=dict(os.environ, NO_COLOR="1"))
