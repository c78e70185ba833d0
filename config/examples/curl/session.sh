# Creates a session whose agent calls a tool, and follows it on the sidecar's relay for five seconds.
set -eu
service=http://127.0.0.1:4010
sidecar=http://127.0.0.1:8481

session=$(curl -sf "$service/v1/sessions" \
  -H 'Authorization: Bearer svc_pat_dev' -H 'Content-Type: application/json' \
  -d '{
    "title": "Order 42",
    "agent": { "tools": [{ "type": "function", "name": "lookup_order", "parameters": { "type": "object" } }] },
    "input": { "text": "call lookup_order {\"order_id\":\"42\"}\nsay It is {{last}}" }
  }' | sed 's/.*"id":"\([0-9a-f-]\{36\}\)".*/\1/')

# First the events in the log, then live ones. curl stops after --max-time.
curl -sfN --max-time 5 "$sidecar/v1/sessions/$session/events?last_event_id=0" | grep '^event: ' || true
