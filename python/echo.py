"""An echo over ATM: without arguments the server, with an address the client, which sends the words that follow.

    aerostat exec sello -- python3 python/echo.py
    aerostat exec urku -- python3 python/echo.py sello/e0 hello world
"""

import sys

from aerostat_socket import Service


def serve(service):
    listener = service.listen()
    print("listening at", listener.status()["local"], flush=True)
    while True:
        offer = listener.offer()
        if not offer.qos.startswith("ubr"):
            offer.refuse(21)
            continue
        with offer.accept() as call:
            while pdu := call.recv():
                call.send(pdu)


def main():
    service = Service()
    if len(sys.argv) == 1:
        serve(service)
    with service.call(sys.argv[1], "ubr:sdu=9180") as call:
        for word in sys.argv[2:]:
            call.send(word.encode())
            print(call.recv().decode())


main()
