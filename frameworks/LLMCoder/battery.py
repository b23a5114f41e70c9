"""Attacks on a confinement, and what shows that one succeeded.

The self-test runs them all before a model's first program: what stopped them a minute ago on this
machine is trusted, not what should. A program that must work is among them, so that a confinement
that stops everything does not pass.

``{...}`` in a program is replaced by facts of the test: a file outside, ports, process ids.
"""

from __future__ import annotations

import ctypes
import dataclasses
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

from .confine import CALLS, MACHINES, REFUSED
from .sandbox import (
    FIRST_UID,
    UIDS,
    Limits,
    new_work_folder,
    read_result,
    remove_work_folder,
)

#: Small limits, so that the test takes seconds; a program of the model has others.
LIMITS = Limits(
    seconds=1.5, memory_mb=768, work_mb=16, output_mb=1, files=300, processes=64
)
#: For what ends by itself: on a busy machine an attack that had no time to try is not stopped.
PATIENT = dataclasses.replace(LIMITS, seconds=30.0)
#: What only a limit ends.
ENDLESS = ("endless loop", "sleep", "output without end")
#: What waits, for a limit or for a while. These start first, so that the others run meanwhile.
WAITING = (
    *ENDLESS, "outlives the run", "many files", "many empty files", "memory of many processes",
    "unlinked files", "long paths", "a folder without rights",
)
#: Attacks at a time.
WORKERS = 6
SECRET = "SECRET-OF-THE-TEST"
KEY = "KEY-OF-THE-TEST"

#: System calls by number, which Python has no name for.
CALL = "import ctypes, os\ncall = ctypes.CDLL(None, use_errno=True).syscall\n"
#: Name: the program. Printing GOT means that the attack succeeded.
PROGRAMS = {
    "good": (
        "import ctypes, json, math, subprocess, threading\n"
        "t = threading.Thread(target=print, args=('thread',)); t.start(); t.join()\n"
        "open('results/predictions.txt', 'w').write('1\\n2\\n')\n"
    ),
    "read a file outside": "print('GOT', open('{secret}').read())",
    "write outside": "open('{outside}/written', 'w').write('x')",
    "list a folder outside": "import os; print('GOT', os.listdir('{outside}'))",
    "link a result to a file outside": "import os; os.symlink('{secret}', 'results/predictions.txt')",
    "key in the environment": (
        "import os\n"
        "if any('{key}' in value for value in os.environ.values()): print('GOT')\n"
    ),
    "environment of another process": (
        "if b'{key}' in open('/proc/{victim}/environ', 'rb').read(): print('GOT')\n"
    ),
    "memory of another process": (
        "import os\n"
        "f = os.open('/proc/{victim}/mem', os.O_RDONLY)\nprint('GOT')\n"
    ),
    "kill another process": "import os; os.kill({victim}, 9)",
    "limits of another process": (
        "import resource\n"
        "resource.prlimit({victim}, resource.RLIMIT_CPU, (0, 0)); print('GOT')\n"
    ),
    "TCP": "import socket; socket.create_connection(('127.0.0.1', {tcp}), 1)",
    "UDP": "import socket; socket.socket(2, 2).sendto(b'x', ('127.0.0.1', {udp}))",
    "unix socket": "import socket; socket.socket(socket.AF_UNIX).connect('{unix}')",
    "endless loop": "while True: pass",
    "sleep": "import time; time.sleep(60)",
    "memory": "b = [bytearray(1 << 26) for _ in range(40)]; print('GOT')",
    "forks": (
        "import os, time\nn = 0\n"
        "for _ in range(200):\n"
        "    try:\n"
        "        if os.fork() == 0: time.sleep(1); os._exit(0)\n"
        "        n += 1\n"
        "    except OSError: break\n"
        "if n >= 190: print('GOT', n)\n"
    ),
    "output without end": "while True: print('x' * 10000)",
    "one large file": (
        "f = open('big', 'wb')\n"
        "for _ in range(64): f.write(b'0' * (1 << 20))\nprint('GOT')\n"
    ),
    "many files": (
        "for i in range(64): open('f%d' % i, 'wb').write(b'0' * (1 << 20))\n"
        "import time; time.sleep(1); print('GOT')\n"
    ),
    "many empty files": (
        "for i in range(20000): open('f%d' % i, 'wb').close()\n"
        "import time; time.sleep(1); print('GOT')\n"
    ),
    "memory of many processes": (
        "import os, time\n"
        "children = []\n"
        "for _ in range(8):\n"
        "    child = os.fork()\n"
        "    if not child: b = bytearray(os.urandom(1 << 10) * (200 << 10)); time.sleep(2); os._exit(7)\n"
        "    children.append(child)\n"
        "if all(os.waitpid(child, 0)[1] == 7 << 8 for child in children): print('GOT')\n"
    ),
    "unlinked files": (
        "import os, time\nkept = []\n"
        "for i in range(8):\n"
        "    kept.append(open('u%d' % i, 'wb')); os.remove('u%d' % i)\n"
        "    kept[-1].write(b'0' * (8 << 20)); kept[-1].flush()\n"
        "time.sleep(1); print('GOT')\n"
    ),
    "long paths": (
        "import os, time\n"
        "for _ in range(30): os.mkdir('d' * 200); os.chdir('d' * 200)\n"
        "for i in range(4): open('f%d' % i, 'wb').write(b'0' * (8 << 20))\n"
        "time.sleep(1); print('GOT')\n"
    ),
    "a folder without rights": (
        "import os, time\n"
        "os.mkdir('closed', 0o300)\n"
        "for i in range(4): open('closed/f%d' % i, 'wb').write(b'0' * (8 << 20))\n"
        "time.sleep(1); print('GOT')\n"
    ),
    "allocated space": (
        CALL + "f = os.open('big', os.O_RDWR | os.O_CREAT)\n"
        "call({fallocate}, f, 1, 0, 1 << 30)\n"
        "if os.stat('big').st_blocks > 1 << 20: print('GOT')\n"
    ),
    "memory as a file": (
        "import os\n"
        "for folder in ('/dev/shm', '/', '/dev', '/run', '/var/tmp'):\n"
        "    names = [os.path.join(folder, 'coder-%d' % i) for i in range(10)]\n"
        "    try:\n"
        "        for name in names: open(name, 'wb').write(b'0' * (8 << 20))\n"
        "        print('GOT')\n"
        "    except OSError: pass\n"
        "    for name in names:\n"
        "        try: os.remove(name)\n"
        "        except OSError: pass\n"
    ),
    "queues, semaphores and shared memory": (
        CALL + "key = {ipc_key}\n"
        "for what in ({msgget}, {semget}, {shmget}):\n"
        "    made = call(what, key, *((1,) if what != {msgget} else ()), 0o1666)\n"
        "    if made >= 0: print('made', made)\n"
    ),
    "keys of the session": (
        CALL + "for ring in (-3, -4, -5):\n"
        "    if call({keyctl}, 11, ring, 0, 0) > 0: print('GOT')\n"
    ),
    "modes and times of files outside": (
        "import os\n"
        "for change in (lambda p: os.chmod(p, 0o640), lambda p: os.utime(p, (1, 1)),\n"
        "               lambda p: os.setxattr(p, 'user.coder', b'x')):\n"
        "    try: change('{secret}')\n"
        "    except OSError: pass\n"
    ),
    "scheduling of another process": (
        "import os\n"
        "for change in (lambda: os.setpriority(0, {victim}, 19),\n"
        "               lambda: os.sched_setaffinity({victim}, [0]),\n"
        "               lambda: os.sched_setscheduler({victim}, 3, os.sched_param(0))):\n"
        "    try: change()\n"
        "    except OSError: pass\n"
    ),
    "watch a folder outside": (
        CALL + "f = call({inotify_init1}, 0)\n"
        "if f >= 0 and call({inotify_add_watch}, f, b'{outside}', 0xFFF) >= 0: print('GOT')\n"
    ),
    "data sets of packages": (
        "for path in {data_files}:\n"
        "    try: print('GOT', open(path, 'rb').read(1))\n"
        "    except OSError: pass\n"
    ),
    "outlives the run": (
        "import os, time\n"
        "if os.fork() == 0:\n"
        "    os.setsid()\n"
        "    if os.fork() == 0:\n"
        "        os.closerange(0, 9)\n"
        "        for _ in range(60): open('late', 'w').close(); time.sleep(0.05)\n"
        "    os._exit(0)\n"
    ),
}


class Target:
    """What the attacks aim at: files, ports and a process of the harness's user."""

    def __init__(self):
        self.folder = os.path.realpath(tempfile.mkdtemp(prefix="coder-target-"))
        # whatever its user: only the confinement is to keep it out
        os.chmod(self.folder, 0o777)
        self.secret = os.path.join(self.folder, "secret")
        with open(self.secret, "w") as file:
            file.write(SECRET)
        os.chmod(self.secret, 0o666)
        self.tcp = self._socket(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 0))
        self.udp = self._socket(socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", 0))
        unix = os.path.join(self.folder, "socket")
        self.unix = self._socket(socket.AF_UNIX, socket.SOCK_STREAM, unix)
        os.chmod(unix, 0o777)
        self.ipc_key = 0x68730000 + os.getpid() % 0xFFFF
        self.about = self.metadata()

    def _socket(self, family, kind, address):
        bound = socket.socket(family, kind)
        bound.bind(address)
        if kind == socket.SOCK_STREAM:
            bound.listen(8)
        bound.settimeout(0.01)
        return bound

    def facts(self, victim, hidden):
        """Return what the programs are told."""
        place = MACHINES.get(os.uname().machine, (0, 0))[1]
        calls = {name: numbers[place] for name, numbers in {**REFUSED, **CALLS}.items()}
        files = [os.path.join(folder, name) for folder in hidden for name in os.listdir(folder)]
        return {
            **calls,
            "ipc_key": self.ipc_key,
            "data_files": [path for path in files if os.path.isfile(path)][:200],
            "secret": self.secret,
            "outside": self.folder,
            "key": KEY,
            "victim": victim,
            "tcp": self.tcp.getsockname()[1],
            "udp": self.udp.getsockname()[1],
            "unix": self.unix.getsockname(),
        }

    def metadata(self):
        """Return what a program must not change of the file outside."""
        about = os.stat(self.secret)
        try:
            names = os.listxattr(self.secret)
        except OSError:
            names = []
        return about.st_mode, about.st_mtime, names

    def left_in_kernel(self):
        """Return the queues, semaphores and shared memory that a program has left, and remove them.

        They bear the number that the programs were told.
        """
        libc = ctypes.CDLL(None, use_errno=True)
        found = [
            (libc.msgctl, (libc.msgget(self.ipc_key, 0), 0, None)),
            (libc.semctl, (libc.semget(self.ipc_key, 0, 0), 0, 0)),
            (libc.shmctl, (libc.shmget(self.ipc_key, 0, 0), 0, None)),
        ]
        left = [(remove, words) for remove, words in found if words[0] >= 0]
        for remove, words in left:
            remove(*words)
        return len(left)

    def was_reached(self, bound):
        """Whether something came in at a socket."""
        try:
            if bound.type == socket.SOCK_DGRAM:
                bound.recv(8)
            else:
                bound.accept()[0].close()
        except OSError:
            return False
        return True

    def close(self):
        """Close the ports and remove the files."""
        for bound in (self.tcp, self.udp, self.unix):
            bound.close()
        shutil.rmtree(self.folder, ignore_errors=True)


def scheduling(pid):
    """Return how a process is scheduled."""
    affinity = os.sched_getaffinity(pid)
    return os.getpriority(os.PRIO_PROCESS, pid), affinity, os.sched_getscheduler(pid)


def attack(sandbox, name, target):
    """Run one attack; return why it counts as succeeded, nothing where it was stopped."""
    user = {}
    if os.getuid() == 0 and sandbox.tier != "none":
        # of the same user as the program, which is what only the confinement keeps it from
        uid = FIRST_UID + os.getpid() % UIDS
        user = {"preexec_fn": lambda: (os.setgid(uid), os.setuid(uid))}
    victim = subprocess.Popen(["/bin/sleep", "90"], env={"SECRET": KEY}, **user)
    usual = scheduling(victim.pid)
    # in two halves: the line that failed stands in the traceback
    program = PROGRAMS[name].replace("'GOT'", "'G' 'OT'")
    for fact, value in target.facts(victim.pid, sandbox.hidden).items():
        program = program.replace("{%s}" % fact, str(value))
    work = new_work_folder(program)
    try:
        limits = LIMITS if name in ENDLESS else PATIENT
        outcome = sandbox.run(work, limits, flags=("-I", "-S", "-u"))
        if outcome.reason == "harness":
            return f"did not run: {outcome.output[-200:]}"
        if outcome.reason == "timeout" and name not in ENDLESS:
            return f"did not end within {limits.seconds:g} s, which shows nothing"
        if name == "good":
            is_whole = read_result(work, "predictions.txt", 100) == b"1\n2\n"
            return "" if is_whole else f"did not work: {outcome.reason} {outcome.output[-200:]}"
        if "GOT" in outcome.output or SECRET in outcome.output:
            return "succeeded"
        if name == "write outside" and os.path.exists(os.path.join(target.folder, "written")):
            os.remove(os.path.join(target.folder, "written"))
            return "succeeded"
        if name == "link a result to a file outside":
            try:
                return "succeeded" if read_result(work, "predictions.txt", 100) else ""
            except ValueError:
                return ""
        if name == "queues, semaphores and shared memory":
            return "succeeded" if target.left_in_kernel() else ""
        if name == "modes and times of files outside":
            return "succeeded" if target.metadata() != target.about else ""
        if name == "scheduling of another process":
            return "succeeded" if scheduling(victim.pid) != usual else ""
        if name in ("kill another process", "limits of another process"):
            time.sleep(0.02)
            return "succeeded" if victim.poll() is not None else ""
        for kind, bound in (("TCP", target.tcp), ("UDP", target.udp), ("unix socket", target.unix)):
            if name == kind and target.was_reached(bound):
                return "succeeded"
        if name in ("endless loop", "sleep") and outcome.reason not in ("timeout", "error"):
            return f"ended by {outcome.reason or 'itself'}"
        if name == "output without end" and len(outcome.output) > 9000:
            return "succeeded"
        if name == "outlives the run":
            # it may have written before it was ended; whoever lives writes again
            late = os.path.join(work, "late")
            if os.path.exists(late):
                os.remove(late)
            time.sleep(0.5)
            return "succeeded" if os.path.exists(late) else ""
        return ""
    finally:
        victim.send_signal(signal.SIGKILL)
        victim.wait()
        remove_work_folder(work)


def failed_attacks(sandbox, names=tuple(PROGRAMS)):
    """Return one short text for each attack that the confinement did not stop."""
    target = Target()
    os.environ["CODER_BATTERY_KEY"] = KEY
    try:
        works = attack(sandbox, "good", target)
        if works:
            return [f"a harmless program {works}"]
        # the programs share a user, so while one forks as often as it may no other can start
        alone = [name for name in names if name == "forks"]
        others = [name for name in names if name not in alone]
        together = sorted(others, key=lambda name: name not in WAITING)
        order = alone + together
        results = [attack(sandbox, name, target) for name in alone]
        with ThreadPoolExecutor(WORKERS) as pool:
            results += pool.map(lambda name: attack(sandbox, name, target), together)
    finally:
        del os.environ["CODER_BATTERY_KEY"]
        target.close()
    return [f"{name}: {why}" for name, why in zip(order, results) if why]
