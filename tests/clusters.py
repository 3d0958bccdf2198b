"""A real Dask scheduler with workers of its own, on loopback."""

import re
import subprocess
import sys
import threading


class Cluster:
    """A real scheduler and two real worker processes, on loopback."""

    def __enter__(self):
        here = ["--no-dashboard", "--host", "127.0.0.1"]
        self.scheduler = self.start("dask_scheduler", "--port", "0", *here)
        found = (re.search(r"Scheduler at:\s*(tcp://\S+)", line) for line in self.scheduler.stderr)
        self.address = next(filter(None, found)).group(1)
        self.workers = [
            self.start("dask_worker", self.address, "--nthreads", "1", "--no-nanny", *here) for _ in range(2)
        ]
        for process in (self.scheduler, *self.workers):
            threading.Thread(target=process.stderr.read, daemon=True).start()
        return self

    def start(self, program, *options):
        # A module run as a script prints a warning about its own import on stderr; only the address matters.
        command = [sys.executable, "-m", f"distributed.cli.{program}", *options]
        return subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)

    def __exit__(self, *_):
        for process in [*self.workers, self.scheduler]:
            process.kill()
            process.wait()


def wait_for_workers(address, number):
    from distributed import Client

    with Client(address, set_as_default=False) as client:
        client.wait_for_workers(number, timeout=60)
