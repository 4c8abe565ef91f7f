"""What a further blog in one process costs in memory; run by hand:
`python tests/bench/bench_blogs.py` for this checkout, or with the folders of several.

A service is started with one blog, then with some further ones that `commentd add` has made. Each
blog gets comments from several clients at once and is read as by browsers, so that all threads have
opened its database. The table shows what the process has resident, in MB: after the start, and
after that. The last column is what each further blog adds."""

import argparse
import configparser
import http.client
import json
import re
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import closing
from pathlib import Path

HOME = Path(__file__).resolve().parents[2]
FURTHER = [0, 10]
CLIENTS = 8
COMMENTS = 40
PATHS = ["/comments?url=/a&view=threads&limit=50", "/feed.atom", "/thread?url=/a", "/embed.js"]


class Service:
    """The program of a checkout with some blogs."""

    def __init__(self, checkout: Path, folder: Path, further: int) -> None:
        parser = configparser.ConfigParser(interpolation=None)
        parser["server"] = {
            "listen": "127.0.0.1:0",
            "public_url": "https://comments.blog0.example",
            "trusted_proxy": "127.0.0.1",
        }
        parser["captcha"] = {"provider": "none"}
        settings = folder / "commentd.ini"
        with settings.open("w") as file:
            parser.write(file)
        self.hosts = [f"comments.blog{number}.example" for number in range(further + 1)]
        self.command = [sys.executable, str(checkout / "commentd.py"), "--config", str(settings)]
        for number in range(1, further + 1):
            add = [*self.command, "add", f"blog{number}.example"]
            subprocess.run(add, check=True, stdout=subprocess.DEVNULL)
            added = folder / f"blogs/blog{number}.example.ini"
            added.write_text(f"{added.read_text()}[captcha]\nprovider = none\n")
        self.log = folder / "log"
        with self.log.open("w") as log:
            self.process = subprocess.Popen(self.command, stdout=log, stderr=log)
        while self.log.read_text().count(" serves ") <= further:
            if self.process.poll() is not None:
                raise SystemExit(self.log.read_text())
            time.sleep(0.05)
        found = re.search(r" on http://127\.0\.0\.1:(\d+)$", self.log.read_text(), re.M)
        assert found
        self.port = int(found[1])

    @property
    def memory(self) -> float:
        """What the process has resident, in MB."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        found = re.search(r"VmRSS:\s+(\d+)", status)
        return int(found[1]) / 1024 if found else 0

    def use(self) -> None:
        """Clients write and read on all blogs at once."""
        threads = [threading.Thread(target=self.visit, args=(each,)) for each in range(CLIENTS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def visit(self, client: int) -> None:
        for host in self.hosts:
            headers = {
                "Host": host,
                "Accept-Encoding": "gzip",
                "X-Forwarded-For": f"203.0.113.{client + 1}",
                "Content-Type": "application/json",
            }
            with closing(http.client.HTTPConnection("127.0.0.1", self.port)) as connection:
                for number in range(COMMENTS // CLIENTS):
                    form = {
                        "page_url": "/a",
                        "nickname": f"Reader {client}",
                        "content": f"Comment {number} " + "of some length " * 20,
                        "captcha_token": "x",
                    }
                    connection.request("POST", "/comments", json.dumps(form), headers)
                    response = connection.getresponse()
                    assert response.status == 200, response.read()
                    response.read()
                # A login hashes in a worker thread, which opens the database, too.
                login = {"email": f"{client}@a.example", "password": "x", "captcha_token": "x"}
                connection.request("POST", "/auth/login", json.dumps(login), headers)
                connection.getresponse().read()
                for path in PATHS:
                    connection.request("GET", path, headers=headers)
                    connection.getresponse().read()

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkouts", nargs="*", type=Path, default=[HOME])
    arguments = parser.parse_args()
    print("| checkout | further blogs | started | used | each further blog |")
    print("|---|---|---|---|---|")
    for checkout in arguments.checkouts:
        alone = 0.0
        for further in FURTHER:
            with tempfile.TemporaryDirectory() as folder:
                service = Service(checkout, Path(folder), further)
                try:
                    started = service.memory
                    service.use()
                    used = service.memory
                finally:
                    service.stop()
            alone = alone or used
            each = f"{(used - alone) / further:.2f}" if further else ""
            print(f"| {checkout.name} | {further} | {started:.1f} | {used:.1f} | {each} |")


if __name__ == "__main__":
    main()
