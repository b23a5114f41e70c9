"""Where the model's programs run: a confinement that stopped every attack in this session, or none.

==========  =====================================================================================
``bwrap``   bubblewrap: namespaces of its own for files, processes and the network
``builtin`` Landlock and seccomp, which need no program and no privilege, on Linux 6.2 or later
``podman``  a container without a network, of an image without a file
``docker``  the same
``none``    limits alone; has to be written, and stands in AMLB's column of parameters
==========  =====================================================================================

The first that holds is taken. Containers stand last: the same attacks end in them, and starting
one takes several times as long.

Each tier is supervised by ``confine.py``, which keeps time, memory, disk and output, and ends what
a program leaves behind. Started as root, programs run as an unprivileged user.
"""

from __future__ import annotations

import dataclasses
import glob
import json
import os
import pwd
import re
import shutil
import stat
import subprocess
import sys
import tempfile

from .confine import FILTER, TELL
from .containers import (
    CONTAINERS,
    client_environment,
    container_command,
    container_reason,
)

HERE = os.path.dirname(os.path.abspath(__file__))
TIERS = ("bwrap", "builtin", *CONTAINERS)
#: What the dynamic loader and Python read, beside the environment itself.
SYSTEM = ("/usr", "/lib", "/lib64", "/bin", "/etc/ld.so.cache", "/etc/localtime")
DEVICES = ("/dev/null", "/dev/zero", "/dev/urandom", "/dev/random")
#: Data sets of packages and of the system, which programs do not get to see.
PACKAGE_PLACES = ("lib*/python3*/*-packages", "local/lib/python3*/*-packages", "Lib/site-packages")
DATA_PLACES = ("lib*/R", "share/R", "share/dataset*", "*nltk_data", "share/*nltk_data")
DATA_NAME = re.compile(r"(^|_)(data|datasets?|sample_?data)$")
DATA_ENDINGS = (
    ".csv", ".csv.gz", ".tsv", ".npy", ".npz", ".arff", ".arff.gz", ".parquet", ".feather", ".jpg",
    ".jpeg", ".png", ".pkl", ".pkl.gz", ".mat", ".h5", ".rda", ".rds", ".xlsx",
)
#: The work folder as programs of bwrap see it, and as all outputs name it.
INSIDE = "/coder"
#: A range that systemd sets aside for short-lived users; each process of ours takes another.
FIRST_UID, UIDS = 61184, 4000


class SandboxError(RuntimeError):
    """No confinement holds here, or the one that was asked for does not."""


@dataclasses.dataclass(frozen=True)
class Limits:
    """What a program may use.

    Attributes
    ----------
    seconds : float
        Of wall time; as much again of processor time for each of ``cores``.
    memory_mb, work_mb, output_mb : int
        Of address space, of its work folder, of what it prints.
    files, processes, cores : int
    """

    seconds: float = 600.0
    memory_mb: int = 4096
    work_mb: int = 512
    output_mb: int = 16
    files: int = 10_000
    processes: int = 64
    cores: int = 1

    @property
    def cpu_seconds(self):
        """Processor time, of all cores together."""
        return int(self.seconds * self.cores) + 2

    def to_json(self):
        """Return the limits as ``confine.py`` reads them."""
        return {**dataclasses.asdict(self), "cpu_seconds": self.cpu_seconds}


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What came of a program.

    Attributes
    ----------
    reason : str
        Empty where it ended by itself with status 0; else ``error``, ``timeout``, ``memory``,
        ``output``, ``disk``, or ``harness`` where the confinement itself failed.
    output : str
        The first and the last 4,000 characters of what it printed.
    seconds : float
    memory_mb : int
        0 where it is not known, as in a container.
    """

    reason: str
    output: str
    seconds: float
    memory_mb: int


class Sandbox:
    """A tier with an interpreter.

    Parameters
    ----------
    tier : {'bwrap', 'builtin', 'podman', 'docker', 'none'}
    python : str
        The interpreter that runs the programs; its environment is readable, nothing else.

    Raises
    ------
    SandboxError
        The interpreter does not start, or its environment holds the home or this folder.
    """

    def __init__(self, tier, python=sys.executable):
        self.tier = tier
        self.python, self.readable = find_environment(os.path.abspath(python))
        self.hidden = data_folders((*SYSTEM, *self.readable))
        self.check_closed([*homes(), HERE])

    def check_closed(self, closed):
        """Raise where what programs may read holds what they must not, such as the test rows."""
        if self.tier == "none":
            return
        for folder in (*SYSTEM, *self.readable):
            for path in filter(os.path.exists, closed):
                if is_inside(os.path.realpath(path), os.path.realpath(folder)):
                    raise SandboxError(
                        f"{folder} is open to the programs of {self.python} and holds {path}: they "
                        "could read keys and test rows there; use an environment in a folder of "
                        "its own (python -m venv FOLDER)"
                    )

    def run(self, work, limits=Limits(), data=None, flags=("-I", "-u")):
        """Run ``main.py`` of a work folder.

        Parameters
        ----------
        work : str
            A folder of :func:`new_work_folder`.
        limits : Limits
        data : str, optional
            A folder that the program finds as ``data``, to read only.
        flags : sequence of str
            For the interpreter.

        Returns
        -------
        Outcome
        """
        has_own_files = self.tier == "bwrap" or self.tier in CONTAINERS
        inside = INSIDE if has_own_files else work
        place = os.path.join(work, "data")
        if data is not None and not os.path.lexists(place):
            if has_own_files:
                os.mkdir(place)
            else:
                os.symlink(data, place)
        uid = give_away(work) if os.getuid() == 0 and self.tier != "none" else 0
        command = [self.python, *flags, "main.py"]
        env = program_environment(inside, limits)
        remove = []
        if self.tier == "bwrap":
            command = self._bwrap(work, data, env) + command
        elif self.tier in CONTAINERS:
            start, remove = container_command(
                self.tier,
                work=work,
                inside=inside,
                data=data,
                readable=[*SYSTEM, *self.readable],
                hidden=self.hidden,
                env=env,
                limits=limits,
                uid=uid,
            )
            command = start + command
            env = client_environment()
        spec = {
            "tier": self.tier,
            "command": command,
            "remove": remove,
            "folder": work,
            "work": work,
            "env": env,
            "uid": uid,
            "limits": limits.to_json(),
            "readable": [*SYSTEM, *DEVICES, *self.readable, *([data] if data else [])],
            "writable": [work, "/dev/null"],
            "hidden": self.hidden,
        }
        supervisor = [sys.executable, "-I", "-S", os.path.join(HERE, "confine.py")]
        try:
            done = subprocess.run(
                supervisor,
                input=json.dumps(spec).encode(),
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                timeout=limits.seconds + 30,
                env={"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"},
            )
            report = json.loads(done.stdout)
        except (OSError, ValueError, subprocess.TimeoutExpired) as error:
            return Outcome("harness", f"{type(error).__name__}: {error}", 0.0, 0)
        return self._outcome(report, work)

    def works(self):
        """Whether a harmless program runs."""
        work = new_work_folder("print(1)")
        try:
            return self.run(work, Limits(seconds=30.0)).output == "1\n"
        finally:
            remove_work_folder(work)

    def _outcome(self, report, work):
        output = report["output"]
        left_out = report["output_bytes"] - len(output) - len(report["tail"])
        if report["tail"]:
            middle = f"\n[... {left_out} characters ...]\n" if left_out > 0 else ""
            output += middle + report["tail"]
        # the folder's random name would make every answer of the model another one
        output = output.replace(work, INSIDE)
        reason = report["reason"]
        if report["failed"]:
            reason, output = "harness", f"The confinement failed: {report['failed']}"
        if not reason and self.tier in CONTAINERS:
            reason = container_reason(report["code"])
            # what the client says a program can say as well: if a harmless one runs, it was one
            if reason == "harness" and self.works():
                reason = "error"
        if not reason and report["code"]:
            reason = "error"
            if "MemoryError" in output[-400:] or "std::bad_alloc" in output[-400:]:
                reason = "memory"
        return Outcome(reason, output, report["seconds"], report["memory_mb"])

    def _bwrap(self, work, data, env):
        program = shutil.which("bwrap")
        if program is None:
            raise SandboxError("bubblewrap is not installed (bwrap)")
        command = [program, "--unshare-all", "--die-with-parent", "--new-session", "--clearenv"]
        command += ["--json-status-fd", str(TELL), "--seccomp", str(FILTER)]
        for name, value in env.items():
            command += ["--setenv", name, value]
        command += ["--ro-bind", "/usr", "/usr", "--proc", "/proc", "--dev", "/dev"]
        # before what lies below it is bound, which it would hide
        command += ["--size", str(64 << 20), "--tmpfs", "/tmp"]
        for name in ("lib", "lib64", "bin"):
            if os.path.islink("/" + name):
                command += ["--symlink", os.readlink("/" + name), "/" + name]
            elif os.path.isdir("/" + name):
                command += ["--ro-bind", "/" + name, "/" + name]
        for path in ("/etc/ld.so.cache", "/etc/localtime", *self.readable):
            if os.path.exists(path) and not path.startswith("/usr/"):
                command += ["--ro-bind", path, path]
        for path in self.hidden:
            command += ["--size", "4096", "--tmpfs", path, "--remount-ro", path]
        command += ["--bind", work, INSIDE]
        if data:
            command += ["--ro-bind", data, INSIDE + "/data"]
        # these are memory, which no limit of a process counts
        command += ["--size", str(64 << 20), "--tmpfs", "/dev/shm"]
        command += ["--remount-ro", "/dev", "--remount-ro", "/"]
        return command + ["--chdir", INSIDE, "--"]


def find_environment(python):
    """Return the interpreter itself, and the folders and files that it reads.

    The word may be a link, or a script that starts one of several versions: the interpreter says
    what it is and where its prefixes are. Nothing above them is opened.
    """
    # with site, which tells a virtual environment from what it stands on
    code = (
        "import json, sys; print(json.dumps([sys.executable, sys.prefix, sys.exec_prefix, "
        "sys.base_prefix, sys.base_exec_prefix]))"
    )
    done = subprocess.run(
        [python, "-I", "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    try:
        program, *prefixes = json.loads(done.stdout)
    except ValueError:
        said = done.stderr.decode("utf-8", "replace")[-300:].strip()
        raise SandboxError(f"{python} is no interpreter that starts: {said}") from None
    # a virtual environment is known by the folder of the link, all others by what it leads to
    if prefixes[0] == prefixes[2]:
        program = os.path.realpath(program)
    paths = {*prefixes, *map(os.path.realpath, prefixes)}
    if not any(is_inside(os.path.realpath(program), path) for path in paths):
        paths.add(os.path.realpath(program))
    return program, sorted(paths - {"/usr"})


def data_folders(opened):
    """Return the folders of data sets below what is opened: answers to tasks made of these.

    Of packages it is what stands in a folder called after data and holds files of rows or images;
    the folder's programs, as those of ``sklearn.datasets``, stay.
    """
    found = set()
    for root in {os.path.realpath(path) for path in opened}:
        for pattern in DATA_PLACES:
            found.update(glob.glob(os.path.join(root, pattern)))
        for pattern in PACKAGE_PLACES:
            for packages in glob.glob(os.path.join(root, pattern)):
                found.update(_data_below(packages))
    whole = {os.path.realpath(path) for path in found}
    return sorted(p for p in whole if not any(is_inside(p, other) for other in whole - {p}))


def _data_below(packages):
    """Yield the folders of data of packages, outermost first; nothing below one is looked at."""
    for folder, names, files in os.walk(packages):
        steps = folder[len(packages) :].split(os.sep)
        if not any(DATA_NAME.search(step) for step in steps):
            continue
        # tests keep theirs in many folders
        is_of_tests = DATA_NAME.search(steps[-1]) and {"test", "tests"} & set(steps)
        if is_of_tests or any(file.endswith(DATA_ENDINGS) for file in files):
            names.clear()
            yield folder


def homes():
    """Return the home folders of whoever runs this: of the settings, and of the system."""
    found = {os.path.expanduser("~")}
    try:
        found.add(pwd.getpwuid(os.getuid()).pw_dir)
    except KeyError:
        # a container may run as a user that nobody has written down
        pass
    return sorted(found)


def is_inside(path, folder):
    """Whether a path is a folder or stands below it; both without links."""
    return os.path.commonpath([path, folder]) == folder


def program_environment(work, limits):
    """Return the environment of a program: nothing of ours."""
    threads = str(limits.cores)
    return {
        "PATH": "/usr/bin:/bin",
        "HOME": work,
        "TMPDIR": work,
        "LANG": "C.UTF-8",
        "PYTHONHASHSEED": "0",
        "PYTHONDONTWRITEBYTECODE": "1",
        "MPLCONFIGDIR": work,
        "OMP_NUM_THREADS": threads,
        "OPENBLAS_NUM_THREADS": threads,
        "JOBLIB_MULTIPROCESSING": "0",
        "LOKY_MAX_CPU_COUNT": threads,
    }


def new_work_folder(code, parent=None):
    """Make a folder with ``main.py`` and an empty ``results``; return its path."""
    work = os.path.realpath(tempfile.mkdtemp(prefix="coder-", dir=parent))
    os.mkdir(os.path.join(work, "results"))
    with open(os.path.join(work, "main.py"), "w", encoding="utf-8", newline="\n") as file:
        file.write(code)
    return work


def remove_work_folder(work):
    """Remove a work folder, also one whose program took away its own rights, or nested deeply."""
    for command in (["chmod", "-R", "u+rwx", work], ["rm", "-rf", work]):
        subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def give_away(work):
    """Give a work folder to an unprivileged user; return the user's number."""
    uid = FIRST_UID + os.getpid() % UIDS
    for path in (work, os.path.join(work, "results"), os.path.join(work, "main.py")):
        os.chown(path, uid, uid)
    return uid


def read_result(work, name, max_bytes):
    """Return the bytes of a file in ``results``, None where there is none.

    A link, a device, or a file with another name elsewhere is refused: it may stand for a file
    that the program could not read itself.

    Raises
    ------
    ValueError
        It is no plain file, or larger than ``max_bytes``.
    """
    nofollow = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    folder = None
    try:
        folder = os.open(os.path.join(work, "results"), os.O_RDONLY | os.O_DIRECTORY | nofollow)
        handle = os.open(name, os.O_RDONLY | nofollow, dir_fd=folder)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ValueError(f"results/{name} cannot be read: {error.strerror}") from None
    finally:
        if folder is not None:
            os.close(folder)
    try:
        about = os.fstat(handle)
        if not stat.S_ISREG(about.st_mode) or about.st_nlink != 1:
            raise ValueError(f"results/{name} is a link or no plain file")
        if about.st_size > max_bytes:
            raise ValueError(f"results/{name} has {about.st_size} bytes, at most {max_bytes} serve")
        with os.fdopen(os.dup(handle), "rb") as file:
            return file.read(max_bytes)
    finally:
        os.close(handle)
