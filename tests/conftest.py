# SPDX-License-Identifier: Apache-2.0
"""What pytest does for the tests of the whole program: fixtures, tiers, order, and what a failure shows.

A test is a function `test_NAME`. It may take
  folder    an empty folder of its own, removed afterwards
  things    a list: what the test puts in (Node, Pacs, threads with stop()) is ended afterwards, whatever happens
  failures  a list of sentences: the test goes on after a failure, and fails at its end if the list is not empty
"""
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse

import pytest
from xdist.scheduler import LoadScheduling

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# What the tests ask for; tests/run.sh sets the first two.
os.environ.setdefault("TOMONODE", os.path.join(ROOT, "build", "dev", "tomonode"))
os.environ.setdefault("TOMONODE_BUILD", os.path.dirname(os.environ["TOMONODE"]))
os.environ.setdefault("TOMONODE_SOURCE", ROOT)
os.environ.update(TOMONODE_CONF="", OMP_WAIT_POLICY="passive")  # tests share the cores: a thread that waits must not spin

if subprocess.run(["stat", "-f", "-c", "%T", tempfile.gettempdir()], capture_output=True,
                  text=True, check=False).stdout.strip() in ("tmpfs", "ramfs"):  # `check` refuses a spool in memory
    os.environ["TMPDIR"] = tempfile.tempdir = os.path.join(os.environ["TOMONODE_BUILD"], "tests")

from tools import node_harness as h  # noqa: E402

TIER = int(os.environ.get("TOMONODE_TIER") or 1)


class OneByOne(LoadScheduling):
    """A process of tests gets the next test when it begins its last one. (xdist's own gives a quarter of all to each at the beginning.)"""

    def _send_tests(self, node, num):
        super()._send_tests(node, min(num, 2 - len(self.node2pending[node])))


def pytest_xdist_make_scheduler(config, log):
    return OneByOne(config, log)


def pytest_configure(config):
    in_main = threading.current_thread() is threading.main_thread()  # execnet may have chosen another one; signals need it
    config.option.timeout = config.option.timeout or 600 * h.PATIENCE  # seconds, of a test that hangs
    config.option.timeout_method = "signal" if in_main else "thread"
    if in_main:
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that what was started is stopped
    if not hasattr(config, "workerinput"):
        config.shared = tempfile.mkdtemp(prefix="tomonode-tests-")  # of all processes of this run
        os.environ["TOMONODE_TESTS_SHARED"] = config.shared
    if h.sanitizer():
        report_to(os.path.join(os.environ["TOMONODE_TESTS_SHARED"], "reports-" + os.environ.get("PYTEST_XDIST_WORKER", "main")))


def pytest_report_header(config):
    return f"{os.environ['TOMONODE']}, tier {TIER}, seed {h.seed()}"


def pytest_unconfigure(config):
    if hasattr(config, "shared"):
        shutil.rmtree(config.shared, ignore_errors=True)


def pytest_collection_modifyitems(config, items):
    left_out = [i for i in items if i.get_closest_marker("tier2")] if TIER < 2 else []
    if left_out:
        config.hook.pytest_deselected(items=left_out)
    items[:] = sorted((i for i in items if i not in left_out), key=lambda i: i.get_closest_marker("long") is None)


# ---- sanitizers: a report of any process fails the test in which it was written ----

REPORTS = []


def report_to(folder):
    """Reports of all processes go to this folder: on standard error they would be lost in the log of a node, and exit codes of killed
    processes are not looked at."""
    os.makedirs(folder, exist_ok=True)
    os.chmod(folder, 0o1777)  # the processes of a node can run as a different user
    REPORTS.append(folder)
    done = subprocess.run([os.path.join(ROOT, "tests", "sanitized.sh"), "--options", folder], capture_output=True, text=True, check=True)
    os.environ.update(line.split("=", 1) for line in done.stdout.splitlines())


def take_reports():
    """The reports that were written since the last call."""
    texts = []
    for folder in REPORTS:
        for name in sorted(os.listdir(folder)):
            with open(os.path.join(folder, name), errors="replace") as f:
                texts.append("".join(f.readlines()[:80]))
            os.remove(os.path.join(folder, name))
    return texts


# ---- a test ----

@pytest.fixture(autouse=True)
def trace(request):
    """In a build with tests/faults/trace.c: the processes of each test mark what they run in a folder of its own."""
    if "TOMONODE_TRACES" not in os.environ:
        yield
        return
    at = os.path.join(os.environ["TOMONODE_TRACES"], urllib.parse.quote(request.node.nodeid, safe=""))
    os.makedirs(at)
    os.chmod(at, 0o1777)
    os.environ["TOMONODE_TRACE"] = at
    began = time.monotonic()
    yield
    with open(os.path.join(at, "seconds"), "w", encoding="utf-8") as f:
        f.write(str(time.monotonic() - began))


@pytest.fixture
def folder():
    path = tempfile.mkdtemp(prefix="tomonode-test-")
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture
def things():
    found = []
    yield found
    for thing in found:
        thing.end() if isinstance(thing, h.Node) else thing.stop()


@pytest.fixture
def failures():
    return []


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem):
    arguments = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
    try:
        pyfuncitem.obj(**arguments)
    except h.Skipped as e:
        pytest.skip(str(e))
    finally:
        reports = take_reports()
    if arguments.get("failures"):
        pytest.fail("\n".join(map(str, arguments["failures"])), pytrace=False)
    if reports:
        pytest.fail(f"{len(reports)} processes wrote reports of a sanitizer:\n" + "\n".join(reports[:5]), pytrace=False)
    return True


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    report = (yield).get_result()
    if report.failed and call.when == "call":
        for thing in item.funcargs.get("things", ()):
            if isinstance(thing, h.Node):
                report.sections.append((f"end of {thing.log_path}", thing.log_text()[-3000:]))
