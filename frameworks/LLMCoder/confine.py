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
LIST = 1 << 3
READ = (1 << 0) | (1 << 2) | LIST
FILE_RIGHTS = (1 << 0) | (1 << 1) | (1 << 2) | (1 << 14)
#: System calls that reach outside, by name: their numbers on x86_64 and on aarch64, -1 where there
#: is none. Sockets of any kind, tracing, namespaces, memory that no limit counts, keys, what
#: outlives a run in the kernel, and notices of what others do.
REFUSED = {
    "socket": (41, 198), "ptrace": (101, 117), "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271), "keyctl": (250, 219), "add_key": (248, 217),
    "request_key": (249, 218), "bpf": (321, 280), "perf_event_open": (298, 241),
    "userfaultfd": (323, 282), "unshare": (272, 97), "setns": (308, 268),
    "memfd_create": (319, 279), "mount": (165, 40), "migrate_pages": (256, 238),
    "move_pages": (279, 239), "io_uring_setup": (425, 425), "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427), "pidfd_getfd": (438, 438), "memfd_secret": (447, 447),
    "shmget": (29, 194), "shmctl": (31, 195), "shmat": (30, 196), "shmdt": (67, 197),
    "semget": (64, 190), "semctl": (66, 191), "semop": (65, 193), "semtimedop": (220, 192),
    "msgget": (68, 186), "msgctl": (71, 187), "msgrcv": (70, 188), "msgsnd": (69, 189),
    "mq_open": (240, 180), "mq_unlink": (241, 181),
    "inotify_init": (253, -1), "inotify_init1": (294, 26), "inotify_add_watch": (254, 27),
    "fanotify_init": (300, 262),
}
#: The same where Landlock does not hold signals.
SIGNALS = {
    "kill": (62, 129), "tkill": (200, 130), "rt_sigqueueinfo": (129, 138),
    "pidfd_send_signal": (424, 424),
}
#: Answered with success and not done: modes, owners, times and attributes of files, which Landlock
#: does not know, and how others are scheduled. Programs set them in passing, as shutil.copy does.
IGNORED = {
    "chmod": (90, -1), "fchmod": (91, 52), "fchmodat": (268, 53), "fchmodat2": (452, 452),
    "chown": (92, -1), "fchown": (93, 55), "lchown": (94, -1), "fchownat": (260, 54),
    "utime": (132, -1), "utimes": (235, -1), "futimesat": (261, -1), "utimensat": (280, 88),
    "setxattr": (188, 5), "lsetxattr": (189, 6), "fsetxattr": (190, 7),
    "removexattr": (197, 14), "lremovexattr": (198, 15), "fremovexattr": (199, 16),
    "setxattrat": (463, 463), "removexattrat": (466, 466), "file_setattr": (469, 469),
    "setpriority": (141, 140), "sched_setparam": (142, 118), "sched_setscheduler": (144, 119),
    "sched_setaffinity": (203, 122), "sched_setattr": (314, 274), "ioprio_set": (251, 30),
}
#: Looked at or answered in a way of their own.
CALLS = {"clone": (56, 220), "clone3": (435, 435), "prlimit64": (302, 261), "fallocate": (285, 47)}
#: The number of the architecture, and the place in the pairs above.
MACHINES = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1)}
EACCES, ENOSYS, EOPNOTSUPP = 13, 38, 95
CLONE_NEWUSER = 0x10000000
OUTPUT_KEPT = 4000
#: What a command inherits of bwrap's tier: where bwrap says that it started, and its filter.
TELL, FILTER = 10, 11
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
    output, told, pid = start_child(spec)
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
    # what still stands in the pipes
    os.set_blocking(told, False)
    try:
        start = os.read(told, 1 << 16).decode("utf-8", "replace")
    except OSError:
        start = ""
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
    text = head.decode("utf-8", "replace")
    if spec["tier"] == "bwrap" and start[:1] in ("", "{"):
        # it says "exit-code" of what it has started, and nobody else can
        failed = text if code > 0 and not reason and '"exit-code"' not in start else ""
    else:
        failed = start
    return {
        "reason": reason,
        "failed": failed,
        "code": code,
        "seconds": time.monotonic() - started,
        # of a container it is its client's
        "memory_mb": 0 if spec["remove"] else usage.ru_maxrss // 1024,
        "output": text,
        "tail": tail.decode("utf-8", "replace"),
        "output_bytes": size,
    }


def exceeded(spec, limits, started, output_bytes):
    """Return the limit that the run exceeds: ``timeout``, ``output``, ``disk``, ``memory``."""
    if time.monotonic() - started > limits["seconds"]:
        return "timeout"
    if output_bytes > limits["output_mb"] << 20:
        return "output"
    files, size = folder_size(spec["work"], limits["files"])
    if size > limits["work_mb"] << 20 or files > limits["files"]:
        return "disk"
    if spec["remove"]:
        # a container holds its memory itself, and its processes are not below this one
        return ""
    processes = descendants()
    if size + unlinked_size(processes) > limits["work_mb"] << 20:
        return "disk"
    if memory_of(processes) > limits["memory_mb"] << 20:
        return "memory"
    return ""


def folder_size(folder, most_files):
    """Return the number of files and the bytes on disk below a folder; links are not followed.

    What cannot be looked at, a path that is too long or a folder without rights, counts as more
    files than any limit allows.
    """
    files = size = 0
    stack = [folder]
    while stack and files <= most_files:
        place = stack.pop()
        try:
            try:
                entries = list(os.scandir(place))
            except PermissionError:
                os.chmod(place, 0o700)
                entries = list(os.scandir(place))
            for entry in entries:
                files += 1
                if entry.is_dir(follow_symlinks=False):
                    stack.append(entry.path)
                else:
                    size += entry.stat(follow_symlinks=False).st_blocks * 512
        except (FileNotFoundError, NotADirectoryError):
            # gone meanwhile
            continue
        except OSError:
            return most_files + 1, size
    return files, size


def descendants():
    """Return the ids of all processes of the run: orphans come to this process, a subreaper."""
    parents = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open("/proc/%s/stat" % name) as file:
                    parents[int(name)] = int(file.read().rsplit(")", 1)[1].split()[1])
            except OSError:
                continue
    found = {os.getpid()}
    grows = True
    while grows:
        more = {child for child, parent in parents.items() if parent in found} - found
        grows = bool(more)
        found |= more
    return sorted(found - {os.getpid()})


def memory_of(processes):
    """Return the bytes of memory of all processes together, shared pages counted once."""
    resident = sum(read_kilobytes(process, "status", "VmRSS:") for process in processes)
    if len(processes) < 2:
        return resident << 10
    # what a fork shares with its parent stands in both; the exact count costs more
    shares = [read_kilobytes(process, "smaps_rollup", "Pss:") for process in processes]
    return (sum(shares) or resident) << 10


def read_kilobytes(process, name, key):
    """Return a figure out of a file of /proc; 0 where it cannot be read."""
    try:
        with open("/proc/%d/%s" % (process, name)) as file:
            return next((int(line.split()[1]) for line in file if line.startswith(key)), 0)
    except OSError:
        return 0


def unlinked_size(processes):
    """Return the bytes of files that have lost their names and are still open or mapped."""
    sizes = {}
    for process in processes:
        try:
            handles = os.listdir("/proc/%d/fd" % process)
        except OSError:
            continue
        for handle in handles:
            path = "/proc/%d/fd/%s" % (process, handle)
            try:
                if os.readlink(path).endswith(" (deleted)"):
                    about = os.stat(path)
                    sizes[about.st_dev, about.st_ino] = about.st_blocks * 512
            except OSError:
                continue
    # closed again, but mapped
    for process in processes:
        try:
            with open("/proc/%d/maps" % process) as file:
                lines = [line.split(None, 5) for line in file if line.endswith(" (deleted)\n")]
        except OSError:
            continue
        for span, _, _, device, inode, _ in lines:
            first, last = (int(end, 16) for end in span.split("-"))
            major, minor = (int(part, 16) for part in device.split(":"))
            key = os.makedev(major, minor), int(inode)
            sizes.setdefault(key, 0)
            sizes[key] = max(sizes[key], last - first)
    return sum(sizes.values())


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
    while time.monotonic() < deadline:
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        for process in descendants():
            try:
                os.kill(process, signal.SIGKILL)
            except OSError:
                continue
        time.sleep(0.005)


# --- the child -----------------------------------------------------------------------------------


def start_child(spec):
    """Fork, confine the child and run the command.

    Returns
    -------
    output, told : int
        Read ends of what the command prints, and of what only those say who start it.
    pid : int
    """
    read_end, write_end = os.pipe()
    told, tell = os.pipe()
    pid = os.fork()
    if pid:
        os.close(write_end)
        os.close(tell)
        return read_end, told, pid
    try:
        os.close(read_end)
        os.close(told)
        os.setsid()
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.dup2(write_end, 1)
        os.dup2(write_end, 2)
        is_bwrap = spec["tier"] == "bwrap"
        if is_bwrap:
            load_filter()
        # what the command inherits beside its output: bwrap says there whether it could start
        os.dup2(tell, TELL, inheritable=is_bwrap)
        confine(spec)
        os.chdir(spec["folder"])
        os.execve(spec["command"][0], spec["command"], spec["env"])
    except BaseException as error:
        # not on the output, where a program could say the same
        os.write(TELL, ("%s: %s" % (type(error).__name__, error)).encode())
        os._exit(126)


def load_filter():
    """Leave the filter of system calls where bwrap looks for it."""
    read_end, write_end = os.pipe()
    os.write(write_end, call_filter(holds_signals=True))
    os.close(write_end)
    os.dup2(read_end, FILTER, inheritable=True)


def confine(spec):
    """Apply limits, and what the tier has; raises where the kernel refuses."""
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if spec["remove"]:
        # a container's client is trusted; limits and confinement are the container's
        return
    builtin = spec["tier"] == "builtin"
    if spec["uid"]:
        open_private_folders(spec["readable"] + spec["writable"])
    ruleset = make_ruleset(spec["readable"], spec["writable"], spec["hidden"]) if builtin else None
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
    close_all_but(TELL, FILTER, ruleset)
    if ruleset is not None:
        if libc.syscall(LANDLOCK_RESTRICT, ruleset, 0):
            raise OSError(ctypes.get_errno(), "landlock_restrict_self")
        os.close(ruleset)
        filter_calls()


def close_all_but(*kept):
    """Close what this process has open beside its output."""
    for handle in range(3, 256):
        if handle not in kept:
            try:
                os.close(handle)
            except OSError:
                pass


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


def make_ruleset(readable, writable, hidden):
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
    rules = [(path, fs) for path in writable]
    for path in sorted(set(map(os.path.realpath, readable))):
        rules += readable_parts(path, hidden)
    for path, rights in rules:
        if not os.path.exists(path):
            continue
        handle = os.open(path, os.O_PATH)
        allowed = rights if os.path.isdir(path) else rights & FILE_RIGHTS
        rule = PathRule(allowed, handle)
        if libc.syscall(LANDLOCK_ADD, ruleset, 1, ctypes.byref(rule), 0):
            raise OSError(ctypes.get_errno(), path)
        os.close(handle)
    return ruleset


def readable_parts(path, hidden):
    """Return rules that open a path without what is hidden below: a rule cannot take away again."""
    below = [folder for folder in hidden if (folder + "/").startswith(path + "/")]
    if path in below:
        return []
    if not below:
        return [(path, READ)]
    rules = [(path, LIST)]
    for entry in os.scandir(path):
        # a link stands for another path, which is opened or hidden itself
        if not entry.is_symlink():
            rules += readable_parts(entry.path, below)
    return rules


def call_filter(holds_signals):
    """Return a seccomp filter as bytes, eight for each line."""
    if os.uname().machine not in MACHINES:
        raise OSError("no filter for the machine %s" % os.uname().machine)
    arch, place = MACHINES[os.uname().machine]
    calls = {name: numbers[place] for name, numbers in CALLS.items()}
    refused = dict(REFUSED) if holds_signals else {**REFUSED, **SIGNALS}
    load, equal, above, both, give = 0x20, 0x15, 0x35, 0x45, 0x06
    answer, allow, kill = 0x00050000, 0x7FFF0000, 0x80000000
    deny = answer | EACCES
    program = [
        (load, 0, 0, 4), (equal, 1, 0, arch), (give, 0, 0, kill),
        (load, 0, 0, 0), (above, 0, 1, 0x40000000), (give, 0, 0, deny),
    ]
    for table, outcome in ((refused, deny), (IGNORED, answer)):
        for numbers in table.values():
            if numbers[place] >= 0:
                program += [(equal, 0, 1, numbers[place]), (give, 0, 0, outcome)]
    # glibc falls back to clone, whose flags can be looked at, and to writing zeros
    program += [(equal, 0, 1, calls["clone3"]), (give, 0, 0, answer | ENOSYS)]
    program += [(equal, 0, 1, calls["fallocate"]), (give, 0, 0, answer | EOPNOTSUPP)]
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
    return b"".join(struct.pack("HBBI", *line) for line in program)


def filter_calls():
    """Put this process under the filter."""
    code = call_filter(holds_signals=landlock_abi() >= 6)
    buffer = ctypes.create_string_buffer(code)

    class Program(ctypes.Structure):
        _fields_ = [("length", ctypes.c_ushort), ("lines", ctypes.c_void_p)]

    whole = Program(len(code) // 8, ctypes.cast(buffer, ctypes.c_void_p))
    if libc.prctl(PR_SET_SECCOMP, 2, ctypes.byref(whole), 0, 0):
        raise OSError(ctypes.get_errno(), "seccomp")


if __name__ == "__main__":
    main()
