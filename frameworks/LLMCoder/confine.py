"""Run one command under a confinement and report what came of it; a program of its own.

    python -I -S confine.py < JSON > JSON

It supervises: the command runs in a child, this process waits, keeps the time, the size of the
work folder and the amount of output, and in the end kills whatever the command left behind. The
standard library alone, Linux alone. It is the trusted side: what it starts is not.

Notation
--------
ABI : version of Landlock, the kernel's confinement of files; 3 is the least that serves
"""

import ctypes
import json
import os
import resource
import select
import signal
import struct
import sys
import time

PR_SET_PDEATHSIG, PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, PR_SET_CHILD_SUBREAPER = 1, 38, 22, 36
LANDLOCK_CREATE, LANDLOCK_ADD, LANDLOCK_RESTRICT = 444, 445, 446
MIN_ABI = 3
#: Rights on files: execute, read, list; and, beside a folder, what a plain file may have.
READ = (1 << 0) | (1 << 2) | (1 << 3)
FILE_RIGHTS = (1 << 0) | (1 << 1) | (1 << 2) | (1 << 14)
#: System calls by machine: the number of the architecture, then each call.
CALLS = {
    "x86_64": {
        "arch": 0xC000003E, "socket": 41, "ptrace": 101, "process_vm_readv": 310,
        "process_vm_writev": 311, "shmget": 29, "keyctl": 250, "add_key": 248,
        "request_key": 249, "bpf": 321, "perf_event_open": 298, "userfaultfd": 323,
        "unshare": 272, "setns": 308, "memfd_create": 319, "mq_open": 240, "prlimit64": 302,
        "clone": 56, "kill": 62, "tkill": 200, "rt_sigqueueinfo": 129, "mount": 165,
    },
    "aarch64": {
        "arch": 0xC00000B7, "socket": 198, "ptrace": 117, "process_vm_readv": 270,
        "process_vm_writev": 271, "shmget": 194, "keyctl": 219, "add_key": 217,
        "request_key": 218, "bpf": 280, "perf_event_open": 241, "userfaultfd": 282,
        "unshare": 97, "setns": 268, "memfd_create": 279, "mq_open": 180, "prlimit64": 261,
        "clone": 220, "kill": 129, "tkill": 130, "rt_sigqueueinfo": 138, "mount": 40,
    },
}
#: The same on both machines: io_uring, pidfd_getfd, memfd_secret, pidfd_send_signal.
URING = (425, 426, 427)
PIDFD_GETFD, MEMFD_SECRET, PIDFD_SEND_SIGNAL, CLONE3 = 438, 447, 424, 435
EACCES, ENOSYS = 13, 38
CLONE_NEWUSER = 0x10000000
OUTPUT_KEPT = 4000
#: What reads /proc twenty times a second sees what grows.
POLL_SECONDS = 0.05

libc = ctypes.CDLL(None, use_errno=True)


def main():
    spec = json.load(sys.stdin)
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    signal.signal(
        signal.SIGTERM, lambda *_: (remove_container(spec), kill_descendants(), os._exit(143))
    )
    report = supervise(spec)
    json.dump(report, sys.stdout)


# --- the supervisor ------------------------------------------------------------------------------


def supervise(spec):
    """Run the command; return why it was ended, its exit status, seconds, memory, output."""
    limits = spec["limits"]
    started = time.monotonic()
    output, pid = start_child(spec)
    os.set_blocking(output, False)
    head, tail, size = b"", b"", 0
    reason, status, usage = "", None, None
    while status is None:
        readable, _, _ = select.select([output], [], [], POLL_SECONDS)
        if readable:
            try:
                block = os.read(output, 1 << 16)
            except OSError:
                block = b""
            size += len(block)
            room = OUTPUT_KEPT - len(head)
            head += block[:room]
            tail = (tail + block[room:])[-OUTPUT_KEPT:] if len(block) > room else tail
            if not block:
                # closed, while the command may go on
                time.sleep(POLL_SECONDS)
        if not reason:
            reason = exceeded(spec, limits, started, size)
            if reason:
                os.kill(pid, signal.SIGKILL)
        ended, code, used = os.wait4(pid, os.WNOHANG)
        if ended:
            status, usage = code, used
    remove_container(spec)
    kill_descendants()
    # what still stands in the pipe
    try:
        block = os.read(output, 1 << 16)
        size += len(block)
        room = OUTPUT_KEPT - len(head)
        head, tail = head + block[:room], (tail + block[room:])[-OUTPUT_KEPT:]
    except OSError:
        pass
    if not reason:
        # the last moment before the end is looked at, too
        reason = exceeded(spec, limits, time.monotonic(), size)
    code = os.WEXITSTATUS(status) if os.WIFEXITED(status) else -os.WTERMSIG(status)
    if not reason and code == -signal.SIGXCPU:
        reason = "timeout"
    return {
        "reason": reason,
        "code": code,
        "seconds": time.monotonic() - started,
        # of a container it is its client's
        "memory_mb": 0 if spec["remove"] else usage.ru_maxrss // 1024,
        "output": head.decode("utf-8", "replace"),
        "tail": tail.decode("utf-8", "replace"),
        "output_bytes": size,
    }


def exceeded(spec, limits, started, output_bytes):
    """Return the limit that the command exceeds: ``timeout``, ``output``, ``disk``; or nothing."""
    if time.monotonic() - started > limits["seconds"]:
        return "timeout"
    if output_bytes > limits["output_mb"] << 20:
        return "output"
    files, size = folder_size(spec["work"])
    if size > limits["work_mb"] << 20 or files > limits["files"]:
        return "disk"
    return ""


def folder_size(folder):
    """Return the number of files and the bytes on disk below a folder; links are not followed."""
    files = size = 0
    stack = [folder]
    while stack:
        try:
            entries = list(os.scandir(stack.pop()))
        except OSError:
            continue
        for entry in entries:
            files += 1
            try:
                if entry.is_dir(follow_symlinks=False):
                    stack.append(entry.path)
                else:
                    size += entry.stat(follow_symlinks=False).st_blocks * 512
            except OSError:
                pass
    return files, size


def remove_container(spec):
    """Remove the container, which its client's end does not end."""
    if spec["remove"]:
        # here alone: it would cost every start of the other tiers 10 ms
        import subprocess

        try:
            subprocess.run(
                spec["remove"],
                env=spec["env"],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=20,
            )
        except (OSError, subprocess.TimeoutExpired):
            # it ends by itself some seconds after its limit
            pass


def kill_descendants():
    """Kill all children until none is left; orphans come to this process, a subreaper."""
    deadline = time.monotonic() + 5
    me = str(os.getpid())
    while time.monotonic() < deadline:
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        for name in os.listdir("/proc"):
            if not name.isdigit():
                continue
            try:
                with open("/proc/%s/stat" % name) as file:
                    parent = file.read().rsplit(")", 1)[1].split()[1]
                if parent == me:
                    os.kill(int(name), signal.SIGKILL)
            except OSError:
                continue
        time.sleep(0.005)


# --- the child -----------------------------------------------------------------------------------


def start_child(spec):
    """Fork, confine the child and run the command; return the read end of its output, its pid."""
    read_end, write_end = os.pipe()
    pid = os.fork()
    if pid:
        os.close(write_end)
        return read_end, pid
    try:
        os.close(read_end)
        os.setsid()
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.dup2(write_end, 1)
        os.dup2(write_end, 2)
        confine(spec)
        os.chdir(spec["folder"])
        os.execve(spec["command"][0], spec["command"], spec["env"])
    except BaseException as error:
        os.write(1, ("confinement failed: %s: %s" % (type(error).__name__, error)).encode())
        os._exit(126)


def confine(spec):
    """Apply limits, and what the tier has; raises where the kernel refuses."""
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if spec["remove"]:
        # a container's client is trusted; limits and confinement are the container's
        return
    builtin = spec["tier"] == "builtin"
    if spec["uid"]:
        open_private_folders(spec["readable"] + spec["writable"])
    ruleset = make_ruleset(spec["readable"], spec["writable"]) if builtin else None
    limits = spec["limits"]
    uid = spec["uid"]
    if uid:
        os.setgroups([])
        os.setgid(uid)
        os.setuid(uid)
    # after setuid, which takes it away
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    for name, value in (
        (resource.RLIMIT_CPU, int(limits["cpu_seconds"]) + 1),
        (resource.RLIMIT_AS, limits["memory_mb"] << 20),
        (resource.RLIMIT_FSIZE, limits["work_mb"] << 20),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NOFILE, 256),
        (resource.RLIMIT_NPROC, limits["processes"] + count_tasks(uid or os.getuid())),
    ):
        _, hard = resource.getrlimit(name)
        if hard != resource.RLIM_INFINITY:
            value = min(value, hard)
        resource.setrlimit(name, (value, value))
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "no_new_privs")
    os.closerange(3, ruleset or 3)
    if ruleset is not None:
        if libc.syscall(LANDLOCK_RESTRICT, ruleset, 0):
            raise OSError(ctypes.get_errno(), "landlock_restrict_self")
        os.close(ruleset)
        filter_calls()
    os.closerange(3, 256)


def open_private_folders(paths):
    """Let another user reach paths below folders that are root's own, such as ``/root``.

    In a namespace of mounts of its own, an empty folder takes the place of the private one, and
    the paths alone are mounted in it: everything else there is gone. Needs CAP_SYS_ADMIN.
    """
    below = {}
    for path in map(os.path.realpath, paths):
        private = private_ancestor(path)
        if private and os.path.exists(path):
            below.setdefault(private, set()).add(path)
    if not below:
        return
    new_namespace, is_private, bind, recursive = 0x00020000, 1 << 18, 4096, 16384
    if libc.unshare(new_namespace):
        raise OSError(
            ctypes.get_errno(),
            "%s cannot be reached by an unprivileged user; chmod a+x it, or set the environment "
            "up elsewhere" % sorted(below)[0],
        )
    mount(b"none", b"/", recursive | is_private)
    for private, inside in below.items():
        handles = {path: os.open(path, os.O_PATH) for path in sorted(inside)}
        mount(b"none", private.encode(), 0, b"tmpfs", b"mode=755,size=64k")
        for path, handle in handles.items():
            source = "/proc/self/fd/%d" % handle
            if os.path.isdir(source):
                os.makedirs(path, exist_ok=True)
            else:
                os.makedirs(os.path.dirname(path), exist_ok=True)
                open(path, "w").close()
            mount(source.encode(), path.encode(), bind)
            os.close(handle)


def mount(source, target, flags, kind=None, data=None):
    if libc.mount(source, target, kind, ctypes.c_ulong(flags), data):
        raise OSError(ctypes.get_errno(), "mount %s" % target.decode())


def private_ancestor(path):
    """Return the first folder above a path that others cannot pass; nothing where all can."""
    steps = path.strip("/").split("/")
    for depth in range(1, len(steps)):
        folder = "/" + "/".join(steps[:depth])
        try:
            about = os.stat(folder)
        except OSError:
            return ""
        if about.st_uid == 0 and not about.st_mode & 0o001:
            return folder
    return ""


def count_tasks(uid):
    """Return how many tasks a user has: RLIMIT_NPROC counts them all, threads included."""
    count = 0
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                if os.stat("/proc/" + name).st_uid == uid:
                    count += len(os.listdir("/proc/%s/task" % name))
            except OSError:
                pass
    return count


def landlock_abi():
    """Return Landlock's version, 0 or less where there is none."""
    return libc.syscall(LANDLOCK_CREATE, None, 0, 1)


class RulesetAttr(ctypes.Structure):
    _fields_ = [("fs", ctypes.c_uint64), ("net", ctypes.c_uint64), ("scope", ctypes.c_uint64)]


class PathRule(ctypes.Structure):
    _pack_ = 1
    _fields_ = [("access", ctypes.c_uint64), ("fd", ctypes.c_int32)]


def make_ruleset(readable, writable):
    """Return a Landlock ruleset: read below these paths, write below those, and nothing else."""
    abi = landlock_abi()
    if abi < MIN_ABI:
        raise OSError("Landlock is of version %d, %d is needed (Linux 6.2)" % (abi, MIN_ABI))
    fs = (1 << 15) - 1 if abi < 5 else (1 << 16) - 1
    # no TCP from version 4, no signals to others and no abstract sockets from version 6
    attr = RulesetAttr(fs, 3 if abi >= 4 else 0, 3 if abi >= 6 else 0)
    size = 8 if abi < 4 else 16 if abi < 6 else 24
    ruleset = libc.syscall(LANDLOCK_CREATE, ctypes.byref(attr), size, 0)
    if ruleset < 0:
        raise OSError(ctypes.get_errno(), "landlock_create_ruleset")
    for paths, rights in ((readable, READ), (writable, fs)):
        for path in paths:
            if not os.path.exists(path):
                continue
            handle = os.open(path, os.O_PATH)
            allowed = rights if os.path.isdir(path) else rights & FILE_RIGHTS
            rule = PathRule(allowed, handle)
            if libc.syscall(LANDLOCK_ADD, ruleset, 1, ctypes.byref(rule), 0):
                raise OSError(ctypes.get_errno(), path)
            os.close(handle)
    return ruleset


def filter_calls():
    """Refuse system calls that reach outside: sockets of any kind, tracing, namespaces, memory
    that no limit counts, and signals where Landlock does not hold them."""
    calls = CALLS.get(os.uname().machine)
    if calls is None:
        raise OSError("no filter for the machine %s" % os.uname().machine)
    refused = [
        calls[name]
        for name in (
            "socket", "ptrace", "process_vm_readv", "process_vm_writev", "shmget", "keyctl",
            "add_key", "request_key", "bpf", "perf_event_open", "userfaultfd", "unshare", "setns",
            "memfd_create", "mq_open", "mount",
        )
    ]
    refused += [*URING, PIDFD_GETFD, MEMFD_SECRET]
    if landlock_abi() < 6:
        refused += [calls["kill"], calls["tkill"], calls["rt_sigqueueinfo"], PIDFD_SEND_SIGNAL]
    load, equal, above, both, give = 0x20, 0x15, 0x35, 0x45, 0x06
    deny, allow, kill = 0x00050000 | EACCES, 0x7FFF0000, 0x80000000
    program = [
        (load, 0, 0, 4), (equal, 1, 0, calls["arch"]), (give, 0, 0, kill),
        (load, 0, 0, 0), (above, 0, 1, 0x40000000), (give, 0, 0, deny),
    ]
    for number in refused:
        program += [(equal, 0, 1, number), (give, 0, 0, deny)]
    # glibc falls back to clone, whose flags can be looked at
    program += [(equal, 0, 1, CLONE3), (give, 0, 0, 0x00050000 | ENOSYS)]
    program += [
        (equal, 0, 4, calls["clone"]),
        (load, 0, 0, 16), (both, 0, 1, CLONE_NEWUSER), (give, 0, 0, deny), (give, 0, 0, allow),
    ]
    # limits of other processes: a limit of nothing ends them
    program += [
        (equal, 0, 4, calls["prlimit64"]),
        (load, 0, 0, 16), (equal, 1, 0, 0), (give, 0, 0, deny), (give, 0, 0, allow),
    ]
    program += [(give, 0, 0, allow)]
    code = b"".join(struct.pack("HBBI", *line) for line in program)
    buffer = ctypes.create_string_buffer(code)

    class Program(ctypes.Structure):
        _fields_ = [("length", ctypes.c_ushort), ("lines", ctypes.c_void_p)]

    whole = Program(len(program), ctypes.cast(buffer, ctypes.c_void_p))
    if libc.prctl(PR_SET_SECCOMP, 2, ctypes.byref(whole), 0, 0):
        raise OSError(ctypes.get_errno(), "seccomp")


if __name__ == "__main__":
    main()
