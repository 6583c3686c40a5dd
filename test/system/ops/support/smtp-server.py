"""A mail server for the suites. Prints its port, then each message that it took as one line of JSON.

Arguments: starttls|tls|none, certificate, key. User robot, password "pa ss: wörd"; with `none` no login.
"""
import asyncio
import base64
import json
import ssl
import sys
import warnings

from aiosmtpd.smtp import SMTP, AuthResult

warnings.simplefilter("ignore")
mode, certificate, key = sys.argv[1:4]
counts = {}


class Handler:
    async def handle_RCPT(self, server, session, envelope, address, options):
        if address.startswith("unknown@"):
            return "550 5.1.1 no such user here"
        if address.startswith("busy@"):
            counts[address] = counts.get(address, 0) + 1
            return "451 4.3.0 try again later"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server, session, envelope):
        print(
            json.dumps(
                {
                    "from": envelope.mail_from,
                    "to": envelope.rcpt_tos,
                    "tls": session.ssl is not None or mode == "tls",
                    "login": bool(session.authenticated),
                    "content": base64.b64encode(envelope.original_content).decode(),
                }
            ),
            flush=True,
        )
        return "250 OK"


def authenticate(server, session, envelope, mechanism, data):
    good = data.login == b"robot" and data.password == "pa ss: wörd".encode()
    return AuthResult(success=good, handled=good)


def context():
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.load_cert_chain(certificate, key)
    return made


def session():
    login = dict(authenticator=authenticate, auth_required=True)
    if mode == "starttls":
        return SMTP(Handler(), tls_context=context(), require_starttls=True, **login)
    if mode == "tls":
        return SMTP(Handler(), auth_require_tls=False, **login)
    return SMTP(Handler())


async def main():
    loop = asyncio.get_running_loop()
    server = await loop.create_server(session, "127.0.0.1", 0, ssl=context() if mode == "tls" else None)
    print(server.sockets[0].getsockname()[1], flush=True)
    await loop.run_in_executor(None, sys.stdin.read)
    server.close()


asyncio.run(main())
