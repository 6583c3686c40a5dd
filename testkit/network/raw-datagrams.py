"""Raw IPv4 for tests: `send` writes UDP datagrams with any source address, `count` counts received ones. Needs root."""
import errno
import json
import socket
import struct
import sys
import threading

ETH_P_IP = 0x0800
UDP = 17
GROUP = socket.inet_aton('239.255.0.1') + socket.inet_aton('0.0.0.0')


def receive_at(port):
    """Prints each UDP datagram that arrives at a port, also from the multicast group: source address, hexadecimal octets."""
    udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    udp.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    udp.bind(('', port))
    udp.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, GROUP)

    def receive():
        while True:
            payload, (source, _) = udp.recvfrom(65535)
            # One write: several threads print.
            sys.stdout.write(f'{source} {payload.hex()}\n')
            sys.stdout.flush()

    threading.Thread(target=receive, daemon=True).start()
    return udp


def send(ports):
    """
    Reads one datagram per line of standard input: source address, target address, port, hexadecimal octets. Source `-`: an ordinary
    datagram from the first of `ports`, of any size. Prints what arrives at `ports`.
    """
    sockets = [receive_at(port) for port in ports]
    raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
    for line in sys.stdin:
        source, target, port, octets = line.split()
        payload = bytes.fromhex(octets)
        if source == '-':
            try:
                sockets[0].sendto(payload, (target, int(port)))
            except OSError as error:
                # The target's host or port does not exist at the moment.
                if error.errno not in (errno.ECONNREFUSED, errno.EHOSTUNREACH, errno.ENETUNREACH):
                    raise
            continue
        # UDP checksum 0 means none (RFC 768); the kernel fills in length and checksum of the IP header.
        header = struct.pack('!HHHH', 7411, int(port), 8 + len(payload), 0)
        ip = struct.pack('!BBHHHBBH4s4s', 0x45, 0, 0, 0, 0, 64, UDP, 0, socket.inet_aton(source), socket.inet_aton(target))
        raw.sendto(ip + header + payload, (target, 0))
    print('sent', flush=True)


def count(origin):
    """For each line of standard input, prints a line of JSON: UDP datagrams and octets from `origin`, by target address."""
    found = {}
    packets = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(ETH_P_IP))

    def receive():
        while True:
            packet, (_, _, kind, *_) = packets.recvfrom(65535)
            if kind == socket.PACKET_OUTGOING or packet[9] != UDP or socket.inet_ntoa(packet[12:16]) != origin:
                continue
            entry = found.setdefault(socket.inet_ntoa(packet[16:20]), [0, 0])
            entry[0] += 1
            entry[1] += struct.unpack('!H', packet[2:4])[0] - 28

    threading.Thread(target=receive, daemon=True).start()
    print('{}', flush=True)
    for _ in sys.stdin:
        print(json.dumps(found), flush=True)


if sys.argv[1] == 'send':
    send([int(port) for port in sys.argv[2:]])
else:
    count(sys.argv[2])
