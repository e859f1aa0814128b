#!/usr/bin/env python3
"""Cells over UDP, one in a datagram: receives them with the kernel's time stamps, or sends as many as are taken.

    stamps.py receive ADDRESS PORT VCI FILE   until SIGTERM; FILE: pairs of a time in ns and a number of cells
    stamps.py send ADDRESS PORT SECONDS

Only the standard library of Python is used, and none of Aerostat's code.
"""

import array
import os
import signal
import socket
import struct
import sys
import time

CELL = 53
SO_SNDBUFFORCE, SO_RCVBUFFORCE, SO_TIMESTAMPNS_NEW, UDP_SEGMENT, UDP_GRO = 32, 33, 64, 103, 104
BUFFER = 256 << 20


class Ended(Exception):
    """SIGTERM has come."""


def receive(address, port, vci, path):
    """All cells of a datagram buffer came at the same instant: the sender gave them to its kernel in one call."""
    def ended(*_):
        raise Ended
    here = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    here.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, BUFFER)
    here.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS_NEW, 1)
    here.setsockopt(socket.IPPROTO_UDP, UDP_GRO, 1)
    here.bind((address, port))
    seen = array.array("q")
    # The third octet of the header has bits 4 to 11 of the VCI.
    octet = vci >> 4 & 255
    os.write(sys.stdout.fileno(), b"ready\n")
    try:
        signal.signal(signal.SIGTERM, ended)
        while True:
            data, more, _, _ = here.recvmsg(65536, 128)
            count = data[2::CELL].count(octet)
            if count == 0 or len(data) % CELL:
                continue
            for level, kind, value in more:
                if level == socket.SOL_SOCKET and kind == SO_TIMESTAMPNS_NEW:
                    seconds, nanos = struct.unpack("qq", value[:16])
                    seen.append(seconds * 1_000_000_000 + nanos)
                    seen.append(count)
    except Ended:
        pass
    with open(path, "wb") as file:
        seen.tofile(file)


def read(path):
    """The time of each cell, ns."""
    pairs = array.array("q")
    with open(path, "rb") as file:
        pairs.frombytes(file.read())
    times = array.array("q")
    for at, count in zip(pairs[::2], pairs[1::2]):
        times.extend([at] * count)
    return times


def send(address, port, seconds, batch=32):
    """Cells of VC 0.100 as fast as the kernel takes them, many in one call: a full queue makes the call wait."""
    there = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    there.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE, 16 << 20)
    there.setsockopt(socket.IPPROTO_UDP, UDP_SEGMENT, CELL)
    there.connect((address, port))
    cells = batch * (bytes([0, 0, 100 >> 4, (100 & 15) << 4, 0]) + bytes(48))
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        there.send(cells)


if __name__ == "__main__":
    if sys.argv[1] == "receive":
        receive(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5])
    else:
        send(sys.argv[2], int(sys.argv[3]), float(sys.argv[4]))
