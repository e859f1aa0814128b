"""ATM sockets for programs in Python, on the socket service of a running lab of Aerostat.

    from aerostat_socket import Service
    service = Service()                       # AEROSTAT_ATM, or Service("RUNTIME/LAB/atm/HOST.sock")
    socket = service.call("sello", "cbr:max_pcr=1Mbps,sdu=1000")
    socket.send(b"hello")
    print(socket.recv(1000))                  # b"": the call has ended
    print(socket.status()["why"])

A Socket is a descriptor of the kernel (fileno()): one packet is one PDU, and select, selectors and asyncio's add_reader
work with it. A listener is readable if a call waits for an answer:

    listener = service.listen()
    offer = listener.offer()                  # offer.caller, offer.called, offer.sap, offer.qos, offer.user_data
    socket = offer.accept()                   # or offer.refuse(21)

Errors are AtmError, an OSError with the cause of Q.850 and the field that is wrong. One thread at a time may ask a
Service; threads that make calls at the same time have a Service each.

The messages are those of docs/protocols/sockets.md. This module needs Python 3.9 and nothing else.
"""

import os
import re as _re
import socket as _socket
import struct

VERSION = 4
_STATUS = (
    "state local peer sap qos label".split(),
    "sent_pdus sent_octets refused unsent received_pdus received_octets unread damaged".split(),
)


class AtmError(OSError):
    """A request failed: errno, strerror, cause (of Q.850, or None), field and offset of a text that is wrong, and
    user_data, what the other end said when it refused."""

    def __init__(self, errno, text, cause=None, field="", offset=0, user_data=b""):
        super().__init__(errno, text)
        self.cause, self.field, self.offset, self.user_data = cause, field, offset, user_data


def _data(octets):
    """User data: at most 128 octets."""
    if len(octets) > 128:
        raise AtmError(90, f"{len(octets)} octets of user data: a message of a call carries at most 128")
    return bytes([len(octets)]) + bytes(octets)


def _text(value):
    octets = value.encode()
    return struct.pack(">H", len(octets)) + octets


def _longest(qos):
    """Octets of the longest SDU that this end may send with a contract as texts have it."""
    sent = _re.split("(?:^|[:,])rx:", qos)[0] if "tx:" in qos else qos
    found = _re.search(r"\bsdu=(\d+)", sent)
    return int(found[1]) if found and int(found[1]) else 65535


class _Fields:
    def __init__(self, octets):
        self.octets, self.at = octets, 0

    def number(self, form):
        (value,) = struct.unpack_from(">" + form, self.octets, self.at)
        self.at += struct.calcsize(">" + form)
        return value

    def text(self):
        length = self.number("H")
        self.at += length
        return self.octets[self.at - length : self.at].decode()

    def data(self):
        length = self.number("B")
        self.at += length
        return bytes(self.octets[self.at - length : self.at])


class Service:
    """A connection to the socket service of a host."""

    def __init__(self, path=None):
        path = path or os.environ.get("AEROSTAT_ATM")
        if not path:
            raise AtmError(2, "AEROSTAT_ATM is not set: run the program by 'aerostat exec HOST -- PROGRAM'")
        self._session = _socket.socket(_socket.AF_UNIX, _socket.SOCK_SEQPACKET)
        try:
            self._session.connect(path)
        except OSError as error:
            raise AtmError(error.errno, f"no socket service at {path}: {error.strerror}; does the lab run, and has it this host?") from None
        self._number = 0
        fields, _ = self._ask(1, struct.pack(">H", VERSION))
        fields.number("H")
        self.host, self.address = fields.text(), fields.text()

    def _ask(self, kind, body=b"", descriptors=()):
        self._number = self._number % 65535 + 1
        message = struct.pack(">HH", self._number, kind) + body
        try:
            _socket.send_fds(self._session, [message], descriptors)
        except (BrokenPipeError, ConnectionResetError):
            pass  # The service may have said why it has closed the connection.
        try:
            octets, got, _, _ = _socket.recv_fds(self._session, 8192, 1)
        except ConnectionResetError:
            octets, got, _, _ = _socket.recv_fds(self._session, 8192, 1)
        if not octets:
            raise AtmError(104, "the lab has ended, or its host is off")
        fields = _Fields(octets)
        fields.number("H")
        if fields.number("H") == 0x108:
            errno, cause = fields.number("H"), fields.number("B")
            field, offset, text = fields.text(), fields.number("H"), fields.text()
            raise AtmError(errno, text, cause or None, field, offset, fields.data())
        return fields, got

    def names(self):
        """Names that can be called, with their addresses."""
        fields, _ = self._ask(12)
        return {fields.text(): fields.text() for _ in range(fields.number("H"))}

    def socket(self):
        """A new socket."""
        fields, got = self._ask(2)
        return Socket(self, fields.number("Q"), got[0])

    def adopt(self, descriptor):
        """The socket of a descriptor that this process has inherited or was given."""
        fields, _ = self._ask(11, descriptors=[descriptor])
        return Socket(self, fields.number("Q"), descriptor)

    def call(self, called, qos="ubr", sap="", timeout=None, user_data=b""):
        """Makes a call, and waits until it can be used, at most timeout seconds. called is an ATM address, a name of the lab
        or an IPv4 address, the latter two with an optional selector: "sello/e1", "10.0.0.2"."""
        made = self.socket()
        made.connect(called, qos, sap, timeout, user_data=user_data)
        return made

    def listen(self, sap="", address="", backlog=16):
        """Listens at a free address of the host, or at the one that is given."""
        made = self.socket()
        made.bind(address, sap)
        made.listen(backlog)
        return made

    def close(self):
        self._session.close()


class Socket:
    """An ATM socket. The last copy of its descriptor that is closed ends its call."""

    def __init__(self, service, reference, descriptor):
        self._service, self._reference = service, reference
        self._pipe = _socket.socket(fileno=descriptor)
        self._most, self._listening = None, False

    def _ask(self, kind, body=b""):
        return self._service._ask(kind, struct.pack(">Q", self._reference) + body)

    def fileno(self):
        return self._pipe.fileno()

    def setblocking(self, blocking):
        self._pipe.setblocking(blocking)

    def settimeout(self, seconds):
        self._pipe.settimeout(seconds)

    def bind(self, address="", sap=""):
        """Gives the socket an address of its host ("": a free one) and an access point; returns the address."""
        fields, _ = self._ask(3, _text(address) + _text(sap))
        return fields.text()

    def listen(self, backlog=16):
        self._ask(4, struct.pack(">HH", backlog, 0))

    def connect(self, called, qos="ubr", sap="", timeout=None, multipoint=False, reports=False, user_data=b""):
        """Makes a call; returns the contract that was agreed.

        With multipoint it is the root of a point-to-multipoint call, which sends to its leaves. With reports, recv_left
        tells of leaves that leave. The called side sees user_data (at most 128 octets; UNI 4.0) before it answers; what
        it says in its answer is user_data of this socket then."""
        millis = 0 if timeout is None else max(1, int(timeout * 1000))
        body = _text(called) + _text(sap) + _text(qos) + struct.pack(">IBB", millis, multipoint, reports) + _data(user_data)
        return self._connected(self._ask(5, body))

    def add_party(self, called, user_data=b""):
        """Adds a leaf to a point-to-multipoint call, and waits for its answer; returns its number. The leaf sees user_data;
        what it says in its answer is user_data of this socket then."""
        fields, _ = self._ask(14, _text(called) + _data(user_data))
        number = fields.number("H")
        self.user_data = fields.data()
        return number

    def drop_party(self, party):
        """Drops a leaf (0: the first one); with the last leaf the call ends."""
        self._ask(15, struct.pack(">H", party))

    def parties(self):
        """The leaves: their addresses by number. A leaf that has not answered yet is left out."""
        found, start, more = {}, 0, 1
        while more:
            fields, _ = self._ask(16, struct.pack(">H", start))
            for _ in range(fields.number("H")):
                number, called, active = fields.number("H"), fields.text(), fields.number("B")
                start = number + 1
                if active:
                    found[number] = called
            more = fields.number("I")
        return found

    def recv_left(self):
        """At a root with reports: number and cause of the next leaf that leaves; None: the call has ended."""
        octets = self.recv(64)
        return struct.unpack(">HB", octets) if octets else None

    def open_permanent(self, label, qos="ubr"):
        """Uses a permanent connection of the host, by its label VPI.VCI.

        With aal0 in qos, SDUs are cells of 52 octets."""
        return self._connected(self._ask(6, _text(label) + _text(qos)))

    def _connected(self, answer):
        fields, _ = answer
        self.label, self.qos, self.user_data = fields.text(), fields.text(), fields.data()
        self._most = _longest(self.qos)
        return self.qos

    def offer(self):
        """The next call that waits for an answer of this listener. EINVAL: the socket is no listener."""
        if not self._listening:
            # A listener that was adopted, or a socket whose packets are no offers.
            state = self.status()["state"]
            if state != "listening":
                raise AtmError(22, f"the socket is {state}, not listening")
            self._listening = True
        octets = self._pipe.recv(8192)
        if not octets:
            raise AtmError(104, "the lab has ended, or its host is off")
        return Offer(self, _Fields(octets))

    def accept(self):
        """Accepts the next call, whatever it is."""
        return self.offer().accept()

    def send(self, pdu):
        """Sends a PDU; a PDU without octets is not sent. EMSGSIZE: it is longer than the contract allows; ENOTCONN: the
        socket has had no call."""
        if self._most is None:
            # A socket that was accepted or adopted, or one without a call.
            found = self.status()
            if found["state"] in ("idle", "bound", "listening"):
                raise AtmError(107, f"the socket is {found['state']}, not connected")
            self._most = _longest(found["qos"])
        if len(pdu) > self._most:
            raise AtmError(90, f"a PDU of {len(pdu)} octets: the contract allows {self._most}")
        if pdu:
            self._pipe.send(pdu)

    def recv(self, most=65535):
        """The next PDU; b"": the call has ended."""
        try:
            return self._pipe.recv(most)
        except ConnectionResetError:
            return b""

    def status(self):
        """State, addresses, contract, counts, cause, and the end in words."""
        fields, _ = self._ask(10)
        found = {name: fields.text() for name in _STATUS[0]}
        found["cause"], found["why"] = fields.number("B"), fields.text()
        found.update((name, fields.number("Q")) for name in _STATUS[1])
        found["offers"], found["missed"] = fields.number("H"), fields.number("Q")
        found["leaves"], found["user_data"] = fields.number("H"), fields.data()
        return found

    def release(self, cause=16, user_data=b""):
        """Ends the call with this cause, once what was written has left; the other end gets user_data."""
        self._ask(9, struct.pack(">B", cause) + _data(user_data))

    def close(self):
        self._pipe.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class Offer:
    """A call that waits for an answer, for 5 s; a program that drops it without one refuses it with cause 18 then."""

    def __init__(self, listener, fields):
        self._listener, self._number = listener, fields.number("I")
        self.caller, self.called, self.sap, self.qos = (fields.text() for _ in range(4))
        self.multipoint, self.user_data = bool(fields.number("B")), fields.data()

    def accept(self, qos="", user_data=b""):
        """Accepts the call, and waits until it can be used; the caller gets user_data.

        With qos, on these terms: smaller SDUs than offered, and a lower rate if the offer has a min_pcr."""
        fields, got = self._listener._ask(7, struct.pack(">I", self._number) + _text(qos) + _data(user_data))
        return Socket(self._listener._service, fields.number("Q"), got[0])

    def refuse(self, cause=21, user_data=b""):
        """Refuses the call; the caller gets the cause and user_data."""
        self._listener._ask(8, struct.pack(">IB", self._number, cause) + _data(user_data))
