"""A real Dask scheduler with workers of its own, on loopback."""

import re
import subprocess
import sys
import threading


class Cluster:
    """A real scheduler and two real worker processes, on loopback."""

    def __enter__(self):
        self.workers = []
        command = [
            sys.executable,
            "-m",
            "distributed.cli.dask_scheduler",
            "--host",
            "127.0.0.1",
            "--port",
            "0",
        ]
        self.scheduler = self.start([*command, "--no-dashboard"])
        for line in self.scheduler.stderr:
            if found := re.search(r"Scheduler at:\s*(tcp://\S+)", line):
                self.address = found.group(1)
                break
        threading.Thread(target=self.scheduler.stderr.read, daemon=True).start()
        for _ in range(2):
            options = ["--nthreads", "1", "--no-nanny", "--no-dashboard", "--host", "127.0.0.1"]
            self.workers.append(
                self.start([sys.executable, "-m", "distributed.cli.dask_worker", self.address, *options])
            )
            threading.Thread(target=self.workers[-1].stderr.read, daemon=True).start()
        return self

    def start(self, command):
        # A module run as a script prints a warning about its own import on stderr; only the address matters.
        return subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)

    def __exit__(self, *_):
        for process in [*self.workers, self.scheduler]:
            process.kill()
            process.wait()


def wait_for_workers(address, number):
    from distributed import Client

    with Client(address, set_as_default=False) as client:
        client.wait_for_workers(number, timeout=60)
