/** The input of `init`. */
export interface Answers {
  baseUrl: string
  /** null: the token comes from the environment. */
  tokenFile: string | null
  handlerUrl: string
  tool: string | null
}

/** The address of the tool: beside the handler, in the same app. */
export function toolUrl(handlerUrl: string, tool: string): string {
  return new URL(`/tools/${encodeURIComponent(tool)}`, handlerUrl).href
}

/** JSON strings are valid YAML; "${" is escaped. */
function quoted(text: string): string {
  return JSON.stringify(text).replaceAll('${', () => '$${')
}

/** A configuration with a comment at each value that users often change. */
export function configText({ baseUrl, tokenFile, handlerUrl, tool }: Answers, secretFile: string): string {
  const secret = quoted(secretFile)
  return `# Written by "session-sidecar init". "session-sidecar config schema" has every key; missing keys have their defaults.
service:
  base_url: ${quoted(baseUrl)} # without /v1
  # Needs sessions:read and artifacts:read, and for tools tools:respond and sessions:write.
  ${tokenFile === null ? 'token: ${SERVICE_TOKEN:?create a token in the Console of the service, and export SERVICE_TOKEN=svc_pat_...}' : `token_file: ${quoted(tokenFile)} # read again when it changes`}
  # token_expires_at: 2027-01-31     # the service does not report it; "check" and a metric warn in time

# Facts, deliveries and calls. Put it on a disk that survives the container.
store:
  url: sqlite:data/sidecar.db # relative to this file; in the image to /app

# Which sessions of the organization are this app's. Needed if another sidecar follows the same organization:
# otherwise both run each other's tools. A session must match all given keys.
# scope:
#   metadata: { app: billing }       # set when the session is created
#   created_by_token: tok_1          # the id that a session shows, not the token

# The stream and polling need no public address. Webhooks help if a stream cannot stay open:
# webhooks:
#   enabled: true
#   public_url: https://app.example.com/webhooks   # the sidecar creates the subscription

# The receivers of facts. Act on turn.settled: the turn is over and its artifacts are final.
handlers:
  - name: app
    url: ${quoted(handlerUrl)}
    events: ['turn.*', 'session.*', 'action.*']
    secret_file: ${secret} # signs callbacks, by Standard Webhooks
${tool === null ? EXAMPLE_TOOL : toolText(tool, toolUrl(handlerUrl, tool), secret)}
# Probes, metrics and the API behind the commands.
admin:
  listen: 127.0.0.1:8481
  # token_file: admin-token.txt      # needed when it listens elsewhere than on loopback
`
}

const EXAMPLE_TOOL = `
# Function tools that your app answers:
# tools:
#   - name: lookup_order
#     description: Finds an order by its id
#     parameters: { type: object, properties: { order_id: { type: string } }, required: [order_id] }
#     url: http://127.0.0.1:3000/tools/lookup_order
`

function toolText(name: string, url: string, secret: string): string {
  return `
# Function tools that your app answers. "session-sidecar tools --json" prints the
# declaration for a session.
tools:
  - name: ${quoted(name)}
    description: Describe the tool for the model # here
    parameters: { type: object, properties: {} } # JSON Schema of its arguments
    url: ${quoted(url)}
    secret_file: ${secret}
    after_crash: retry # or fail, for tools that must not run twice
    retry: { attempts: 12, base: 1s, max: 15s } # goes on for about a minute, for a restart of your app
`
}
