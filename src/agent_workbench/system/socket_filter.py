"""Seccomp filter of a confined command, and the broker of its `connect` calls.

A pathname Unix socket is in no network namespace: every process that sees the file can connect. Names do not tell which
sockets belong to the host (relative names, renames, hard links, later binds), and a filter cannot read an address
behind a pointer. So the kernel passes each `connect` of the command to the supervisor. The supervisor copies the
address, opens the path once, and connects the command's socket itself, unless the socket is on a file system that the
command cannot write. Sockets of the host are there; sockets of the command cannot be.

The supervisor both decides and connects: the command could change memory, descriptors or names in between.
Only `supervisor` uses this module. It starts for each command, so the imports are few.
"""

import _thread
import contextlib
import ctypes
import errno
import fcntl
import os
import signal
import struct

# Machine: audit architecture, then the numbers of socket, socketpair and connect. The others are the same on both.
_MACHINES = {"x86_64": (0xC000003E, 41, 53, 42), "aarch64": (0xC00000B7, 198, 199, 203)}
_SECCOMP = {"x86_64": 317, "aarch64": 277}
_IO_URING = (425, 426, 427)
_PIDFD_OPEN, _OPENAT2, _PIDFD_GETFD = 434, 437, 438
# Numbers from here on belong to x32, a second ABI in the same architecture.
_X32 = 0x40000000

_PR_SET_NO_NEW_PRIVS = 38
_SET_MODE_FILTER = 1
_NEW_LISTENER, _WAIT_KILLABLE = 1 << 3, 1 << 5
_NOTIFY_RECEIVE, _NOTIFY_SEND, _NOTIFY_VALID = 0xC0502100, 0xC0182101, 0x80082102
# seccomp_notif: id, pid, flags, then seccomp_data: number, architecture, instruction, six arguments.
_NOTICE = struct.Struct("=QIIiIQ6Q")
_ANSWER = struct.Struct("=QqiI")

_LOAD, _EQUAL, _AT_LEAST, _AND, _RETURN = 0x20, 0x15, 0x35, 0x54, 0x06
_ALLOW, _KILL, _REFUSE, _NOTIFY = 0x7FFF0000, 0x80000000, 0x00050000, 0x7FC00000
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16
_UNIX, _INET, _INET6, _NETLINK = 1, 2, 10, 16
_STREAM, _PACKETS, _TYPES = 1, 5, 0xF

_Line = str | tuple[int | str, ...]
_LONGEST_ADDRESS = 128
_AT_ONCE = 64
_IN_ROOT, _NO_MAGIC_LINKS = 0x10, 0x02
_libc = ctypes.CDLL(None, use_errno=True)


def filter_program(machine: str) -> bytes:
    """Return the BPF program for `machine`; raise `OSError` for an unsupported one.

    Programs of another architecture are killed. io_uring is disabled, because it would bypass the filter. Allowed are
    TCP, UDP and Unix stream sockets, and queries of the routing table by netlink. A Unix datagram names its receiver
    without `connect`, and vsock and others are in no namespace.
    """
    if machine not in _MACHINES:
        raise OSError(errno.ENOSYS, f"no filter for {machine}")
    architecture, new_socket, pair, connect = _MACHINES[machine]
    code: list[_Line] = [
        *((_LOAD, _ARCHITECTURE), (_EQUAL, architecture, "", "kill"), (_LOAD, _NUMBER), (_AT_LEAST, _X32, "kill")),
        *((_EQUAL, number, "absent") for number in _IO_URING),
        *((_EQUAL, connect, "notify"), (_EQUAL, new_socket, "socket"), (_EQUAL, pair, "pair"), (_RETURN, _ALLOW)),
        *("socket", (_LOAD, _ARGUMENTS), (_EQUAL, _UNIX, "pair"), (_EQUAL, _INET, "allow"), (_EQUAL, _INET6, "allow")),
        *((_EQUAL, _NETLINK, "", "family"), (_LOAD, _ARGUMENTS + 16), (_EQUAL, 0, "allow", "family")),
        *("pair", (_LOAD, _ARGUMENTS + 8), (_AND, _TYPES), (_EQUAL, _STREAM, "allow"), (_EQUAL, _PACKETS, "allow")),
        *("family", (_RETURN, _REFUSE | errno.EAFNOSUPPORT), "absent", (_RETURN, _REFUSE | errno.ENOSYS)),
        *("notify", (_RETURN, _NOTIFY), "kill", (_RETURN, _KILL), "allow", (_RETURN, _ALLOW)),
    ]
    return _assembled(code)


def _assembled(code: "list[_Line]") -> bytes:
    """Return the assembled program. A word is a label; a jump has one or two labels, empty for the next line."""
    places: dict[str, int] = {"": 0}
    for line in code:
        if isinstance(line, str):
            places[line] = places[""]
        else:
            places[""] += 1
    program = b""
    for line in code:
        if isinstance(line, str):
            continue
        operation, value, *labels = line
        here = len(program) // 8 + 1
        jumps = [places[str(label)] - here if label else 0 for label in [*labels, "", ""][:2]]
        program += struct.pack("=HBBI", operation, *jumps, value)
    return program


def install() -> int:
    """Install the filter for this process and its descendants; return the listener for their `connect` calls."""
    program = filter_program(os.uname().machine)
    buffer = ctypes.create_string_buffer(program)

    class Program(ctypes.Structure):
        _fields_ = (("length", ctypes.c_ushort), ("code", ctypes.c_void_p))

    told = Program(len(program) // 8, ctypes.addressof(buffer))
    _checked(_libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
    number = _SECCOMP[os.uname().machine]
    try:
        return _call(number, _SET_MODE_FILTER, _NEW_LISTENER | _WAIT_KILLABLE, ctypes.byref(told))
    except OSError as error:
        if error.errno != errno.EINVAL:  # Linux before 5.19 does not know the second flag
            raise
        return _call(number, _SET_MODE_FILTER, _NEW_LISTENER, ctypes.byref(told))


def take_listener(pid: int, descriptor: int) -> int:
    """Return an own descriptor of the listener that process `pid` has as `descriptor`; raise `OSError`."""
    process = _call(_PIDFD_OPEN, pid, 0)
    try:
        return _call(_PIDFD_GETFD, process, descriptor, 0)
    finally:
        os.close(process)


def serve(listener: int, *, abstract: bool) -> None:
    """Answer the `connect` calls that arrive on `listener`, in threads. `abstract` allows names without a file.

    A call may block, so each has a thread; above `_AT_ONCE` threads the next call waits.
    """
    places = _thread.allocate_lock()
    places_left = [_AT_ONCE]

    def one(notice: bytes) -> None:
        try:
            _answer(listener, notice, abstract)
        finally:
            with places:
                places_left[0] += 1

    def loop() -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())  # no signal interrupts a call
        while True:
            notice = bytearray(_NOTICE.size)
            try:
                fcntl.ioctl(listener, _NOTIFY_RECEIVE, notice)
            except OSError as error:
                if error.errno in {errno.EINTR, errno.ENOENT}:  # the caller was killed meanwhile
                    continue
                return
            with places:
                places_left[0] -= 1
                waits = places_left[0] < 0
            if waits:
                one(bytes(notice))
            else:
                _thread.start_new_thread(one, (bytes(notice),))

    _thread.start_new_thread(loop, ())


def _answer(listener: int, notice: bytes, abstract: bool) -> None:
    number, pid, *_, descriptor, address, length, _, _, _ = _NOTICE.unpack(notice)
    failure = 0
    try:
        with contextlib.ExitStack() as stack:
            caller = _Caller(pid, stack)
            # Checked after opening: the descriptors belong to the waiting process, not to one with a reused id.
            fcntl.ioctl(listener, _NOTIFY_VALID, struct.pack("=Q", number))
            caller.connect(descriptor & 0xFFFFFFFF, address, length & 0xFFFFFFFF, abstract)
    except OSError as error:
        failure = error.errno or errno.EACCES
    with contextlib.suppress(OSError):  # whoever asked was killed
        fcntl.ioctl(listener, _NOTIFY_SEND, _ANSWER.pack(number, 0, -failure, 0))


class _Caller:
    """A thread that waits in `connect`, with its memory, root, current folder and process."""

    def __init__(self, thread: int, stack: contextlib.ExitStack) -> None:
        def keep(descriptor: int) -> int:
            stack.callback(os.close, descriptor)
            return descriptor

        self._keep = keep
        self._memory = keep(os.open(f"/proc/{thread}/mem", os.O_RDONLY | os.O_CLOEXEC))
        self._root = keep(os.open(f"/proc/{thread}/root", os.O_PATH | os.O_CLOEXEC))
        self._folder = os.readlink(os.fsencode(f"/proc/{thread}/cwd"))  # noqa: PTH115 - pathlib takes long to import
        self._process = keep(_call(_PIDFD_OPEN, _process_of(thread), 0))

    def connect(self, descriptor: int, address: int, length: int, abstract: bool) -> None:
        """Connect its socket; raise `OSError` with the error for the caller."""
        if not 2 <= length <= _LONGEST_ADDRESS:
            raise OSError(errno.EINVAL, "no address")
        said = b""
        with contextlib.suppress(OSError, OverflowError):  # OverflowError for an address in the kernel's half
            said = os.pread(self._memory, length, address)
        if len(said) != length:
            raise OSError(errno.EFAULT, "not its memory")
        found = self._keep(_call(_PIDFD_GETFD, self._process, descriptor, 0))
        named = struct.unpack("=H", said[:2])[0] == _UNIX
        if named and said[2:3] not in {b"", b"\0"}:
            said = self._own_name(said[2:].partition(b"\0")[0])
        elif named and not abstract:
            raise OSError(errno.EACCES, "a name of the host's network namespace")
        _checked(_libc.connect(found, said, len(said)))

    def _own_name(self, path: bytes) -> bytes:
        """Return an address for the caller's socket at `path`, unless it is a socket of the host."""
        path = os.path.join(self._folder, path)  # noqa: PTH118 - pathlib takes long to import
        how = struct.pack("=QQQ", os.O_PATH | os.O_CLOEXEC, 0, _IN_ROOT | _NO_MAGIC_LINKS)
        file = self._keep(_call(_OPENAT2, self._root, path, how, len(how)))
        if os.fstatvfs(file).f_flag & os.ST_RDONLY:
            raise OSError(errno.EACCES, "a socket of the host")
        return struct.pack("=H", _UNIX) + os.fsencode(f"/proc/self/fd/{file}") + b"\0"


def _process_of(thread: int) -> int:
    with open(f"/proc/{thread}/status", "rb") as status:  # noqa: PTH123 - pathlib takes long to import
        for line in status:
            if line.startswith(b"Tgid:"):
                return int(line.split()[1])
    raise OSError(errno.ESRCH, "")


def _call(number: int, *arguments: object) -> int:
    return _checked(int(_libc.syscall(number, *arguments)))


def _checked(result: int) -> int:
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result
