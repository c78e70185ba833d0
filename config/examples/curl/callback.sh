# Sends a callback as the sidecar would, signed with secret.txt by Standard Webhooks, and prints the handler's status.
set -eu
handler=http://127.0.0.1:3000/events
id=evt_from_a_shell
timestamp=$(date +%s)
body='{"type":"turn.settled","id":"evt_from_a_shell","session_id":"s","data":{"turn":{"status":"completed"},"session":{"title":"From a shell"}}}'

key=$(sed 's/^whsec_//' secret.txt | openssl base64 -d -A | od -An -v -tx1 | tr -d ' \n')
signature=$(printf '%s' "$id.$timestamp.$body" | openssl dgst -sha256 -mac HMAC -macopt "hexkey:$key" -binary | openssl base64 -A)

curl -s -o callback.out -w '%{http_code}\n' "$handler" -H 'Content-Type: application/json' \
  -H "webhook-id: $id" -H "webhook-timestamp: $timestamp" -H "webhook-signature: v1,$signature" -d "$body"
