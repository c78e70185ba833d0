/** Characters of a handler's failing answer that are kept, the last one of each delivery. */
const ANSWER_KEPT = 1024

/** What secrets look like: ours, the service's, and what a request carries in its head. */
const SECRETS = /\b(whsec_|svc_pat_|Bearer\s+|Basic\s+)[A-Za-z0-9+/=._~-]+/g

/**
 * How an answer begins, for a person. The app wrote it and the database is its owner's, so its words stay; what looks like
 * a secret does not, since an app that fails may answer with the request that it got.
 */
export function excerptOf(body: string): string {
  // Twice as much is looked at, so that no secret is cut where it would no longer look like one.
  const text = body
    .slice(0, 2 * ANSWER_KEPT)
    .replace(SECRETS, '$1[redacted]')
    .trim()
  return text.length > ANSWER_KEPT ? `${text.slice(0, ANSWER_KEPT)}…` : text
}
