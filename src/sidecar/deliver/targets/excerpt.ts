/** Characters of the last failed response of a handler that are stored with the delivery. */
const ANSWER_KEPT = 1024

/** Patterns of secrets: ours, those of the service, and those in the headers of a request. */
const SECRETS = /\b(whsec_|svc_pat_|Bearer\s+|Basic\s+)[A-Za-z0-9+/=._~-]+/g

/**
 * The beginning of a failed response, in which an operator can read why the app failed. Likely secrets are removed,
 * because an app that fails may answer with the request that it got.
 */
export function excerptOf(body: string): string {
  // Twice as much is searched, so that no secret is cut to a part that no pattern matches.
  const text = body
    .slice(0, 2 * ANSWER_KEPT)
    .replace(SECRETS, '$1[redacted]')
    .trim()
  return text.length > ANSWER_KEPT ? `${text.slice(0, ANSWER_KEPT)}…` : text
}
