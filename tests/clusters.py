"""A real Dask cluster on the loopback address."""

import re
import subprocess
import sys
import threading


class Cluster:
    """A scheduler and worker processes of one thread each."""

    def __init__(self, workers=2):
        self.number = workers

    def __enter__(self):
        here = ["--no-dashboard", "--host", "127.0.0.1"]
        self.scheduler = self.start("dask_scheduler", "--port", "0", *here)
        found = (re.search(r"Scheduler at:\s*(tcp://\S+)", line) for line in self.scheduler.stderr)
        self.address = next(filter(None, found)).group(1)
        self.workers = []
        for _ in range(self.number):
            self.add_worker()
        threading.Thread(target=self.scheduler.stderr.read, daemon=True).start()
        return self

    def add_worker(self, **options):
        one = ["--nthreads", "1", "--no-nanny", "--no-dashboard", "--host", "127.0.0.1"]
        self.workers.append(self.start("dask_worker", self.address, *one, **options))
        threading.Thread(target=self.workers[-1].stderr.read, daemon=True).start()

    def start(self, program, *words, **options):
        # A module that is run as a script warns on stderr about its own import. Only the address matters.
        command = [sys.executable, "-m", f"distributed.cli.{program}", *words]
        options |= {"stderr": subprocess.PIPE, "stdout": subprocess.DEVNULL, "text": True}
        return subprocess.Popen(command, **options)

    def __exit__(self, *_):
        for process in [*self.workers, self.scheduler]:
            process.kill()
            process.wait()


def wait_for_workers(address, number):
    from distributed import Client

    with Client(address, set_as_default=False) as client:
        client.wait_for_workers(number, timeout=60)
