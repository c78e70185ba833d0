# python3 verify.py SECRET ID TIMESTAMP SIGNATURES NOW < body
import base64
import hashlib
import hmac
import sys


def is_genuine(secret, id, timestamp, signatures, body, now):
    if not timestamp.isdigit() or abs(now - int(timestamp)) > 300:
        return False
    key = base64.b64decode(secret.removeprefix("whsec_"))
    signed = f"{id}.{timestamp}.".encode() + body
    expected = "v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    return any(hmac.compare_digest(expected.encode(), given.encode()) for given in signatures.split(" "))


secret, id, timestamp, signatures, now = sys.argv[1:]
genuine = is_genuine(secret, id, timestamp, signatures, sys.stdin.buffer.read(), int(now))
print("genuine" if genuine else "forged")
