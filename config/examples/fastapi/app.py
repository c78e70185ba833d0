"""Receives callbacks and runs a tool, with FastAPI."""

import base64
import hashlib
import hmac
import json
import time

from fastapi import Depends, FastAPI, HTTPException, Request

with open("secret.txt") as file:
    KEY = base64.b64decode(file.read().strip().removeprefix("whsec_"))

app = FastAPI()


def is_genuine(headers, body):
    timestamp = headers.get("webhook-timestamp", "")
    if not timestamp.isdigit() or abs(time.time() - int(timestamp)) > 300:
        return False
    signed = f"{headers.get('webhook-id', '')}.{timestamp}.".encode() + body
    expected = "v1," + base64.b64encode(hmac.new(KEY, signed, hashlib.sha256).digest()).decode()
    signatures = headers.get("webhook-signature", "").split(" ")
    return any(hmac.compare_digest(expected.encode(), given.encode()) for given in signatures)


async def verified(request: Request):
    """The signature covers the bytes of the body, so they are parsed after it is verified."""
    body = await request.body()
    if not is_genuine(request.headers, body):
        raise HTTPException(401)
    return json.loads(body)


@app.post("/events", status_code=204)
def take_event(event=Depends(verified)):
    """The same event may come twice: store event["id"] together with what you do."""
    print(event["type"], event["data"]["turn"]["status"], event["data"]["session"]["title"], flush=True)


@app.post("/tools/lookup_order")
def lookup_order(call=Depends(verified)):
    """The model gets what the tool returns."""
    order_id = call["arguments"]["order_id"]
    print(call["name"], order_id, "for the first time", flush=True)
    return {"order_id": order_id, "state": "shipped"}
